"""The lists of a run and of the truth, brought together and put in order under each rule for ties."""

from dataclasses import dataclass

import numpy as np

from rankbench.core.contract import Flags, Floats, Int32s, Int64s
from rankbench.judging.conventions import Candidates, Ties

_SORTED_BY_INSERTION = 15  # Numba's quicksort leaves parts of up to this many items to a stable sort
_IN_BLOCKS = (Ties.EXPECTED, Ties.TOGETHER)
_AS_GIVEN = (*_IN_BLOCKS, Ties.GIVEN, Ties.RANX, Ties.RANX_TWICE)  # rules that need no other order than the file's


@dataclass(frozen=True, eq=False)
class Lists:
    """A number for each item on a user's list: the scores of a run, or the relevances of the truth.

    User u has the items `items[indptr[u] : indptr[u + 1]]`, as codes, in the order of the file.
    """

    indptr: Int64s
    items: Int32s
    values: Floats

    @property
    def owners(self) -> Int64s:
        """The user of each item."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))


@dataclass(frozen=True, eq=False)
class Pool:
    """Every item that a user has in the run or in the truth, once."""

    users: int
    owner: Int64s
    id_rank: Int64s  # the place of the item's id among all ids in order
    score: Floats  # NaN: not in the run
    relevance: Floats  # NaN: not in the truth
    given: Int64s  # the place in the run's file; items that it lacks follow

    @property
    def retrieved(self) -> Flags:
        """Whether the item is in the run."""
        return ~np.isnan(self.score)

    @property
    def judged(self) -> Flags:
        """Whether the item is in the truth."""
        return ~np.isnan(self.relevance)

    def count(self, chosen: Flags) -> Int64s:
        """For each user the number of chosen items."""
        return np.bincount(self.owner[chosen], minlength=self.users)


@dataclass(frozen=True, eq=False)
class Ranking:
    """The ranked items of all users, user by user, and which of them form a tie whose order is left open."""

    users: int
    owner: Int64s
    place: Int64s  # from 1
    relevance: Floats  # NaN: not in the truth
    tie: Int64s  # the number of the tie; every item is one of its own where ties are put in an order
    first: Int64s  # of each tie, its first row here
    size: Int64s  # of each tie

    @property
    def lengths(self) -> Int64s:
        """The number of ranked items of each user."""
        return np.bincount(self.owner, minlength=self.users)

    def in_tie(self, values: Floats) -> Floats:
        """For each tie the sum of these values of its items."""
        return sums(self.tie, values, len(self.first))

    def of_user(self, values: Floats) -> Floats:
        """For each user the sum of these values of the ranked items."""
        return sums(self.owner, values, self.users)


def sums(groups: Int64s, values: Floats, size: int) -> Floats:
    """For each of `size` groups the sum of its values."""
    return np.bincount(groups, values, size).astype(np.float64, copy=False)


def pooled(run: Lists, truth: Lists, id_ranks: Int64s) -> Pool:
    """The items of run and truth, those that the run lacks last; `id_ranks` are the places of the ids in their order.

    The lists of both are of the same users, and an item is on a list at most once.
    """
    size = max(1, len(id_ranks))
    in_run, in_truth = (lists.owners * size + lists.items for lists in (run, truth))
    order = np.argsort(in_truth)
    known, relevances = in_truth[order], truth.values[order]
    relevance = np.full(len(in_run), np.nan)
    if len(known):
        place = np.minimum(np.searchsorted(known, in_run), len(known) - 1)
        hits = known[place] == in_run
        relevance[hits] = relevances[place[hits]]
        lacking = np.ones(len(known), np.bool_)
        lacking[place[hits]] = False
    else:
        lacking = np.zeros(0, np.bool_)
    keys = np.concatenate([in_run, known[lacking]])
    return Pool(
        max(len(run.indptr), len(truth.indptr)) - 1,
        keys // size,
        id_ranks[keys % size],
        np.concatenate([run.values, np.full(int(lacking.sum()), np.nan)]),
        np.concatenate([relevance, relevances[lacking]]),
        np.arange(len(keys)),
    )


def repeated(lists: Lists, size: int) -> tuple[int, int] | None:
    """A user and an item who are together on a list more than once, or None; `size` is the number of items."""
    keys = np.sort(lists.owners * size + lists.items)
    again = np.flatnonzero(keys[1:] == keys[:-1])
    return (int(keys[again[0]]) // size, int(keys[again[0]]) % size) if len(again) else None


def ranked(pool: Pool, candidates: Candidates, ties: Ties) -> Ranking:
    """The candidates of all users by falling score, those without a score last, and ties as the rule says."""
    rows = np.flatnonzero(_among(pool, candidates))
    owner, retrieved = pool.owner[rows], pool.retrieved[rows]
    score = np.where(retrieved, pool.score[rows], 0.0)
    if ties == Ties.TREC:
        with np.errstate(over="ignore"):  # beyond single precision scores are infinite there too
            score = score.astype(np.float32).astype(np.float64)
    order = _order(owner, retrieved, score, None if ties in _AS_GIVEN else _key(pool, ties)[rows])
    if order is not None:
        rows, owner, score, retrieved = rows[order], owner[order], score[order], retrieved[order]
    same = (owner[1:] == owner[:-1]) & (score[1:] == score[:-1]) & (retrieved[1:] == retrieved[:-1])
    if ties in (Ties.RANX, Ties.RANX_TWICE):
        rows = _by_quicksort(pool, rows, same, twice=ties == Ties.RANX_TWICE)
    if ties not in _IN_BLOCKS:
        same = np.zeros_like(same)
    starts = np.searchsorted(owner, np.arange(pool.users))
    opens = np.concatenate([[True], ~same])[: len(rows)]
    first = np.flatnonzero(opens)
    return Ranking(
        pool.users,
        owner,
        np.arange(len(rows)) - starts[owner] + 1,
        pool.relevance[rows],
        np.cumsum(opens) - 1,
        first,
        np.diff(first, append=len(rows)),
    )


def _order(owner: Int64s, retrieved: Flags, score: Floats, key: Floats | Int64s | None) -> Int64s | None:
    """The order of the rows, stable but for the key; None if they stand in it already, as in most files."""
    ahead = (owner[1:] > owner[:-1]) | (
        (owner[1:] == owner[:-1])
        & ((retrieved[1:] < retrieved[:-1]) | ((retrieved[1:] == retrieved[:-1]) & (score[1:] <= score[:-1])))
    )
    if ahead.all() and (key is None or not ((owner[1:] == owner[:-1]) & (score[1:] == score[:-1])).any()):
        return None
    return np.lexsort([*([] if key is None else [key]), -score, ~retrieved, owner])


def _among(pool: Pool, candidates: Candidates) -> Flags:
    """Which items are ranked."""
    if candidates == Candidates.RUN:
        return pool.retrieved
    if candidates == Candidates.TRUTH:
        return pool.judged
    return pool.retrieved & pool.judged if candidates == Candidates.JUDGED else np.ones(len(pool.owner), np.bool_)


def _key(pool: Pool, ties: Ties) -> Floats | Int64s:
    """The number by which items of equal score are put in order, the lowest first."""
    if ties == Ties.TREC:
        return -pool.id_rank
    if ties == Ties.ASCENDING:
        return pool.id_rank
    relevance = np.where(pool.judged, pool.relevance, -np.inf)
    return {Ties.FIRST: -relevance, Ties.LAST: relevance}[ties]


def _by_quicksort(pool: Pool, rows: Int64s, same: Flags, *, twice: bool) -> Int64s:
    """The ranked rows, with the ties of long lists in the order in which Numba's quicksort leaves them."""
    rows, owner = rows.copy(), pool.owner[rows]
    bounds = np.searchsorted(owner, np.arange(pool.users + 1))
    for user in np.unique(owner[1:][same]):
        own = rows[bounds[user] : bounds[user + 1]]
        own = own[pool.retrieved[own]]
        own = own[np.argsort(pool.given[own])]
        for _ in range(2 if twice else 1):
            own = own[quicksorted((-pool.score[own]).tolist())]
        rows[bounds[user] : bounds[user] + len(own)] = own
    return rows


