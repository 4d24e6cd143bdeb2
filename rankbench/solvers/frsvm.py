"""Factorization RankSVM: per task a combination of a few shared ranking functions (Cheng, Davidson, Hsieh 2018)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.core.contract import Determinism, Executor, Floats, Model, Step, Sums
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.distributed.cutting import edges_of, parts_of
from rankbench.distributed.in_process import steps_in_process
from rankbench.features.matrix import Features
from rankbench.features.single import SingleFeatures
from rankbench.kernels.methods import entries as entries_kernel
from rankbench.kernels.solvers import frsvm as kernel
from rankbench.methods.conjugate_gradients import Blocks, conjugate_gradients
from rankbench.methods.design import Design, sparse_rows
from rankbench.methods.factors import streams_of, whole_lanes, zero_rows
from rankbench.methods.folding import own, users_of_pairs
from rankbench.methods.line_search import halved, level, promising, sufficient
from rankbench.methods.losses import CODES, CurvedLoss
from rankbench.methods.pair_tasks import PairTasks, ScoredPairs
from rankbench.methods.tasks import features_as_stored, given_features
from rankbench.models import Factors, FeatureFactors, ScatteredFactors, ScatteredFeatureFactors, ScatteredUsers
from rankbench.names import AddedLater, Checked, Limits, checked_threads
from rankbench.names.ranges import Count, Partitions, Rank, Weight

_SHARED = 1 << 20  # numbers of a block of items' vectors: what the cache that threads share holds of them
_NEAR = 1 << 16  # numbers of a tile of tasks, of their vectors and their rows: what a thread's own cache holds
_WIDE, _OFTEN = 32, 4  # numbers of a vector, and rows of an item in a tile, from which rows by item are faster
_SPARE, _ITERATIONS = 8, 3  # extra columns, and iterations, of the spectral start's subspace iteration
_TRIALS = 30  # step lengths of a line search, at most


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

    A step is an epoch: U with V fixed, then V with U fixed, task by task, each by `newton` steps of truncated Newton
    with at most `cg` conjugate gradients, which end once the residual is `forcing` times the gradient. But for rounding
    errors no step raises the objective, and training ends after an epoch in which no step promised a decrease that
    these would not hide. After an epoch U and V are replaced by the factors of the same product with the least norm:
    with the singular value decomposition U V^T = A S B^T, A S^1/2 and B S^1/2. So the columns of U are orthogonal, the
    most important first. The paper does not say where it starts. Here it is the steepest descent from W = 0, cut to the
    rank (`start=spectral`), from where an epoch achieves what takes ten from normal U and V (`start=random`).

    A task without a pair (no or one rating, or all alike) contributes nothing. It is scored from the
    others' U with v = 0, a tie of all items, or with the others' mean v for `fallback=mean`. Items need no
    rating to be scored; with `features=none` those that are in no pair score NaN. A rank above the number of
    features is lowered to that number, because U V^T has no higher rank.

    With `partitions` above 1 the users are cut into so many parts, which may be on several machines. It is the same
    algorithm on the same objective: the gradient and the Hessian's products by U are sums over the parts, the steps
    on V are within the parts, and V is made orthogonal part by part (a tall and skinny QR decomposition). Only matrices
    of as many rows as U has travel, or as there are items if these are fewer, and squares of the rank.
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
    loss: Annotated[CurvedLoss, AddedLater()] = "squared-hinge"
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
        return steps_in_process(self, train, rng, threads)

    def steps_on(self, executor: Executor, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The start, then a model after each epoch, with the users and their vectors in parts kept by the executor.

        It ends after an epoch in which no step promised more than rounding errors hide.
        """
        fit = _Fit(self._fitting(train), executor, train, checked_threads(threads), rng)
        basis = fit.spectral() if self.start == "spectral" else fit.random()
        more = fit.paired > 0
        yield Step(fit.model(basis), partial(fit.objective, basis))
        while more:
            basis, more = fit.epoch(basis)
            yield Step(fit.model(basis), partial(fit.objective, basis))

    def fold_in(self, model: Model, ratings: View, threads: int = 1) -> FeatureFactors | Factors:
        """The model of these users, each with v at its minimum for the model's U."""
        known: FeatureFactors | Factors
        threads = checked_threads(threads)
        known = own(model, FeatureFactors) if self.needs_features else own(model, Factors)
        users, paired = users_of_pairs(known, ratings, CODES[self.loss], self.C, threads)
        if self.fallback == "mean" and len(known.users):
            users[~paired] = known.users.mean(axis=0)
        return replace(known, users=users)

    def _fitting(self, train: View) -> "FRSVM":
        """This solver with a rank that the item features allow."""
        features = self._features(train)
        if features is None or self.rank <= features.shape[1]:
            return self
        return replace(self, rank=features.shape[1])

    def _features(self, train: View) -> Features | SingleFeatures | None:
        """The item features that it learns from, checked."""
        return features_as_stored(given_features(train, "FRSVM")) if self.needs_features else None


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
        return Design(self.features, self.n_items, self.threads)


