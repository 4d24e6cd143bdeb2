"""Factorization RankSVM: per task a combination of a few shared ranking functions (Cheng, Davidson, Hsieh 2018)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.blas import one_blas_thread
from rankbench.contract import Determinism, Floats, Int32s, Int64s, Model, Step
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.errors import UserError
from rankbench.feature_matrix import Features, SparseFeatures
from rankbench.kernels.methods import entries as entries_kernel
from rankbench.kernels.shared.rows import SparseRows
from rankbench.kernels.solvers import frsvm as kernel
from rankbench.methods.conjugate_gradients import Blocks, conjugate_gradients
from rankbench.methods.factors import whole_lanes
from rankbench.methods.line_search import halved, sufficient
from rankbench.methods.low_rank import ProductSVD
from rankbench.methods.pair_tasks import PairTasks, ScoredPairs
from rankbench.methods.tasks import checked_features
from rankbench.models import Factors, FeatureFactors
from rankbench.names import Limits, check, checked_threads
from rankbench.names.ranges import Count, Rank, Weight

_CACHE = 1 << 16  # entries of a block of items' sums, which should stay in cache
_SPARE, _ITERATIONS = 8, 3  # extra columns, and iterations, of the spectral start's subspace iteration
_TRIALS = 30  # step lengths of a line search, at most


@dataclass(frozen=True)
class FRSVM:
    """Low-rank ranking functions: task i scores item x by v_i . U^T x, with the columns of U shared by all tasks.

    min over U, V of C sum max(0, 1 - v_i . U^T (x_j - x_k))^2 + 1/2 (|U|^2 + |V|^2), over all pairs (j over
    k) of all tasks (eq. 2; eq. 3 drops C). Ratings stand for all their pairs of different value, which are
    never listed: all_pairs.pxd evaluates them in near-linear time. Comparisons are kept as they are, with
    the book-keeping of Algorithm 1. `features=none` takes items as they are (X = I, nothing is multiplied
    by it): collaborative ranking on all pairs, the problem of PrimalCR++ (Wu, Hsieh, Sharpnack, KDD 2017)
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
    """

    rank: Rank = 10
    C: Weight = 1.0
    features: Literal["given", "none"] = "given"
    newton: Count = 1
    cg: Count = 10
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
        if self.needs_features and train.item_features is None:
            problem = "features=given, but the data has none: give item features, or features=none"
            raise UserError(problem, subject="FRSVM")
        features = checked_features(train.item_features) if self.needs_features else None
        if features is not None and self.rank > features.shape[1]:
            yield from replace(self, rank=features.shape[1]).steps(train, rng, threads)
            return
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
    """The matrix X of item features, dense, sparse or the identity, with its products on several threads."""

    n_items: int
    features: Features | None
    rows: SparseRows | None  # those of X and of its transpose, where X is sparse
    columns: SparseRows | None
    threads: int

    @classmethod
    def of(cls, features: Features | None, n_items: int, threads: int) -> "_Design":
        """The design of these features, or of none."""
        if isinstance(features, SparseFeatures):
            rows, columns = (_sparse(*parts) for parts in (features.compressed(), features.compressed_columns()))
            return cls(n_items, features, rows, columns, threads)
        return cls(n_items, features, None, None, threads)

    @property
    def width(self) -> int:
        """How many features an item has."""
        return self.n_items if self.features is None else self.features.shape[1]

    @property
    def size(self) -> float:
        """The mean squared norm of an item's features."""
        if self.features is None:
            return 1.0
        return float(np.vdot(self.features.stored, self.features.stored)) / self.n_items

    @one_blas_thread()
    def times(self, matrix: Floats) -> Floats:
        """X times a matrix; the matrix itself where X = I."""
        if self.features is None:
            return matrix
        out = np.empty((self.n_items, matrix.shape[1]))
        if self.rows is not None:
            entries_kernel.times(matrix=self.rows, dense=matrix, out=out, threads=self.threads)
        else:
            kernel.dense_times(features=self.features.matrix, matrix=matrix, out=out, threads=self.threads)
        return out

    @one_blas_thread()
    def transposed_times(self, matrix: Floats) -> Floats:
        """X^T times a matrix; the matrix itself where X = I."""
        if self.features is None:
            return matrix
        out = np.empty((self.width, matrix.shape[1]))
        if self.columns is not None:
            entries_kernel.times(matrix=self.columns, dense=matrix, out=out, threads=self.threads)
        else:
            kernel.transposed_times(features=self.features.matrix, matrix=matrix, out=out, threads=self.threads)
        return out


class _Fit:
    """The problem of one fit with the arrays that its steps share."""

    def __init__(self, solver: FRSVM, tasks: PairTasks, design: _Design, threads: int) -> None:
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
        width = whole_lanes(rank)
        return np.zeros((self.design.width, width)), np.zeros((self.tasks.n_tasks, width))

    def _spread(self, weights: Floats, matrix: Floats) -> Floats:
        """For each task the sum over its rows of weight times x_j^T matrix."""
        out = np.empty((self.tasks.n_tasks, matrix.shape[1]))
        factors = self.design.times(matrix)
        rows = _sparse(self.tasks.indptr, self.tasks.items, weights)
        entries_kernel.times(matrix=rows, dense=factors, out=out, threads=self.threads)
        return out

    def model(self, basis: Floats, users: Floats) -> Model:
        """The model that scores by U and V."""
        basis, shown = basis[:, : self.solver.rank], users[:, : self.solver.rank]
        if self.solver.fallback == "mean" and self.paired.any():
            shown = np.where(self.paired[:, None], shown, shown[self.paired].mean(axis=0))
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
            direction = self._newton_direction(gradient, now, users)
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

    def _newton_direction(self, gradient: Floats, now: ScoredPairs, users: Floats) -> Floats:
        """The Newton direction -(I + C d^2 losses)^-1 gradient, approximately, by conjugate gradients."""

        def times(direction: Blocks) -> Blocks:
            """The Hessian of the objective times a direction of U."""
            return (direction[0] + self._curved(direction[0], now, users),)

        found = conjugate_gradients(times, (-gradient,), lambda size: self.solver.forcing**2 * size, self.solver.cg)
        return found[0]

    def _scores(self, factors: Floats, users: Floats) -> Floats:
        scores = np.empty(len(self.tasks.items))
        entries_kernel.inner_products(
            entries=self.tasks.rows, left=users, right=factors, out=scores, threads=self.threads
        )
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


def _sparse(indptr: Int64s, columns: Int32s, values: Floats) -> SparseRows:
    return SparseRows(indptr=indptr, columns=columns, values=values)


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
