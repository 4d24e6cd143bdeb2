"""CofiRank: factors for a bound on NDCG, pairwise orders or ratings, by bundle methods (Weimer et al. 2007)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.core.contract import Determinism, Floats, Model, Step
from rankbench.core.errors import UserError
from rankbench.data.by_item import ByItem
from rankbench.data.views import Ratings
from rankbench.kernels.data import pairs as pairs_kernel
from rankbench.kernels.methods import all_pairs
from rankbench.kernels.shared.rows import Pattern, SparseRows
from rankbench.kernels.solvers import cofirank as kernel
from rankbench.methods.entries import known_rows
from rankbench.methods.factors import padded
from rankbench.methods.folding import own, ridge, vectors_of_items, with_vectors
from rankbench.methods.penalties import squared_norm
from rankbench.models import Factors
from rankbench.names import AddedLater, Checked, Limits, checked_threads
from rankbench.names.ranges import Count, PositiveTolerance, Rank, Tolerance, Weight

_LOSSES = {"ndcg": kernel.Loss.NDCG, "ordinal": kernel.Loss.ORDINAL, "regression": kernel.Loss.REGRESSION}
_EXACT, _MOST_PLANES = 1e-13, 1000  # the gap of users who are folded in, and planes to reach it
_SPREAD = 0.3  # standard deviation of users' vectors at the start around their common one


@dataclass(frozen=True)
class CofiRank(Checked):
    """A vector per user and item, one side at a time minimised given the other, to within a duality gap.

    min over U, M of sum_i loss_i(M u_i) + lam/2 (|U|^2 + |M|^2), over the items that user i rated.

    ndcg: max over orders pi of 1 - NDCG@k(pi) + <c_pi - c, f>, where position l = 0, 1, .. weighs c_l =
    (l + 1)^(-1/4), c_pi gives each item the weight of its position in pi and c that of its position in the
    order of the ratings. The order by f is one of those pi, and loses nothing in the second term: so the
    loss is above 1 - NDCG@k of f. The maximum is an assignment problem. Among equal ratings there is no
    right order; c is then the mean weight of their positions (so the order of the input does not matter),
    and the bound still holds. ordinal: the mean over pairs y_j < y_k of max(0, 1 - (f_k -
    f_j)). regression: 1/2 |f - y|^2.

    Each half is convex and minimised by cutting planes below the loss: the minimum of lam/2 |w|^2 plus
    their maximum is a lower bound, and the half ends when the best point is within `tolerance` of it
    (relative), or after `planes` of them. Each user is a problem of size rank; items are one problem. A step is a
    half, and none raises the objective. With `least_fall` above 0 the steps end after the first two halves that
    together lower the objective by no more than this share of it; else they do not end. Where a rating is below 0,
    all are raised for NDCG's gain 2^y - 1 so that the lowest is 0. Users and items without a rating score NaN. A user
    whose ratings are all equal has u = 0 at the optimum, except with `loss=regression`: all items tie.
    """

    rank: Rank = 10
    lam: Weight = 10.0
    loss: Literal["ndcg", "ordinal", "regression"] = "ndcg"
    k: Count = 10
    tolerance: PositiveTolerance = 1e-3
    planes: Annotated[int, Limits(low=2, high=1000)] = 100
    least_fall: Annotated[Tolerance, AddedLater()] = 0.0
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 4  # the weights of planes, and the order of scores that tie, are found another way

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each half: items, users, items, ...

        Users start with a common vector plus some noise, so that the first half finds the items that users like
        on average. From independent users it would find noise, and the next half fit users to that.
        """
        threads = checked_threads(threads)
        problem = Problem.of(train, self.loss, self.k, self.lam, threads)
        rated = np.bincount(train.items, minlength=train.n_items) > 0
        rating = np.diff(train.indptr) > 0
        noise = [rng.standard_normal((len(known), self.rank)) * known[:, None] for known in (rating, rated)]
        users = padded((rating[:, None] + _SPREAD * noise[0]) / np.sqrt(self.rank))
        items = padded(noise[1] / np.sqrt(self.rank))
        pulled = rating if self.loss == "regression" else pairs_kernel.count(ratings=train.rows) > 0

        def step(users: Floats, items: Floats) -> Step:
            """The model of these vectors."""
            shown = np.where(pulled[:, None], users, 0.0)
            model = Factors(known_rows(shown[:, : self.rank], rating), known_rows(items[:, : self.rank], rated))
            return Step(model, lambda: problem.objective(shown, items))

        yield step(users, items)
        objective = np.inf
        while len(train):
            items = items_half(problem, users, items, self.tolerance, self.planes).point
            yield step(users, items)
            users = users_half(problem, users, items, self.tolerance, self.planes).point
            yield step(users, items)
            if self.least_fall:
                before, objective = objective, problem.objective(users, items)
                if objective >= before * (1 - self.least_fall):
                    return
        yield step(users, items)

    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> Factors:
        """The model of these users, each at the minimum of their half with the items' vectors as they are.

        Planes end at the corner where a piecewise linear loss has it; least squares have a system of equations.
        """
        threads, items = checked_threads(threads), vectors_of_items(model, ratings, self.rank)
        rated, vectors = with_vectors(own(model, Factors), ratings, threads)
        if self.loss == "ndcg" and (rated.values < 0).any():
            problem = "gains of negative ratings depend on the lowest rating of the training part, which is not known"
            raise UserError(problem, remedy="raise all ratings above 0 before training", subject="CofiRank")
        if self.loss == "regression":
            users = ridge(rated, vectors, np.full(self.rank, self.lam), threads, "CofiRank")
        else:
            problem_of = Problem.of(rated, self.loss, self.k, self.lam, threads)
            start = np.zeros((ratings.n_users, self.rank))
            users = users_half(problem_of, start, vectors, _EXACT, _MOST_PLANES).point
        return Factors(known_rows(users, np.diff(rated.indptr) > 0), items)