class _Fit:
    """A fit as its driver sees it: U is here, and V with the rows of its users in parts, which are asked for sums.

    The parts multiply by the features X if an item has fewer of them than there are items, or if there is only one
    part; otherwise this side does, and X U travels.
    """

    def __init__(self, solver: FRSVM, executor: Executor, train: View, threads: int, rng: np.random.Generator) -> None:
        self.solver, self.executor, self.rng = solver, executor, rng
        self.features = features = solver._features(train)
        near = features is not None and (solver.partitions == 1 or features.shape[1] < train.n_items)
        self.design = Design(features, train.n_items, threads)
        self.far = Design(None, train.n_items, threads) if near else self.design
        self.edges = edges_of(train, solver.partitions, "FRSVM")
        site = _Site(solver, features if near else None, train.n_items, threads)
        views = parts_of(train, self.edges)
        executor.place(_Part, list(zip(views, streams_of(rng, len(views)), strict=True)), site)
        met, self.paired = executor.total(_Part.occurrences)
        self.unmet = met == 0

    def random(self) -> Floats:
        """Normal U and V, of such a size that scores are about standard normal; v = 0 without a pair."""
        rank, basis = self.solver.rank, self._zeros()
        basis[:, :rank] = self.rng.standard_normal((self.design.width, rank)) / np.sqrt(self.design.size)
        self.executor.total(_Part.draw)
        return basis

    def spectral(self) -> Floats:
        """The steepest descent from W = 0, cut to the rank and scaled such that scores have standard deviation 1.

        By subspace iteration; the gradient with respect to W = X^T S, with a sparse S, is never formed.
        """
        self.executor.total(_Part.draw_sketch)
        for _ in range(_ITERATIONS):
            (pull,) = self.executor.total(_Part.gathered_sketch)
            left = np.linalg.qr(self.far.transposed_times(pull))[0]
            self.executor.total(_Part.sketch, self.far.times(left))
        size, turns = self._orthogonal()
        b, sizes, a = np.linalg.svd(size, full_matrices=False)
        roots = np.sqrt(sizes[: self.solver.rank])
        basis = self._zeros()
        basis[:, : len(roots)] = (left @ a.T)[:, : len(roots)] * roots
        self._turned(turns, b, roots)
        count, total = self.executor.total(_Part.scores_sum, self.far.times(basis))
        spread = np.sqrt(self.executor.total(_Part.scores_spread, total / count)[0] / count) if count else 0.0
        scale = 1 / np.sqrt(spread) if spread > 0 else 1.0
        self.executor.total(_Part.scale, scale)
        return scale * basis

    def epoch(self, basis: Floats) -> tuple[Floats, bool]:
        """U after steps on U and on V, and whether any of them was promising."""
        basis, moved = self.basis_step(basis)
        basis, users = self.users_step(basis)
        return basis, moved or users > 0

    def basis_step(self, basis: Floats) -> tuple[Floats, bool]:
        """U after truncated Newton steps with V fixed, each with a line search, and whether one was promising."""
        moved = False
        loss, pull = self.executor.total(_Part.slope, self.far.times(basis))
        for step in range(self.solver.newton):
            gradient = basis + self.far.transposed_times(pull)
            direction = self._newton_direction(gradient)
            slope = float(np.vdot(gradient, direction))
            found, seen = self._search(basis, direction, loss, slope)
            basis, moved = found, moved or seen
            if not seen:
                break
            if step + 1 < self.solver.newton:
                loss, pull = self.executor.total(_Part.slope, None)
        return basis, moved

    def users_step(self, basis: Floats) -> tuple[Floats, int]:
        """Newton steps on V with U fixed, after which the factors are balanced; for how many users one was promising.

        Balanced factors of U V^T = A S B^T are A S^1/2 and B S^1/2, which have the least norm for this product.
        """
        (moved,) = self.executor.total(_Part.fit_users, self.far.times(basis))
        left, upper = np.linalg.qr(basis[:, : self.solver.rank])
        other, turns = self._orthogonal()
        a, sizes, b = np.linalg.svd(upper @ other.T, full_matrices=False)
        roots, out = np.sqrt(sizes), self._zeros()
        out[:, : len(roots)] = left @ a * roots
        self._turned(turns, b.T, roots)
        return out, moved

    def objective(self, basis: Floats) -> float:
        """The objective, C sum of losses + 1/2 (|U|^2 + |V|^2)."""
        loss, size = self.executor.total(_Part.measure, self.far.times(basis))
        return float(self.solver.C * loss + _half(basis) + size)

    def model(self, basis: Floats) -> Model:
        """The model that scores by U and V, with V in the parts."""
        basis, rank, mean = basis[:, : self.solver.rank], self.solver.rank, None
        if self.solver.fallback == "mean" and self.paired:
            mean = self.executor.total(_Part.sum_of_paired)[0] / self.paired
        users = ScatteredUsers(self.executor, self.edges, partial(_Part.shown, mean=mean), rank)
        if self.features is not None:
            return ScatteredFeatureFactors(users, basis, self.features.matrix)
        return ScatteredFactors(users, np.where(self.unmet[:, None], np.nan, basis))

    def _newton_direction(self, gradient: Floats) -> Floats:
        """The Newton direction -(I + C d^2 losses)^-1 gradient, approximately, by conjugate gradients."""

        def times(direction: Blocks) -> Blocks:
            """The Hessian of the objective times a direction of U."""
            curved = self.executor.total(_Part.curve, self.far.times(direction[0]))[0]
            return (direction[0] + self.far.transposed_times(curved),)

        found = conjugate_gradients(times, (-gradient,), lambda size: self.solver.forcing**2 * size, self.solver.cg)
        return found[0]

    def _search(self, basis: Floats, direction: Floats, loss: float, slope: float) -> tuple[Floats, bool]:
        """U moved along a direction until the objective falls sufficiently, if it does, and whether one sees it fall.

        Where rounding errors would hide the fall, only the whole step is tried.
        """
        if slope >= 0:
            return basis, False
        objective = self.solver.C * loss + _half(basis)
        seen = promising(slope, objective)
        ahead: Floats | None = self.far.times(direction)  # it travels once
        for length in halved(_TRIALS if seen else 1):
            trial = basis + length * direction
            (now,) = self.executor.total(_Part.move, length, ahead)
            change = self.solver.C * (now - loss) + _half(trial) - _half(basis)
            if sufficient(change, 0.0, length, slope) if seen else level(change, objective):
                return trial, seen
            ahead = None
        return basis, False

    def _orthogonal(self) -> tuple[Floats, list[Floats]]:
        """R of the QR decomposition of the parts' matrices below one another, and what each part multiplies its Q by.

        Each part decomposes its own matrix; the decomposition of their R below one another gives the rest.
        """
        found = self.executor.ask(_Part.decompose, dict.fromkeys(range(len(self.edges) - 1), ()))
        uppers = [found[part] for part in sorted(found)]
        turns, upper = np.linalg.qr(np.concatenate(uppers))
        return upper, np.split(turns, np.cumsum([len(one) for one in uppers])[:-1])

    def _turned(self, turns: list[Floats], by: Floats, sizes: Floats) -> None:
        """Let V be the first columns of Q times a rotation, each column times its size, where V = Q R."""
        self.executor.ask(_Part.turn, {part: (turn @ by,) for part, turn in enumerate(turns)}, sizes)

    def _zeros(self) -> Floats:
        return zero_rows(self.design.width, self.solver.rank)


