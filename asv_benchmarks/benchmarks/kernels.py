"""Each kernel alone, on one thread and synthetic arrays, to find which kernel became slower."""

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

from rankbench.kernels.data import pairs
from rankbench.kernels.methods import margins
from rankbench.kernels.metrics import evaluation as metrics
from rankbench.kernels.models import gram
from rankbench.kernels.solvers import global_ranking, mprank, sgd


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
        self.better = rng.integers(n, size=100 * n, dtype=np.int32)
        self.worse = (self.better + rng.integers(1, n, size=100 * n, dtype=np.int32)) % n
        self.indptr = np.arange(n + 1) * 100
        self.factors = rng.standard_normal((2, n, padded)) / np.sqrt(rank)
        self.shrink = np.full(n, 1e-3)
        self.rng = rng
        self.time_pass(rank)

    def time_pass(self, rank: int) -> None:
        """The update of two items and a user, comparison by comparison."""
        sgd.serial_pass(
            margins.SQUARED_HINGE, self.indptr, self.better, self.worse, *self.factors,
            self.shrink, self.shrink, 0.05, 1e-5, 0.0, self.rng,
        )  # fmt: skip

    def time_losses(self, rank: int) -> None:
        """The sum of losses, user by user."""
        margins.losses(margins.SQUARED_HINGE, self.indptr, self.better, self.worse, *self.factors, np.empty(1000), 1)


class Global:
    """Comparisons between all pairs of 600 items."""

    def setup(self) -> None:
        """A full symmetric pattern with random wins and losses."""
        rng, n = np.random.default_rng(0), 600
        self.indptr = np.arange(n + 1) * (n - 1)
        self.opponents = np.nonzero(~np.eye(n, dtype=bool))[1].astype(np.int32)
        self.wins, self.losses, self.curvature = rng.random((3, len(self.opponents)))
        self.scores = rng.standard_normal(n)
        self.out = np.zeros((3, n))

    def time_sweep(self) -> None:
        """Loss, gradient, curvature and dual of the logistic loss."""
        global_ranking.sweep(
            global_ranking.LOGISTIC, self.indptr, self.opponents, self.wins, self.losses, self.scores,
            *self.out, self.curvature, 1,
        )  # fmt: skip

    def time_curvature_times(self) -> None:
        """The Hessian times a direction."""
        global_ranking.curvature_times(
            self.indptr, self.opponents, self.curvature, self.scores, self.out[0], 1,
        )  # fmt: skip


class MPRank:
    """The systems of 100 users with 100 ratings each."""

    def setup(self) -> None:
        """32 features per item and their inner products."""
        threadpool_limits(1)
        rng = np.random.default_rng(0)
        self.features = rng.standard_normal((500, 32)) / np.sqrt(32)
        self.gram = self.features @ self.features.T
        self.rows = (*_rows(100, 100, 500), rng.standard_normal(10_000))
        self.users, self.C = np.arange(100, dtype=np.int32), np.ones(100)
        self.coefficients, self.weights, self.offsets = np.zeros(10_000), np.zeros((100, 32)), np.zeros(100)

    def time_dual(self) -> None:
        """100 x 100 systems: gather, centre, solve."""
        mprank.dual(self.gram, *self.rows, self.users, self.C, self.coefficients, self.offsets, 1)

    def time_primal(self) -> None:
        """32 x 32 systems: gather, centre, multiply, solve."""
        mprank.primal(self.features, *self.rows, self.users, self.C, self.weights, self.offsets, 1)


class Gram:
    """Kernel matrices between 800 items with 32 features."""

    number = 1  # `gaussian` works in place: each sample gets fresh products

    def setup(self) -> None:
        """Features and their inner products."""
        threadpool_limits(1)
        self.features = np.random.default_rng(0).standard_normal((800, 32)) / np.sqrt(32)
        self.products = gram.linear(self.features, 1)
        few = scipy.sparse.csr_array(np.where(np.random.default_rng(1).random((800, 300)) < 0.01, 1.0, 0.0))
        parts = [(part.indptr.astype(np.int64), part.indices, part.data) for part in (few, few.tocsc())]
        self.few = [*parts[0], *parts[1]]

    def time_linear(self) -> None:
        """X X^T in blocks."""
        gram.linear(self.features, 1)

    def time_gaussian(self) -> None:
        """An exponential per pair of items."""
        gram.gaussian(self.products, 1.0, 1)

    def time_sparse_gaussian(self) -> None:
        """The Gaussian kernel matrix from features with one nonzero in a hundred."""
        gram.sparse_gaussian(*self.few, 1.0, 1)


class Metrics:
    """2000 users with 50 held-out items each, five levels, scores without ties."""

    params = ("PAIRWISE_ERROR", "NDCG", "PRECISION", "KENDALL", "SPEARMAN")
    param_names = ("metric",)

    def setup(self, metric: str) -> None:
        """Make a request for one metric, cut off at ten places if it has a cut-off."""
        rng = np.random.default_rng(0)
        truth, scores = rng.integers(1, 6, 100_000).astype(float), rng.standard_normal(100_000)
        request = np.array([getattr(metrics, metric)], np.int32), np.array([10], np.int32), np.array([4.0])
        self.arguments = (np.arange(2001) * 50, truth, scores, *request, 1 / np.log2(2 + np.arange(51)), 1)

    def time_per_user(self, metric: str) -> None:
        """Two sorts and a sweep per user."""
        metrics.per_user(*self.arguments)


class Pairs:
    """The strict pairs of 1000 users with 50 ratings each."""

    params = (None, 100)
    param_names = ("limit",)

    def setup(self, limit: int | None) -> None:
        """Ratings of five levels."""
        self.rows = (*_rows(1000, 50, 500), np.random.default_rng(0).integers(1, 6, 50_000).astype(float))
        self.counts = pairs.count(self.rows[0], self.rows[2])
        kept = self.counts if limit is None else np.minimum(self.counts, limit)
        self.out_indptr = np.concatenate([[0], np.cumsum(kept)])

    def time_count(self, limit: int | None) -> None:
        """A sort per user."""
        pairs.count(self.rows[0], self.rows[2])

    def time_list(self, limit: int | None) -> None:
        """List all pairs, or a uniform sample of `limit` pairs per user."""
        pairs.list_pairs(*self.rows, self.counts, self.out_indptr, np.random.default_rng(1))