def quicksorted(values: list[float]) -> list[int]:
    """The numbers of the values in rising order, equal ones in the order in which Numba's `np.argsort` leaves them."""
    order = list(range(len(values)))
    waiting = [(0, len(values) - 1)]
    while waiting:
        low, high = waiting.pop()
        while high - low >= _SORTED_BY_INSERTION:
            middle = _partition(values, order, low, high)
            if high - middle > middle - low:
                waiting.append((middle + 1, high))
                high = middle - 1
            else:
                waiting.append((low, middle - 1))
                low = middle + 1
        order[low : high + 1] = sorted(order[low : high + 1], key=values.__getitem__)
    return order


def _partition(values: list[float], order: list[int], low: int, high: int) -> int:
    """Partition order[low : high + 1] around the median of its first, middle and last value; the pivot's place."""
    middle = (low + high) >> 1
    for left, right in ((low, middle), (middle, high), (low, middle)):
        if values[order[right]] < values[order[left]]:
            order[left], order[right] = order[right], order[left]
    pivot = values[order[middle]]
    order[high], order[middle] = order[middle], order[high]
    left, right = low, high - 1
    while True:
        while left < high and values[order[left]] < pivot:
            left += 1
        while right >= low and pivot < values[order[right]]:
            right -= 1
        if left >= right:
            break
        order[left], order[right] = order[right], order[left]
        left, right = left + 1, right - 1
    order[left], order[high] = order[high], order[left]
    return left