class _Part:
    """The tasks of some users with the vectors of these, V; what one call leaves behind for the next is here, too.

    What its methods return, other than `decompose` and `shown`, is summed over the parts.
    """

    def __init__(self, view: View, rng: np.random.Generator, site: _Site) -> None:
        solver = self.solver = site.solver
        self.rng, self.threads, self.design, self.rank = rng, site.threads, site.design, solver.rank
        self.tasks = PairTasks.of(view, site.threads, CODES[solver.loss])
        self.paired, self.users = self.tasks.paired, zero_rows(self.tasks.n_tasks, solver.rank)
        self.blocks = item_blocks(self.tasks, site.n_items, self.users.shape[1], site.threads)
        self.method = kernel.TruncatedNewton(C=solver.C, steps=solver.newton, cg=solver.cg, forcing=solver.forcing)
        self.windows, self.sums = self.tasks.unsorted(), np.empty((2, len(self.tasks.items)))  # made once per fit
        self.now: ScoredPairs  # the losses at the scores asked for last
        self.scores = self.change = np.empty(0)  # of the line search: scores at its start, and their change
        self.matrix: Floats | None = None  # a row for each task: the sketch of the spectral start, or Q of a V = Q R

    def occurrences(self) -> Sums:
        """How many parts have each item in a pair, and how many tasks have pairs."""
        return self.tasks.met(self.design.n_items).astype(np.int64), int(self.paired.sum())

    def draw(self) -> Sums:
        """Draw a normal V; nothing is summed."""
        self.users[:, : self.rank] = self.rng.standard_normal((len(self.users), self.rank)) / np.sqrt(self.rank)
        self.users[~self.paired] = 0.0
        return ()

    def draw_sketch(self) -> Sums:
        """Take the gradient at W = 0 as it is by rows, and a random matrix for the first sketch; nothing is summed."""
        self.now = self._at(np.zeros(len(self.tasks.items)))
        self.now.slope[:] *= -0.5
        self.matrix = self.rng.standard_normal((len(self.users), whole_lanes(self.rank + _SPARE)))
        return ()

    def gathered_sketch(self) -> Sums:
        """The gradient at W = 0 times the sketch."""
        assert self.matrix is not None
        return (self._gathered(self.now.slope, self.matrix),)

    def sketch(self, left: Floats) -> Sums:
        """Let the sketch be the transpose of the gradient at W = 0 times `left`; nothing is summed."""
        self.matrix, factors = np.empty((len(self.users), left.shape[1])), self.design.times(left)
        rows = sparse_rows(self.tasks.indptr, self.tasks.items, self.now.slope)
        entries_kernel.times(matrix=rows, dense=factors, out=self.matrix, threads=self.threads)
        return ()

    def decompose(self) -> Floats:
        """R of the QR decomposition of V, or of the sketch while there is one; Q is kept."""
        self.matrix, upper = np.linalg.qr(self.users[:, : self.rank] if self.matrix is None else self.matrix)
        return upper

    def turn(self, by: Floats, sizes: Floats) -> None:
        """Let V be the first columns of Q times `by`, each column times its size; v = 0 without a pair, exactly."""
        assert self.matrix is not None
        turned = (self.matrix @ by)[:, : len(sizes)] * sizes
        self.users[:] = 0.0
        self.users[:, : len(sizes)], self.matrix = turned, None
        self.users[~self.paired] = 0.0

    def scores_sum(self, basis: Floats) -> Sums:
        """The number of scores of tasks with pairs at this U, or at X U, and their sum."""
        self.scores = self._scores(basis)[np.repeat(self.paired, np.diff(self.tasks.indptr))]
        return len(self.scores), float(self.scores.sum())

    def scores_spread(self, mean: float) -> Sums:
        """The sum of the squares of the distances of these scores from their mean."""
        return (float(np.square(self.scores - mean).sum()),)

    def scale(self, by: float) -> Sums:
        """Multiply V by a number; nothing is summed."""
        self.users *= by
        return ()

    def slope(self, basis: Floats | None) -> Sums:
        """The loss and C times its gradient by U, at this U or where the line search ended."""
        if basis is not None:
            self.now = self._at(self._scores(basis))
        return self.now.loss, self._gathered(self.now.slope, self.users)

    def curve(self, direction: Floats) -> Sums:
        """C times the Hessian of the loss by U, times a direction."""
        return (self._gathered(self.now.curve(self._scores(direction)), self.users),)

    def move(self, length: float, direction: Floats | None) -> Sums:
        """The loss after a step of this length along a direction, which is given once."""
        if direction is not None:
            self.scores, self.change = self.now.scores, self._scores(direction)
        self.now = self._at(self.scores + length * self.change)
        return (self.now.loss,)

    def fit_users(self, basis: Floats) -> Sums:
        """Take Newton steps on V with U fixed, task by task; for how many a step was promising."""
        factors, tasks = self.design.times(basis), self.tasks.pairs
        moved = kernel.users_step(
            tasks=tasks, method=self.method, factors=factors, users=self.users, threads=self.threads
        )
        return (moved,)

    def measure(self, basis: Floats) -> Sums:
        """The loss at this U, and half the squared norm of V."""
        return self.tasks.at(self._scores(basis), sums=self.sums).loss, _half(self.users)

    def sum_of_paired(self) -> Sums:
        """The sum of the vectors of tasks with pairs."""
        return (self.users[self.paired, : self.rank].sum(axis=0),)

    def shown(self, mean: Floats | None) -> Floats:
        """The vectors of the users as the model has them; `mean` is for those without a pair, whose v is zero."""
        known = self.users[:, : self.rank]
        return known if mean is None else np.where(self.paired[:, None], known, mean)

    def _at(self, scores: Floats) -> ScoredPairs:
        """The losses at these scores, in the place of those of the call before."""
        return self.tasks.at(scores, self.windows, self.sums)

    def _scores(self, basis: Floats) -> Floats:
        """The scores of all rows at this U, or at X U."""
        scores = np.empty(len(self.tasks.items))
        if len(scores):
            factors = self.design.times(basis)
            kernel.scores(blocks=self.blocks, users=self.users, factors=factors, out=scores, threads=self.threads)
        return scores

    def _gathered(self, weights: Floats, users: Floats) -> Floats:
        """The matrix C X^T Z, where z_j is the sum of weight times v over the rows of item j."""
        sums = np.zeros((self.design.n_items, users.shape[1]))
        if len(weights):
            kernel.scatter(blocks=self.blocks, weights=weights, users=users, out=sums, threads=self.threads)
        return self.solver.C * self.design.transposed_times(sums)


def _half(matrix: Floats) -> float:
    return 0.5 * float(np.vdot(matrix, matrix))


def item_blocks(tasks: PairTasks, n_items: int, rank: int, threads: int) -> kernel.ItemBlocks:
    """The tasks' rows in blocks of items: large ones, but so many that all threads have some.

    In vectors that are long, with items that are met often, rows are put by item, too.
    """
    width = max(1, min(_SHARED // (rank * threads), -(-n_items // (4 * threads)) if threads > 1 else n_items))
    own = len(tasks.items) / max(tasks.n_tasks, 1) * width / max(n_items, 1)  # rows that a task has in a block
    tile = int(_NEAR / (rank + own))
    by_item = rank >= _WIDE and tile * own >= _OFTEN * width
    return kernel.ItemBlocks(rows=tasks.rows, n_items=n_items, width=width, tile=tile if by_item else 0)
