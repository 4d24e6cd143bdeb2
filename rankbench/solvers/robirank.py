"""RobiRank: ranking by a robust loss, stochastic on its linearised form (Yun, Raman and Vishwanathan 2014)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from rankbench.core.contract import Determinism, Floats, Int32s, Int64s, Ints, Step
from rankbench.data.views import Ratings
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.solvers import robirank as kernel
from rankbench.methods.factors import check_rank, seed_of, start
from rankbench.models import Factors
from rankbench.names import Checked, checked_threads
from rankbench.names.ranges import Count, Decay, Rank, StepSize, Weight


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
    a rating r between the lowest and the highest there is, the gain of NDCG scaled to 1. `catalogue`: every
    rating has g = 1, and its item competes with all other items, as in the paper's section on collaborative
    retrieval; the closed form then costs ratings times items. Users and items without ratings score NaN; users with
    ratings but no competitors, or only the lowest rating, score 0 for all.
    """

    rank: Rank = 10
    lam: Weight = 1.0
    step: StepSize = 0.5
    decay: Decay = 1e-5
    draws: Count = 4
    among: Literal["rated", "catalogue"] = "rated"
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 4  # all updates are bounded

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each pass: xi in closed form, then stochastic gradient descent."""
        threads = checked_threads(threads)
        wishes = wishes_of(train, self.among)
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
            weights = wishes.gains * wishes.close(users, items, threads)[0] * wishes.rivals / (np.log(2) * self.draws)
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


def wishes_of(train: Ratings, among: str) -> Wishes:
    """The wishes of ratings: weighted by gain among the user's items, or equal among the whole catalogue."""
    per_user, n_items = np.diff(train.indptr), train.n_items
    candidates: Int32s
    positions: Ints
    if among == "catalogue":
        gains, positions = np.ones(len(train)), train.items
        lists = np.tile(np.array([0, n_items]), (train.n_users, 1))
        candidates, seen = np.arange(n_items, dtype=np.int32), np.ones(n_items, int)
    else:
        gains, positions = _gains(train.values), (np.arange(len(train)) - np.repeat(train.indptr[:-1], per_user))
        lists = np.stack([train.indptr[:-1], train.indptr[1:]], axis=1)
        candidates, seen = train.items, np.bincount(train.items, minlength=n_items)
    wanted = (gains > 0) & (lists[:, 1] - lists[:, 0] > 1)[train.users]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(train.users[wanted], minlength=train.n_users))])
    places = positions[wanted].astype(np.int32)
    return Wishes(indptr, places, gains[wanted], lists.astype(np.int64), candidates, seen)


def _gains(values: Floats) -> Floats:
    """The gain (2^r - 2^low) / (2^high - 2^low) of each rating r, without overflow; 0 if all 2^r are equal."""
    least = np.exp2(values.min() - values.max()) if len(values) else 1.0
    if least == 1:
        return np.zeros(len(values))
    gains: Floats = (np.exp2(values - values.max()) - least) / (1 - least)
    return gains
