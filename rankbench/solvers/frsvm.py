"""Factorization RankSVM: one ranking function per task from a few basic ones (Cheng, Davidson, Hsieh 2018)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import scipy.sparse

from rankbench.contract import Determinism, Floats, Ints, Model, Step
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.errors import UserError
from rankbench.kernels import frsvm as kernel
from rankbench.methods.pair_tasks import PairTasks, ScoredPairs
from rankbench.methods.tasks import check_features
from rankbench.models import Factors, FeatureFactors
from rankbench.names import Limits, check, checked_threads

_LANES = 4  # the kernels' rows are padded to whole lanes; the padding is zero and stays so
_CACHE = 1 << 16  # numbers that a block of items may hold while tasks pass by
_SPARE, _ITERATIONS = 8, 3  # columns and rounds more than the spectral start needs, for its exactness
_HALVINGS = 30  # of a step before it is given up


@dataclass(frozen=True)
class FRSVM:
    """Task i scores item x by v_i . U^T x: the columns of U are the basic ranking functions all tasks share.

    min over U, V of C sum max(0, 1 - v_i . U^T (x_j - x_k))^2 + 1/2 (|U|^2 + |V|^2), over all pairs (j over
    k) of all tasks (eq. 2; eq. 3 drops C). Ratings stand for all their pairs of different value, which are
    never listed: all_pairs.pxd evaluates them in near-linear time. Comparisons are kept as they are, with
    the book-keeping of Algorithm 1. `features=none` takes items as they are (X = I, nothing is multiplied
    by it): collaborative ranking on all pairs, the problem of PrimalCR++ (Wu, Hsieh, Sharpnack, KDD 2017)
    with lam = 1/C.

    A step is an epoch: U with V fixed, then V with U fixed, task by task, each by `newton` steps of
    truncated Newton with at most `cg` conjugate gradients, which end once the residual is `forcing` times
    the gradient; no step raises the objective. Then U and V are replaced by the pair of the same product
    that is least in norm: with the singular value decomposition U V^T = A S B^T, A S^1/2 and B S^1/2. So the
    columns of U are orthogonal, the most important first, and not just any basis of the same space. The
    paper does not say where it starts. Here it is the steepest descent from W = 0, cut to the rank
    (`start=spectral`), from where an epoch does what takes ten from normal U and V (`start=random`).

    A task without a pair (no or one rating, or all alike) contributes nothing. It is scored from the
    others' U with v = 0, a tie of all items, or with the others' mean v for `fallback=mean`. Items need no
    rating to be scored; with `features=none` those that are in no pair score NaN.
    """

    rank: Annotated[int, Limits(low=1)] = 10
    C: Annotated[float, Limits(above=0)] = 1.0
    features: Literal["given", "none"] = "given"
    newton: Annotated[int, Limits(low=1)] = 1
    cg: Annotated[int, Limits(low=1)] = 10
    forcing: Annotated[float, Limits(low=0, below=1)] = 0.1
    start: Literal["spectral", "random"] = "spectral"
    fallback: Literal["zero", "mean"] = "zero"
    learns_from: ClassVar = (Ratings, Comparisons)
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def __post_init__(self) -> None:
        check(self)

    @property
    def needs_features(self) -> bool:
        """Whether items must come with features: not where `features=none`."""
        return self.features == "given"

    def steps(self, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The start, then a model after each epoch."""
        threads = checked_threads(threads)
        features = train.item_features if self.needs_features else None
        if self.needs_features:
            if features is None:
                problem = "features=given, but the data has none: give item features, or features=none"
                raise UserError(problem, subject="FRSVM")
            check_features(features, self.rank)
        design = _Design.of(features, train.n_items, threads)
        fit = _Fit(self, PairTasks.of(train, threads), design, threads)
        basis, users = fit.spectral(rng) if self.start == "spectral" else fit.random(rng)
        while True:
            yield Step(fit.model(basis, users), partial(fit.objective, basis, users))
            if not fit.paired.any():
                return
            basis = fit.basis_step(basis, users)
            fit.users_step(basis, users)
            basis, users = _balanced(basis, users, self.rank)


