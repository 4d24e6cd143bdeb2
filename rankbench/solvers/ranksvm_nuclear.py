"""Multi-task RankSVM with a nuclear-norm penalty: the convex form of Factorization RankSVM, with a duality gap."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, svds

from rankbench.core.contract import Determinism, Floats, Int32s, Model, Step
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.features.matrix import DenseFeatures, Features
from rankbench.kernels.data import pairs as pairs_kernel
from rankbench.kernels.shared.losses import Loss
from rankbench.methods.conjugate_gradients import Blocks, conjugate_gradients, inner_product
from rankbench.methods.entries import Entries
from rankbench.methods.folding import own, users_of_pairs
from rankbench.methods.line_search import halved, sufficient
from rankbench.methods.losses import CODES, CurvedLoss
from rankbench.methods.low_rank import ProductSVD
from rankbench.methods.pair_tasks import PairTasks, ScoredPairs, TaskFeatures
from rankbench.methods.penalties import squared_norm
from rankbench.methods.tasks import checked_features
from rankbench.models import FeatureFactors
from rankbench.names import AddedLater, Checked, checked_threads
from rankbench.names.ranges import Weight

_CONVERGED = 1e-10  # the relative gap at which to stop
_NEAR = 1e-3  # the relative gap at which a problem with a smaller C is left for the next one
_RISE = 4.0  # by which C rises from problem to problem
_EASY = 100.0  # the C of the first problem at most, relative to the C below which W = 0 is optimal
_STALLED = 0.05  # relative decrease below which a larger subspace is tried, and the gap is looked at
_ROUNDING = 1e-13  # relative change of the objective that may be rounding
_TRIALS = 20  # step lengths of a line search, at most
_EXACT_DIRECTION = 1e-3  # relative residual below which no conjugate gradients are needed
_INNER = 300  # conjugate gradient iterations per Newton step, at most
_CORRECTIONS = 2  # Newton steps of the users alone, at each length of a line search
_EXACT = 1e-22  # the relative gap of a user's own problem at which its factors are not corrected any more
_BATCH = 10  # directions added to the subspace; if it has more than these, it is doubled
_VANISHED = 1e-12  # singular values below this share of the largest are dropped
_DAMPINGS = (1e-3, 1e-2, 1e-1, 1.0)  # added to the Hessian's diagonal where no step along Newton's direction is good
_MOST_LISTED = 50_000_000  # pairs that are listed for the last steps
_DENSE = 50_000_000  # entries up to which the gradient is formed as a dense matrix
_MARGIN = 1e-12  # relative error allowed for in a largest singular value
_REFINED = 1e-4  # the relative gap below which the dual variables are refined by a Newton step

Matrix = Any  # an array, or a LinearOperator for its products
Factors = tuple[Floats, Floats]  # U and V, or a direction of both


@dataclass(frozen=True)
class RankSVMNuclear(Checked):
    """A linear function of item features per task, with the nuclear norm of all tasks' weights as penalty.

    min over W (features x tasks) of |W|_* + C sum over pairs of L(w_i . (x_j - x_k)) (Cheng et al. 2018, section 4),
    with the squared hinge max(0, 1 - m)^2 as L, or log(1 + e^-m) for `loss=logistic`. With |UV^T|_* = min 1/2 (|U|^2
    + |V|^2) it has the objective of Factorization RankSVM without its limit of rank: a convex problem. W is kept as
    balanced factors. A step is a truncated Newton step on them with V eliminated, whose part of the Hessian is a
    small matrix for each task; at each length of its line search V is corrected by Newton steps of each task alone.
    Before it, if the last step gained little, a proximal step: the singular vectors of the gradient outside the span
    of the factors with singular values s above 1 enter with weights in proportion to s - 1 (active subspace
    selection, Hsieh and Olsen 2014). A large C is reached through smaller ones, each problem solved to a gap of 0.001
    from the solution before. Where rounding ends the descent before the gap has vanished, it goes on with the losses
    summed pair by pair. The dual variables -C L'(margin), scaled until their gradient's spectral norm is at most 1,
    bound the gap.
    A task without a pair contributes nothing and has w = 0: all items score zero.
    """

    C: Weight = 1.0
    loss: Annotated[CurvedLoss, AddedLater()] = "squared-hinge"
    learns_from: ClassVar = (Ratings, Comparisons)
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    title: ClassVar = "RankSVM, nuclear norm"
    version: ClassVar = 6  # the line search of each task is exact

    def steps(self, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The zero model, then a model after each step that decreases the objective, until the gap vanishes."""
        threads = checked_threads(threads)
        features = checked_features(train.item_features)
        problem = _Problem.of(PairTasks.of(train, threads, CODES[self.loss]), features, self.C)
        point = problem.at(*(np.zeros((size, 1)) for size in problem.shape))
        reached = point
        for reached in _course(problem, point):
            yield problem.step(reached)
        if _Gap(problem, reached)() <= _CONVERGED * reached.objective:
            return
        if exact := problem.listing(train):
            for point in _descent(exact, exact.at(reached.basis, reached.users), _CONVERGED, _DAMPINGS):
                yield exact.step(point)

    def fold_in(self, model: Model, ratings: View, threads: int = 1) -> FeatureFactors:
        """The model of these users, each at the minimum that the nuclear norm leaves to them at the optimum.

        There the factors are balanced, so that a user's weights v of the functions cost 1/2 |v|^2.
        """
        known = own(model, FeatureFactors)
        users, _ = users_of_pairs(known, ratings, CODES[self.loss], self.C, checked_threads(threads))
        return FeatureFactors(users, known.basis, known.features)


