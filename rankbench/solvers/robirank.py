"""RobiRank: ranking by a robust loss, stochastic on its linearised form (Yun, Raman and Vishwanathan 2014)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import log
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.core.contract import Determinism, Floats, Int32s, Int64s, Ints, Model, Step
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.shared.powers import exponentials_of_two
from rankbench.kernels.solvers import robirank as kernel
from rankbench.methods.factors import check_rank, seed_of, start
from rankbench.methods.folding import own, vectors_of_items, with_vectors
from rankbench.methods.newcomers import Bent, minima
from rankbench.models import Factors
from rankbench.names import AddedLater, Checked, checked_threads
from rankbench.names.ranges import Count, Decay, Least, Rank, StepSize, Weight

_FARTHEST = 500.0  # a larger difference of scores counts as this one, so that 2^x is finite


@dataclass(frozen=True)
class RobiRank(Checked):
    """A vector per user and item, trained by a robust ranking loss that emphasises the top of the list.

    min over U, V of sum over (i, j) of g_ij log2(1 + t_ij) + lam/2 (|U|^2 + |V|^2), where t_ij = sum over
    the competitors k of sigma(f_ij - f_ik), f_ij = u_i . v_j and sigma(x) = log2(1 + 2^-x) >= [x < 0]: t_ij
    bounds how many competitors stand above j, and the logarithm is the discount of DCG.

    The sum over k is inside the logarithm, so a random k gives no unbiased estimate of the gradient. But log2 is
    concave: for any xi > 0 the tangent at 1 + t = 1/xi lies above it, log2(1 + t) <= -log2 xi + (xi (1 + t) - 1)
    / ln 2, with equality at xi = 1 / (1 + t). (Set the derivative by xi, (-1/xi + 1 + t) / ln 2, to zero.) With xi
    fixed, the bound is linear in t: the gradient is g xi / ln 2 times the sum of sigma'(x) = -1 / (1 +
    2^x), of which a few uniformly drawn competitors give an estimate. At xi = 1 / (1 + t) it is also that of the
    robust loss itself. So a pass sets every xi in closed form, user by user and in parallel, and then visits
    every (i, j) once in random order against `draws` competitors each, on one thread: eta = step / (1 +
    decay t) after t updates, the penalty divided by the expected number of updates of a vector, at least one.
    A drawn competitor represents all others, often hundreds, so an update is shortened where it would change its
    margin f_ij - f_ik by more than 1. (On MovieLens 1M, 50 ratings per user, step=2 with lam=3 was the best of a few
    tried.)

    `among` chooses the competitors. `rated`: the user's other rated items; g = (2^r - 2^low) / (2^high - 2^low) for
    a rating r, the gain of NDCG scaled to 1; `low` and `high` are the lowest and the highest rating there is, if not
    given, and ratings beyond them count as they do. `catalogue`: every
    rating has g = 1, and its item competes with all other items, as in the paper's section on collaborative
    retrieval; the closed form then costs ratings times items. Users without ratings score NaN, as do items that are not
    rated and no competitors; users with ratings but no competitors, or only the lowest rating, score 0 for all.
    """

    rank: Rank = 10
    lam: Weight = 1.0
    step: StepSize = 0.5
    decay: Decay = 1e-5
    draws: Count = 4
    among: Literal["rated", "catalogue"] = "rated"
    low: Annotated[Least, AddedLater()] = None
    high: Annotated[Least, AddedLater()] = None
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 5  # four users are visited in turns

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each pass: xi in closed form, then stochastic gradient descent."""
        threads = checked_threads(threads)
        wishes = wishes_of(train, self.among, self.low, self.high)
        if len(wishes):
            check_rank("RobiRank", self.rank, train.n_users, train.n_items)
        per_user = np.diff(train.indptr)
        users, items = start(rng, per_user, self.rank), start(rng, wishes.seen, self.rank)
        users[(per_user > 0) & (np.diff(wishes.indptr) == 0)] = 0
        model = Factors(users[:, : self.rank], items[:, : self.rank])

        def objective() -> float:
            """The robust loss plus the penalty."""
            losses = wishes.close(users, items, threads)[1]
            return float(losses.sum() + self.lam / 2 * sum(np.nansum(np.square(block)) for block in (users, items)))

        yield Step(model, objective)
        if not len(wishes):
            return
        user_shrink, item_shrink = (self.lam / visits for visits in wishes.visits(self.draws))
        factors = DescentFactors(
            users=users,
            items=items,
            user_shrink=user_shrink,
            item_shrink=item_shrink,
            step=self.step,
            decay=self.decay,
        )
        updates = 0
        while True:
            weights = wishes.gains * wishes.close(users, items, threads)[0] * wishes.rivals / (log(2) * self.draws)
            order = rng.permutation(train.n_users).astype(np.int32)
            kernel.descend(
                factors=factors,
                draws=self.draws,
                wishes=wishes.rows,
                weights=weights,
                user_order=order,
                updates=updates,
                seed=seed_of(rng),
            )
            updates += len(wishes) * self.draws
            yield Step(model, objective)

    def as_trained(self, train: Ratings) -> "RobiRank":
        """The same solver, with the gains that it took from these ratings as its settings."""
        if self.among == "catalogue" or not len(train):
            return self
        low, high = _scale(train.values, self.low, self.high)
        return replace(self, low=low, high=high)

    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> Factors:
        """The model of these users, each at the minimum of the robust loss that Newton's method finds from zero on.

        The loss is not convex, so that there may be others.
        """
        threads, items = checked_threads(threads), vectors_of_items(model, ratings, self.rank)
        known = own(model, Factors)
        if self.among == "rated":
            rated, vectors = with_vectors(known, ratings, threads)
        else:
            rated, vectors = ratings, items
        wishes = wishes_of(rated, self.among, self.low, self.high)
        scale = 1 / np.sqrt(self.lam)
        users = scale * minima(wishes.lists, wishes.candidates, scale * vectors, wishes.loss_of_user)
        users[np.diff(rated.indptr) == 0] = np.nan
        return Factors(users, known.items)


