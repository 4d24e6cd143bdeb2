"""SQL-Rank: the likelihood of a user's whole list, with ties broken anew in each pass (Wu et al. 2018)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
import scipy.sparse
from scipy.special import expit

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Determinism, Flags, Floats, Int32s, Int64s, Ints, Model, Step
from rankbench.data.by_item import counted, entries_of
from rankbench.data.views import Ratings
from rankbench.kernels.methods import negatives
from rankbench.kernels.shared.rows import Pattern
from rankbench.kernels.solvers import sqlrank
from rankbench.methods.adagrad import AdaGrad
from rankbench.methods.factors import seed_of
from rankbench.methods.folding import own, vectors_of_items, with_vectors
from rankbench.methods.newcomers import Bent, minima
from rankbench.models import Factors
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import Count, Least, Rank, StepSize, Weight

_START = 0.1  # the standard deviation of a number at the start, as in the authors' code
_LISTS = 4  # of a user who is fitted alone, with ties and unrated items drawn anew in each


@dataclass(frozen=True)
class SQLRank(Checked):
    """A vector per user and item, by which the order of a user's whole list is probable.

    min over U, V of sum over users of sum_t (ln sum_{r >= t} exp(m_r) - m_t) + lam/2 (|U|^2 + |V|^2), where place t of
    user i's list has the item j with m_t = sigma(u_i . v_j), sigma(x) = 1 / (1 + e^-x). That is the likelihood of
    Plackett and Luce; with `link=identity` m is the score itself, as in ListMLE. (The paper leaves the link open; its
    authors' code has exp(sigma(x)).)

    A list has the user's items by falling ratings. Equal ratings are in random order, which is drawn anew in each pass:
    stochastic queuing. With `unrated` above 0 so many items for each rated one stand behind all rated ones, drawn anew
    in each pass, uniformly and with replacement from all that the user has not rated; so lists of positive examples,
    which are all alike, can be learned from, too.

    A pass visits each user once, `batch` users at a time, in random order; each number x moves by
    -step g / sqrt(sum of its g^2 so far), where g is the derivative by x (AdaGrad). (The authors take steps of one
    length along the sum over all users, which falls by a tenth in each pass.) The objective is that of one order, drawn
    at the start and kept. Ratings below `least` count as not rated. Users without a rating score NaN, as do items
    without one unless they are drawn; who has ratings but none that counts ties all items.
    """

    rank: Rank = 10
    lam: Weight = 1.0
    step: StepSize = 0.1
    link: Literal["sigmoid", "identity"] = "sigmoid"
    unrated: Annotated[int, Limits(low=0, high=1000)] = 0
    batch: Count = 64
    least: Least = None
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    title: ClassVar = "SQL-Rank"
    version: ClassVar = 1

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each pass over the users."""
        descent = _Descent(self, train, rng, checked_threads(threads))
        kept = descent.lists()
        yield Step(descent.model, lambda: descent.objective(kept))
        while len(descent.active):
            order, lists = rng.permutation(descent.active), descent.lists()
            for first in range(0, len(order), self.batch):
                descent.visit(order[first : first + self.batch], lists)
            yield Step(descent.model, lambda: descent.objective(kept))

    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> Factors:
        """The model of these users, each at the minimum that Newton's method finds from zero on.

        The loss is the mean over some lists that are drawn once, always the same for the same ratings. With
        `link=sigmoid` it is not convex, so that there may be other minima.
        """
        known, threads = own(model, Factors), checked_threads(threads)
        items = vectors_of_items(model, ratings, self.rank)
        rated, vectors = (ratings, np.nan_to_num(items)) if self.unrated else with_vectors(known, ratings, threads)
        kept, scale = rated.at_least(self.least), 1 / np.sqrt(self.lam)
        lists = [self._drawn(kept, user) for user in range(kept.n_users)]
        bounds = np.cumsum([0, *(len(own_items) for own_items, _ in lists)])
        users = scale * minima(
            np.column_stack([bounds[:-1], bounds[1:]]),
            np.concatenate([np.zeros(0, np.int32), *(own_items for own_items, _ in lists)]),
            scale * vectors,
            lambda user: _mean_loss(lists[user][1], self.link == "sigmoid"),
        )
        users[np.diff(rated.indptr) == 0] = np.nan
        return Factors(users, known.items)

    def _drawn(self, kept: Ratings, user: int) -> tuple[Int32s, Ints]:
        """The items of a user's lists, and the lists as places among these, one per row."""
        rows, rng = slice(kept.indptr[user], kept.indptr[user + 1]), np.random.default_rng(0)
        items, values = kept.items[rows], kept.values[rows]
        ties = rng.random((_LISTS, len(items)))
        lists = np.lexsort((ties, np.broadcast_to(-values, ties.shape)))
        if not self.unrated or not 0 < len(items) < kept.n_items:
            return items, lists
        others = np.setdiff1d(np.arange(kept.n_items, dtype=np.int32), items)
        drawn = rng.integers(len(others), size=(_LISTS, self.unrated * len(items)))
        chosen, places = np.unique(drawn, return_inverse=True)
        tails = len(items) + places.reshape(drawn.shape)
        return np.concatenate([items, others[chosen]]), np.hstack([lists, tails])


def _mean_loss(lists: Ints, sigmoid: bool) -> Callable[[Floats], Bent]:
    """The mean loss of these lists of places, one per row, as a function of the places' scores."""
    share, length, flat = 1 / len(lists), lists.shape[1], lists.ravel()
    indptr, places = np.arange(len(lists) + 1) * length, flat.astype(np.int32)

    def at(scores: Floats) -> Bent:
        ordered = scores[lists]
        losses, slopes = losses_of(indptr, ordered.ravel(), sigmoid)

        def of_places(values: Floats) -> Floats:
            return np.asarray(np.bincount(flat, share * values.ravel(), len(scores)))

        def curve(vectors: Floats, *, convex: bool) -> Floats:
            """The t-th draw adds sum_r p_r v_r v_r^T - m_t m_t^T, p_r = exp(m_r) / T_t for r >= t, m_t the mean."""
            m, by_score, bends = ordered, np.ones_like(ordered), np.zeros_like(ordered)
            if sigmoid:
                m = expit(ordered)
                by_score = m * (1 - m)
                bends = by_score * (1 - 2 * m)
            weights = np.exp(m - m.max(axis=1, keepdims=True))
            inverse = 1 / np.maximum(np.cumsum(weights[:, ::-1], axis=1)[:, ::-1], np.finfo(float).tiny)
            chances = weights * np.cumsum(inverse, axis=1)
            rest = bends * (chances - 1)
            degrees = of_places(chances * np.square(by_score) + (np.maximum(rest, 0) if convex else rest))
            means = np.empty((lists.size, vectors.shape[1]))
            weights = (weights * by_score).ravel()
            sqlrank.means_to_the_end(
                places=places, length=length, weights=weights, shares=inverse.ravel(), vectors=vectors, out=means
            )
            return np.asarray((vectors.T * degrees) @ vectors - share * (means.T @ means))

        return Bent(share * float(losses.sum()), of_places(slopes), curve)

    return at


def losses_of(indptr: Int64s, scores: Floats, sigmoid: bool, threads: int = 1) -> tuple[Floats, Floats]:
    """The losses of lists with these scores, and their derivatives."""
    losses, slopes = np.empty(len(indptr) - 1), np.empty(len(scores))
    sqlrank.list_slopes(indptr=indptr, scores=scores, sigmoid=sigmoid, losses=losses, slopes=slopes, threads=threads)
    return losses, slopes


@dataclass(frozen=True, eq=False)
class _Lists:
    """Each user's items in order: user i's are items[indptr[i]:indptr[i + 1]]."""

    indptr: Int64s
    items: Int32s


class _Descent:
    """The vectors and how far they went, and the lists that are drawn."""

    def __init__(self, solver: SQLRank, train: Ratings, rng: np.random.Generator, threads: int) -> None:
        self.solver, self.rng, self.threads, self.n_items = solver, rng, threads, train.n_items
        self.how = solver.link == "sigmoid", threads
        self.kept = train.at_least(solver.least)
        counts = np.diff(self.kept.indptr)
        self.active = np.flatnonzero(counts)
        users = _START * rng.standard_normal((train.n_users, solver.rank))
        users[counts == 0] = 0.0
        users[np.diff(train.indptr) == 0] = np.nan
        items = _START * rng.standard_normal((train.n_items, solver.rank))
        items[~self.listed] = 0.0
        items[~self.listed & (counted(train.items, train.n_items) == 0)] = np.nan
        self.users, self.items = AdaGrad(users, solver.step), AdaGrad(items, solver.step)
        self.model = Factors(users, items)

    @cached_property
    def listed(self) -> Flags:
        """Which items can be in a list."""
        seen = counted(self.kept.items, self.n_items) > 0
        return np.full(self.n_items, self.solver.unrated > 0 and bool(seen.any())) | seen

    def lists(self) -> _Lists:
        """A list for each user, with ties broken at random and with new unrated items at its end."""
        rated, n = self.kept, np.diff(self.kept.indptr)
        tails = self.solver.unrated * n * (n < self.n_items)
        indptr = np.concatenate([[0], np.cumsum(n + tails)])
        order = self._order()
        items = np.empty(indptr[-1], np.int32)
        items[(indptr[:-1] - rated.indptr[:-1])[rated.users] + np.arange(len(rated))] = rated.items[order]
        if self.solver.unrated:
            some = rated.where((n < self.n_items)[rated.users])
            behind = (indptr[:-1] - some.indptr[:-1])[some.users] + np.arange(len(some))
            for number in range(1, self.solver.unrated + 1):
                items[behind + number * n[some.users]] = self._unrated(some)
        return _Lists(indptr, items)

    def _order(self) -> Int64s:
        """The rows by user, by falling rating and, of equal ratings, at random."""
        (by_rating, groups), places = self.groups, np.empty(len(self.kept), np.int64)
        keys = self.rng.random(len(self.kept))[by_rating]
        sqlrank.order_ties(groups=groups, keys=keys, out=places, threads=self.threads)
        return np.asarray(by_rating[places])

    @cached_property
    def groups(self) -> tuple[Int64s, Int64s]:
        """The rows by user and falling rating, and where each group of equal ratings of a user begins and ends."""
        rated = self.kept
        by_rating = np.lexsort((-rated.values, rated.users))
        changes = (np.diff(rated.users[by_rating]) > 0) | (np.diff(rated.values[by_rating]) != 0)
        starts = np.flatnonzero(np.append(True, changes)) if len(rated) else np.zeros(0, np.int64)
        return by_rating, np.append(starts, len(rated))

    def _unrated(self, rated: Ratings) -> Int32s:
        """For each rated item one that its user has not rated."""
        drawn = np.empty(len(rated), np.int32)
        rows, seed = Pattern(indptr=rated.indptr, columns=rated.items), seed_of(self.rng)
        negatives.draw_negatives(positives=rows, n_items=self.n_items, seed=seed, out=drawn, threads=self.threads)
        return drawn

    @one_blas_thread()
    def visit(self, chosen: Ints, lists: _Lists) -> None:
        """Take a step along the derivatives of these users' losses, and of the share of the penalty that is theirs."""
        rows, places = entries_of(lists.indptr, chosen)
        own = lists.items[places]
        users, items = self.users.rows[chosen], self.items.rows
        indptr = np.concatenate([[0], np.cumsum(np.diff(lists.indptr)[chosen])])
        slopes = losses_of(indptr, np.einsum("ij,ij->i", users[rows], items[own]), *self.how)[1]
        pulls = scipy.sparse.csr_array((slopes, own, indptr), shape=(len(chosen), self.n_items))
        listed, lam = np.flatnonzero(self.listed), self.solver.lam
        share = len(chosen) / len(self.active)
        of_items = (pulls.T @ users)[listed] + lam * share * items[listed]
        of_users = pulls @ items + lam * users
        self.users.move(chosen, of_users)
        self.items.move(listed, of_items)

    def objective(self, lists: _Lists) -> float:
        """The objective of these lists."""
        owners = np.repeat(np.arange(self.kept.n_users), np.diff(lists.indptr))
        scores = self.model.score(owners, lists.items) if len(owners) else np.zeros(0)
        sizes = sum(np.nansum(np.square(side.rows)) for side in (self.users, self.items))
        return float(losses_of(lists.indptr, scores, *self.how)[0].sum() + self.solver.lam / 2 * sizes)
