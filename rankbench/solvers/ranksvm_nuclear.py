"""Multi-task RankSVM with a nuclear-norm penalty: the convex form of Factorization RankSVM, with a duality gap."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, svds

from rankbench.core.contract import Determinism, Floats, Step
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.features.matrix import DenseFeatures, Features
from rankbench.methods.conjugate_gradients import conjugate_gradients, inner_product
from rankbench.methods.entries import Entries
from rankbench.methods.line_search import halved, sufficient
from rankbench.methods.low_rank import ProductSVD
from rankbench.methods.pair_tasks import PairTasks, ScoredPairs, TaskFeatures
from rankbench.methods.penalties import squared_norm
from rankbench.methods.tasks import checked_features
from rankbench.models import FeatureFactors
from rankbench.names import check, checked_threads
from rankbench.names.ranges import Weight

_CONVERGED = 1e-10  # the relative gap at which to stop
_STALLED = 0.05  # relative decrease below which a larger subspace is tried
_GAINED = 1e-14  # relative decrease below which a step counts as no decrease
_TRIALS = 20  # step lengths of a line search, at most
_INNER = 50  # conjugate gradient iterations per Newton step, at most
_BATCH = 10  # directions added to the subspace; if it has more than these, it is doubled
_VANISHED = 1e-12  # singular values below this share of the largest are dropped
_DENSE = 50_000_000  # entries up to which the gradient is formed as a dense matrix
_MARGIN = 1e-12  # relative error allowed for in a largest singular value

Matrix = Any  # an array, or a LinearOperator for its products
Factors = tuple[Floats, Floats]  # U and V, or a direction of both


@dataclass(frozen=True)
class RankSVMNuclear:
    """A linear function of item features per task, with the nuclear norm of all tasks' weights as penalty.

    min over W (features x tasks) of |W|_* + C sum over pairs of max(0, 1 - w_i . (x_j - x_k))^2 (Cheng et
    al. 2018, section 4). With |UV^T|_* = min 1/2 (|U|^2 + |V|^2) it has the objective of Factorization
    RankSVM without its limit of rank: a convex problem. W is kept as balanced factors: a step is a
    truncated Newton step on them, or, once these decrease the objective little, a proximal step: the singular
    vectors of the gradient outside their span with singular values s above 1 enter with weights in proportion to s - 1
    (active subspace selection, Hsieh and Olsen 2014). Neither ever raises the objective. The dual
    variables 2 C (1 - margin)_+, scaled until their gradient's spectral norm is at most 1, bound the gap.
    A task without a pair contributes nothing and has w = 0: all items score zero.
    """

    C: Weight = 1.0
    learns_from: ClassVar = (Ratings, Comparisons)
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    title: ClassVar = "RankSVM, nuclear norm"
    version: ClassVar = 2  # w of a task without a pair is zero exactly, and not up to rounding

    def __post_init__(self) -> None:
        check(self)

    def steps(self, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The zero model, then a model after each step, until the gap vanishes or no step decreases the objective."""
        threads = checked_threads(threads)
        features = checked_features(train.item_features)
        problem = _Problem(PairTasks.of(train, threads), features, self.C)
        point: _Point | None = problem.at(*(np.zeros((size, 1)) for size in problem.shape))
        stalled = True
        while point is not None:
            gap = _Gap(problem, point)
            users = np.where(problem.tasks.paired[:, None], point.users, 0.0)
            yield Step(FeatureFactors(users, point.basis, features.matrix), gap.objective, gap)
            point, stalled = _improve(problem, point, stalled, gap)


@dataclass(frozen=True, eq=False)
class _Point:
    """The factors of W with the loss of their scores, the objective, and the gradient of the loss by W."""

    basis: Floats
    users: Floats
    pairs: ScoredPairs
    objective: float
    slope: Matrix


