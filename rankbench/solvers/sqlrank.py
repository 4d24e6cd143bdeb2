"""SQL-Rank: the likelihood of a user's whole list, with ties broken anew in each pass (Wu et al. 2018)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
import scipy.sparse

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Determinism, Flags, Floats, Int32s, Int64s, Ints, Step
from rankbench.data.by_item import counted
from rankbench.data.views import Ratings
from rankbench.kernels.methods import negatives
from rankbench.kernels.shared.rows import Pattern
from rankbench.kernels.solvers import sqlrank
from rankbench.methods.adagrad import AdaGrad, entries_of
from rankbench.methods.factors import seed_of
from rankbench.models import Factors
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import Count, Least, Rank, StepSize, Weight

_START = 0.1  # the standard deviation of a number at the start, as in the authors' code


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


@dataclass(frozen=True, eq=False)
class _Lists:
    """Each user's items in order: user i's are items[indptr[i]:indptr[i + 1]]."""

    indptr: Int64s
    items: Int32s


class _Descent:
    """The vectors and how far they went, and the lists that are drawn."""

    def __init__(self, solver: SQLRank, train: Ratings, rng: np.random.Generator, threads: int) -> None:
        self.solver, self.rng, self.threads, self.n_items = solver, rng, threads, train.n_items
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
        order = np.lexsort((self.rng.random(len(rated)), -rated.values, rated.users))
        items = np.empty(indptr[-1], np.int32)
        items[(indptr[:-1] - rated.indptr[:-1])[rated.users] + np.arange(len(rated))] = rated.items[order]
        if self.solver.unrated:
            some = rated.where((n < self.n_items)[rated.users])
            behind = (indptr[:-1] - some.indptr[:-1])[some.users] + np.arange(len(some))
            for number in range(1, self.solver.unrated + 1):
                items[behind + number * n[some.users]] = self._unrated(some)
        return _Lists(indptr, items)

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
        slopes = self._losses(indptr, np.einsum("ij,ij->i", users[rows], items[own]))[1]
        pulls = scipy.sparse.csr_array((slopes, own, indptr), shape=(len(chosen), self.n_items))
        listed, lam = np.flatnonzero(self.listed), self.solver.lam
        share = len(chosen) / len(self.active)
        of_items = (pulls.T @ users)[listed] + lam * share * items[listed]
        of_users = pulls @ items + lam * users
        self.users.move(chosen, of_users)
        self.items.move(listed, of_items)

    def _losses(self, indptr: Int64s, scores: Floats) -> tuple[Floats, Floats]:
        """The losses of lists with these scores, and their derivatives."""
        losses, slopes = np.empty(len(indptr) - 1), np.empty(len(scores))
        sqlrank.list_slopes(
            indptr=indptr,
            scores=scores,
            sigmoid=self.solver.link == "sigmoid",
            losses=losses,
            slopes=slopes,
            threads=self.threads,
        )
        return losses, slopes

    def objective(self, lists: _Lists) -> float:
        """The objective of these lists."""
        owners = np.repeat(np.arange(self.kept.n_users), np.diff(lists.indptr))
        scores = self.model.score(owners, lists.items) if len(owners) else np.zeros(0)
        sizes = sum(np.nansum(np.square(side.rows)) for side in (self.users, self.items))
        return float(self._losses(lists.indptr, scores)[0].sum() + self.solver.lam / 2 * sizes)