@dataclass(frozen=True, eq=False)
class _Design:
    """The items' features X, dense, CSR, or none for X = I, and what X and its transpose make of a matrix."""

    n_items: int
    features: Any
    parts: tuple[Ints, Ints, Floats] | None  # of X and of its transpose, where X is CSR
    transposed: tuple[Ints, Ints, Floats] | None
    threads: int

    @classmethod
    def of(cls, features: Any, n_items: int, threads: int) -> "_Design":
        """The design of these features, or of none."""
        if not scipy.sparse.issparse(features):
            return cls(n_items, features, None, None, threads)
        return cls(n_items, features, _parts(features), _parts(features.T), threads)

    @property
    def width(self) -> int:
        """How many features an item has."""
        return int(self.n_items if self.features is None else self.features.shape[1])

    @property
    def size(self) -> float:
        """The mean squared norm of an item's features."""
        if self.features is None:
            return 1.0
        entries = self.features.data if self.parts else self.features.ravel()
        return float(np.vdot(entries, entries)) / self.n_items

    def times(self, matrix: Floats) -> Floats:
        """X times a matrix; the matrix itself where X = I."""
        if self.features is None:
            return matrix
        out = np.empty((self.n_items, matrix.shape[1]))
        if self.parts:
            kernel.sparse_times(*self.parts, matrix, out, self.threads)
        else:
            kernel.dense_times(self.features, matrix, out, self.threads)
        return out

    def transposed_times(self, matrix: Floats) -> Floats:
        """X^T times a matrix; the matrix itself where X = I."""
        if self.features is None:
            return matrix
        out = np.empty((self.width, matrix.shape[1]))
        if self.transposed:
            kernel.sparse_times(*self.transposed, matrix, out, self.threads)
        else:
            kernel.transposed_times(self.features, matrix, out, self.threads)
        return out