@dataclass(frozen=True, eq=False)
class Wishes:
    """The (user, item) terms of the loss, called wishes, in CSR form, with each user's list of candidates."""

    indptr: Int64s
    positions: Int32s  # the position of each wish in its user's list
    gains: Floats
    lists: Int64s  # where each user's list begins and ends
    candidates: Int32s
    seen: Ints  # the number of lists that each item is in

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def rows(self) -> kernel.WishRows:
        """The wishes as the kernels take them."""
        return kernel.WishRows(
            indptr=self.indptr,
            places=self.positions,
            gains=self.gains,
            lists=self.lists,
            candidates=self.candidates,
        )

    @property
    def owners(self) -> Ints:
        """The user of every wish."""
        return np.repeat(np.arange(len(self.lists)), np.diff(self.indptr))

    @property
    def rivals(self) -> Floats:
        """The number of competitors of each wish."""
        return (np.diff(self.lists)[:, 0] - 1.0)[self.owners]

    def close(self, users: Floats, items: Floats, threads: int) -> tuple[Floats, Floats]:
        """The optimal xi of every wish, and every user's loss."""
        xi, losses = np.empty(len(self)), np.zeros(len(self.lists))
        kernel.closed_form(wishes=self.rows, users=users, items=items, xi=xi, losses=losses, threads=threads)
        return xi, losses

    def loss_of_user(self, user: int) -> Callable[[Floats], Bent]:
        """The robust loss of one user, as a function of the scores of their candidates."""
        rows = slice(self.indptr[user], self.indptr[user + 1])
        return partial(_robust, self.positions[rows], self.gains[rows])

    def visits(self, draws: int) -> tuple[Floats, Floats]:
        """The expected number of updates in a pass of each user and of each item; at least one.

        An item is updated as a wish, and as a drawn competitor of the other wishes of its list: each draw of a wish
        takes one of its competitors, all equally likely.
        """
        per_user = np.diff(self.indptr).astype(np.float64)
        lengths = np.diff(self.lists)[:, 0]
        share = per_user / np.maximum(lengths - 1, 1)
        wished = self.candidates[self.lists[self.owners, 0] + self.positions]
        as_wish = np.bincount(wished, 1 - 1 / self.rivals, minlength=len(self.seen))
        if not self.lists[:, 0].any():
            as_rival = np.full(len(self.seen), share.sum())  # all users share one list
        else:
            as_rival = np.bincount(self.candidates, np.repeat(share, lengths), len(self.seen))
        return np.maximum(draws * per_user, 1), np.maximum(draws * (as_wish + as_rival), 1)


