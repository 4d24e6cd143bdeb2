"""Multi-task RankSVM with a nuclear-norm penalty: the convex form of Factorization RankSVM, with a certificate."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, svds

from rankbench.contract import Determinism, Floats, Ints, Step
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.kernels import als as als_kernel
from rankbench.methods.pair_tasks import PairTasks, ScoredPairs, TaskFeatures
from rankbench.methods.tasks import check_features
from rankbench.models import FeatureFactors
from rankbench.names import Limits, check, checked_threads

_CONVERGED = 1e-10  # relative gap
_STALLED = 0.05  # a step that gains less of the objective makes room for a larger subspace
_GAINED = 1e-14  # a step that gains less of the objective gained nothing
_SUFFICIENT = 1e-4  # of the decrease that the gradient promises (Armijo)
_HALVINGS = 20
_INNER = 50  # conjugate gradients per Newton step, at most
_BATCH = 10  # directions by which the subspace grows at first; then by as many as it has
_VANISHED = 1e-12  # singular values that are so small beside the largest are dropped
_DENSE = 50_000_000  # numbers in a gradient that is written out
_MARGIN = 1e-12  # by which a largest singular value may be found too small

Matrix = Any  # an array, or a LinearOperator for its products


@dataclass(frozen=True)
class RankSVMNuclear:
    """A linear function of item features per task, the matrix of all of them of small nuclear norm.

    min over W (features x tasks) of |W|_* + C sum over pairs of max(0, 1 - w_i . (x_j - x_k))^2 (Cheng et
    al. 2018, section 4). With |UV^T|_* = min 1/2 (|U|^2 + |V|^2) it has the objective of Factorization
    RankSVM without its limit of rank: a convex problem. W is kept as balanced factors: a step is a
    truncated Newton step on them, or, once these gain little, a proximal step: the singular vectors of the
    gradient outside their span with singular values s above 1 enter with weights in proportion to s - 1
    (active subspace selection, Hsieh and Olsen 2014). Neither ever raises the objective. The dual
    variables 2 C (1 - margin)_+, scaled until their gradient's spectral norm is at most 1, bound the gap.
    Who has no pair contributes nothing and has w = 0: all items score zero.
    """

    C: Annotated[float, Limits(above=0)] = 1.0
    learns_from: ClassVar = (Ratings, Comparisons)
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def __post_init__(self) -> None:
        check(self)

    def steps(self, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """Zero, then a model after each step, until the gap vanishes or no step helps any more."""
        threads = checked_threads(threads)
        check_features(train.item_features)
        problem = _Problem(PairTasks.of(train, threads), train.item_features, self.C)
        point: _Point | None = problem.at(*(np.zeros((size, 1)) for size in problem.shape))
        stalled = True
        while point is not None:
            gap = _Gap(problem, point)
            yield Step(FeatureFactors(point.users, point.basis, train.item_features), gap.objective, gap)
            point, stalled = _improve(problem, point, stalled, gap)


@dataclass(frozen=True, eq=False)
class _Pair:
    """A direction of both factors."""

    basis: Floats
    users: Floats

    def dot(self, other: "_Pair") -> float:
        """The inner product."""
        return float(np.vdot(self.basis, other.basis) + np.vdot(self.users, other.users))

    def plus(self, scale: float, other: "_Pair") -> "_Pair":
        """self + scale other"""
        return _Pair(self.basis + scale * other.basis, self.users + scale * other.users)

    def over(self, other: "_Pair") -> "_Pair":
        """Entry by entry."""
        return _Pair(self.basis / other.basis, self.users / other.users)


@dataclass(frozen=True, eq=False)
class _Point:
    """Factors of W, the pairs at their scores, and the gradient of the losses for W."""

    basis: Floats
    users: Floats
    pairs: ScoredPairs
    objective: float
    slope: Matrix


class _Problem:
    """The objective, and the products with its data that everything else is made of."""

    def __init__(self, tasks: PairTasks, features: Any, C: float) -> None:
        self.tasks, self.features, self.C = tasks, features, C
        self.shape = features.shape[1], tasks.n_tasks
        self.small = features.shape[1] * tasks.n_tasks <= _DENSE
        self.rows = TaskFeatures.of(tasks, features)
        self.squared = TaskFeatures.of(tasks, features**2)
        self.order = np.argsort(tasks.items, kind="stable")
        n_items = features.shape[0]
        self.item_indptr: Ints = np.concatenate([[0], np.cumsum(np.bincount(tasks.items, minlength=n_items))])
        self.raters = np.repeat(np.arange(tasks.n_tasks, dtype=np.int32), np.diff(tasks.indptr))[self.order]

    def at(self, basis: Floats, users: Floats) -> _Point:
        """The point with these factors."""
        return self.scored(basis, users, self.tasks.at(self.scores((basis, users))))

    def scored(self, basis: Floats, users: Floats, pairs: ScoredPairs) -> _Point:
        """The point with these factors, whose pairs are known."""
        size = 0.5 * float(np.square(basis).sum() + np.square(users).sum())
        return _Point(basis, users, pairs, size + self.C * pairs.loss, self.gradient(pairs.slope))

    def scores(self, *products: tuple[Floats, Floats]) -> Floats:
        """A score per row by the sum of U V^T over these pairs of factors."""
        if self.small:
            whole: Floats = np.sum([users @ basis.T for basis, users in products], axis=0)
            return self.rows.scores(whole)
        parts = [TaskFeatures.of(self.tasks, _rows(self.features @ basis)).scores(_rows(v)) for basis, v in products]
        return np.asarray(np.sum(parts, axis=0))

    def gradient(self, slope: Floats) -> Matrix:
        """C sum of slope x e_i^T over rows, features x tasks: written out if small, or as its products."""
        if self.small:
            return self.C * self.rows.sums(slope).T
        return LinearOperator(
            self.shape,
            matvec=lambda v: self._times(slope, v.reshape(-1, 1)).ravel(),
            rmatvec=lambda u: self._transposed_times(slope, u.reshape(-1, 1)).ravel(),
            matmat=lambda v: self._times(slope, v),
            rmatmat=lambda u: self._transposed_times(slope, u),
            dtype=np.float64,
        )

    def diagonal(self, point: _Point) -> _Pair:
        """The Hessian's diagonal, about: as if a pair moved one of its items only, and features were apart."""
        counts = self.C * self.squared.sums(2 * point.pairs.degree).T if self.small else None
        if counts is None:
            return _Pair(np.ones_like(point.basis), np.ones_like(point.users))
        return _Pair(1 + counts @ np.square(point.users), 1 + counts.T @ np.square(point.basis))

    def _times(self, slope: Floats, users: Floats) -> Floats:
        """The gradient times a matrix, by way of a sum per item."""
        sums = np.zeros((len(self.item_indptr) - 1, users.shape[1]))
        if len(slope):
            weights = slope[self.order], _rows(users)
            als_kernel.weighted_sums(self.item_indptr, self.raters, *weights, sums, self.tasks.threads)
        return np.asarray(self.C * (self.features.T @ sums))

    def _transposed_times(self, slope: Floats, basis: Floats) -> Floats:
        return self.C * TaskFeatures.of(self.tasks, _rows(self.features @ basis)).sums(slope)


