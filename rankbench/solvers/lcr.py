"""Local collaborative ranking: low-rank models around anchors, blended by kernels (Lee et al., WWW 2014)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Floats, Model, Step
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.kernels.shared.losses import Loss
from rankbench.methods.descent import Point, descend
from rankbench.methods.entries import ComparedEntries, Sparse, known_rows
from rankbench.methods.factors import check_rank
from rankbench.methods.folding import own, users_of_pairs, with_vectors
from rankbench.models import BlendedFactors, Factors
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
        problem = _Problem(self, compared, rng)
        for point in descend(problem.objective, problem.start(rng)):
            yield problem.step(point)

    def fold_in(self, model: Model, ratings: View, threads: int = 1) -> BlendedFactors:
        """The model of these users, each at the minimum of their risk in all models, with the items as they are.

        A user's weights are those of the projection of their wins less losses onto the items' preliminary factors.
        """
        threads, known = checked_threads(threads), own(model, BlendedFactors)
        if known.item_priors is None or known.anchors is None:
            raise UserError("the model does not say where its anchors are, as older ones do not", remedy="fit it again")
        parts = known.items, known.item_weights, known.item_priors
        view, columns = with_vectors(Factors(known.users, np.hstack(parts)), ratings, threads)
        items, weights, priors = np.split(columns, np.cumsum([part.shape[1] for part in parts[:-1]]), axis=1)
        view = view.comparisons() if isinstance(view, Ratings) else view
        compared = ComparedEntries.of(view, threads)
        of_users = self.weights(_balances(compared).times(priors), known.anchors)
        spread = np.repeat(of_users, self.rank, axis=1)
        users = np.full(spread.shape, np.nan)
        for user in np.flatnonzero(np.diff(view.indptr)):
            rows = slice(view.indptr[user], view.indptr[user + 1])
            alone = Comparisons(np.array([0, rows.stop - rows.start]), view.better[rows], view.worse[rows], len(items))
            local = Factors(users[:1], items * spread[user] / (weights @ of_users[user])[:, None])
            found, _ = users_of_pairs(local, alone, Loss.LOGISTIC, 1 / self.lam, threads)
            users[user] = found[0] * spread[user]
        return replace(known, users=users, user_weights=of_users)

    def weights(self, factors: Floats, anchors: Floats) -> Floats:
        """The weights of users or items in every model: K to its anchor, and a constant for the model without one.

        K = max(0, 1 - (angle / width)^2) is 0 for factors of zeros.
        """
        directions = _directions(factors)
        angles = np.arccos(np.clip(directions @ _directions(anchors).T, -1.0, 1.0))
        kernel: Floats = np.maximum(0.0, 1.0 - (angles / self.width) ** 2) * directions.any(axis=1, keepdims=True)
        found: Floats = np.hstack([kernel, np.full((len(factors), 1), np.sqrt(self.everywhere))])
        return found


class _Problem:
    """The regularised risk as a function of all models' factors: rows of users, then of items, in one matrix."""

    def __init__(self, solver: LCR, compared: ComparedEntries, rng: np.random.Generator) -> None:
        self.compared, self.entries, self.lam = compared, compared.entries, solver.lam
        chosen = rng.integers(max(1, len(self.entries)), size=solver.anchors if len(self.entries) else 0)
        users, items = _preliminary(solver, compared, rng)
        anchors = users[np.searchsorted(self.entries.indptr, chosen, side="right") - 1]
        user_weights = solver.weights(users, anchors)
        item_weights = solver.weights(items, items[self.entries.items[chosen]])
        self.weights = user_weights, item_weights
        sizes = np.square(items).sum(axis=0)
        self.beside = np.divide(items, sizes, out=np.zeros_like(items), where=sizes > 0), anchors
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
        users, items, of_users, of_items = (known_rows(rows, ids) for rows, ids in sides)
        model = BlendedFactors(users, items, of_users, of_items, *self.beside)
        return Step(model, lambda: point.value)


def _directions(factors: Floats) -> Floats:
    """The rows at length 1, or zeros."""
    sizes = np.linalg.norm(factors, axis=1, keepdims=True)
    directions: Floats = np.divide(factors, sizes, out=np.zeros_like(factors), where=sizes > 0)
    return directions


def _balances(compared: ComparedEntries) -> Sparse:
    """Each user's wins less losses with each item, users scaled to similar norm."""
    entries = compared.entries
    _, losses = compared.slopes("smooth-hinge", np.zeros(len(entries)))  # 1 for each lost, -1 for each won
    users = np.repeat(np.arange(entries.shape[0]), np.diff(entries.indptr))
    squares = np.bincount(users, losses**2, entries.shape[0])
    return entries.holding(-losses / np.sqrt(np.maximum(1.0, squares))[users])


def _preliminary(solver: LCR, compared: ComparedEntries, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Low-rank factors of the matrix of wins less losses, by subspace iteration."""
    sparse = _balances(compared)
    basis = rng.standard_normal((sparse.shape[1], min(solver.prior_rank, *sparse.shape)))
    for _ in range(_POWERS):
        image, _ = np.linalg.qr(sparse.times(np.linalg.qr(basis)[0]))
        basis = sparse.transposed_times(image)
    left, sizes, right = np.linalg.svd(basis, full_matrices=False)
    return image @ right.T * np.sqrt(sizes), left * np.sqrt(sizes)
