"""An audit of a user's own file: columns, duplicates, users without an order, time, and what splits keep.

The checks on single rows need a file, whose rows are looked at before anything is refused. All other checks look at the
view that solvers learn from.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankbench.arrays.distinct import distinct
from rankbench.checks.findings import Finding, failed, not_applicable, passed
from rankbench.core.contract import Floats, Ints
from rankbench.core.errors import UserError
from rankbench.core.streams import seed_of
from rankbench.data import load
from rankbench.data.building import numbered
from rankbench.data.sources.columnar import ROLES
from rankbench.data.sources.columnar_ratings import OwnColumns
from rankbench.data.sources.csv_pairs import OwnPairs
from rankbench.data.sources.csv_ratings import OwnRatings
from rankbench.data.splits import SPLITS, Split, cut
from rankbench.data.tables import Rows
from rankbench.data.tables.fields import Ids
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.names import Named
from rankbench.own_data.choosing import Wishes, protocol_of
from rankbench.own_data.facts import Facts
from rankbench.own_data.naming import data_named
from rankbench.own_data.users_kept import Kept
from rankbench.report.render.tables import Sheet

_FEW_LEVELS = 100  # a scale of ratings has fewer distinct whole numbers
_GROUPED, _SCATTERED = 0.5, 0.1  # shares of adjacent rows with the same id
_PAST = 0.1  # above this share of held-out rows before a training row, a random split leaks
_COMMON = 0.05  # above this share of users, something is worth a remedy
_FIRST, _LAST = 3e8, 5e9  # seconds since 1970: from 1979 to 2128
_UNITS = (1.0, 1e3, 1e6, 1e9)  # seconds, milliseconds, microseconds, nanoseconds
_LARGE = 30_000_000  # bytes of a file whose rows are looked at only if an audit is asked for
_SPLITS = (
    "n-per-user[n=5,least=5]",
    "n-per-user[n=10,least=10]",
    "n-per-user[n=20,least=10]",
    "n-per-user[n=50,least=10]",
    "leave-one-out",
    "per-user[test=0.2]",
    "entries[test=0.2]",
)


@dataclass(frozen=True, eq=False)
class Audit:
    """What was found in a data set, and its view if it can be loaded."""

    about: str
    findings: tuple[Finding, ...]
    view: View | None

    def __str__(self) -> str:
        return "\n".join([self.about, *(f"{one.outcome}: {one.line}" for one in self.findings)])

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class FileRows:
    """The rows of a user's file as they stand in it: users and items, or users, better and worse items."""

    ids: tuple[Ids, ...]  # of each column, ascending
    numbers: tuple[Ints, ...]  # the place of each row's id among those
    values: Floats | None
    layout: str  # how the file is read, in words

    @classmethod
    def of(cls, data: Named) -> "FileRows | None":
        """The rows of a data set, or None if it comes from no file of the user's."""
        record: Any = data.record
        if isinstance(record, OwnColumns):
            found = record.rows()
            places = ", ".join(f"{role} in column {name!r}" for role, name in zip(ROLES, found.names, strict=True))
            layout = f"{len(found.values):,} rows, {places}; ids are {_kind_of(found.user_ids)}"
            return cls((found.user_ids, found.item_ids), (found.users, found.items), found.values, layout)
        if not isinstance(record, OwnRatings | OwnPairs):
            return None
        rows = record.rows()
        ids, numbers = zip(*map(numbered, rows.ids), strict=True)
        return cls(ids, numbers, rows.values, _layout(rows))


@dataclass(frozen=True, eq=False)
class Subject:
    """What the checks look at: the data set, its rows as they stand in a file, its view, a seed and a split."""

    data: Named
    rows: FileRows | None  # None: the data comes from no file of the user's
    view: View
    seed: int
    split: str = ""  # the one that is asked for; empty: the one that suits the data

    @property
    def facts(self) -> Facts:
        """The facts about the view."""
        return Facts.of(self.view)


Check = Callable[[Subject], Finding]


def audited(text: str, seed: int = 0) -> Audit:
    """The audit of the file or data set that a user named; data that cannot be read is a finding, not an error."""
    data = data_named(text)
    seed = seed_of(seed)
    if remedy := data.record.origin.missing():
        raise UserError(remedy)
    try:
        subject = _subject(data, seed)
    except UserError as error:
        return Audit(data.written, (failed("readable", str(error), "all else can be said only after this"),), None)
    read = subject.rows.layout if subject.rows else f"{len(subject.view):,} rows"
    findings = (passed("readable", read), *(check(subject) for check in CHECKS))
    return Audit(f"{data.written}: {subject.facts.text}", findings, subject.view)


def hints(data: Named, seed: int, view: View, split: str = "") -> list[Finding]:
    """The findings about a data set and its split that failed, for those who did not ask for an audit.

    The rows of a large file are not looked at, which would take as long as reading it again.
    """
    large = any(held.path.stat().st_size > _LARGE for held in data.record.origin.held())
    subject = Subject(data, None if large else FileRows.of(data), view, seed, split)
    return [finding for check in CHECKS if (finding := check(subject)).bad]