@dataclass(frozen=True, eq=False)
class Problem:
    """The loss of all users' ratings in the kernel's form, with an index by item."""

    losses_of: kernel.Problem
    n_ratings: int
    by_item: ByItem
    lam: float
    threads: int

    @classmethod
    def of(cls, train: Ratings, loss: str, k: int, lam: float, threads: int) -> "Problem":
        """The problem of these ratings, all that does not depend on the factors."""
        longest = max(1, int(np.diff(train.indptr).max(initial=1)))
        weights = np.arange(1.0, longest + 1) ** -0.25
        discounts = 1 / np.log2(np.arange(2.0, min(k, longest) + 2))
        makers = {"ndcg": _gains, "ordinal": _levels, "regression": _ratings}
        targets, anchors, scales = makers[loss](train, weights, discounts)
        losses_of = kernel.Problem(
            loss=_LOSSES[loss],
            rows=SparseRows(indptr=train.indptr, columns=train.items, values=targets),
            anchors=anchors,
            scales=scales,
            weights=weights,
            discounts=discounts,
        )
        return cls(losses_of, len(train), train.by_item(), lam, threads)

    def losses(self, users: Floats, items: Floats) -> tuple[Floats, Floats]:
        """Each user's loss, with its slope by each rating's score."""
        losses, slopes = np.empty(len(users)), np.empty(self.n_ratings)
        kernel.losses(
            problem=self.losses_of, users=users, factors=items, out=losses, slopes=slopes, threads=self.threads
        )
        return losses, slopes

    @cached_property
    def raters(self) -> Pattern:
        """The users who rated each item, as the kernel takes them."""
        return Pattern(indptr=self.by_item.indptr, columns=self.by_item.users)

    def item_slopes(self, slopes: Floats, users: Floats) -> Floats:
        """The gradient of the losses by each item's vector."""
        out = np.empty((len(self.by_item.indptr) - 1, users.shape[1]))
        kernel.item_slopes(
            raters=self.raters, places=self.by_item.rows, slopes=slopes, users=users, out=out, threads=self.threads
        )
        return out

    def objective(self, users: Floats, items: Floats) -> float:
        """The objective, losses plus lam/2 times both sides' squared norms."""
        if not self.n_ratings:
            return 0.0
        return float(self.losses(users, items)[0].sum() + self.lam / 2 * squared_norm(users, items))


@dataclass(frozen=True, eq=False)
class Half:
    """The result of a half: the vectors, their part of the objective, and its duality gap."""

    point: Floats
    objective: float
    gap: float