class _Gap:
    """A point's gradient G of the losses seen from its singular values; the certificate that follows."""

    def __init__(self, problem: _Problem, point: _Point) -> None:
        self.problem, self.point = problem, point

    def objective(self) -> float:
        """|W|_* + C loss: the factors are balanced."""
        return self.point.objective

    def __call__(self) -> float:
        """The objective less the dual value of the best feasible multiple of the dual variables."""
        pairs, C = self.point.pairs, self.problem.C
        weight = 2 * C * pairs.loss - C * float(pairs.slope @ pairs.scores)
        if pairs.loss == 0:
            return self.point.objective
        largest = _leading(self.point.slope, 1)[1][0] * (1 + _MARGIN)
        scale = min(1 / largest if largest > 0 else np.inf, weight / (2 * C * pairs.loss))
        return float(max(0.0, self.point.objective - scale * weight + scale**2 * C * pairs.loss))


def _improve(problem: _Problem, point: _Point, stalled: bool, gap: Callable[[], float]) -> tuple[_Point | None, bool]:
    """The next point, None at the end, and whether its step gained so little that the subspace should grow."""
    if stalled and (larger := _grow(problem, point)) is not None:
        return larger, False
    better = _newton(problem, point) if point.objective > 0 else None
    if better is None or point.objective - better.objective <= _GAINED * point.objective:
        return (None if stalled else point), True
    if point.objective - better.objective <= _STALLED * point.objective and gap() <= _CONVERGED * point.objective:
        return None, True
    better = _balanced(problem, better)
    return better, point.objective - better.objective <= _STALLED * point.objective


def _grow(problem: _Problem, point: _Point) -> _Point | None:
    """The point with more directions, of the gradient outside the span of its factors; None if there are none.

    Along tau sum (s - 1) l r^T over them the nuclear norm grows by tau sum (s - 1): a convex function of tau.
    """
    left, sizes, right = _leading(_outside(point), max(_BATCH, _rank(point)))
    grown = sizes > 1 + _MARGIN
    if not grown.any():
        return None
    weights = np.sqrt(sizes[grown] - 1)
    left, right = left[:, grown] * weights, -right[:, grown] * weights
    moves = problem.scores((left, right))
    slope, C = -float(np.square(weights**2).sum()), problem.C
    length = -slope / (C * float(moves @ point.pairs.curve(moves)))
    for _ in range(_HALVINGS):
        pairs = problem.tasks.at(point.pairs.scores + length * moves)
        change = length * float(weights @ weights) + C * (pairs.loss - point.pairs.loss)
        if change < _SUFFICIENT * length * slope:
            root = np.sqrt(length)
            factors = np.hstack([point.basis, root * left]), np.hstack([point.users, root * right])
            return problem.scored(*factors, pairs)
        length /= 2
    return None