class _Problem:
    """The objective with the products of features and tasks that its derivatives consist of."""

    def __init__(self, tasks: PairTasks, features: Features, C: float) -> None:
        self.tasks, self.features, self.C = tasks, features, C
        self.shape = features.shape[1], tasks.n_tasks
        self.small = features.shape[1] * tasks.n_tasks <= _DENSE
        self.rows = TaskFeatures(tasks, features)
        self.squared = TaskFeatures(tasks, features.squared())
        self.entries = Entries.of(tasks.indptr, tasks.items, features.shape[0], tasks.threads)

    def at(self, basis: Floats, users: Floats) -> _Point:
        """The point with these factors."""
        return self.scored(basis, users, self.tasks.at(self.scores((basis, users))))

    def scored(self, basis: Floats, users: Floats, pairs: ScoredPairs) -> _Point:
        """The point with these factors, given the loss of their scores."""
        size = 0.5 * squared_norm(basis, users)
        return _Point(basis, users, pairs, size + self.C * pairs.loss, self.gradient(pairs.slope))

    def scores(self, *products: Factors) -> Floats:
        """The score of each row under the sum of U V^T over these pairs of factors."""
        if self.small:
            whole: Floats = np.sum([users @ basis.T for basis, users in products], axis=0)
            return self.rows.scores(whole)
        parts = [self._through(basis).scores(np.ascontiguousarray(users)) for basis, users in products]
        return np.asarray(np.sum(parts, axis=0))

    def gradient(self, slope: Floats) -> Matrix:
        """The gradient by W, C sum of slope x e_i^T over rows: dense if it is small, else an operator."""
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

    def diagonal(self, point: _Point) -> Factors:
        """An approximation of the Hessian's diagonal, which ignores that a pair moves two items."""
        counts = self.C * self.squared.sums(2 * point.pairs.degree).T if self.small else None
        if counts is None:
            return np.ones_like(point.basis), np.ones_like(point.users)
        return 1 + counts @ np.square(point.users), 1 + counts.T @ np.square(point.basis)

    def _times(self, slope: Floats, users: Floats) -> Floats:
        """The gradient times a matrix V, by way of a sum per item."""
        sums = self.entries.holding(slope).transposed_times(users)
        return self.C * self.features.transposed_times(sums)

    def _transposed_times(self, slope: Floats, basis: Floats) -> Floats:
        """The transposed gradient times a matrix U."""
        return self.C * self._through(basis).sums(slope)

    def _through(self, basis: Floats) -> TaskFeatures:
        """The products X U with a basis, as new features of the items."""
        return TaskFeatures(self.tasks, DenseFeatures(self.features.times(basis)))


class _Gap:
    """The objective and duality gap of a point, computed when asked for."""

    def __init__(self, problem: _Problem, point: _Point) -> None:
        self.problem, self.point = problem, point

    def objective(self) -> float:
        """The objective |W|_* + C loss, given that the factors are balanced."""
        return self.point.objective

    def __call__(self) -> float:
        """The duality gap, with the best feasible multiple of the dual variables."""
        pairs, C = self.point.pairs, self.problem.C
        weight = 2 * C * pairs.loss - C * float(pairs.slope @ pairs.scores)
        if pairs.loss == 0:
            return self.point.objective
        largest = _leading(self.point.slope, 1)[1][0] * (1 + _MARGIN)
        scale = min(1 / largest if largest > 0 else np.inf, weight / (2 * C * pairs.loss))
        return float(max(0.0, self.point.objective - scale * weight + scale**2 * C * pairs.loss))


