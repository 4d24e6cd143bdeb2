"""Global ranking: one score per item from everybody's comparisons (Park et al. 2015, «Global»)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from rankbench.contract import Determinism, Floats, Step
from rankbench.data.views import Comparisons
from rankbench.kernels import global_ranking as kernel
from rankbench.models import ItemScores
from rankbench.specs import Limits, check

_LOSSES = {"squared-hinge": kernel.SQUARED_HINGE, "logistic": kernel.LOGISTIC}
_CONVERGED = 1e-12  # relative gap, about what rounding leaves
_SUFFICIENT = 1e-4  # of the decrease that the gradient promises (Armijo)
_SHORTEST = 2.0**-30


@dataclass(frozen=True)
class GlobalRanking:
    """One score per item out of everybody's comparisons, by truncated Newton with a duality gap.

    min_s sum over comparisons of L(s_better - s_worse) + lam/2 |s|^2, where `L` is the squared hinge
    max(0, 1 - m)^2 or the logistic loss log(1 + e^-m); the latter is the regularised maximum likelihood
    of the Bradley-Terry-Luce model. Every iteration costs passes over the distinct pairs, never raises
    the objective, and comes with a duality gap: with a = -L'(m) per comparison and g the gradient of
    the losses, the dual value is sum -L*(-a) - |g|^2 / (2 lam). Items that nobody compared score NaN.
    """

    lam: Annotated[float, Limits(above=0)] = 1.0
    loss: Literal["squared-hinge", "logistic"] = "squared-hinge"
    learns_from: ClassVar = Comparisons
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def __post_init__(self) -> None:
        check(self)

    def steps(self, train: Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """A model after each Newton iteration, until the gap vanishes or no step helps any more."""
        problem = _Problem(_tournament(train), _LOSSES[self.loss], self.lam, threads)
        compared = np.diff(problem.indptr) > 0
        point: _Point | None = problem.at(np.zeros(train.n_items))
        while point is not None:
            yield _step(point, compared)
            if point.gap <= _CONVERGED * point.objective:
                return
            point = _descend(problem, point)


@dataclass(frozen=True)
class _Point:
    """The objective and all that its next Newton step needs."""

    scores: Floats
    objective: float
    gap: float
    gradient: Floats
    curvature: Floats  # of the losses, per directed pair


class _Problem:
    """The objective over a tournament of items."""

    def __init__(self, tournament: scipy.sparse.csr_array, loss: int, lam: float, threads: int) -> None:
        self.indptr = tournament.indptr.astype(np.int64)
        self.opponents = tournament.indices.astype(np.int32)
        self.wins = np.ascontiguousarray(tournament.data.real)
        self.losses = np.ascontiguousarray(tournament.data.imag)
        self.loss, self.lam, self.threads = loss, lam, threads

    def at(self, scores: Floats) -> _Point:
        """Everything about these scores, in one sweep."""
        losses, duals, gradient = np.zeros((3, len(scores)))
        curvature = np.empty(len(self.opponents))
        if len(curvature):
            kernel.sweep(
                self.loss,
                self.indptr,
                self.opponents,
                self.wins,
                self.losses,
                scores,
                losses,
                duals,
                gradient,
                curvature,
                self.threads,
            )
        objective = losses.sum() + self.lam / 2 * _square(scores)
        dual = duals.sum() - _square(gradient) / (2 * self.lam)
        return _Point(scores, objective, objective - dual, gradient + self.lam * scores, curvature)

    def newton_direction(self, point: _Point) -> Floats:
        """The solution of H p = -gradient by conjugate gradients, as exactly as the gradient deserves."""

        def times(p: Floats) -> Floats:
            out = np.empty_like(p)
            kernel.curvature_times(
                self.indptr, self.opponents, point.curvature, np.ascontiguousarray(p), out, self.threads
            )
            return out + self.lam * p

        size = len(point.scores)
        hessian = scipy.sparse.linalg.LinearOperator((size, size), times, dtype=np.float64)
        tolerance = min(0.1, np.sqrt(point.gap / point.objective))
        direction, _ = scipy.sparse.linalg.cg(hessian, -point.gradient, rtol=tolerance, maxiter=200)
        return np.asarray(direction)


def _descend(problem: _Problem, point: _Point) -> _Point | None:
    """The next point, its step halved until the objective falls enough; None where it cannot."""
    direction = problem.newton_direction(point)
    slope = float(point.gradient @ direction)
    length = 1.0
    while length > _SHORTEST:
        candidate = problem.at(point.scores + length * direction)
        if candidate.objective < point.objective + _SUFFICIENT * length * slope:
            return candidate
        length /= 2
    return None


def _step(point: _Point, compared: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Step:
    model = ItemScores(np.where(compared, point.scores, np.nan))
    return Step(model, lambda: point.objective, lambda: point.gap)


def _tournament(train: Comparisons) -> scipy.sparse.csr_array:
    """items x items: wins in the real part, losses in the imaginary one, on one symmetric pattern."""
    shape = (train.n_items, train.n_items)
    wins = scipy.sparse.coo_array((np.ones(len(train)), (train.better, train.worse)), shape=shape).tocsr()
    return scipy.sparse.csr_array(wins + 1j * wins.T.tocsr())


def _square(x: Floats) -> float:
    return float(x @ x)