def users_half(problem: Problem, users: Floats, items: Floats, tolerance: float, planes: int) -> Half:
    """The users' vectors that minimise the objective given the items'."""
    point = users.copy()
    objectives, gaps = kernel.users_half(
        problem=problem.losses_of,
        users=point,
        factors=items,
        lam=problem.lam,
        tolerance=tolerance,
        most_planes=planes,
        threads=problem.threads,
    )
    return Half(point, float(objectives.sum()), float(gaps.sum()))


def items_half(problem: Problem, users: Floats, items: Floats, tolerance: float, planes: int) -> Half:
    """The items' vectors that minimise the objective given the users', by cutting planes."""
    best, point, bound = items, items, -np.inf
    least = np.inf
    slopes, products, offsets = np.empty((planes, items.size)), np.empty((planes, planes)), np.empty(planes)
    beta = np.zeros(planes)
    beta[0] = 1.0
    for made in range(planes):
        losses, along = problem.losses(users, point)
        slope = problem.item_slopes(along, users).ravel()
        square, loss = float(point.ravel() @ point.ravel()), float(losses.sum())
        if loss + problem.lam / 2 * square < least:
            best, least = point, loss + problem.lam / 2 * square
        slopes[made], offsets[made] = slope, loss - slope @ point.ravel()
        products[made, : made + 1] = products[: made + 1, made] = slopes[: made + 1] @ slope
        known = slice(made + 1)
        bound = kernel.weigh(
            products=products,
            offsets=offsets[known],
            lam=problem.lam,
            tolerance=0.1 * max(tolerance * abs(least), min(abs(least), least - bound)),
            beta=beta,
        )
        if least - bound <= tolerance * abs(least):
            break
        point = (-(beta[known] @ slopes[known]) / problem.lam).reshape(items.shape)
    return Half(best, least, max(0.0, least - bound))


# the arguments of each loss: targets and anchors by row, a scale by user


def _gains(train: Ratings, weights: Floats, discounts: Floats) -> tuple[Floats, Floats, Floats]:
    """For NDCG: gains over the ideal DCG, the mean weight of an item's right positions, and who has any gain."""
    order = np.lexsort((-train.values, train.users))
    position = np.arange(len(train)) - np.repeat(train.indptr[:-1], np.diff(train.indptr))
    values, users = train.values[order], train.users
    top = np.zeros(train.n_users)
    np.maximum.at(top, users, values)
    raised = min(0.0, float(train.values.min(initial=0.0)))
    gains = np.exp2(values - top[users]) - np.exp2(raised - top[users])  # over 2^top, which would overflow
    seen = position < len(discounts)
    ideal = np.bincount(users[seen], gains[seen] * discounts[position[seen]], train.n_users)
    starts = np.flatnonzero(np.diff(values, prepend=np.nan) != 0) if len(train) else np.zeros(0, np.int64)
    starts = np.union1d(starts, train.indptr[:-1][np.diff(train.indptr) > 0])
    sizes = np.diff(np.append(starts, len(train)))
    anchors = np.repeat(np.add.reduceat(weights[position], starts) / sizes, sizes) if len(train) else np.zeros(0)
    targets, by_row = np.empty((2, len(train)))
    targets[order] = gains / np.where(ideal > 0, ideal, 1.0)[users]
    by_row[order] = anchors
    return targets, by_row, (ideal > 0).astype(np.float64)


def _levels(train: Ratings, weights: Floats, discounts: Floats) -> tuple[Floats, Floats, Floats]:
    """For pairs: each rating's rank among the user's distinct ones, zeros, and one over the number of pairs."""
    levels, _ = all_pairs.rank_values(ratings=train.rows, threads=1)
    pairs, zeros = pairs_kernel.count(ratings=train.rows), np.zeros(len(train))
    return levels.astype(np.float64), zeros, np.divide(1.0, pairs, out=np.zeros(train.n_users), where=pairs > 0)


def _ratings(train: Ratings, weights: Floats, discounts: Floats) -> tuple[Floats, Floats, Floats]:
    """For least squares: the ratings, zeros and ones."""
    return train.values, np.zeros(len(train)), np.ones(train.n_users)
