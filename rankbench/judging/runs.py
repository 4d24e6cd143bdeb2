"""Runs of other tools beside the truth: each metric's value for every user, and what a run covers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice

import numpy as np
import numpy.typing as npt

from rankbench.core.contract import Flags, Floats, Int32s, Int64s
from rankbench.core.errors import UserError
from rankbench.judging.columns import Role
from rankbench.judging.conventions import Average, Ties
from rankbench.judging.gathering import BUCKETS, Gathering, Ids, Rows
from rankbench.judging.rankings import Lists, Pool, pooled, repeated
from rankbench.judging.sources import Source
from rankbench.judging.tools import Asked
from rankbench.judging.valuing import Evaluation

_SHOWN = 3  # ids in a message


@dataclass(frozen=True, eq=False)
class Truth:
    """What is relevant to whom, sorted by user."""

    source: Source
    users: Int32s
    items: Int32s
    values: Floats
    digest: str  # SHA-256 of its rows, whatever their order

    def within(self, buckets: Flags) -> tuple[Int32s, Int32s, Floats]:
        """Its rows of the users in these buckets."""
        if buckets.all():
            return self.users, self.items, self.values
        chosen = buckets[self.users % BUCKETS]
        return self.users[chosen], self.items[chosen], self.values[chosen]

    @property
    def facts(self) -> str:
        """Its size and its relevances, in a line."""
        low, high = self.values.min(), self.values.max()
        negative = int((self.values < 0).sum())
        more = f"; {negative} negative ones gain nothing" if negative else ""
        span = f"all of relevance {low:g}" if low == high else f"relevance {low:g} to {high:g}"
        return f"{len(np.unique(self.users))} users, {len(self.values)} rows, {span}{more}"


class Coverage:
    """What a run has of the truth's users, and what its lists are like, counted part by part."""

    def __init__(self) -> None:
        self.users = self.missing = self.unknown = 0  # on both, of the truth alone, and of the run alone
        self.rows = self.tied = self.hits = 0  # of the run: all, with the score of another one, and in the truth
        self.truth = 0  # rows of the truth
        self.shortest, self.longest = int(np.iinfo(np.int64).max), 0  # lists of the run

    def add(self, pool: Pool) -> None:
        """Count the users of a part."""
        on, judged = pool.retrieved, pool.judged
        lengths, known = pool.count(on), pool.count(judged) > 0
        self.rows += int(on.sum())
        self.users += int(((lengths > 0) & known).sum())
        self.missing += int(((lengths == 0) & known).sum())
        self.unknown += int(((lengths > 0) & ~known).sum())
        some = lengths[lengths > 0]
        if len(some):
            self.shortest = min(self.shortest, int(some.min()))
            self.longest = max(self.longest, int(some.max()))
        self.hits += int((on & judged).sum())
        self.truth += int(judged.sum())
        owner, score = pool.owner[on], pool.score[on]
        order = np.lexsort((score, owner)) if len(score) else np.zeros(0, np.int64)
        same = (np.diff(owner[order]) == 0) & (score[order][1:] == score[order][:-1])
        self.tied += int((np.append(same, False) | np.insert(same, 0, False)).sum()) if len(score) else 0

    def check(self, run: Source, truth: Truth, ids: Ids) -> None:
        """Raise an error if run and truth have no user, or no item, in common."""
        if not self.hits:
            raise _nothing_in_common(run, truth, "item" if self.users else "user", ids)

    @property
    def facts(self) -> str:
        """The coverage in a line."""
        lists = f"{self.shortest}" if self.shortest == self.longest else f"{self.shortest} to {self.longest}"
        parts = [f"{self.users} of {self.users + self.missing} users of the truth", f"{lists} items a user"]
        parts += [f"{self.unknown} users of whom the truth has nothing"] if self.unknown else []
        parts += [f"{100 * (self.hits / self.truth):.3g} % of the truth's items on its lists"]
        if self.hits < self.rows:
            parts.append(f"{100 * (1 - self.hits / self.rows):.3g} % of its items are not in the truth")
        parts += [f"{100 * (self.tied / self.rows):.3g} % of its scores tie"] if self.tied else []
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Each metric's values by the number of the user, NaN for those who do not count, and what the run covers."""

    values: Mapping[str, Floats]
    weights: Mapping[str, Floats]  # of the users, of metrics whose mean weighs them
    coverage: Coverage


def truth_of(source: Source, ids: Ids) -> Truth:
    """The truth that a source holds."""
    with Gathering.of(source.blocks("truth"), ids) as gathered:
        rows = gathered.whole()
    rows = rows[np.lexsort((rows["item"], rows["user"]))]
    again = (rows["user"][1:] == rows["user"][:-1]) & (rows["item"][1:] == rows["item"][:-1])
    if again.any():
        place = int(again.argmax())
        raise _twice(source, "truth", ids, int(rows["user"][place]), int(rows["item"][place]))
    return Truth(source, rows["user"].copy(), rows["item"].copy(), rows["value"].copy(), _digest(rows, ids))


