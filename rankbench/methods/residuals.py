"""SVRank's problem over the m residuals instead of their m^2/2 pairs: Newton's method on a rounded loss, with a gap.

min over w of P(w) = |w|^2 + c sum_{i<j} max(|r_j - r_i| - eps, 0), r = h - y, h = <w, phi(x)>. The kink is
rounded over a width mu: a pair at t = |r_j - r_i| - eps costs t^2/(2 mu) for 0 <= t < mu, t - mu/2 beyond. Every
pair then has one multiplier |b| <= 1, and a = -c g, g_j = sum_i b_ij, is a point of the dual
D(a) = -1/4 a^T K a + a . y - c eps sum |b| of the problem as it is, not only of the rounded one: P - D is a true
gap. With w_a = sum a_i phi(x_i) / 2 it is |w - w_a|^2, which Newton's method brings to zero, and c sum t (1 - b)
over the near pairs, at most c mu / 4 each. Sorting gives all sums over pairs in
O(m log m), the Hessian is the Laplacian of an interval graph and is applied in O(m). So mu falls by a factor of
5 once Newton's method has caught up, until the gap is small enough.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg

from rankbench.contract import Floats, Ints
from rankbench.kernels import residuals as kernel
from rankbench.methods.conjugate_gradients import Blocks, conjugate_gradients
from rankbench.methods.line_search import halved, sufficient

_FALL = 0.2  # of mu, from level to level
_LEAST = 1e-11  # of mu, against the spread of the targets: below, rounding rules
_NEWTON = 50  # steps at a level, at most
_CONJUGATE = 500  # steps of conjugate gradients for one step of Newton's method, at most
_SOLVED = 1e-4  # of the residual, in the squared norm of the space, at which a Newton direction is exact enough
_TRIALS = 30  # of the line search
_ROUNDING = 1e-14  # of the trace of a system, by which it is no longer definite


@dataclass(frozen=True, eq=False)
class Pairs:
    """What the sorted residuals say about all their pairs, at some eps and mu, for c = 1."""

    rounded: float
    loss: float
    slack: float  # sum of t (1 - b) over the near pairs
    gradient: Floats
    order: Ints
    bounds: Ints
    mu: float

    @classmethod
    def of(cls, r: Floats, eps: float, mu: float) -> "Pairs":
        """The loss and its derivatives at r."""
        order, bounds, gradient = np.empty(len(r), np.int32), np.empty((len(r), 4), np.int32), np.empty(len(r))
        return cls(*kernel.measure(r, eps, mu, order, bounds, gradient), gradient, order, bounds, mu)

    def hessian_times(self, x: Floats) -> Floats:
        """The rounded loss's second derivative times each column of x."""
        product: Floats = kernel.near_laplacian_times(self.order, self.bounds, x)
        product /= self.mu
        return product


class FunctionSpace(Protocol):
    """Where w lives: its coordinates x, the scores they give, and how to solve Newton's system there."""

    def scores(self, x: Floats) -> Floats:
        """h at the m points."""
        ...

    def inner(self, x: Floats, other: Floats, other_scores: Floats) -> float:
        """<x, other>, where the scores of `other` are known."""
        ...

    def of_dual(self, a: Floats) -> Floats:
        """The coordinates of sum a_i phi(x_i) / 2."""
        ...

    def direction(self, gradient: Floats, pairs: Pairs, c: float) -> Floats:
        """-(2 I + c H)^-1 gradient."""
        ...

    @property
    def start(self) -> Floats:
        """The coordinates of w = 0."""
        ...


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """w itself, over m x n centred features: Newton's system is solved by Cholesky, O(m n^2)."""

    features: Floats

    @property
    def start(self) -> Floats:
        """w = 0."""
        return np.zeros(self.features.shape[1])

    def scores(self, x: Floats) -> Floats:
        """X w."""
        return self.features @ x

    def inner(self, x: Floats, other: Floats, other_scores: Floats) -> float:
        """x . other."""
        return float(x @ other)

    def of_dual(self, a: Floats) -> Floats:
        """X^T a / 2."""
        return 0.5 * (a @ self.features)

    def direction(self, gradient: Floats, pairs: Pairs, c: float) -> Floats:
        """The Newton direction by a Cholesky factor, damped where rounding would spoil that."""
        system = self.features.T @ pairs.hessian_times(self.features)
        system *= c
        diagonal = np.diag_indices_from(system)
        system[diagonal] += 2.0 + _ROUNDING * system[diagonal].sum()
        factor = scipy.linalg.cho_factor(system, overwrite_a=True, check_finite=False)
        solved: Floats = scipy.linalg.cho_solve(factor, -gradient, check_finite=False)
        return solved


