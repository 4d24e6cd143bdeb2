"""Local collaborative ranking: low-rank models around anchors, blended by kernels (Lee et al., WWW 2014)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Floats, Ints, Step
from rankbench.data.views import Comparisons
from rankbench.methods.descent import Point, descend
from rankbench.methods.entries import ComparedEntries, known_rows
from rankbench.methods.factors import check_rank
from rankbench.models import BlendedFactors
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import Rank, Weight

_START = 0.1  # standard deviation of the random start
_POWERS = 8  # iterations of the subspace iteration for the preliminary factors


@dataclass(frozen=True)
class LCR(Checked):
    """Several low-rank models, each local to an anchor (user, item), learned jointly from comparisons.

    f(u, i) = sum_t w_t(u, i) U_t[u] . V_t[i] / sum_t w_t(u, i), w_t(u, i) = K(u, u_t) K(i, i_t) around
    the anchor (u_t, i_t), drawn from the pairs that are compared; K = max(0, 1 - (angle / width)^2) is
    Epanechnikov's kernel of the angle, in radians, between preliminary factors. All models minimise one
    risk, sum log(1 + exp(f(u, k) - f(u, j))) + lam/2 sum_t (|U_t|^2 + |V_t|^2) over comparisons of u
    who prefers j to k, by L-BFGS on all factors at once: its gradient costs one product per compared
    pair of user and item, not one per comparison, and a step never raises the objective. (The paper
    descends stochastically.)

    Differences from the paper: it has ratings, weights each pair by the difference of its ratings, and takes
    preliminary factors from their matrix. Comparisons have no such difference, so each counts 1, and the
    matrix holds a user's wins less losses with each item: where all pairs of ratings are
    compared this is the rating's position in the user's order. A pair beyond the width of every anchor would
    have no score: so one more model has no anchor, but the weight `everywhere` for all pairs.
    Users and items that are in no comparison score NaN.
    """

    rank: Rank = 5
    anchors: Annotated[int, Limits(low=0, high=1000)] = 10
    lam: Weight = 1.0
    width: Annotated[float, Limits(low=1e-6, high=np.pi)] = 0.8
    everywhere: Weight = 1.0
    prior_rank: Rank = 5
    learns_from: ClassVar = Comparisons
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def steps(self, train: Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each iteration, until the line search fails."""
        threads = checked_threads(threads)
        if len(train):
            check_rank("LCR", self.rank, train.n_users, train.n_items)
        compared = ComparedEntries.of(train, threads)
        problem = _Problem(self, compared, *_weights(self, compared, rng))
        for point in descend(problem.objective, problem.start(rng)):
            yield problem.step(point)


class _Problem:
    """The regularised risk as a function of all models' factors: rows of users, then of items, in one matrix."""

    def __init__(self, solver: LCR, compared: ComparedEntries, user_weights: Floats, item_weights: Floats) -> None:
        self.compared, self.entries, self.lam = compared, compared.entries, solver.lam
        self.weights = user_weights, item_weights
        self.spread = np.repeat(np.vstack(self.weights), solver.rank, axis=1)  # over the columns of each model
        self.totals = self.entries.inner_products(user_weights, item_weights)

    def start(self, rng: np.random.Generator) -> Floats:
        """Small random factors, 0 for users and items without a comparison or of weight 0 in a model; they stay 0."""
        factors = _START * rng.standard_normal(self.spread.shape) * (self.spread > 0)
        factors[np.concatenate([np.diff(self.entries.indptr), self.entries.by_item.counts]) == 0] = 0.0
        return factors.ravel()

    def weighed(self, x: Floats) -> tuple[Floats, Floats]:
        """The factors of users and of items, each multiplied by its weight."""
        both = x.reshape(self.spread.shape) * self.spread
        return both[: self.entries.shape[0]], both[self.entries.shape[0] :]

    def objective(self, x: Floats) -> tuple[float, Floats]:
        """The objective, risk plus penalty, and its gradient."""
        users, items = self.weighed(x)
        risk, slopes = self.compared.slopes("logistic", self.entries.inner_products(users, items) / self.totals)
        slopes /= self.totals
        sparse = self.entries.holding(slopes)
        gradient = np.vstack([sparse.times(items), sparse.transposed_times(users)])
        return risk + self.lam / 2 * float(x @ x), (gradient * self.spread).ravel() + self.lam * x

    def step(self, point: Point) -> Step:
        """The step with the blended model, NaN for users and items in no comparison."""
        sides = zip((*self.weighed(point.x), *self.weights), (*self.entries.seen, *self.entries.seen), strict=True)
        return Step(BlendedFactors(*(known_rows(rows, ids) for rows, ids in sides)), lambda: point.value)


def _weights(solver: LCR, compared: ComparedEntries, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The weights of users and items in every model: K to its anchor, and a constant for the model without one."""
    entries = compared.entries
    chosen = rng.integers(max(1, len(entries)), size=solver.anchors if len(entries) else 0)
    homes: tuple[Ints, Ints] = np.searchsorted(entries.indptr, chosen, side="right") - 1, entries.items[chosen]
    users, items = (
        np.hstack([_kernel(side, home, solver.width), np.full((len(side), 1), np.sqrt(solver.everywhere))])
        for side, home in zip(_preliminary(solver, compared, rng), homes, strict=True)
    )
    return users, items


def _kernel(factors: Floats, homes: Ints, width: float) -> Floats:
    """Epanechnikov's kernel max(0, 1 - (angle / width)^2) between all rows and the anchors'; 0 for rows of zeros."""
    sizes = np.linalg.norm(factors, axis=1, keepdims=True)
    directions = np.divide(factors, sizes, out=np.zeros_like(factors), where=sizes > 0)
    angles = np.arccos(np.clip(directions @ directions[homes].T, -1.0, 1.0))
    kernel: Floats = np.where(sizes > 0, np.maximum(0.0, 1.0 - (angles / width) ** 2), 0.0)
    return kernel


def _preliminary(solver: LCR, compared: ComparedEntries, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Low-rank factors of the matrix of wins less losses, users scaled to similar norm, by subspace iteration."""
    entries = compared.entries
    _, losses = compared.slopes("smooth-hinge", np.zeros(len(entries)))  # 1 for each lost, -1 for each won
    users = np.repeat(np.arange(entries.shape[0]), np.diff(entries.indptr))
    squares = np.bincount(users, losses**2, entries.shape[0])
    sparse = entries.holding(-losses / np.sqrt(np.maximum(1.0, squares))[users])
    basis = rng.standard_normal((entries.shape[1], min(solver.prior_rank, *entries.shape)))
    for _ in range(_POWERS):
        image, _ = np.linalg.qr(sparse.times(np.linalg.qr(basis)[0]))
        basis = sparse.transposed_times(image)
    left, sizes, right = np.linalg.svd(basis, full_matrices=False)
    return image @ right.T * np.sqrt(sizes), left * np.sqrt(sizes)