def evaluated(run: Source, truth: Truth, asked: Sequence[Asked], ids: Ids) -> Evaluated:
    """The metrics of a run, and what it covers; users and items that were not met before get numbers."""
    found: dict[str, list[tuple[Int64s, Floats, Floats]]] = {one.label: [] for one in asked}
    coverage = Coverage()
    with Gathering.of(run.blocks("run"), ids) as gathered:
        ordered = any(one.convention.ties in (Ties.TREC, Ties.ASCENDING) for one in asked)
        id_ranks = ids.items.ranks if ordered else np.arange(len(ids.items))
        for buckets, rows in gathered.parts():
            users, pool = _pool_of(run, truth, buckets, rows, ids, id_ranks)
            coverage.add(pool)
            whole = Evaluation(pool, None)
            for one in asked:
                found[one.label].append((users, *replace(whole, cut=one.cut).by_user(one.convention)))
    coverage.check(run, truth, ids)
    values = {label: _scattered(parts, len(ids.users), 1) for label, parts in found.items()}
    weighted = [one.label for one in asked if one.convention.average != Average.USERS]
    weights = {label: _scattered(found[label], len(ids.users), 2) for label in weighted}
    return Evaluated(values, weights, coverage)


def pool_of(run: Source, truth: Truth, ids: Ids) -> Pool:
    """All lists of a run beside the truth, in memory."""
    with Gathering.of(run.blocks("run"), ids) as gathered:
        rows = gathered.whole()
    _, pool = _pool_of(run, truth, np.ones(BUCKETS, np.bool_), rows, ids, ids.items.ranks)
    coverage = Coverage()
    coverage.add(pool)
    coverage.check(run, truth, ids)
    return pool


def _pool_of(run: Source, truth: Truth, buckets: Flags, rows: Rows, ids: Ids, id_ranks: Int64s) -> tuple[Int64s, Pool]:
    """The users of a part by their numbers, and their lists; an item that is twice on a list is an error."""
    own = truth.within(buckets)
    users, places = np.unique(np.concatenate([rows["user"], own[0]]), return_inverse=True)
    lists = Lists(_starts(places[: len(rows)], len(users)), rows["item"], rows["value"])
    if again := repeated(lists, len(ids.items)):
        raise _twice(run, "run", ids, int(users[again[0]]), again[1])
    relevant = Lists(_starts(places[len(rows) :], len(users)), own[1], own[2])
    return users, pooled(lists, relevant, id_ranks)


def _starts(users: npt.NDArray[np.intp], count: int) -> Int64s:
    """Where each user's rows begin, and where the last one's end, in rows that are sorted by user."""
    return np.searchsorted(users, np.arange(count + 1)).astype(np.int64)


def _scattered(parts: Sequence[tuple[Int64s, Floats, Floats]], size: int, place: int) -> Floats:
    """The values, or the weights, of all parts by the number of the user."""
    found = np.full(size, np.nan)
    for part in parts:
        found[part[0]] = part[place]
    return found


def _digest(rows: Rows, ids: Ids) -> str:
    """A digest of rows that depends on the ids and numbers alone: not on the order, nor on other files."""
    users, items = ids.users.ranks[rows["user"]], ids.items.ranks[rows["item"]]
    order = np.lexsort((items, users))
    texts = (
        np.array(ids.users.texts, np.str_)[rows["user"][order]],
        np.array(ids.items.texts, np.str_)[rows["item"][order]],
    )
    content = sha256()
    for user, item, value in zip(*texts, rows["value"][order].tolist(), strict=True):
        content.update(f"{user}\t{item}\t{value!r}\n".encode())
    return content.hexdigest()


def _twice(source: Source, role: Role, ids: Ids, user: int, item: int) -> UserError:
    """The error for an item that a user has twice, with both places."""
    names = ids.users.texts[user], ids.items.texts[item]
    places = [source.place(row, role) for row in islice(_rows_of(source, role, *names), 2)]
    what = "scores" if role == "run" else "relevances"
    second = places[1].removeprefix(f"{source.called}, ") if len(places) > 1 else "below"
    return UserError(
        f"{places[0]} and {second}: user {names[0]!r} has two {what} for item {names[1]!r}",
        remedy="leave one of them",
    )


def _rows_of(source: Source, role: Role, user: str, item: str) -> Iterator[int]:
    """The numbers of the rows of a user and an item."""
    start = 0
    for block in source.blocks(role):
        mine = (block.users.names == user)[block.users.codes] & (block.items.names == item)[block.items.codes]
        yield from (start + int(row) for row in np.flatnonzero(mine))
        start += len(block)


def _nothing_in_common(run: Source, truth: Truth, what: str, ids: Ids) -> UserError:
    """The error for a run of other users, or of other items, with some of both."""
    of_truth = np.unique(truth.users if what == "user" else truth.items)
    texts = (ids.users if what == "user" else ids.items).texts
    known = [texts[number] for number in of_truth]
    block = next(run.blocks("run"))
    own = [str(name) for name in (block.users if what == "user" else block.items).names if name]
    shown = [", ".join(repr(name) for name in names[:_SHOWN]) for names in (own, known)]
    alike = _plainly(own) & _plainly(known)
    remedy = (
        "write the ids alike in both: they differ in case, spaces, leading zeros or a letter in front"
        if alike
        else (f"give the truth that the run was made for: {what}s are compared as texts")
    )
    return UserError(
        f"no {what} of {run.called} is in {truth.source.called}: {what}s here are {shown[0]}, there {shown[1]}",
        remedy=remedy,
    )


def _plainly(names: Sequence[str]) -> set[str]:
    """The ids without what tools write differently."""
    return {name.strip().lower().lstrip("abcdefghijklmnopqrstuvwxyz_-:").lstrip("0") or "0" for name in names}
