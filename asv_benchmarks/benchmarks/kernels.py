"""Each kernel alone, on one thread and synthetic arrays, to find which kernel became slower."""

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

from rankbench.kernels.data import pairs
from rankbench.kernels.methods import margins
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.metrics import evaluation as metrics
from rankbench.kernels.metrics.codes import Code
from rankbench.kernels.metrics.requests import Requests
from rankbench.kernels.models import gram
from rankbench.kernels.shared.losses import Loss
from rankbench.kernels.shared.rows import ComparisonRows, SparseRows
from rankbench.kernels.solvers import global_ranking, mprank, sgd
from rankbench.methods.isotonic import Blocks


def _rows(users: int, per_user: int, items: int) -> tuple[np.ndarray, np.ndarray]:
    """CSR rows with `per_user` ascending items for each user."""
    rng = np.random.default_rng(0)
    drawn = [np.sort(rng.choice(items, per_user, replace=False)) for _ in range(users)]
    return np.arange(users + 1) * per_user, np.concatenate(drawn).astype(np.int32)


class SGD:
    """One pass over 100 000 comparisons, 100 per user."""

    params = (10, 64)
    param_names = ("rank",)
    number = 1  # a pass changes the factors: each sample is the second pass from the same start

    def setup(self, rank: int) -> None:
        """Make random factors in padded rows, and run a first pass to warm up."""
        rng = np.random.default_rng(0)
        padded, n = -(-rank // 4) * 4, 1000
        better = rng.integers(n, size=100 * n, dtype=np.int32)
        worse = (better + rng.integers(1, n, size=100 * n, dtype=np.int32)) % n
        self.rows = ComparisonRows(indptr=np.arange(n + 1) * 100, better=better, worse=worse)
        self.users, self.items = rng.standard_normal((2, n, padded)) / np.sqrt(rank)
        factors = DescentFactors(
            users=self.users,
            items=self.items,
            user_shrink=np.full(n, 1e-3),
            item_shrink=np.full(n, 1e-3),
            step=0.05,
            decay=1e-5,
        )
        self.descent = sgd.Descent(factors=factors, loss=Loss.SQUARED_HINGE)
        self.out, self.rng = np.empty(n), rng
        self.time_pass(rank)

    def time_pass(self, rank: int) -> None:
        """The update of two items and a user, comparison by comparison."""
        sgd.serial_pass(descent=self.descent, comparisons=self.rows, updates=0.0, rng=self.rng)

    def time_losses(self, rank: int) -> None:
        """The sum of losses, user by user."""
        margins.losses(
            loss=Loss.SQUARED_HINGE,
            comparisons=self.rows,
            users=self.users,
            items=self.items,
            out=self.out,
            threads=1,
        )


class Global:
    """Comparisons between all pairs of 600 items."""

    def setup(self) -> None:
        """Every pair compared once or more often, either way round."""
        rng, n = np.random.default_rng(0), 600
        low, high = (side.astype(np.int32) for side in np.triu_indices(n, 1))
        turned = rng.random((2, len(low))) < 0.5
        better, worse = np.where(turned, high, low).ravel(), np.where(turned, low, high).ravel()
        self.tournament = global_ranking.Tournament(better=better, worse=worse, n_items=n)
        self.curvature, self.scores = rng.random(2 * len(low)), rng.standard_normal(n)
        self.totals, self.out = np.zeros((3, n)), np.zeros(n)

    def time_sweep(self) -> None:
        """Loss, gradient, curvature and its sum, of the logistic loss."""
        global_ranking.sweep(
            loss=Loss.LOGISTIC,
            tournament=self.tournament,
            scores=self.scores,
            totals=self.totals,
            curvature=self.curvature,
            threads=1,
        )

    def time_curvature_times(self) -> None:
        """The Hessian times a direction."""
        global_ranking.curvature_times(
            tournament=self.tournament, curvature=self.curvature, direction=self.scores, out=self.out, threads=1
        )


class MPRank:
    """The systems of 100 users with 100 ratings each."""

    def setup(self) -> None:
        """32 features per item and their inner products."""
        threadpool_limits(1)
        rng = np.random.default_rng(0)
        self.features = rng.standard_normal((500, 32)) / np.sqrt(32)
        self.gram = self.features @ self.features.T
        indptr, items = _rows(100, 100, 500)
        self.ratings = SparseRows(indptr=indptr, columns=items, values=rng.standard_normal(10_000))
        self.users, self.C = np.arange(100, dtype=np.int32), np.ones(100)
        self.coefficients, self.weights, self.offsets = np.zeros(10_000), np.zeros((100, 32)), np.zeros(100)

    def time_dual(self) -> None:
        """100 x 100 systems: gather, centre, solve."""
        mprank.dual(
            gram=self.gram,
            ratings=self.ratings,
            users=self.users,
            C=self.C,
            coefficients=self.coefficients,
            offsets=self.offsets,
            threads=1,
        )

    def time_primal(self) -> None:
        """32 x 32 systems: gather, centre, multiply, solve."""
        mprank.primal(
            features=self.features,
            ratings=self.ratings,
            users=self.users,
            C=self.C,
            weights=self.weights,
            offsets=self.offsets,
            threads=1,
        )


class Gram:
    """Kernel matrices between 800 items with 32 features."""

    number = 1  # `gaussian` works in place: each sample gets fresh products

    def setup(self) -> None:
        """Features and their inner products."""
        threadpool_limits(1)
        self.features = np.random.default_rng(0).standard_normal((800, 32)) / np.sqrt(32)
        self.products = gram.linear(features=self.features, threads=1)
        few = scipy.sparse.csr_array(np.where(np.random.default_rng(1).random((800, 300)) < 0.01, 1.0, 0.0))
        self.few, self.by_column = (
            SparseRows(indptr=part.indptr.astype(np.int64), columns=part.indices, values=part.data)
            for part in (few, few.tocsc())
        )

    def time_linear(self) -> None:
        """X X^T in blocks."""
        gram.linear(features=self.features, threads=1)

    def time_gaussian(self) -> None:
        """An exponential per pair of items."""
        gram.gaussian(products=self.products, width=1.0, threads=1)

    def time_sparse_gaussian(self) -> None:
        """From features one in a hundred of which is not zero."""
        gram.sparse_gaussian(rows=self.few, columns=self.by_column, width=1.0, threads=1)


class Isotonic:
    """Projections of 100 000 ratings of five levels: of many users with small blocks, and of few with large ones."""

    params = (25, 5000)
    param_names = ("per user",)

    def setup(self, per_user: int) -> None:
        """Scores that agree with the ratings in part."""
        rng, n = np.random.default_rng(0), 100_000
        self.indptr, self.ratings = np.arange(0, n + 1, per_user), rng.integers(1, 6, n).astype(np.float64)
        self.scores = rng.standard_normal(n) + 0.5 * self.ratings
        self.blocks, self.out = Blocks.of(self.indptr, self.ratings), np.empty(n)
        self.blocks.project(self.scores, out=self.out)

    def time_first(self, per_user: int) -> None:
        """A projection that knows nothing, with the sort by rating before it."""
        Blocks.of(self.indptr, self.ratings).project(self.scores, out=self.out)

    def time_next(self, per_user: int) -> None:
        """A projection that begins with the order that the last one found."""
        self.blocks.project(self.scores, out=self.out)


class Metrics:
    """2000 users with 50 held-out items each, five levels, scores without ties."""

    params = ("PAIRWISE_ERROR", "NDCG", "PRECISION", "KENDALL", "SPEARMAN")
    param_names = ("metric",)

    def setup(self, metric: str) -> None:
        """Make a request for one metric, cut off at ten places if it has a cut-off."""
        rng = np.random.default_rng(0)
        truth, scores = rng.integers(1, 6, 100_000).astype(float), rng.standard_normal(100_000)
        self.rated = metrics.RatedScores(indptr=np.arange(2001) * 50, truth=truth, scores=scores)
        self.requests = Requests(
            codes=np.array([Code[metric]], np.int32),
            cuts=np.array([10], np.int32),
            thresholds=np.array([4.0]),
            discounts=1 / np.log2(2 + np.arange(51)),
        )

    def time_per_user(self, metric: str) -> None:
        """Two sorts and a sweep per user."""
        metrics.per_user(test=self.rated, requests=self.requests, threads=1)


class Pairs:
    """The strict pairs of 1000 users with 50 ratings each."""

    params = (None, 100)
    param_names = ("limit",)

    def setup(self, limit: int | None) -> None:
        """Ratings of five levels."""
        indptr, items = _rows(1000, 50, 500)
        values = np.random.default_rng(0).integers(1, 6, 50_000).astype(float)
        self.ratings = SparseRows(indptr=indptr, columns=items, values=values)
        self.counts = pairs.count(ratings=self.ratings)
        kept = self.counts if limit is None else np.minimum(self.counts, limit)
        self.out_indptr = np.concatenate([[0], np.cumsum(kept)])

    def time_count(self, limit: int | None) -> None:
        """A sort per user."""
        pairs.count(ratings=self.ratings)

    def time_list(self, limit: int | None) -> None:
        """Every pair looked at, all or an even sample kept."""
        rng = np.random.default_rng(1)
        pairs.list_pairs(ratings=self.ratings, counts=self.counts, out_indptr=self.out_indptr, rng=rng)