@dataclass(frozen=True, eq=False)
class _Point:
    """The factors of W with the loss of their scores, the objective, and the gradient of the loss by W."""

    basis: Floats
    users: Floats
    pairs: ScoredPairs
    objective: float  # |W|_* + C loss, if the factors are balanced
    slope: Matrix


@dataclass(frozen=True, eq=False)
class _Problem:
    """The objective with the products of features and tasks that its derivatives consist of."""

    tasks: PairTasks
    features: Features
    C: float
    rows: TaskFeatures
    entries: Entries

    @classmethod
    def of(cls, tasks: PairTasks, features: Features, C: float) -> "_Problem":
        """The problem of these tasks."""
        entries = Entries.of(tasks.indptr, tasks.items, features.shape[0], tasks.threads)
        return cls(tasks, features, C, TaskFeatures(tasks, features), entries)

    @property
    def shape(self) -> tuple[int, int]:
        """How many features and tasks there are."""
        return self.features.shape[1], self.tasks.n_tasks

    @property
    def small(self) -> bool:
        """Whether a matrix of features x tasks is formed."""
        return self.shape[0] * self.shape[1] <= _DENSE

    def at(self, basis: Floats, users: Floats) -> _Point:
        """The point with these factors."""
        return self.scored(basis, users, self.tasks.at(self.scores((basis, users))))

    def step(self, point: _Point) -> Step:
        """What the solver hands over at a point."""
        users = np.where(self.tasks.paired[:, None], point.users, 0.0)
        model = FeatureFactors(users, point.basis, self.features.matrix)
        return Step(model, lambda: point.objective, _Gap(self, point))

    def listing(self, train: View) -> "_Problem | None":
        """The same problem with the losses summed pair by pair, which loses fewer digits; None for too many pairs."""
        if isinstance(train, Comparisons) or self.tasks.loss != Loss.SQUARED_HINGE:  # whose pairs are listed
            return self
        if pairs_kernel.count(ratings=train.rows).sum() > _MOST_LISTED:
            return None
        return _Problem.of(
            PairTasks.of(train.comparisons(), self.tasks.threads, self.tasks.loss), self.features, self.C
        )

    def seen(self, point: _Point) -> _Point:
        """The same point under the C of this problem."""
        return self.scored(point.basis, point.users, point.pairs)

    def scored(self, basis: Floats, users: Floats, pairs: ScoredPairs) -> _Point:
        """The point with these factors, given the loss of their scores."""
        size = 0.5 * squared_norm(basis, users)
        return _Point(basis, users, pairs, size + self.C * pairs.loss, self.gradient(pairs.slope))

    def scores(self, factors: Factors) -> Floats:
        """The score of each row under U V^T."""
        basis, users = factors
        if self.small:
            return self.rows.scores(users @ basis.T)
        return self.through(basis).scores(np.ascontiguousarray(users))

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

    def diagonal(self, point: _Point) -> Floats:
        """The diagonal of the Hessian by the basis without the products of two items; ones if W is not small."""
        if not self.small:
            return np.ones_like(point.basis)
        squares = TaskFeatures(self.tasks, self.features.squared()).sums(2 * point.pairs.degree)
        return np.asarray(1 + self.C * squares.T @ np.square(point.users))

    def _times(self, slope: Floats, users: Floats) -> Floats:
        """The gradient times a matrix V, by way of a sum per item."""
        sums = self.entries.holding(slope).transposed_times(users)
        return self.C * self.features.transposed_times(sums)

    def _transposed_times(self, slope: Floats, basis: Floats) -> Floats:
        """The transposed gradient times a matrix U."""
        return self.C * self.through(basis).sums(slope)

    def through(self, basis: Floats) -> TaskFeatures:
        """The products X U with a basis, as new features of the items."""
        return TaskFeatures(self.tasks, DenseFeatures(self.features.times(basis)))

    def corrected(self, basis: Floats, users: Floats, passes: int) -> _Point:
        """The point with this basis, and users' factors after so many Newton steps of each user alone."""
        through, users = self.through(basis), np.ascontiguousarray(users)
        done: Int32s = np.zeros(len(users), np.int32)
        for _ in range(passes):
            through.newton(self.C, _EXACT, users, done)
        return self.at(basis, users)

    def change(self, before: _Point, after: _Point) -> float:
        """The change of the objective, which is exact also where it is far below the objective itself."""
        size = sum(
            float(np.vdot(new - old, new + old))
            for old, new in ((before.basis, after.basis), (before.users, after.users))
        )
        return size / 2 + self.C * float((after.pairs.losses - before.pairs.losses).sum())


