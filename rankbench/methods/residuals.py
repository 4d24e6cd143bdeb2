"""Newton's method on a smoothed loss for SVRank, over m residuals instead of m^2/2 pairs, with a duality gap.

min over w of P(w) = |w|^2 + c sum_{i<j} max(|r_j - r_i| - eps, 0), r = h - y, h = <w, phi(x)>. The kink is
smoothed over a width mu: a pair at t = |r_j - r_i| - eps costs t^2/(2 mu) for 0 <= t < mu, t - mu/2 beyond. Every
pair then has one multiplier |b| <= 1, and a = -c g, g_j = sum_i b_ij, is a point of the dual
D(a) = -1/4 a^T K a + a . y - c eps sum |b| of the original problem, not only of the smoothed one: P - D is a valid
duality gap. With w_a = sum a_i phi(x_i) / 2 it is the sum of |w - w_a|^2, which Newton's method brings to zero, and
of c sum t (1 - b) over the near pairs, at most c mu / 4 each. Sorting gives all sums over pairs in
O(m log m), the Hessian is the Laplacian of an interval graph and is applied in O(m). mu is divided
by 5 whenever Newton's method has converged well enough, until the gap is small enough.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from rankbench.core.contract import Floats, Int32s
from rankbench.kernels.methods import residuals as kernel
from rankbench.methods.conjugate_gradients import Blocks, conjugate_gradients
from rankbench.methods.line_search import halved, sufficient

_FALL = 0.2  # the factor by which mu shrinks from level to level
_LEAST = 1e-11  # the smallest mu, relative to the range of the targets: below, rounding errors dominate
_NEWTON = 50  # Newton steps at a level, at most
_CONJUGATE = 500  # conjugate gradient iterations for one Newton step, at most
_SOLVED = 1e-4  # of the residual, in the squared norm of the space, at which a Newton direction is exact enough
_TRIALS = 30  # of the line search
_ROUNDING = 1e-14  # damping of Newton's system, relative to its trace, that keeps it positive definite


@dataclass(frozen=True, eq=False)
class Pairs:
    """The smoothed loss of all pairs of residuals with its gradient and Hessian, at some eps and mu, for c = 1."""

    smoothed: float
    loss: float  # without smoothing
    slack: float  # sum of t (1 - b) over the near pairs
    gradient: Floats
    order: Int32s
    bounds: Int32s
    mu: float

    @classmethod
    def of(cls, r: Floats, eps: float, mu: float) -> "Pairs":
        """The loss and its derivatives at r."""
        order, bounds, gradient = np.empty(len(r), np.int32), np.empty((len(r), 4), np.int32), np.empty(len(r))
        smoothed, loss, slack = kernel.measure(r=r, eps=eps, mu=mu, order=order, bounds=bounds, gradient=gradient)
        return cls(smoothed, loss, slack, gradient, order, bounds, mu)

    def hessian_times(self, x: Floats) -> Floats:
        """The Hessian of the smoothed loss times each column of x."""
        product = kernel.near_laplacian_times(order=self.order, bounds=self.bounds, x=x)
        product /= self.mu
        return product


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """Functions whose coordinates are the weights of m x n centred features; Newton's system is solved by Cholesky.

    That takes O(m n^2).
    """

    features: Floats

    @property
    def start(self) -> Floats:
        """The coordinates of w = 0."""
        return np.zeros(self.features.shape[1])

    def scores(self, x: Floats) -> Floats:
        """The scores of the m items under coordinates x: X x."""
        return self.features @ x

    def inner(self, x: Floats, other: Floats, other_scores: Floats) -> float:
        """The inner product <x, other>, for which other spaces need the scores of `other`: x . other."""
        return float(x @ other)

    def of_dual(self, a: Floats) -> Floats:
        """The coordinates of sum a_i phi(x_i) / 2: X^T a / 2."""
        return 0.5 * (a @ self.features)

    def direction(self, gradient: Floats, pairs: Pairs, c: float) -> Floats:
        """The Newton direction -(2 I + c H)^-1 gradient, by Cholesky; the system is damped against rounding errors."""
        system = self.features.T @ pairs.hessian_times(self.features)
        system *= c
        diagonal = np.diag_indices_from(system)
        system[diagonal] += 2.0 + _ROUNDING * system[diagonal].sum()
        factor = scipy.linalg.cho_factor(system, overwrite_a=True, check_finite=False)
        solved: Floats = scipy.linalg.cho_solve(factor, -gradient, check_finite=False)
        return solved


@dataclass(frozen=True, eq=False)
class KernelSpace:
    """Functions whose coordinates are coefficients of m items under a centred kernel, by conjugate gradients.

    Newton's system (2 I + c H K) x = -gradient is self-adjoint in the inner product x^T K x, in which the conjugate
    gradients are computed. An iteration costs one product with the kernel matrix K.
    """

    size: int
    times: Callable[[Floats], Floats]  # K x

    @classmethod
    def of_matrix(cls, gram: Floats) -> "KernelSpace":
        """The space of a centred kernel matrix."""
        return cls(len(gram), lambda x: gram @ x)

    @classmethod
    def of_features(cls, features: Floats) -> "KernelSpace":
        """The space of the inner products of centred features that are too many for a direct solution."""
        return cls(len(features), lambda x: features @ (x @ features))

    @property
    def start(self) -> Floats:
        """All coefficients zero."""
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
        """The Newton direction by conjugate gradients, until the residual is a hundredth or iterations run out."""

        def times(ahead: Blocks) -> Blocks:
            """(2 I + c H K) x from x and its scores K x."""
            x, scores = ahead
            return (2.0 * x + c * pairs.hessian_times(scores[:, None])[:, 0],)

        def with_scores(left: Blocks) -> Blocks:
            """x and its scores K x, which the inner product needs: one product with K for each iteration."""
            return left[0], self.scores(left[0])

        def inner(left: Blocks, ahead: Blocks) -> float:
            """left^T K ahead."""
            return float(left[0] @ ahead[1])

        found = conjugate_gradients(
            times, (-gradient,), lambda start: _SOLVED * start, _CONJUGATE, precondition=with_scores, inner=inner
        )
        return found[0]


FunctionSpace = FeatureSpace | KernelSpace


@dataclass(frozen=True, eq=False)
class ResidualProblem:
    """The problem of one user: targets y, the weight c of a pair, and the eps within which a pair costs nothing."""

    y: Floats
    c: float
    eps: float

    def pairs(self, scores: Floats, mu: float) -> Pairs:
        """The loss of all pairs, smoothed over mu."""
        return Pairs.of(scores - self.y, self.eps, mu)


@dataclass(frozen=True, eq=False)
class SmoothedPoint:
    """A point with its scores, primal value and duality gap, and the smoothing width mu of the next level."""

    x: Floats
    scores: Floats
    primal: float
    gap: float
    mu: float
    least: float  # the mu below which rounding errors dominate

    @classmethod
    def start(cls, space: FunctionSpace, problem: ResidualProblem) -> "SmoothedPoint":
        """The point w = 0, before the first level."""
        spread = float(np.ptp(problem.y)) or 1.0
        return cls(space.start, np.zeros(len(problem.y)), 0.0, np.inf, 0.5 * spread, _LEAST * spread)

    def ended(self, tolerance: float) -> bool:
        """Whether the gap is small enough, or cannot become smaller."""
        return self.gap <= tolerance * self.primal or self.mu < self.least


def level(space: FunctionSpace, problem: ResidualProblem, start: SmoothedPoint, tolerance: float) -> SmoothedPoint:
    """The end of Newton's method at one mu: it stops once the gap is mostly due to the smoothing, or no step helps."""
    x, scores, mu = start.x, start.scores, start.mu
    for left in reversed(range(_NEWTON + 1)):
        pairs = problem.pairs(scores, mu)
        half = x - space.of_dual(-problem.c * pairs.gradient)
        away = space.inner(half, half, space.scores(half))
        slack = problem.c * pairs.slack
        primal = space.inner(x, x, scores) + problem.c * pairs.loss
        if away + slack <= tolerance * primal or away <= 0.1 * max(slack, tolerance * primal) or not left:
            break
        move = space.direction(2.0 * half, pairs, problem.c)
        moved = space.scores(move)
        slope = 2.0 * space.inner(half, move, moved)
        length = _length(space, problem, (x, scores), (move, moved), pairs, slope)
        if not length:
            break
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
    """The step length 1, 1/2, 1/4, ... that decreases the smoothed objective sufficiently; 0 if none does."""
    (x, scores), (dx, moved) = here, move
    across, square = 2.0 * space.inner(x, dx, moved), space.inner(dx, dx, moved)
    for length in halved(_TRIALS):
        smoothed = problem.pairs(scores + length * moved, pairs.mu).smoothed
        change = length * (across + length * square) + problem.c * (smoothed - pairs.smoothed)
        if sufficient(change, 0.0, length, slope):
            return length
    return 0.0  # rounding errors hide the decrease
