"""Global ranking: one score per item from everybody's comparisons (Park et al. 2015, «Global»)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import scipy.sparse.linalg

from rankbench.contract import Determinism, Floats, Step
from rankbench.data.views import Comparisons
from rankbench.kernels import global_ranking as kernel
from rankbench.models import ItemScores
from rankbench.names import Limits, check, checked_threads

_LOSSES = {"squared-hinge": kernel.SQUARED_HINGE, "logistic": kernel.LOGISTIC}
_CONVERGED = 1e-12  # relative gap, about what rounding leaves
_SUFFICIENT = 1e-4  # of the decrease that the gradient promises (Armijo)
_ROUNDING = 1e-14  # of the objective
_SHORTEST = 2.0**-30


@dataclass(frozen=True)
class GlobalRanking:
    """One score per item out of everybody's comparisons, by truncated Newton with a duality gap.

    min_s sum over comparisons of L(s_better - s_worse) + lam/2 |s|^2, where `L` is the squared hinge
    max(0, 1 - m)^2 or the logistic loss log(1 + e^-m); the latter is the regularised maximum likelihood
    of the Bradley-Terry-Luce model. Every iteration costs passes over the distinct pairs, never raises
    the objective, and comes with a duality gap. With a = -L'(m) per comparison and g the gradient of
    the losses the dual value is sum -L*(-a) - |g|^2 / (2 lam), and L(m) + L*(-a) = -a m sums to g . s:
    so the gap is g . s + lam/2 |s|^2 + |g|^2 / (2 lam) = |g + lam s|^2 / (2 lam), which loses no digit
    however small lam is. There the objective cannot tell its last points apart any more, while the gap
    still can: steps then go on as long as it falls. Items that nobody compared score NaN.
    """

    lam: Annotated[float, Limits(above=0, below=np.inf)] = 1.0
    loss: Literal["squared-hinge", "logistic"] = "squared-hinge"
    learns_from: ClassVar = Comparisons
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 2

    def __post_init__(self) -> None:
        check(self)

    def steps(self, train: Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """A model after each Newton iteration, until the gap vanishes or no step helps any more."""
        threads = checked_threads(threads)
        problem = _Problem(train, _LOSSES[self.loss], self.lam, threads)
        compared = np.diff(problem.indptr) > 0
        first = problem.at(np.zeros(train.n_items))
        point: _Point | None = first
        while point is not None:
            yield _step(point, compared)
            if point.gap <= _CONVERGED * point.objective:
                return
            point = _descend(problem, point, np.sqrt(point.gap / first.gap))


@dataclass(frozen=True)
class _Point:
    """The objective and all that its next Newton step needs."""

    scores: Floats
    objective: float
    gap: float
    gradient: Floats
    curvature: Floats  # of the losses, per directed pair
    diagonal: Floats  # of the objective's Hessian


class _Problem:
    """The objective over a tournament of items."""

    def __init__(self, train: Comparisons, loss: int, lam: float, threads: int) -> None:
        self.indptr, self.opponents, self.wins, self.losses = kernel.tournament(
            train.better, train.worse, train.n_items
        )
        self.loss, self.lam, self.threads = loss, lam, threads

    def at(self, scores: Floats) -> _Point:
        """Everything about these scores, in one sweep."""
        losses, gradient, diagonal = np.zeros((3, len(scores)))
        curvature = np.empty(len(self.opponents))
        if len(curvature):
            rows = self.indptr, self.opponents, self.wins, self.losses
            kernel.sweep(self.loss, *rows, scores, losses, gradient, diagonal, curvature, self.threads)
        objective = float(losses.sum()) + self.lam / 2 * _square(scores)
        gradient += self.lam * scores
        gap = _square(gradient) / (2 * self.lam)
        return _Point(scores, objective, gap, gradient, curvature, diagonal + self.lam)

    def newton_direction(self, point: _Point, tolerance: float) -> Floats:
        """The solution of H p = -gradient by conjugate gradients, preconditioned with H's diagonal."""

        def times(p: Floats) -> Floats:
            p, out = np.ascontiguousarray(p), np.empty_like(p)
            kernel.curvature_times(self.indptr, self.opponents, point.curvature, p, out, self.threads)
            return out + self.lam * p

        hessian, inverse = (
            scipy.sparse.linalg.LinearOperator((len(point.scores),) * 2, function, dtype=np.float64)
            for function in (times, lambda p: p / point.diagonal)
        )
        direction, _ = scipy.sparse.linalg.cg(hessian, -point.gradient, rtol=tolerance, maxiter=400, M=inverse)
        return np.asarray(direction)


def _descend(problem: _Problem, point: _Point, progress: float) -> _Point | None:
    """The next point, its step halved until it is better enough; None where it cannot be.

    `progress` is what is left of the first gradient: the less, the more exact the Newton direction.
    """
    direction = problem.newton_direction(point, min(0.1, np.sqrt(progress)))
    slope = float(point.gradient @ direction)
    length = 1.0
    while length > _SHORTEST:
        candidate = problem.at(point.scores + length * direction)
        fallen = candidate.objective < point.objective + _SUFFICIENT * length * slope
        level = candidate.objective <= point.objective * (1 + _ROUNDING)
        if fallen or (level and candidate.gap < point.gap / 2):
            return candidate
        length /= 2
    return None


def _step(point: _Point, compared: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Step:
    model = ItemScores(np.where(compared, point.scores, np.nan))
    return Step(model, lambda: point.objective, lambda: point.gap)


def _square(x: Floats) -> float:
    return float(x @ x)
