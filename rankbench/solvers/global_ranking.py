"""Global ranking: one score per item from all users' comparisons (Park et al. 2015, «Global»)."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import scipy.sparse.linalg

from rankbench.core.contract import Determinism, Flags, Floats, Model, Step
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons
from rankbench.kernels.shared.losses import Loss as Code
from rankbench.kernels.solvers import global_ranking as kernel
from rankbench.methods.line_search import halved, sufficient
from rankbench.methods.losses import CODES, CurvedLoss
from rankbench.methods.warm_starts import check_sizes, without_gaps
from rankbench.models import ItemScores
from rankbench.names import Checked, checked_threads
from rankbench.names.ranges import Weight

_CONVERGED = 1e-12  # the relative gap at which to stop, about the size of rounding errors
_ROUNDING = 1e-14  # relative change of the objective that may be a rounding error
_TRIALS = 30  # step lengths of a line search, at most
_DAMPINGS = 0.0, 1e-5, 1e-3, 0.1  # of the largest second derivative: the next where no step is accepted


@dataclass(frozen=True)
class GlobalRanking(Checked):
    """One score per item from all users' comparisons, by truncated Newton with a duality gap.

    min_s sum over comparisons of L(s_better - s_worse) + lam/2 |s|^2, where `L` is the squared hinge
    max(0, 1 - m)^2 or the logistic loss log(1 + e^-m); the latter is the regularised maximum likelihood
    of the Bradley-Terry-Luce model. Every iteration costs passes over the distinct pairs, never raises
    the objective, and has a duality gap. With a = -L'(m) per comparison and g the gradient of
    the losses the dual value is sum -L*(-a) - |g|^2 / (2 lam), and L(m) + L*(-a) = -a m sums to g . s:
    so the gap is g . s + lam/2 |s|^2 + |g|^2 / (2 lam) = |g + lam s|^2 / (2 lam), which is exact to
    rounding however small lam is. Near the optimum the objective stays constant to rounding while the gap still
    falls: the iterations then continue until the gap stops falling. Under the squared hinge with a tiny lam, an item
    that costs nothing is drawn to 0 from afar, past where its pairs begin to cost: if no step is accepted, the Hessian
    is damped. Items in no comparison score NaN.
    """

    lam: Weight = 1.0
    loss: CurvedLoss = "squared-hinge"
    learns_from: ClassVar = Comparisons
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    path: ClassVar = MappingProxyType({"lam": "falls"})
    title: ClassVar = "Global ranking"
    version: ClassVar = 3  # damped where no Newton step is accepted

    def steps(self, train: Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """A model after each Newton iteration, until the gap vanishes or the line search fails."""
        threads = checked_threads(threads)
        problem = _Problem(train, CODES[self.loss], self.lam, threads)
        first = problem.at(np.zeros(train.n_items))
        yield from _descent(problem, first, first.gap)

    def steps_from(
        self, model: Model, train: Comparisons, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """This model of the same data, found at another penalty, then a model after each iteration, as in `steps`."""
        threads = checked_threads(threads)
        if not isinstance(model, ItemScores):
            raise UserError(f"cannot go on from {type(model).__name__}, only from scores", subject="GlobalRanking")
        check_sizes((train.n_users, len(model.scores)), (train.n_users, train.n_items), "GlobalRanking")
        problem = _Problem(train, CODES[self.loss], self.lam, threads)
        start = problem.at(without_gaps(model.scores))
        yield from _descent(problem, start, max(start.gap, problem.at(np.zeros(train.n_items)).gap))


@dataclass(frozen=True)
class _Point:
    """A vector of scores with its objective, gap and derivatives."""

    scores: Floats
    objective: float
    gap: float
    gradient: Floats
    curvature: Floats  # of the losses, per directed pair
    diagonal: Floats  # of the objective's Hessian


class _Problem:
    """The objective over the distinct pairs of compared items."""

    def __init__(self, train: Comparisons, loss: Code, lam: float, threads: int) -> None:
        self.tournament = kernel.Tournament(better=train.better, worse=train.worse, n_items=train.n_items)
        self.loss, self.lam, self.threads = loss, lam, threads
        indptr, opponents, _, _ = self.tournament.arrays()
        self.compared: Flags = np.diff(indptr) > 0
        self.n_pairs = len(opponents)  # each pair once in each direction

    def at(self, scores: Floats) -> _Point:
        """The point with these scores, in one pass over the pairs."""
        totals, curvature = np.empty((3, len(scores))), np.empty(self.n_pairs)
        kernel.sweep(
            loss=self.loss,
            tournament=self.tournament,
            scores=scores,
            totals=totals,
            curvature=curvature,
            threads=self.threads,
        )
        losses, gradient, diagonal = totals
        objective = float(losses.sum()) + self.lam / 2 * _square(scores)
        gradient += self.lam * scores
        gap = _square(gradient) / (2 * self.lam)
        return _Point(scores, objective, gap, gradient, curvature, diagonal + self.lam)

    def newton_direction(self, point: _Point, tolerance: float, damping: float) -> Floats:
        """The Newton direction by SciPy's conjugate gradients, with the Hessian's diagonal as preconditioner.

        `damping` times the largest number of the diagonal is added to all of it.
        """
        added = damping * float(point.diagonal.max())
        diagonal: Floats = point.diagonal + added

        def times(p: Floats) -> Floats:
            p, out = np.ascontiguousarray(p), np.empty_like(p)
            kernel.curvature_times(
                tournament=self.tournament, curvature=point.curvature, direction=p, out=out, threads=self.threads
            )
            return np.asarray(out + (self.lam + added) * p)

        hessian, inverse = (
            scipy.sparse.linalg.LinearOperator((len(point.scores),) * 2, function, dtype=np.float64)
            for function in (times, lambda p: p / diagonal)
        )
        direction, _ = scipy.sparse.linalg.cg(hessian, -point.gradient, rtol=tolerance, maxiter=400, M=inverse)
        return np.asarray(direction)


def _descent(problem: _Problem, start: _Point, first: float) -> Iterator[Step]:
    """The start, then a model after each iteration; `first` is the gap of scores that are all 0, or a larger one."""
    point: _Point | None = start
    while point is not None:
        yield _step(point, problem.compared)
        if point.gap <= _CONVERGED * point.objective:
            return
        point = _descend(problem, point, np.sqrt(point.gap / first))


def _descend(problem: _Problem, point: _Point, progress: float) -> _Point | None:
    """The next point, by a line search along the Newton direction; None if no step length is accepted.

    `progress` is the gradient's norm relative to the first one: the smaller, the more exact the direction.
    A step is also accepted if the objective is the same to rounding and the gap halves.
    """
    for damping in _DAMPINGS:
        direction = problem.newton_direction(point, min(0.1, np.sqrt(progress)), damping)
        slope = float(point.gradient @ direction)
        for length in halved(_TRIALS):
            candidate = problem.at(point.scores + length * direction)
            fallen = sufficient(candidate.objective, point.objective, length, slope)
            level = candidate.objective <= point.objective * (1 + _ROUNDING)
            if fallen or (level and candidate.gap < point.gap / 2):
                return candidate
    return None


def _step(point: _Point, compared: Flags) -> Step:
    """The step at this point; items in no comparison score NaN."""
    model = ItemScores(np.where(compared, point.scores, np.nan))
    return Step(model, lambda: point.objective, lambda: point.gap)


def _square(x: Floats) -> float:
    """The sum of squares."""
    return float(x @ x)
