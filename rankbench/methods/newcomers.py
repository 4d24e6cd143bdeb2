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
_ROUNDING = 1e-14  # of a value


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
    x = np.zeros(vectors.shape[1])
    now, value, gradient = _at(vectors, loss, x)
    for _ in range(_STEPS):
        step = _newton_step(vectors, now, gradient)
        promised = float(gradient @ step)
        if not np.isfinite(promised):
            return np.full(len(x), np.nan)
        if -promised <= _SHORT * float(x @ x):
            return np.asarray(x + step)
        for length in halved(_TRIALS):
            found, trial, slope = _at(vectors, loss, x + length * step)
            level = trial <= value + _ROUNDING * abs(value) and abs(float(slope @ step)) <= -promised / 2
            if level or sufficient(trial, value, length, promised):
                break
        else:
            return x
        x, now, value, gradient = x + length * step, found, trial, slope
    return x


@one_blas_thread()
def minima(lists: Ints, items: Ints, vectors: Floats, loss_of: Callable[[int], Callable[[Floats], Bent]]) -> Floats:
    """`minimum` for each user, who has items[begin:end], (begin, end) being a row of `lists`; zeros without an item."""
    found = np.zeros((len(lists), vectors.shape[1]))
    for user, (begin, end) in enumerate(lists.tolist()):
        if end > begin:
            found[user] = minimum(vectors[items[begin:end]], loss_of(user))
    return found


def _at(vectors: Floats, loss: Callable[[Floats], Bent], x: Floats) -> tuple[Bent, float, Floats]:
    """The loss at x, and the objective with its gradient."""
    found = loss(vectors @ x)
    return found, found.loss + float(x @ x) / 2, found.slope @ vectors + x


def _newton_step(vectors: Floats, now: Bent, gradient: Floats) -> Floats:
    """-H^-1 gradient, where H holds the second derivatives, or if these are not positive definite, the convex part."""
    for convex in (False, True):
        matrix = now.curve(vectors, convex=convex)
        matrix.flat[:: len(matrix) + 1] += 1.0
        _, step, failed = scipy.linalg.lapack.dposv(matrix, -gradient)
        if not failed:
            return np.asarray(step)
    return np.full(len(gradient), np.nan)