def _improve(problem: _Problem, point: _Point, stalled: bool, gap: Callable[[], float]) -> tuple[_Point | None, bool]:
    """The next point (None at the end), and whether the objective decreased so little that the subspace should grow."""
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
    """The point after a step along new directions, from the gradient outside the span of its factors; None without.

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
    first = -slope / (C * float(moves @ point.pairs.curve(moves)))
    for length in halved(_TRIALS, first):
        pairs = problem.tasks.at(point.pairs.scores + length * moves)
        change = length * float(weights @ weights) + C * (pairs.loss - point.pairs.loss)
        if sufficient(change, 0.0, length, slope):
            root = np.sqrt(length)
            factors = np.hstack([point.basis, root * left]), np.hstack([point.users, root * right])
            return problem.scored(*factors, pairs)
    return None


def _newton(problem: _Problem, point: _Point) -> _Point | None:
    """The point after a truncated Newton step on both factors, by line search; None if no length decreases enough."""
    gradient = point.basis + point.slope @ point.users, point.users + point.slope.T @ point.basis
    step = _direction(problem, point, gradient)
    basis_step, users_step = step
    first = problem.scores((basis_step, point.users), (point.basis, users_step))
    second = problem.scores(step)
    slope = inner_product(gradient, step)
    for length in halved(_TRIALS):
        pairs = problem.tasks.at(point.pairs.scores + length * (first + length * second))
        basis, users = point.basis + length * basis_step, point.users + length * users_step
        found = 0.5 * squared_norm(basis, users) + problem.C * pairs.loss
        if sufficient(found, point.objective, length, slope):
            return problem.scored(basis, users, pairs)
    return None


def _direction(problem: _Problem, point: _Point, gradient: Factors) -> Factors:
    """About -H^-1 gradient by conjugate gradients, the Hessian's diagonal as preconditioner."""
    basis_scale, users_scale = problem.diagonal(point)

    def enough(start: float) -> float:
        """The level that the residual must fall to: the nearer the optimum, the lower."""
        return float(min(0.1, np.sqrt(start / point.objective)) ** 2 * start)

    found = conjugate_gradients(
        lambda step: _hessian_times(problem, point, *step),
        (-gradient[0], -gradient[1]),
        enough,
        _INNER,
        precondition=lambda residual: (residual[0] / basis_scale, residual[1] / users_scale),
    )
    return found[0], found[1]


def _hessian_times(problem: _Problem, point: _Point, basis: Floats, users: Floats) -> Factors:
    """The Hessian of the objective as a function of both factors, times a direction."""
    moves = problem.scores((basis, point.users), (point.basis, users))
    curved = problem.gradient(point.pairs.curve(moves))
    return (
        basis + curved @ point.users + point.slope @ users,
        users + curved.T @ point.basis + point.slope.T @ basis,
    )


def _balanced(problem: _Problem, point: _Point) -> _Point:
    """The same W with balanced factors U = A sqrt(s), V = B sqrt(s) from its singular value decomposition A s B^T.

    The roots scale the small rotations, where FRSVM scales the vectors: the same up to rounding.
    """
    product = ProductSVD.of(point.basis, point.users, whole=True)
    kept = slice(0, max(1, int((product.values > _VANISHED * product.values[0]).sum())))
    roots = np.sqrt(product.values[kept])
    basis = product.left_basis @ (product.left_turn[:, kept] * roots)
    return problem.at(basis, product.right_basis @ (product.right_turn[:, kept] * roots))


def _rank(point: _Point) -> int:
    """The number of columns of the factors, 0 for the zero matrix."""
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
        """A vector with its projection onto the span removed."""
        return np.asarray(vector - span @ (span.T @ vector))

    return LinearOperator(
        whole.shape,
        matvec=lambda v: without(left, whole @ without(right, v.ravel())),
        rmatvec=lambda u: without(right, whole.T @ without(left, u.ravel())),
        dtype=np.float64,
    )


def _leading(matrix: Matrix, count: int) -> tuple[Floats, Floats, Floats]:
    """The left vectors, values (descending) and right vectors of the largest singular values."""
    if isinstance(matrix, np.ndarray):
        left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    else:
        start = np.ones(min(matrix.shape)) / np.sqrt(min(matrix.shape))
        left, sizes, right = svds(matrix, k=min(count, min(matrix.shape) - 1), v0=start)
        left, sizes, right = left[:, ::-1], sizes[::-1], right[::-1]
    return left[:, :count], sizes[:count], right[:count].T