def _robust(wishes: Int32s, gains: Floats, scores: Floats) -> Bent:
    """The loss sum_j g_j log2(1 + t_j) over the places j of the wishes, t_j = sum_k log2(1 + 2^(s_k - s_j))."""
    powers = np.exp(np.log(2.0) * np.minimum(scores - scores[wishes, None], _FARTHEST))
    powers[np.arange(len(wishes)), wishes] = 0.0  # an item does not compete with itself
    both = 1.0 + powers
    shares = powers / both  # the derivative of a term, by s_k
    robust, sums = 1.0 + np.log(both).sum(axis=1) / np.log(2.0), shares.sum(axis=1)
    weights = gains / (np.log(2.0) * robust)
    slope = weights @ shares
    slope[wishes] -= weights * sums

    def curve(vectors: Floats, *, convex: bool) -> Floats:
        bends = (np.log(2.0) * weights)[:, None] * shares / both
        degrees = bends.sum(axis=0)
        degrees[wishes] += bends.sum(axis=1)
        mixed = vectors[wishes].T @ (bends @ vectors)
        found = (vectors.T * degrees) @ vectors - mixed - mixed.T
        if convex:
            return np.asarray(found)
        slopes = shares @ vectors - sums[:, None] * vectors[wishes]
        return np.asarray(found - (slopes.T * (weights / robust)) @ slopes)

    return Bent(float(gains @ np.log2(robust)), slope, curve)


def wishes_of(train: Ratings, among: str, low: float | None = None, high: float | None = None) -> Wishes:
    """The wishes of ratings: weighted by gain among the user's items, or equal among the whole catalogue."""
    per_user, n_items = np.diff(train.indptr), train.n_items
    candidates: Int32s
    positions: Ints
    if among == "catalogue":
        gains, positions = np.ones(len(train)), train.items
        lists = np.tile(np.array([0, n_items]), (train.n_users, 1))
        candidates, seen = np.arange(n_items, dtype=np.int32), np.ones(n_items, int)
    else:
        gains = _gains(train.values, low, high)
        positions = np.arange(len(train)) - np.repeat(train.indptr[:-1], per_user)
        lists = np.stack([train.indptr[:-1], train.indptr[1:]], axis=1)
        candidates, seen = train.items, np.bincount(train.items, minlength=n_items)
    wanted = (gains > 0) & (lists[:, 1] - lists[:, 0] > 1)[train.users]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(train.users[wanted], minlength=train.n_users))])
    places = positions[wanted].astype(np.int32)
    return Wishes(indptr, places, gains[wanted], lists.astype(np.int64), candidates, seen)


def _gains(values: Floats, low: float | None, high: float | None) -> Floats:
    """The gain (2^r - 2^low) / (2^high - 2^low) of each rating r, without overflow; 0 if both powers are equal."""
    if not len(values):
        return np.zeros(0)
    low, high = _scale(values, low, high)
    powers = np.append(np.clip(values, low, high), low)
    exponentials_of_two(values=powers, less=high, out=powers)
    least = powers[-1]
    if least == 1:
        return np.zeros(len(values))
    gains: Floats = (powers[:-1] - least) / (1 - least)
    return gains


def _scale(values: Floats, low: float | None, high: float | None) -> tuple[float, float]:
    """The ratings whose gains are 0 and 1."""
    found = float(values.min() if low is None else low), float(values.max() if high is None else high)
    if found[0] > found[1]:
        problem = f"low={found[0]:g} is above high={found[1]:g}"
        raise UserError(problem, remedy="lower low, or raise high", subject="RobiRank")
    return found