def _newton(problem: _Problem, point: _Point) -> _Point | None:
    """The point after a truncated Newton step on both factors, halved until it helps; None if it never does."""
    gradient = _Pair(point.basis + point.slope @ point.users, point.users + point.slope.T @ point.basis)
    step = _conjugate_gradients(problem, point, gradient)
    first = problem.scores((step.basis, point.users), (point.basis, step.users))
    second = problem.scores((step.basis, step.users))
    promised, length = gradient.dot(step), 1.0
    for _ in range(_HALVINGS):
        pairs = problem.tasks.at(point.pairs.scores + length * (first + length * second))
        basis, users = point.basis + length * step.basis, point.users + length * step.users
        found = 0.5 * float(np.square(basis).sum() + np.square(users).sum()) + problem.C * pairs.loss
        if found < point.objective + _SUFFICIENT * length * promised:
            return problem.scored(basis, users, pairs)
        length /= 2
    return None


def _conjugate_gradients(problem: _Problem, point: _Point, gradient: _Pair) -> _Pair:
    """About -H^-1 gradient, scaled by H's diagonal; ends where the curvature is not positive."""
    scale = problem.diagonal(point)
    direction = _Pair(np.zeros_like(point.basis), np.zeros_like(point.users))
    residual = _Pair(-gradient.basis, -gradient.users)
    conjugate = residual.over(scale)
    squared = start = residual.dot(conjugate)
    tolerance = min(0.1, np.sqrt(start / point.objective)) ** 2 * start
    for iteration in range(_INNER):
        product = _hessian_times(problem, point, conjugate)
        curvature = conjugate.dot(product)
        if curvature <= 0:
            return direction if iteration else conjugate
        direction = direction.plus(squared / curvature, conjugate)
        residual = residual.plus(-squared / curvature, product)
        scaled = residual.over(scale)
        before, squared = squared, residual.dot(scaled)
        if squared <= tolerance:
            break
        conjugate = scaled.plus(squared / before, conjugate)
    return direction


def _hessian_times(problem: _Problem, point: _Point, step: _Pair) -> _Pair:
    """The Hessian of the objective as a function of the factors, times a direction."""
    moves = problem.scores((step.basis, point.users), (point.basis, step.users))
    curved = problem.gradient(point.pairs.curve(moves))
    return _Pair(
        step.basis + curved @ point.users + point.slope @ step.users,
        step.users + curved.T @ point.basis + point.slope.T @ step.basis,
    )


def _balanced(problem: _Problem, point: _Point) -> _Point:
    """The same W in factors U = A sqrt(s), V = B sqrt(s) of its singular values, those that vanished left out."""
    (basis, upper), (users, other) = (np.linalg.qr(factor) for factor in (point.basis, point.users))
    left, sizes, right = np.linalg.svd(upper @ other.T)
    kept = slice(0, max(1, int((sizes > _VANISHED * sizes[0]).sum())))
    roots = np.sqrt(sizes[kept])
    return problem.at(basis @ (left[:, kept] * roots), users @ (right[kept].T * roots))


def _rank(point: _Point) -> int:
    return point.basis.shape[1] if point.basis.any() else 0


def _outside(point: _Point) -> Matrix:
    """The gradient with the spans of both factors projected out."""
    whole = point.slope
    if not _rank(point):
        return whole
    left, right = (scipy.linalg.orth(factor) for factor in (point.basis, point.users))
    if isinstance(whole, np.ndarray):
        rest = whole - left @ (left.T @ whole)
        return np.asarray(rest - (rest @ right) @ right.T)

    def without(span: Floats, vector: Floats) -> Floats:
        """What of a vector lies outside the span."""
        return np.asarray(vector - span @ (span.T @ vector))

    return LinearOperator(
        whole.shape,
        matvec=lambda v: without(left, whole @ without(right, v.ravel())),
        rmatvec=lambda u: without(right, whole.T @ without(left, u.ravel())),
        dtype=np.float64,
    )


def _leading(matrix: Matrix, count: int) -> tuple[Floats, Floats, Floats]:
    """The largest singular values, descending, between their left and right vectors."""
    if isinstance(matrix, np.ndarray):
        left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    else:
        start = np.ones(min(matrix.shape)) / np.sqrt(min(matrix.shape))
        left, sizes, right = svds(matrix, k=min(count, min(matrix.shape) - 1), v0=start)
        left, sizes, right = left[:, ::-1], sizes[::-1], right[::-1]
    return left[:, :count], sizes[:count], right[:count].T


def _rows(matrix: Any) -> Floats:
    return np.ascontiguousarray(matrix)