def splits_sheet(view: View, seed: int) -> Sheet:
    """A table of what each usual split keeps of a view."""
    lines = tuple(_line_of(view, name, seed) for name in _SPLITS)
    headings = ("split", "users", "left out", "train rows", "test rows")
    return Sheet(headings, (False, True, True, True, True), lines, frozenset())


def columns(subject: Subject) -> Finding:
    """Whether the columns are what they are taken for: ratings no times or ids, and users no items."""
    name, rows = "columns", subject.rows
    if rows is None:
        return not_applicable(name, "the data comes from no file of yours")
    if isinstance(subject.view, Comparisons):
        return passed(name, "user, better item and worse item")
    values = rows.values
    if values is not None and _is_time(values):
        return failed(
            name, f"the ratings look like times: {values[0]:.0f}", "say which column is the rating: rating=NAME"
        )
    if values is not None and _is_ids(values, rows.ids[1]):
        problem = f"the ratings look like ids of items: {len(np.unique(values))} whole numbers"
        return failed(name, problem, "if these are pairs of a better and a worse item, write pairs:FILE")
    user, item = (_adjacent(numbers) for numbers in rows.numbers[:2])
    if item > _GROUPED and user < _SCATTERED and len(subject.facts.counts) > subject.facts.items:
        problem = f"rows of an item stand together ({item:.0%} of them), rows of a user do not ({user:.0%})"
        return failed(name, problem, "if users and items are swapped, write user=NAME,item=NAME in brackets")
    return passed(name, "nothing looks swapped")


def spellings(subject: Subject) -> Finding:
    """Whether two ids differ only in blanks or in the case of letters."""
    name, rows = "spellings", subject.rows
    texts = [ids for ids in rows.ids if ids.dtype.kind == "U"] if rows else []
    if not texts:
        return not_applicable(name, "no id is a text")
    for ids in texts:
        known: dict[str, str] = {}
        for one in ids.tolist():
            other = known.setdefault(one.strip().casefold(), one)
            if other != one:
                return failed(name, f"{other!r} and {one!r} are two ids", "spell them alike if they mean the same")
    return passed(name, "no two ids differ only in blanks or case")


def duplicates(subject: Subject) -> Finding:
    """Whether a pair of a user and an item has several ratings, or a comparison comes with its contrary."""
    if isinstance(subject.view, Comparisons):
        return _contradictions(subject.view)
    name, rows = "duplicates", subject.rows
    if rows is None:
        return not_applicable(name, "the data comes from no file of yours")
    users, items = (numbers.astype(np.int64) for numbers in rows.numbers[:2])
    keys = users * (int(items.max(initial=0)) + 1) + items
    extra = len(keys) - len(distinct(keys))
    if not extra:
        return passed(name, "every pair of a user and an item occurs once")
    if getattr(subject.data.record, "positive", False):
        return passed(name, f"{extra:,} repeated rows, which count once")
    remedy = f"keep the last of each: {subject.data.with_chosen((('repeats', 'last'),))}"
    if getattr(subject.data.record, "repeats", "") == "last":
        return passed(name, f"{extra:,} repeated pairs, of which the last rating is kept")
    return failed(name, f"{extra:,} rows repeat a pair of a user and an item", remedy)


def constant_users(subject: Subject) -> Finding:
    """How many users rate all of their items alike, and so say nothing about which one is better."""
    name, facts = "constant users", subject.facts
    if facts.kind == "comparisons":
        return not_applicable(name, "comparisons are always an order")
    if facts.kind == "positives":
        return not_applicable(name, "no user has an order: the data is taken for positive examples only")
    share = facts.constant / max(1, facts.users)
    seen = f"{facts.constant:,} of {facts.users:,} users rate all their items alike"
    if share > _COMMON:
        return failed(name, seen, "metrics leave these users out: say so where you report numbers")
    return passed(name, seen)


def few_rows(subject: Subject) -> Finding:
    """How many users have a single row, which cannot be both trained and tested on."""
    facts = subject.facts
    single = int((facts.counts == 1).sum())
    seen = f"{single:,} of {facts.users:,} users have a single row"
    if single / max(1, facts.users) > _COMMON:
        return failed("few rows", seen, "splits by user cannot test them (rankbench check shows what each keeps)")
    return passed("few rows", seen)


def items_of_one(subject: Subject) -> Finding:
    """How many items occur once, so that a split leaves nothing to learn about them."""
    view = subject.view
    items = view.items if isinstance(view, Ratings) else np.concatenate([view.better, view.worse])
    counts = np.bincount(items, minlength=view.n_items)
    single = int((counts == 1).sum())
    seen = f"{single:,} of {view.n_items:,} items occur in a single row"
    if single > view.n_items / 2:
        remedy = "nothing can be learned of them from ids alone: leave rare items out, or give features=FILE"
        return failed("rare items", seen, remedy)
    return passed("rare items", seen)


