"""The vector of one user at a minimum of a loss of their scores with a penalty, by Newton's method."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg.lapack

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats, Ints
from rankbench.methods.line_search import halved, sufficient

_STEPS = 200
_TRIALS = 40  # of a line search
_SHORT = 1e-17  # of |x|^2: a step d with d^T H d below it is the last one
_STALE = 0.05  # of the d^T H d of the step before: if it is still more, the second derivatives are computed anew
_ROUNDING = 1e-14  # of the largest score and of a value: losses are differences of scores


class Bent(NamedTuple):
    """A loss at a user's scores, with its derivatives by them.

    `curve(V)` is V^T L V, where L holds the second derivatives; `curve(V, convex=True)` leaves out, or bounds, what
    keeps L from being positive semidefinite.
    """

    loss: float
    slope: Floats
    curve: Callable[..., Floats]


def minimum(vectors: Floats, loss: Callable[[Floats], Bent]) -> Floats:
    """The vector x, from zero on, at a minimum of loss(V x) + 1/2 |x|^2; V has a row for each of the user's scores.

    The loss must have a continuous derivative. If it is convex, so that there is one minimum, this is it. NaN where
    numbers are too large.
    """
    now = _at(vectors, loss, np.zeros(vectors.shape[1]))
    factor, before = _factored(vectors, now.bent), np.inf
    for _ in range(_STEPS):
        step, promised = _step(factor, now.gradient)
        if promised > _STALE * before:
            factor = _factored(vectors, now.bent)
            step, promised = _step(factor, now.gradient)
        if not np.isfinite(promised):
            return np.full(len(step), np.nan)
        if promised <= _SHORT * float(now.x @ now.x):
            return np.asarray(now.x + step)
        for length in halved(_TRIALS):
            found = _at(vectors, loss, now.x + length * step)
            level = found.value <= now.value + now.rounding and abs(float(found.gradient @ step)) <= promised / 2
            if level or sufficient(found.value, now.value, length, -promised):
                break
        else:
            return now.x
        now, before = found, promised
    return now.x


@one_blas_thread()
def minima(lists: Ints, items: Ints, vectors: Floats, loss_of: Callable[[int], Callable[[Floats], Bent]]) -> Floats:
    """`minimum` for each user, who has items[begin:end], (begin, end) being a row of `lists`; zeros without an item."""
    found = np.zeros((len(lists), vectors.shape[1]))
    for user, (begin, end) in enumerate(lists.tolist()):
        if end > begin:
            found[user] = minimum(vectors[items[begin:end]], loss_of(user))
    return found


class _Point(NamedTuple):
    """A vector with its loss, and the value and the gradient of the objective."""

    x: Floats
    bent: Bent
    value: float
    gradient: Floats
    rounding: float  # of the value


def _at(vectors: Floats, loss: Callable[[Floats], Bent], x: Floats) -> _Point:
    scores = vectors @ x
    bent = loss(scores)
    value = bent.loss + float(x @ x) / 2
    return _Point(x, bent, value, bent.slope @ vectors + x, _ROUNDING * (abs(value) + float(np.abs(scores).max())))


def _factored(vectors: Floats, now: Bent) -> Floats:
    """The Cholesky factor of the second derivatives, or if these are not positive definite, of the convex part."""
    for convex in (False, True):
        matrix = now.curve(vectors, convex=convex)
        matrix.flat[:: len(matrix) + 1] += 1.0
        factor, failed = scipy.linalg.lapack.dpotrf(matrix)
        if not failed:
            return np.asarray(factor)
    return np.full(matrix.shape, np.nan)


def _step(factor: Floats, gradient: Floats) -> tuple[Floats, float]:
    """The step d that a factor of second derivatives H gives, and d^T H d."""
    step = -scipy.linalg.lapack.dpotrs(factor, gradient)[0]
    return np.asarray(step), -float(gradient @ step)