class _Gap:
    """The duality gap of a point, computed when asked for."""

    def __init__(self, problem: _Problem, point: _Point) -> None:
        self.problem, self.point = problem, point

    @cached_property
    def direction(self) -> Factors:
        """The direction of a Newton step from the point."""
        return _direction(self.problem, self.point)

    def __call__(self) -> float:
        """The duality gap, with a feasible multiple of the dual variables: of the squared hinge the best one."""
        pairs, C = self.point.pairs, self.problem.C
        if pairs.loss == 0:
            return self.point.objective
        if pairs.tasks.loss != Loss.SQUARED_HINGE:
            return self._of_share(C * (pairs.loss - float(pairs.slope @ pairs.scores)))
        weight = 2 * C * pairs.loss - C * float(pairs.slope @ pairs.scores)
        found = self._of(self.point.slope, weight, C * pairs.loss)
        return self._refined(weight, found) if found <= _REFINED * self.point.objective else found

    def _of(self, slope: Matrix, weight: float, cost: float) -> float:
        """The gap to the best multiple of duals with this gradient, sum a (`weight`) and sum a^2 / 4C (`cost`)."""
        largest = _leading(slope, 1)[1][0] * (1 + _MARGIN)
        scale = min(1 / largest if largest > 0 else np.inf, weight / (2 * cost))
        return float(max(0.0, self.point.objective - scale * weight + scale**2 * cost))

    def _of_share(self, value: float) -> float:
        """The gap to as large a share of the duals as is feasible, where all of them have this dual value.

        The dual value is concave and zero without duals, so that a share of them has at least this share of it.
        """
        largest = _leading(self.point.slope, 1)[1][0] * (1 + _MARGIN)
        return float(max(0.0, self.point.objective - value / max(1.0, largest)))

    def _refined(self, weight: float, found: float) -> float:
        """The smaller of this gap and the one to the duals a Newton step further.

        Margins that are rounded in their last digit give duals 2 C (1 - margin) with 2 C times that error. A tiny
        change d of the margins is known to all its digits, and so are a - 2 C d, their gradient, their sum and the sum
        of their squares. They are feasible if the same pairs are active after the step: the pairs of each row are
        counted. With n_r the active pairs in which row r is the better one, less those in which it is the worse,
        sum d = n . moves, and curve(scores) - slope = 2 n.
        """
        problem, pairs, C = self.problem, self.point.pairs, self.problem.C
        step = self.direction
        basis, users = np.hstack([step[0], self.point.basis + step[0]]), np.hstack([self.point.users, step[1]])
        moves = problem.scores((basis, users))  # of u V^T + (U + u) v^T, which is the change of U V^T
        if not np.array_equal(problem.tasks.at(pairs.scores + moves).degree, pairs.degree):
            return found
        curved = pairs.curve(moves)
        moved = float(moves @ (pairs.curve(pairs.scores) - pairs.slope)) / 2
        cost = C * (pairs.loss + float(pairs.slope @ moves) + float(moves @ curved) / 2)
        slope = problem.gradient(pairs.slope + curved)
        return min(found, self._of(slope, weight - 2 * C * moved, cost))


def _course(problem: _Problem, start: _Point) -> Iterator[_Point]:
    """The start, then points of lower objective: of problems with smaller C, each from the one before, and of this one.

    A point on the way that does not decrease the objective of this problem is left out.
    """
    yield start
    least, reached = start.objective, start
    largest = _leading(start.slope, 1)[1][0]
    smaller = int(np.ceil(np.log(max(1.0, largest / _EASY)) / np.log(_RISE)))
    for left in range(smaller, 0, -1):
        easier = replace(problem, C=problem.C / _RISE**left)
        for point in _descent(easier, easier.seen(reached), _NEAR):
            reached, seen = point, problem.seen(point)
            if seen.objective < least:
                least = seen.objective
                yield seen
    yield from _descent(problem, problem.seen(reached), _CONVERGED)


