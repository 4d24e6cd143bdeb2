"""Factorization RankSVM: per task a combination of a few shared ranking functions (Cheng, Davidson, Hsieh 2018)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.core.contract import Determinism, Executor, Floats, Model, Step, Sums
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.distributed.cutting import edges_of, parts_of
from rankbench.distributed.in_process import steps_in_process
from rankbench.features.matrix import Features
from rankbench.features.single import SingleFeatures
from rankbench.kernels.methods import entries as entries_kernel
from rankbench.kernels.solvers import frsvm as kernel
from rankbench.methods.conjugate_gradients import Blocks, conjugate_gradients
from rankbench.methods.design import Design, sparse_rows
from rankbench.methods.factors import seed_of, whole_lanes, zero_rows
from rankbench.methods.folding import own, users_of_pairs
from rankbench.methods.line_search import halved, sufficient
from rankbench.methods.losses import CODES
from rankbench.methods.low_rank import ProductSVD
from rankbench.methods.pair_tasks import PairTasks, ScoredPairs
from rankbench.methods.tasks import features_as_stored
from rankbench.models import Factors, FeatureFactors, ScatteredFactors, ScatteredFeatureFactors, ScatteredUsers
from rankbench.names import AddedLater, Checked, Limits, checked_threads
from rankbench.names.ranges import Count, Partitions, Rank, Weight

_CACHE = 1 << 16  # entries of a block of items' sums, which should stay in cache
_SPARE, _ITERATIONS = 8, 3  # extra columns, and iterations, of the spectral start's subspace iteration
_TRIALS = 30  # step lengths of a line search, at most
_SMALL = 1e-7  # singular values of the spectral start that are smaller, relative to the largest, count as zero


@dataclass(frozen=True)
class FRSVM(Checked):
    """Low-rank ranking functions: task i scores item x by v_i . U^T x, with the columns of U shared by all tasks.

    min over U, V of C sum L(v_i . U^T (x_j - x_k)) + 1/2 (|U|^2 + |V|^2), over all pairs (j over k) of all tasks
    (eq. 2; eq. 3 drops C), with the squared hinge L(m) = max(0, 1 - m)^2, or log(1 + e^-m) for `loss=logistic`, under
    which 1 / (1 + e^-m) is the chance of a preference. Ratings stand for all their pairs of different value, which
    are never listed with the squared hinge: all_pairs.pxd evaluates them in near-linear time. Comparisons are kept as
    they are, with the book-keeping of Algorithm 1. `features=none` takes items as they are (X = I, nothing is
    multiplied by it): collaborative ranking on all pairs, the problem of PrimalCR++ (Wu, Hsieh, Sharpnack, KDD 2017)
    with lam = 1/C.

    A step is an epoch: U with V fixed, then V with U fixed, task by task, each by `newton` steps of
    truncated Newton with at most `cg` conjugate gradients, which end once the residual is `forcing` times
    the gradient; no step raises the objective. Then U and V are replaced by the factors of the same product
    with the least norm: with the singular value decomposition U V^T = A S B^T, A S^1/2 and B S^1/2. So the
    columns of U are orthogonal, the most important first. The
    paper does not say where it starts. Here it is the steepest descent from W = 0, cut to the rank
    (`start=spectral`), from where an epoch achieves what takes ten from normal U and V (`start=random`).

    A task without a pair (no or one rating, or all alike) contributes nothing. It is scored from the
    others' U with v = 0, a tie of all items, or with the others' mean v for `fallback=mean`. Items need no
    rating to be scored; with `features=none` those that are in no pair score NaN. A rank above the number of
    features is lowered to that number, because U V^T has no higher rank.

    With `partitions` above 1 the users are cut into so many parts, which may be on several machines. It is the same
    algorithm on the same objective: the gradient and the Hessian's products by U are sums over the parts, and the steps
    on V are within the parts. Only matrices of as many rows as U has travel, or as there are items if these are fewer.
    Random numbers are drawn part by part, so the start is another one for other numbers of partitions.
    """

    rank: Rank = 10
    C: Weight = 1.0
    features: Literal["given", "none"] = "given"
    newton: Count = 1
    cg: Count = 10
    forcing: Annotated[float, Limits(low=0, below=1)] = 0.1
    start: Literal["spectral", "random"] = "spectral"
    fallback: Literal["zero", "mean"] = "zero"
    partitions: Partitions = 1
    loss: Annotated[Literal["squared-hinge", "logistic"], AddedLater()] = "squared-hinge"
    learns_from: ClassVar = (Ratings, Comparisons)
    takes_single: ClassVar = True  # features of 32 bits as they are
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 2  # v of a task without a pair is zero exactly, and not up to rounding

    @property
    def needs_features(self) -> bool:
        """Whether items must come with features: not where `features=none`."""
        return self.features == "given"

    def steps(self, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The start, then a model after each epoch."""
        if self.partitions > 1:
            yield from steps_in_process(self, train, rng, threads)
            return
        threads = checked_threads(threads)
        solver, features = self._fitting(train)
        design = Design.of(features, train.n_items, threads)
        fit = _Fit(solver, PairTasks.of(train, threads, CODES[self.loss]), design, threads)
        basis, users = fit.spectral(rng) if self.start == "spectral" else fit.random(rng)
        while True:
            yield Step(fit.model(basis, users), partial(fit.objective, basis, users))
            if not fit.paired.any():
                return
            basis = fit.basis_step(basis, users)
            fit.users_step(basis, users)
            basis, users = _balanced(basis, users, solver.rank)

    def steps_on(self, executor: Executor, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The start, then a model after each epoch, with the users and their vectors in parts kept by the executor."""
        fit = _SpreadFit(self._fitting(train)[0], executor, train, checked_threads(threads), rng)
        basis = fit.spectral() if self.start == "spectral" else fit.random(rng)
        while True:
            yield Step(fit.model(basis), partial(fit.objective, basis))
            if not fit.paired:
                return
            basis = fit.basis_step(basis)
            basis = fit.users_step(basis)

    def fold_in(self, model: Model, ratings: View, threads: int = 1) -> FeatureFactors | Factors:
        """The model of these users, each with v at its minimum for the model's U."""
        known: FeatureFactors | Factors
        threads = checked_threads(threads)
        known = own(model, FeatureFactors) if self.needs_features else own(model, Factors)
        users, paired = users_of_pairs(known, ratings, CODES[self.loss], self.C, threads)
        if self.fallback == "mean" and len(known.users):
            users[~paired] = known.users.mean(axis=0)
        return replace(known, users=users)

    def _fitting(self, train: View) -> tuple["FRSVM", Features | SingleFeatures | None]:
        """This solver with a rank that the item features allow, and these features."""
        features = self._features(train)
        if features is None or self.rank <= features.shape[1]:
            return self, features
        return replace(self, rank=features.shape[1]), features

    def _features(self, train: View) -> Features | SingleFeatures | None:
        """The item features that it learns from, checked."""
        if not self.needs_features:
            return None
        if train.item_features is None:
            problem = "features=given, but the data has none: give item features, or features=none"
            raise UserError(problem, subject="FRSVM")
        return features_as_stored(train.item_features)


class _Fit:
    """The problem of one fit with the arrays that its steps share."""

    def __init__(self, solver: FRSVM, tasks: PairTasks, design: Design, threads: int) -> None:
        self.solver, self.tasks, self.design, self.threads = solver, tasks, design, threads
        self.paired = tasks.paired
        self.unmet = ~tasks.met(design.n_items)
        width = _block(design.n_items, solver.rank, threads)
        self.blocks = kernel.ItemBlocks(rows=tasks.rows, n_items=design.n_items, width=width)
        self.method = kernel.TruncatedNewton(C=solver.C, steps=solver.newton, cg=solver.cg, forcing=solver.forcing)
        self.windows, self.sums = tasks.unsorted(), np.empty((2, len(tasks.items)))  # scratch, made once per fit

    def random(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Normal U and V, of such a size that scores are about standard normal; v = 0 without a pair."""
        rank, basis, users = self.solver.rank, *self._zeros(self.solver.rank)
        basis[:, :rank] = rng.standard_normal((self.design.width, rank)) / np.sqrt(self.design.size)
        users[:, :rank] = rng.standard_normal((self.tasks.n_tasks, rank)) / np.sqrt(rank)
        users[~self.paired] = 0.0
        return basis, users

    def spectral(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """The steepest descent from W = 0, cut to the rank and scaled such that scores have standard deviation 1.

        By subspace iteration; the gradient with respect to W = X^T S, with a sparse S, is never formed.
        """
        rank, basis, users = self.solver.rank, *self._zeros(self.solver.rank)
        pull = self._at(np.zeros(len(self.tasks.items))).slope
        pull *= -0.5
        _, sketch = self._zeros(rank + _SPARE)
        sketch[:] = rng.standard_normal(sketch.shape)
        for _ in range(_ITERATIONS):
            left = np.linalg.qr(self._gathered(pull, sketch))[0]
            sketch = self._spread(pull, left)
        right, size = np.linalg.qr(sketch)
        b, sizes, a = np.linalg.svd(size, full_matrices=False)
        kept = min(rank, len(sizes))
        basis[:, :kept] = (left @ a.T)[:, :kept] * np.sqrt(sizes[:kept])
        users[:, :kept] = (right @ b)[:, :kept] * np.sqrt(sizes[:kept])
        learned = np.repeat(self.paired, np.diff(self.tasks.indptr))
        spread = self._scores(self.design.times(basis), users)[learned].std() if learned.any() else 0.0
        scale = 1 / np.sqrt(spread) if spread > 0 else 1.0
        return scale * basis, scale * users

    def _zeros(self, rank: int) -> tuple[Floats, Floats]:
        """U and V of zeros, padded as the kernels need them."""
        return zero_rows(self.design.width, rank), zero_rows(self.tasks.n_tasks, rank)

    def _spread(self, weights: Floats, matrix: Floats) -> Floats:
        """For each task the sum over its rows of weight times x_j^T matrix."""
        out = np.empty((self.tasks.n_tasks, matrix.shape[1]))
        factors = self.design.times(matrix)
        rows = sparse_rows(self.tasks.indptr, self.tasks.items, weights)
        entries_kernel.times(matrix=rows, dense=factors, out=out, threads=self.threads)
        return out

    def model(self, basis: Floats, users: Floats) -> Model:
        """The model that scores by U and V."""
        basis, shown = basis[:, : self.solver.rank], users[:, : self.solver.rank]
        if not self.paired.all():
            mean = self.solver.fallback == "mean" and self.paired.any()
            others = shown[self.paired].mean(axis=0) if mean else 0.0
            shown = np.where(self.paired[:, None], shown, others)
        if self.design.features is not None:
            return FeatureFactors(shown, basis, self.design.features.matrix)
        return Factors(shown, np.where(self.unmet[:, None], np.nan, basis))

    def objective(self, basis: Floats, users: Floats) -> float:
        """The objective, C sum of losses + 1/2 (|U|^2 + |V|^2)."""
        scores = self._scores(self.design.times(basis), users)
        return self.solver.C * self.tasks.at(scores, sums=self.sums).loss + _half(basis) + _half(users)

    def users_step(self, basis: Floats, users: Floats) -> None:
        """Newton steps on V with U fixed, task by task, in place."""
        factors = self.design.times(basis)
        kernel.users_step(
            tasks=self.tasks.pairs, method=self.method, factors=factors, users=users, threads=self.threads
        )

    def basis_step(self, basis: Floats, users: Floats) -> Floats:
        """U after truncated Newton steps with V fixed, each with a line search."""
        now = self._at(self._scores(self.design.times(basis), users))
        for _ in range(self.solver.newton):
            gradient = basis + self._gathered(now.slope, users)
            direction = _newton_direction(self.solver, gradient, partial(self._curved, now=now, users=users))
            slope = float(np.vdot(gradient, direction))
            if not slope < 0:
                break
            change = self._scores(self.design.times(direction), users)
            loss, scores = now.loss, now.scores
            for length in halved(_TRIALS):
                trial, now = basis + length * direction, self._at(scores + length * change)
                if sufficient(self.solver.C * (now.loss - loss) + _half(trial) - _half(basis), 0.0, length, slope):
                    basis = trial
                    break
            else:
                break
        return basis

    def _at(self, scores: Floats) -> ScoredPairs:
        """The losses at these scores, in the place of those of the call before."""
        return self.tasks.at(scores, self.windows, self.sums)

    def _scores(self, factors: Floats, users: Floats) -> Floats:
        scores = np.empty(len(self.tasks.items))
        if len(scores):
            kernel.scores(blocks=self.blocks, users=users, factors=factors, out=scores, threads=self.threads)
        return scores

    def _curved(self, search: Floats, now: ScoredPairs, users: Floats) -> Floats:
        """C times the Hessian of the losses by U, times a direction of U."""
        return self._gathered(now.curve(self._scores(self.design.times(search), users)), users)

    def _gathered(self, weights: Floats, users: Floats) -> Floats:
        """The matrix C X^T Z, where z_j is the sum of weight times v over the rows of item j."""
        sums = np.zeros((self.design.n_items, users.shape[1]))
        if len(weights):
            kernel.scatter(blocks=self.blocks, weights=weights, users=users, out=sums, threads=self.threads)
        return self.solver.C * self.design.transposed_times(sums)


def _balanced(basis: Floats, users: Floats, rank: int) -> tuple[Floats, Floats]:
    """The balanced factors A S^1/2 and B S^1/2 of U V^T = A S B^T, which have the least norm for this product."""
    product = ProductSVD.of(basis[:, :rank], users[:, :rank])
    out = np.zeros_like(basis), np.zeros_like(users)
    for part, vectors in zip(out, (product.left, product.right), strict=True):
        part[:, : len(product.values)] = vectors * np.sqrt(product.values)
    return out


def _half(matrix: Floats) -> float:
    return 0.5 * float(np.vdot(matrix, matrix))


def _block(n_items: int, rank: int, threads: int) -> int:
    """The number of items in a block: as many as stay in cache, but few enough that all threads have blocks."""
    return max(1, min(_CACHE // rank, -(-n_items // (4 * threads))))


def _newton_direction(solver: FRSVM, gradient: Floats, curved: Callable[[Floats], Floats]) -> Floats:
    """The Newton direction -(I + C d^2 losses)^-1 gradient, approximately, by conjugate gradients.

    `curved` gives the Hessian of C times the losses by U, times a direction of U.
    """

    def times(direction: Blocks) -> Blocks:
        """The Hessian of the objective times a direction of U."""
        return (direction[0] + curved(direction[0]),)

    found = conjugate_gradients(times, (-gradient,), lambda size: solver.forcing**2 * size, solver.cg)
    return found[0]


# ---- with the users in parts ----


@dataclass(frozen=True, eq=False)
class _Site:
    """What all parts in one process share."""

    solver: FRSVM
    features: Features | SingleFeatures | None  # None where parts are given scores' item vectors, and not U
    n_items: int
    threads: int

    @cached_property
    def design(self) -> Design:
        """The features as the parts multiply by them, made once in every process."""
        return Design.of(self.features, self.n_items, self.threads)


class _Part:
    """A part's tasks and the vectors of their users, with what one call leaves behind for the next."""

    def __init__(self, view: View, seed: int, site: _Site) -> None:
        self.rng, self.rank = np.random.default_rng(seed), site.solver.rank
        tasks = PairTasks.of(view, site.threads, CODES[site.solver.loss])
        self.fit = _Fit(site.solver, tasks, site.design, site.threads)
        self.users = zero_rows(view.n_users, self.rank)
        self.pull = self.sketch = np.empty(
            0
        )  # of the spectral start: weights of rows, and a matrix with a row per task
        self.move_to(np.zeros(len(self.fit.tasks.items)))
        self.scores = self.change = np.empty(0)  # of the line search: scores at its start, and their change

    def move_to(self, scores: Floats) -> ScoredPairs:
        """The loss and its slope at these scores, which are kept for what is asked next."""
        self.now = self.fit.tasks.at(scores, self.fit.windows)
        return self.now

    def scores_at(self, basis: Floats) -> Floats:
        """The scores at this U, or at X U."""
        return self.fit._scores(self.fit.design.times(basis), self.users)


class _SpreadFit:
    """The driver's side of a fit: U, and calls of the functions below on the parts.

    The parts multiply by the features X if an item has fewer of them than there are items; otherwise this side does,
    and X U travels.
    """

    def __init__(self, solver: FRSVM, executor: Executor, train: View, threads: int, rng: np.random.Generator) -> None:
        self.solver, self.executor, self.features = solver, executor, solver._features(train)
        near = self.features is not None and self.features.shape[1] < train.n_items
        self.design = Design.of(self.features, train.n_items, threads)
        self.far = Design.of(None if near else self.features, train.n_items, threads)
        self.edges = edges_of(train, solver.partitions, "FRSVM")
        site = _Site(solver, self.features if near else None, train.n_items, threads)
        executor.place(_Part, [(view, seed_of(rng)) for view in parts_of(train, self.edges)], site)
        met, self.paired = executor.total(_occurrences)
        self.unmet = met == 0

    def random(self, rng: np.random.Generator) -> Floats:
        """Normal U and V, of such a size that scores are about standard normal; v = 0 without a pair."""
        rank, basis = self.solver.rank, self._zeros()
        basis[:, :rank] = rng.standard_normal((self.design.width, rank)) / np.sqrt(self.design.size)
        self.executor.total(_draw)
        return basis

    def spectral(self) -> Floats:
        """The steepest descent from W = 0, cut to the rank and scaled such that scores have standard deviation 1.

        As in `_Fit.spectral`. The last sketch's singular values come from the sum of its products over the parts.
        """
        basis, rank = self._zeros(), self.solver.rank
        gathered = self.executor.total(_sketch)[0]
        for last in [False] * (_ITERATIONS - 1) + [True]:
            left = np.linalg.qr(self.far.transposed_times(gathered))[0]
            gathered = self.executor.total(_sketch_again, self.far.times(left), last)[0]
        squares, turn = np.linalg.eigh(gathered)
        sizes, turn = np.sqrt(np.maximum(squares[::-1][:rank], 0.0)), turn[:, ::-1][:, :rank]
        roots = np.sqrt(np.where(sizes > _SMALL * sizes[0], sizes, 0.0))
        basis[:, : len(roots)] = (left @ turn) * roots
        count, linear, square = self.executor.total(_begin, turn * _inverse(roots), self.far.times(basis))
        spread = np.sqrt(max(0.0, square / count - (linear / count) ** 2)) if count else 0.0
        scale = 1 / np.sqrt(spread) if spread > 0 else 1.0
        self.executor.total(_turn, scale * np.eye(rank))
        return scale * basis

    def basis_step(self, basis: Floats) -> Floats:
        """U after truncated Newton steps with V fixed, each with a line search."""
        loss, pull = self.executor.total(_slope, self.far.times(basis))
        for step in range(self.solver.newton):
            gradient = basis + self.far.transposed_times(pull)
            direction = _newton_direction(self.solver, gradient, self._curved)
            slope = float(np.vdot(gradient, direction))
            found = self._search(basis, direction, loss, slope) if slope < 0 else None
            if found is None:
                break
            basis = found
            if step + 1 < self.solver.newton:
                loss, pull = self.executor.total(_slope, None)
        return basis

    def users_step(self, basis: Floats) -> Floats:
        """Newton steps on V with U fixed, then U and V are replaced by the balanced factors of their product.

        With U = Q R and R V^T = A S B^T, V R^T A = B S. So A follows from the products of V's columns, S from the
        norms of the columns of V R^T A, and U V^T stays the same however exact A is.
        """
        (products,) = self.executor.total(_fit_users, self.far.times(basis))
        left, upper = np.linalg.qr(basis[:, : self.solver.rank])
        turn = np.linalg.eigh(upper @ products @ upper.T)[1][:, ::-1]
        (squares,) = self.executor.total(_turn, upper.T @ turn)
        roots = squares**0.25
        self.executor.total(_turn, np.diag(_inverse(roots)))
        out = self._zeros()
        out[:, : len(roots)] = (left @ turn) * roots
        return out

    def objective(self, basis: Floats) -> float:
        """The objective, C sum of losses + 1/2 (|U|^2 + |V|^2)."""
        loss, size = self.executor.total(_measure, self.far.times(basis))
        return float(self.solver.C * loss + _half(basis) + size)

    def model(self, basis: Floats) -> Model:
        """The model that scores by U and V, with V in the parts."""
        basis, rank, mean = basis[:, : self.solver.rank], self.solver.rank, None
        if self.solver.fallback == "mean" and self.paired:
            mean = self.executor.total(_sum_of_paired)[0] / self.paired
        users = ScatteredUsers(self.executor, self.edges, partial(_shown, mean=mean), rank)
        if self.features is not None:
            return ScatteredFeatureFactors(users, basis, self.features.matrix)
        return ScatteredFactors(users, np.where(self.unmet[:, None], np.nan, basis))

    def _search(self, basis: Floats, direction: Floats, loss: float, slope: float) -> Floats | None:
        """U moved along a direction until the objective falls sufficiently, or None."""
        ahead: Floats | None = self.far.times(direction)  # it travels once
        for length in halved(_TRIALS):
            trial = basis + length * direction
            (now,) = self.executor.total(_move, length, ahead)
            if sufficient(self.solver.C * (now - loss) + _half(trial) - _half(basis), 0.0, length, slope):
                return trial
            ahead = None
        return None

    def _curved(self, direction: Floats) -> Floats:
        """C times the Hessian of the losses by U, times a direction of U."""
        return self.far.transposed_times(self.executor.total(_curve, self.far.times(direction))[0])

    def _zeros(self) -> Floats:
        return zero_rows(self.design.width, self.solver.rank)


def _inverse(numbers: Floats) -> Floats:
    """One over each number; zero for zero."""
    return np.divide(1.0, numbers, out=np.zeros_like(numbers), where=numbers > 0)


# What the parts are asked for; each gives what is summed over them.


def _occurrences(part: _Part) -> Sums:
    """How many parts have each item in a pair, and how many tasks have pairs."""
    return (~part.fit.unmet).astype(np.int64), int(part.fit.paired.sum())


def _draw(part: _Part) -> Sums:
    """Draw a normal V; nothing is summed."""
    part.users[:, : part.rank] = part.rng.standard_normal((len(part.users), part.rank)) / np.sqrt(part.rank)
    part.users[~part.fit.paired] = 0.0
    return ()


def _sketch(part: _Part) -> Sums:
    """The gradient at W = 0 times a random matrix."""
    part.pull = -0.5 * part.move_to(np.zeros(len(part.fit.tasks.items))).slope
    part.sketch = part.rng.standard_normal((len(part.users), whole_lanes(part.rank + _SPARE)))
    return (part.fit._gathered(part.pull, part.sketch),)


def _sketch_again(part: _Part, left: Floats, last: bool) -> Sums:
    """The gradient at W = 0 times its own transpose times `left`; of the last one the products of its columns."""
    part.sketch = part.fit._spread(part.pull, left)
    return (part.sketch.T @ part.sketch if last else part.fit._gathered(part.pull, part.sketch),)


def _begin(part: _Part, turn: Floats, basis: Floats) -> Sums:
    """Take V from the sketch; the number of scores of tasks with pairs, their sum, and that of their squares."""
    part.users[:, : turn.shape[1]] = part.sketch @ turn
    part.pull = part.sketch = np.empty(0)
    learned = np.repeat(part.fit.paired, np.diff(part.fit.tasks.indptr))
    scores = part.scores_at(basis)[learned]
    return len(scores), float(scores.sum()), float(np.vdot(scores, scores))


def _slope(part: _Part, basis: Floats | None) -> Sums:
    """The loss and C times its gradient by U, at this U or where the line search ended."""
    now = part.now if basis is None else part.move_to(part.scores_at(basis))
    return now.loss, part.fit._gathered(now.slope, part.users)


def _curve(part: _Part, direction: Floats) -> Sums:
    """C times the Hessian of the loss by U, times a direction."""
    return (part.fit._curved(direction, part.now, part.users),)


def _move(part: _Part, length: float, direction: Floats | None) -> Sums:
    """The loss after a step of this length along a direction, which is given once."""
    if direction is not None:
        part.scores, part.change = part.now.scores, part.scores_at(direction)
    return (part.move_to(part.scores + length * part.change).loss,)


def _fit_users(part: _Part, basis: Floats) -> Sums:
    """Take Newton steps on V; the products of its columns."""
    part.fit.users_step(basis, part.users)
    known = part.users[:, : part.rank]
    return (known.T @ known,)


def _turn(part: _Part, by: Floats) -> Sums:
    """Multiply V by a matrix; the squared norms of its columns."""
    turned = part.users[:, : len(by)] @ by
    part.users[:] = 0.0
    part.users[:, : by.shape[1]] = turned
    return (np.square(turned).sum(axis=0),)


def _measure(part: _Part, basis: Floats) -> Sums:
    """The loss at this U, and half the squared norm of V."""
    return part.fit.tasks.at(part.scores_at(basis)).loss, _half(part.users)


def _sum_of_paired(part: _Part) -> Sums:
    """The sum of the vectors of tasks with pairs."""
    return (part.users[part.fit.paired, : part.rank].sum(axis=0),)


def _shown(part: _Part, mean: Floats | None) -> Floats:
    """The vectors of a part's users as its model has them."""
    known = part.users[:, : part.rank]  # of tasks without a pair they are zero, which no multiplication changes
    return known if mean is None else np.where(part.fit.paired[:, None], known, mean)