class _Fit:
    """What stays the same through a run, and the buffers that its steps share."""

    def __init__(self, solver: FRSVM, tasks: PairTasks, design: _Design, threads: int) -> None:
        self.solver, self.tasks, self.design, self.threads = solver, tasks, design, threads
        self.paired = tasks.paired
        self.unmet = ~tasks.met(design.n_items)
        self.block = _block(design.n_items, solver.rank, threads)
        self.starts = np.empty((-(-design.n_items // self.block) + 1, tasks.n_tasks), np.int32)
        kernel.block_starts(tasks.indptr, tasks.items, self.block, self.starts)
        self.windows = tasks.unsorted()

    def random(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Normal U and V, of such a size that scores are about standard normal; v = 0 without a pair."""
        rank, basis, users = self.solver.rank, *self._zeros(self.solver.rank)
        basis[:, :rank] = rng.standard_normal((self.design.width, rank)) / np.sqrt(self.design.size)
        users[:, :rank] = rng.standard_normal((self.tasks.n_tasks, rank)) / np.sqrt(rank)
        users[~self.paired] = 0.0
        return basis, users

    def spectral(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """The best U V^T of this rank along the steepest descent from W = 0, so long that scores have spread one.

        By subspace iteration; the gradient with respect to W = X^T S, with a sparse S, is never formed.
        """
        rank, basis, users = self.solver.rank, *self._zeros(self.solver.rank)
        pull = -0.5 * self.tasks.at(np.zeros(len(self.tasks.items)), self.windows).slope
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
        padded = -(-rank // _LANES) * _LANES
        return np.zeros((self.design.width, padded)), np.zeros((self.tasks.n_tasks, padded))

    def _spread(self, weights: Floats, matrix: Floats) -> Floats:
        """For each task the sum of weight times x_j^T matrix over its rows."""
        out = np.empty((self.tasks.n_tasks, matrix.shape[1]))
        factors = self.design.times(matrix)
        kernel.sparse_times(self.tasks.indptr, self.tasks.items, weights, factors, out, self.threads)
        return out

    def model(self, basis: Floats, users: Floats) -> Model:
        """U and V as a model."""
        basis, shown = basis[:, : self.solver.rank], users[:, : self.solver.rank]
        if self.solver.fallback == "mean" and self.paired.any():
            shown = np.where(self.paired[:, None], shown, shown[self.paired].mean(axis=0))
        if self.design.features is not None:
            return FeatureFactors(shown, basis, self.design.features)
        return Factors(shown, np.where(self.unmet[:, None], np.nan, basis))

    def objective(self, basis: Floats, users: Floats) -> float:
        """C sum of losses + 1/2 (|U|^2 + |V|^2)."""
        scores = self._scores(self.design.times(basis), users)
        return self.solver.C * self.tasks.at(scores).loss + _half(basis) + _half(users)

    def users_step(self, basis: Floats, users: Floats) -> None:
        """V by truncated Newton, task by task, in place."""
        search = self.solver.C, self.solver.newton, self.solver.cg, self.solver.forcing
        factors = self.design.times(basis)
        kernel.users_step(*self.tasks.pairs, self.tasks.items, factors, users, *search, self.threads)

    def basis_step(self, basis: Floats, users: Floats) -> Floats:
        """U by truncated Newton."""
        now = self.tasks.at(self._scores(self.design.times(basis), users), self.windows)
        for _ in range(self.solver.newton):
            gradient = basis + self._gathered(now.slope, users)
            direction = self._newton_direction(gradient, now, users)
            fall = np.vdot(gradient, direction)
            if not fall < 0:
                break
            change = self._scores(self.design.times(direction), users)
            length, loss, scores = 1.0, now.loss, now.scores
            for _ in range(_HALVINGS):
                trial, now = basis + length * direction, self.tasks.at(scores + length * change, self.windows)
                if self.solver.C * (now.loss - loss) + _half(trial) - _half(basis) <= 1e-4 * length * fall:
                    basis = trial
                    break
                length /= 2
            else:
                break
        return basis

    def _newton_direction(self, gradient: Floats, now: ScoredPairs, users: Floats) -> Floats:
        """-(I + C d^2 losses)^-1 gradient, roughly, by conjugate gradients."""
        direction, residual = np.zeros_like(gradient), -gradient
        search = residual.copy()
        size = np.vdot(residual, residual)
        enough = self.solver.forcing**2 * size
        for _ in range(self.solver.cg):
            if size <= enough:
                break
            curved = search + self._curved(search, now, users)
            length = size / np.vdot(search, curved)
            direction += length * search
            residual -= length * curved
            before, size = size, np.vdot(residual, residual)
            search *= size / before
            search += residual
        return direction

    def _scores(self, factors: Floats, users: Floats) -> Floats:
        scores = np.empty(len(self.tasks.items))
        kernel.score(self.tasks.indptr, self.tasks.items, users, factors, scores, self.threads)
        return scores

    def _curved(self, search: Floats, now: ScoredPairs, users: Floats) -> Floats:
        """C times the Hessian of the losses, times a direction of U."""
        return self._gathered(now.curve(self._scores(self.design.times(search), users)), users)

    def _gathered(self, weights: Floats, users: Floats) -> Floats:
        """C X^T Z with z_j the sum of weight times v over the rows of item j."""
        sums = np.empty((self.design.n_items, users.shape[1]))
        rows = self.tasks.indptr, self.tasks.items, self.starts, self.block
        kernel.scatter(*rows, weights, users, sums, self.threads)
        return self.solver.C * self.design.transposed_times(sums)


def _balanced(basis: Floats, users: Floats, rank: int) -> tuple[Floats, Floats]:
    """A S^1/2 and B S^1/2 where U V^T = A S B^T: the same product, and of all that give it the least norm."""
    left, left_size = np.linalg.qr(basis[:, :rank])
    right, right_size = np.linalg.qr(users[:, :rank])
    a, sizes, b = np.linalg.svd(left_size @ right_size.T, full_matrices=False)
    out = np.zeros_like(basis), np.zeros_like(users)
    for part, vectors in zip(out, (left @ a, right @ b.T), strict=True):
        part[:, : len(sizes)] = vectors * np.sqrt(sizes)
    return out


def _half(matrix: Floats) -> float:
    return 0.5 * float(np.vdot(matrix, matrix))


def _block(n_items: int, rank: int, threads: int) -> int:
    """Items in a block: as many as stay in cache, but blocks enough for all threads."""
    return max(1, min(_CACHE // rank, -(-n_items // (4 * threads))))


def _parts(matrix: Any) -> tuple[Ints, Ints, Floats]:
    """CSR as kernels take it, each row in order."""
    matrix = scipy.sparse.csr_array(matrix)
    matrix.sort_indices()
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), np.asarray(matrix.data)