def _descent(problem: _Problem, point: _Point, enough: float, dampings: tuple[float, ...] = ()) -> Iterator[_Point]:
    """The points after each step, until the relative gap is at most `enough` or no step decreases the objective.

    Where no step along Newton's direction does, these dampings of the Hessian are tried, the smallest first.
    """
    stalled, gap = True, _Gap(problem, point)
    while point.objective > 0:
        larger = _grow(problem, point) if stalled else None
        start = gap if larger is None else _Gap(problem, _balanced(problem, larger))
        better = _newton(problem, start.point, start.direction) if _rank(start.point) else None
        if better is None and larger is None:
            if not stalled:
                stalled = True
                continue
            damped = (_newton(problem, point, _direction(problem, point, damping)) for damping in dampings)
            better = next((found for found in damped if found is not None), None)
            if better is None:
                return
        found = start.point if better is None else _balanced(problem, better)
        stalled = point.objective - found.objective <= _STALLED * point.objective
        point, gap = found, _Gap(problem, found)
        yield point
        if stalled and gap() <= enough * point.objective:
            return


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


def _newton(problem: _Problem, point: _Point, step: Factors) -> _Point | None:
    """The point after a step along Newton's direction, by line search; None if no length decreases enough.

    If the whole step does not, the users' factors are corrected at each length: the larger C, the less they may miss.
    Where the change of the objective is as small as rounding errors, a step that halves the gradient is taken, too.
    """
    gradient = _gradient(point)
    slope, size = inner_product(gradient, step), inner_product(gradient, gradient)
    for length, passes in ((1.0, 0), *((length, _CORRECTIONS) for length in halved(_TRIALS))):
        found = problem.corrected(point.basis + length * step[0], point.users + length * step[1], passes)
        change, left = problem.change(point, found), _gradient(found)
        if sufficient(change, 0.0, length, slope):
            return found
        if change <= _ROUNDING * point.objective and inner_product(left, left) <= size / 4:
            return found
    return None


def _gradient(point: _Point) -> Factors:
    """The gradient of the objective by both factors."""
    return point.basis + point.slope @ point.users, point.users + point.slope.T @ point.basis


def _direction(problem: _Problem, point: _Point, damping: float = 0.0) -> Factors:
    """About -(H + damping)^-1 gradient, by conjugate gradients on the basis alone, from which the users' part follows.

    With H = (P Q^T; Q R) the users' part of a step u is -R^-1 (g_V + Q u), and u solves (P - Q^T R^-1 Q) u = Q^T R^-1
    g_V - g_U, in which R has a block for each task. P u = u + M V and Q u = M^T U + S^T u with M the gradient's change
    by u V^T, and Q^T v = N V + S v with N its change by U v^T. The preconditioner is P's diagonal, of the loss's
    Hessian without the products of two items.
    """
    basis, users, slope = point.basis, point.users, point.slope
    blocks = _task_blocks(problem, point)
    inverses = np.linalg.inv(blocks + damping * np.eye(blocks.shape[1]) if damping else blocks)

    def changed(step: Factors) -> Matrix:
        """The change of the gradient by a product of factors."""
        return problem.gradient(point.pairs.curve(problem.scores(step)))

    def solved(right: Floats) -> Floats:
        """R^-1 times users' factors."""
        return np.ascontiguousarray((inverses @ right[:, :, None])[:, :, 0])

    def across(own: Floats) -> Floats:
        """Q^T times users' factors."""
        return np.asarray(changed((basis, own)) @ users + slope @ own)

    def reduced(step: Blocks) -> Blocks:
        """(P - Q^T R^-1 Q) u."""
        (ahead,) = step
        change = changed((ahead, users))
        return ((1 + damping) * ahead + change @ users - across(solved(change.T @ basis + slope.T @ ahead)),)

    def enough(start: float) -> float:
        """The level that the residual must fall to: the nearer the optimum, the lower."""
        return float(np.clip(np.sqrt(start / point.objective), _EXACT_DIRECTION, 0.1) ** 2 * start)

    gradient = _gradient(point)
    scale = problem.diagonal(point) + damping
    first = solved(gradient[1])
    right = across(first) - gradient[0]
    (found,) = conjugate_gradients(reduced, (right,), enough, _INNER, precondition=lambda left: (left[0] / scale,))
    return found, -first - solved(changed((found, users)).T @ basis + slope.T @ found)


def _task_blocks(problem: _Problem, point: _Point) -> Floats:
    """The Hessian by the users' factors, a matrix for each task: I + C times the loss's own."""
    through = problem.through(point.basis)
    columns = np.ascontiguousarray(problem.features.times(point.basis).T)
    curved = [through.sums(point.pairs.curve(column[problem.tasks.items])) for column in columns]
    return np.eye(len(columns)) + problem.C * np.stack(curved, axis=2)


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