@dataclass(frozen=True, eq=False)
class KernelSpace:
    """Coefficients over the m points, by products with a centred kernel matrix: conjugate gradients, one product each.

    Newton's system (2 I + c H K) x = -gradient is self-adjoint in the inner product x^T K x, and there the
    conjugate gradients run.
    """

    size: int
    times: Callable[[Floats], Floats]  # K x

    @classmethod
    def of_matrix(cls, gram: Floats) -> "KernelSpace":
        """The space of a kernel matrix, which is centred."""
        return cls(len(gram), lambda x: gram @ x)

    @classmethod
    def of_features(cls, features: Floats) -> "KernelSpace":
        """The space of the inner products of centred features, more of them than a system could have."""
        return cls(len(features), lambda x: features @ (x @ features))

    @property
    def start(self) -> Floats:
        """No coefficient."""
        return np.zeros(self.size)

    def scores(self, x: Floats) -> Floats:
        """K x."""
        return self.times(x)

    def inner(self, x: Floats, other: Floats, other_scores: Floats) -> float:
        """x^T K other."""
        return float(x @ other_scores)

    def of_dual(self, a: Floats) -> Floats:
        """a / 2."""
        return 0.5 * a

    def direction(self, gradient: Floats, pairs: Pairs, c: float) -> Floats:
        """The Newton direction to a hundredth of its residual, or as far as the steps allow."""

        def times(ahead: Blocks) -> Blocks:
            """(2 I + c H K) x from x and its scores K x."""
            x, scores = ahead
            return (2.0 * x + c * pairs.hessian_times(scores[:, None])[:, 0],)

        def with_scores(left: Blocks) -> Blocks:
            """x and K x: the products with K that the inner product needs, one for each iteration."""
            return left[0], self.scores(left[0])

        def inner(left: Blocks, ahead: Blocks) -> float:
            """left^T K ahead."""
            return float(left[0] @ ahead[1])

        found = conjugate_gradients(
            times, (-gradient,), lambda start: _SOLVED * start, _CONJUGATE, precondition=with_scores, inner=inner
        )
        return found[0]


@dataclass(frozen=True, eq=False)
class ResidualProblem:
    """The targets, the weight of a pair, and the width in which a pair costs nothing."""

    y: Floats
    c: float
    eps: float

    def pairs(self, scores: Floats, mu: float) -> Pairs:
        """The loss of all pairs, rounded over mu."""
        return Pairs.of(scores - self.y, self.eps, mu)


@dataclass(frozen=True, eq=False)
class SmoothedPoint:
    """Coordinates, their scores, the primal value and gap there, and the width of rounding that comes next."""

    x: Floats
    scores: Floats
    primal: float
    gap: float
    mu: float
    least: float  # mu below which rounding errors rule

    @classmethod
    def start(cls, space: FunctionSpace, problem: ResidualProblem) -> "SmoothedPoint":
        """w = 0, before any level."""
        spread = float(np.ptp(problem.y)) or 1.0
        return cls(space.start, np.zeros(len(problem.y)), 0.0, np.inf, 0.5 * spread, _LEAST * spread)

    def ended(self, tolerance: float) -> bool:
        """Whether the gap is small enough, or cannot become smaller."""
        return self.gap <= tolerance * self.primal or self.mu < self.least


def level(space: FunctionSpace, problem: ResidualProblem, start: SmoothedPoint, tolerance: float) -> SmoothedPoint:
    """Newton's method from a point at its mu, until what is left of the gap is mostly the rounding."""
    x, scores, mu = start.x, start.scores, start.mu
    for _ in range(_NEWTON):
        pairs = problem.pairs(scores, mu)
        half = x - space.of_dual(-problem.c * pairs.gradient)
        away = space.inner(half, half, space.scores(half))
        slack = problem.c * pairs.slack
        primal = space.inner(x, x, scores) + problem.c * pairs.loss
        if away + slack <= tolerance * primal or away <= 0.1 * max(slack, tolerance * primal):
            break
        move = space.direction(2.0 * half, pairs, problem.c)
        moved = space.scores(move)
        slope = 2.0 * space.inner(half, move, moved)
        length = _length(space, problem, (x, scores), (move, moved), pairs, slope)
        x, scores = x + length * move, scores + length * moved
    return SmoothedPoint(x, scores, primal, away + slack, _FALL * mu, start.least)


def _length(
    space: FunctionSpace,
    problem: ResidualProblem,
    here: tuple[Floats, Floats],
    move: tuple[Floats, Floats],
    pairs: Pairs,
    slope: float,
) -> float:
    """The length of the step along the move, 1 or 1/2 or 1/4, ..., that decreases the rounded loss sufficiently."""
    (x, scores), (dx, moved) = here, move
    across, square = 2.0 * space.inner(x, dx, moved), space.inner(dx, dx, moved)
    for length in halved(_TRIALS):
        rounded = problem.pairs(scores + length * moved, pairs.mu).rounded
        change = length * (across + length * square) + problem.c * (rounded - pairs.rounded)
        if sufficient(change, 0.0, length, slope):
            return length
    return length / 2  # rounding hides the decrease: a step so short does no harm