def leakage(subject: Subject) -> Finding:
    """Whether a random split tests on the past: on ratings that are older than training ratings of the same user."""
    name, view = "time", subject.view
    if not isinstance(view, Ratings):
        return not_applicable(name, "comparisons have no times")
    if view.times is None:
        record: Any = subject.data.record
        own = subject.rows is not None and isinstance(record, OwnRatings | OwnColumns)
        why = record.untimed() if own else ""
        seen = f"not all times can be read: {why}" if why else "there is no column of times that can be read"
        return not_applicable(name, seen)
    protocol = protocol_of(subject.facts, Wishes(split=subject.split))
    if protocol.split.startswith("binary"):
        protocol = replace(protocol, split="entries[test=0.2]")
    try:
        parts = cut(view, SPLITS.resolve(protocol.split), subject.seed, 0)
    except UserError as error:
        return not_applicable(name, str(error))
    share = _share_before(parts)
    seen = f"under {protocol.split}, {share:.0%} of the held-out rows are older than a training row of their user"
    if share > _PAST:
        split = next((one for one in ("temporal", "leave-last-out") if _cuts(one, subject)), "")
        remedy = f"to predict the future, split by time (--split {split}); random splits give better numbers"
        return failed(name, seen, remedy if split else "random splits give better numbers than the future will")
    return passed(name, seen)


CHECKS: tuple[Check, ...] = (
    columns, spellings, duplicates, constant_users, few_rows, items_of_one, leakage,
)  # fmt: skip


def _subject(data: Named, seed: int) -> Subject:
    """The rows and the view of a data set; repeated pairs do not stop the audit."""
    rows = FileRows.of(data)
    repeated = isinstance(data.record, OwnRatings | OwnColumns)
    return Subject(data, rows, load(data.with_chosen((("repeats", "last"),)) if repeated else data), seed)


def _layout(rows: Rows) -> str:
    """How a text file is read, in words."""
    layout = rows.layout
    letter = {"\t": "tab", ",": "comma", ";": "semicolon", " ": "space"}.get(layout.separator, layout.separator)
    where = ", ".join(f"{role} in column {place + 1}" for role, place in zip(layout.names, layout.fields, strict=True))
    header = f"a header on line {layout.header}" if layout.header else "no header"
    ids = "texts" if layout.text_ids else _kind_of(rows.ids[0])
    dropped = f"; {rows.dropped:,} rows without a rating or an id are left out" if rows.dropped else ""
    return f"separator {letter}, {header}, {where}; ids are {ids}{dropped}"


def _kind_of(ids: Ids) -> str:
    return "texts" if ids.dtype.kind == "U" else "whole numbers"


def _cuts(split: str, subject: Subject) -> bool:
    """Whether a split leaves something to test on, so that `on` takes it."""
    try:
        return len(cut(subject.view, SPLITS.resolve(split), subject.seed, 0).test) > 0
    except UserError:
        return False


def _is_time(values: Floats) -> bool:
    """Whether all of these numbers look like times since 1970, in seconds or in parts of seconds."""
    if not len(values) or not np.isfinite(values).all() or (values % 1 != 0).any():
        return False
    low, high = values.min(), values.max()
    return any(_FIRST * unit <= low and high <= _LAST * unit for unit in _UNITS)


def _is_ids(values: Floats, items: Ids) -> bool:
    """Whether the values look like ids: many distinct whole numbers that are mostly those of the items."""
    levels = distinct(values)
    if len(levels) <= _FEW_LEVELS or items.dtype.kind != "i" or (levels % 1 != 0).any():
        return False
    return float(np.isin(levels, items).mean()) > 1 / 2


def _adjacent(numbers: Ints) -> float:
    """The share of rows with the same id as the row before."""
    return float((numbers[1:] == numbers[:-1]).mean()) if len(numbers) > 1 else 0.0


def _contradictions(view: Comparisons) -> Finding:
    """Whether a user prefers both items of a pair."""
    users = view.users.astype(np.int64) * view.n_items
    forward = (users + view.better) * view.n_items + view.worse
    backward = (users + view.worse) * view.n_items + view.better
    both = int(np.isin(forward, backward).sum())
    repeated = len(forward) - len(distinct(forward))
    seen = f"{both:,} comparisons come with their contrary by the same user, {repeated:,} are repeated"
    if both > _COMMON * len(view):
        return failed("duplicates", seen, "no order agrees with both: no solver can get all of them right")
    return passed("duplicates", seen)


def _share_before(parts: Split) -> float:
    """The share of held-out ratings that are older than some training rating of their user."""
    train, test = parts.train, parts.test
    latest = np.full(train.n_users, np.iinfo(np.int64).min)
    np.maximum.at(latest, train.users, train.times)
    return float((test.times < latest[test.users]).mean())


def _line_of(view: View, name: str, seed: int) -> tuple[str, ...]:
    """A line of the table: what a split keeps, or why it cannot be made."""
    try:
        parts = cut(view, SPLITS.resolve(name), seed, 0)
    except UserError:
        return name, "0", str(view.n_users), "", ""
    kept = Kept.by(parts, view)
    sizes = (kept.tested, kept.users - kept.tested, len(parts.train), len(parts.test))
    return (name, *(f"{size:,}" for size in sizes))
