"""Ratings in a user's own file of Parquet, Arrow or JSON lines, which can be larger than the memory.

The file is read batch by batch, several times: for the distinct ids, and for the rows, which go to arrays that are kept
in files if they are large. JSON, which is slow to parse, is parsed once, and what is used of it is kept in the same
way. Rows that come by user are then arranged block by block. Rows in another order are first sorted by user, which
takes 4 bytes of memory for each row, and 10 while they are sorted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rankbench.arrays.distinct import distinct
from rankbench.arrays.mapped import Pile, pieces
from rankbench.arrays.npz import sealed
from rankbench.arrays.ordering import order_of
from rankbench.core.contract import Floats, Int32s, Int64s, Ints
from rankbench.core.errors import UserError
from rankbench.data.building import Repeats
from rankbench.data.by_item import counted
from rankbench.data.files import File
from rankbench.data.sources.headers import chosen_in, found_in, named, shown
from rankbench.data.tables.arrow import are_times, as_times, is_text, kind_in, numbers_in, plain, texts_in
from rankbench.data.tables.fields import Ids, unreadable
from rankbench.data.tables.json_lines import Batches, columns_in, is_json, names_in, read_once
from rankbench.data.tables.layout import Layout, out_of_range
from rankbench.data.tables.times import complaint, readable, settled, unread
from rankbench.data.views import Ratings
from rankbench.data.views.layout import blocks

PACKAGE = "pyarrow"
INSTALL = 'pip install "rankbench[parquet]"'
_TABLE = 1 << 24  # whole numbers from the first id to the last for which a table of all of them is made
_ROWS = 1 << 20  # rows of a Parquet file to read at a time
_PARQUET, _ARROW = b"PAR1", b"ARROW1"  # how files begin; a stream of Arrow begins in another way
_START = 100  # bytes that tell the kind of a file
_SHOWN = 200  # characters of an error of pyarrow that are shown
ROLES = ("user", "item", "rating")
_PAIRS = ("user", "better", "worse")


@dataclass(frozen=True)
class Wanted:
    """What a user has said about a file of ratings."""

    columns: Mapping[str, str]  # user, item, rating -> a name of a column, or its number
    scale: tuple[float, float]  # the lowest and the highest rating allowed
    repeats: Repeats


@dataclass(frozen=True)
class _Table:
    """An open file: the names of its columns, and a function that reads some of them, given by number."""

    names: Sequence[str]
    read: Callable[[Sequence[int]], Batches]
    is_text: bool = False  # which takes long to read


@dataclass(frozen=True, eq=False)
class ColumnRows:
    """The rows in the file's order, with numbers in place of ids."""

    names: tuple[str, ...]  # of the columns in use
    users: Int32s
    items: Int32s
    values: Floats
    user_ids: Ids
    item_ids: Ids
    times: Int64s | None = None


def rows_in(path: Path, wanted: Wanted) -> ColumnRows:
    """All rows of a file, with those that repeat a pair; ids are numbered in ascending order."""
    with _explained(path):
        table = _opened(path)
        columns = _chosen(table.names, wanted)
        dated = _dated(table.names, columns)
        if table.is_text:
            try:
                table = replace(table, read=read_once(table.read, [*columns, *dated]))
            except UserError:
                table, dated = replace(table, read=read_once(table.read, columns)), ()  # perhaps a time is wrong
        return replace(_read(table, columns, wanted.scale), times=_times_in(table, dated))


def untimed(path: Path, wanted: Wanted) -> str:
    """The first row of a file whose time cannot be read, and why; empty if there is none, or no column of times."""
    try:
        with _explained(path):
            table = _opened(path)
            dated = _dated(table.names, _chosen(table.names, wanted))
            if dated and (kind := _kind_of(table, dated)):
                texts = [text for _, (part,) in _numbered(table.read(dated)) for text in texts_in(part)]
                place, why = unread(texts, kind)
                return f"{path}, row {1 + place}: {why}" if why else ""
            for first, (part,) in _numbered(table.read(dated)) if dated else ():
                place = readable(len(part), partial(are_times, part))
                if place < len(part):
                    time = part[place].as_py()
                    return f"{path}, row {first + place}: {complaint('' if time is None else str(time))}"
    except UserError as error:  # from JSON, in which a column may hold anything
        return str(error)
    return ""


def ratings(path: Path, wanted: Wanted) -> Ratings:
    """The ratings in a file; users and items are numbered in the order of their ids."""
    return _arranged(path, rows_in(path, wanted), wanted.repeats)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """A context in which an error becomes one line that names the file."""
    import pyarrow  # noqa: PLC0415  an optional package

    try:
        yield
    except UserError as error:
        raise error.within(str(path)) from None
    except (pyarrow.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:_SHOWN] or type(error).__name__
        raise UserError(f"{path} cannot be read as Parquet or Arrow: {reason}") from error


def _opened(path: Path) -> _Table:
    """An open file, of the kind that its content says."""
    with File(path).open() as file:
        start = file.read(_START)
    if start.startswith(_PARQUET):
        return _parquet(path)
    if not start:
        raise UserError("holds no rows")
    if is_json(path, start):
        return _json(File(path))
    return _arrow(path, is_stream=not start.startswith(_ARROW))


def _parquet(path: Path) -> _Table:
    """An open Parquet file, of which a part of a row group is read at a time."""
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  an optional package

    file = ParquetFile(path, memory_map=True, pre_buffer=False)
    names: list[str] = file.schema_arrow.names

    def read(columns: Sequence[int]) -> Batches:
        chosen = [names[column] for column in columns]
        for batch in file.iter_batches(_ROWS, columns=chosen, use_threads=False):
            yield [batch.column(name) for name in chosen]

    return _Table(names, read)


def _arrow(path: Path, is_stream: bool) -> _Table:
    """An open Arrow file (also called Feather) or stream, mapped into memory."""
    from pyarrow import ipc, memory_map  # noqa: PLC0415  an optional package

    def batches() -> Iterator[Any]:
        if is_stream:
            return iter(ipc.open_stream(memory_map(str(path))))
        file = ipc.open_file(memory_map(str(path)))
        return map(file.get_batch, range(file.num_record_batches))

    def read(columns: Sequence[int]) -> Batches:
        return ([batch.column(column) for column in columns] for batch in batches())

    opened = ipc.open_stream if is_stream else ipc.open_file
    return _Table(opened(memory_map(str(path))).schema.names, read)


def _json(file: File) -> _Table:
    """An open file with a record of JSON on each line."""
    names = names_in(file)
    return _Table(names, lambda columns: columns_in(file, [names[column] for column in columns]), is_text=True)


def _chosen(names: Sequence[str], wanted: Wanted) -> tuple[int, ...]:
    """The columns of user, item and rating: by their usual names, or as the user says."""
    columns = chosen_in(names, ROLES, wanted.columns) if wanted.columns else found_in(names, ROLES)
    if columns is None:
        settings = ",".join(f"{role}=NAME" for role in ROLES)
        problem = f"the columns {shown(names)} do not say which is which of {', '.join(ROLES)}"
        if found_in(names, _PAIRS) or (found_in(names, ROLES[:2]) and not named(names, "rating")):
            raise UserError(problem, remedy="comparisons, and items without ratings, are read from CSV or a DataFrame")
        raise UserError(f"{problem}: write [{settings}] after the path")
    for role, column in zip(ROLES, columns, strict=True):
        if list(names).count(names[column]) > 1:
            raise UserError(f"two columns have the name {names[column]!r}, that of the {role}: rename one")
    return columns


def _read(table: _Table, columns: tuple[int, ...], scale: tuple[float, float]) -> ColumnRows:
    """All rows, after a first pass that collects the ids."""
    known = [_distinct_in(table, column, role) for role, column in zip(ROLES[:2], columns[:2], strict=True)]
    piles = [Pile(np.int32), Pile(np.int32), Pile(np.float64)]
    numberings = [_Numbering.of(ids) for ids in known]
    for first, batch in _numbered(table.read(columns)):
        for pile, part, numbering in zip(piles, batch[:2], numberings, strict=False):
            pile.add(numbering.numbers(plain(part)))
        piles[2].add(_numbers(batch[2], first, scale))
    users, items, values = (pile.array() for pile in piles)
    return ColumnRows(tuple(table.names[column] for column in columns), users, items, values, *known)


@dataclass(frozen=True, eq=False)
class _Numbering:
    """The place of an id among all ids, which are ascending."""

    ids: Ids
    table: Int32s | None  # the place of each whole number from the first id to the last, if that are not too many

    @classmethod
    def of(cls, ids: Ids) -> "_Numbering":
        """The numbering of these ids."""
        if ids.dtype.kind != "i" or int(ids[-1]) - int(ids[0]) >= _TABLE:
            return cls(ids, None)
        table = np.zeros(ids[-1] - ids[0] + 1, np.int32)
        table[ids - ids[0]] = np.arange(len(ids))
        return cls(ids, table)

    def numbers(self, part: Any) -> Int32s:
        """The places of the ids in a part of a column."""
        if self.table is not None:
            found: Int32s = self.table[numbers_in(part).astype(np.int64, copy=False) - self.ids[0]]
            return found
        coded = part.dictionary_encode()
        ids = coded.dictionary.to_pylist() if is_text(part) else numbers_in(coded.dictionary)
        places = np.searchsorted(self.ids, np.asarray(ids, self.ids.dtype)).astype(np.int32)
        numbers: Int32s = places[numbers_in(coded.indices)]
        return numbers


def _dated(names: Sequence[str], columns: tuple[int, ...]) -> tuple[int, ...]:
    """The column of times, if there is one with a usual name."""
    found = named(names, "timestamp")
    return () if len(found) != 1 or found[0] in columns else tuple(found)


def _times_in(table: _Table, dated: tuple[int, ...]) -> Int64s | None:
    """The time of each row, from the column of times, of dates in microseconds; None if one cannot be read."""
    if not dated:
        return None
    kind = _kind_of(table, dated)
    piles = [Pile(np.int64) for _ in range(2 if kind.startswith("%d") else 1)]
    for _, (part,) in _numbered(table.read(dated)):
        times = as_times(part, kind)
        if times is None:
            return None
        for pile, reading in zip(piles, times.reshape(len(times), -1).T, strict=True):
            pile.add(reading)
    if len(piles) == 1:
        return piles[0].array()
    with suppress(ValueError):
        return settled(np.stack([pile.array() for pile in piles], axis=1))
    return None


def _kind_of(table: _Table, dated: tuple[int, ...]) -> str:
    """How the times are written if they are texts, else an empty text."""
    return next((kind_in(part) for _, (part,) in _numbered(table.read(dated))), "")


def _distinct_in(table: _Table, column: int, role: str) -> Ids:
    """The distinct ids of a column, ascending."""
    found: Ids | None = None
    for first, (part,) in _numbered(table.read([column])):
        ids = _ids_in(part, role, first)
        if found is not None and found.dtype.kind != ids.dtype.kind:  # of JSON alone
            raise UserError(f"the values of {table.names[column]!r} are not all of one kind: texts and whole numbers")
        found = ids if found is None else distinct(np.concatenate([found, ids]))
    if found is None:
        raise UserError("holds no rows")
    return found


def _numbered(batches: Batches) -> Iterator[tuple[int, Sequence[Any]]]:
    """The batches that hold rows, each with the number of its first row, counted from 1."""
    first = 1
    for batch in batches:
        if len(batch[0]):
            yield first, batch
        first += len(batch[0])


def _ids_in(part: Any, role: str, first: int) -> Ids:
    """The distinct ids in a part of a column, ascending."""
    from pyarrow import types  # noqa: PLC0415  an optional package

    part = plain(part)
    _refuse_missing(part, role, first)
    if not (types.is_integer(part.type) or is_text(part)):
        raise UserError(f"the {role} is of type {part.type}: ids must be whole numbers or texts")
    return _texts_in(part, role, first) if is_text(part) else _whole_numbers_in(numbers_in(part), role, first)


def _texts_in(part: Any, role: str, first: int) -> Ids:
    coded = part.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    for number, text in enumerate(texts):
        if reason := unreadable(text, "text"):
            row = first + int(np.argmax(numbers_in(coded.indices) == number))
            raise UserError(f"row {row}: {role} {text[:60]!r} {reason}")
    return distinct(np.array(texts, np.str_))


def _whole_numbers_in(numbers: Ids, role: str, first: int) -> Int64s:
    found = distinct(numbers)
    if reason := unreadable(str(found[-1]), "id"):
        row = int(np.argmax(numbers > np.iinfo(np.int64).max))
        raise UserError(f"row {first + row}: {role} {str(numbers[row])!r} {reason}")
    return found.astype(np.int64)


def _numbers(part: Any, first: int, scale: tuple[float, float]) -> Floats:
    """The ratings in a part of a column; true and false are 1 and 0, as in text."""
    from pyarrow import float64, int8, types  # noqa: PLC0415  an optional package

    _refuse_missing(part, "rating", first)
    if types.is_decimal(part.type):  # as databases write numbers
        part = part.cast(float64())
    elif types.is_boolean(part.type):
        part = part.cast(int8())
    if not (types.is_integer(part.type) or types.is_floating(part.type)):
        raise UserError(f"the rating is of type {part.type}: ratings must be numbers")
    values: Floats = numbers_in(part).astype(np.float64)
    right = (values >= scale[0]) & (values <= scale[1]) & np.isfinite(values)
    if not right.all():
        row = int(np.argmin(right))
        raise UserError(f"row {first + row}: {out_of_range(values[row], Layout(scale=scale))}")
    return values


def _refuse_missing(part: Any, role: str, first: int) -> None:
    """Raise an error if a value of a column is missing."""
    if part.null_count:
        row = first + int(np.argmax(part.is_null().to_numpy(zero_copy_only=False)))
        raise UserError(f"row {row}: the {role} is missing")


def _arranged(path: Path, rows: ColumnRows, repeats: Repeats) -> Ratings:
    """The view of the rows: by user, and the items of each user in ascending order."""
    n_users, n_items = len(rows.user_ids), len(rows.item_ids)
    order = None if _ascending(rows.users) else order_of(rows.users, n_users)
    bounds, ends = np.concatenate([[0], np.cumsum(counted(rows.users, n_users))]), [0]
    items, values, times = Pile(np.int32), Pile(np.float64), Pile(np.int64)
    for users, block in blocks(bounds):
        chosen = block if order is None else order[block]
        keys = np.repeat(np.arange(users.stop - users.start), np.diff(bounds[users.start : users.stop + 1])) * n_items
        own = rows.items[chosen]
        keys += own
        kept: Ints | slice = slice(None)
        if not (keys[1:] > keys[:-1]).all():
            by_item = np.argsort(keys, kind="stable")
            last = np.append(np.diff(keys[by_item]) > 0, True)  # of the rows of one user and item
            if repeats == "error" and not last.all():
                user, item = np.divmod(keys[by_item[np.argmin(last)]], n_items)
                _complain(path, rows, users.start + int(user), int(item))
            kept = by_item[last]
        ends.extend((ends[-1] + np.cumsum(np.bincount(keys[kept] // n_items))).tolist())
        items.add(own[kept])
        values.add(rows.values[chosen][kept])
        if rows.times is not None:
            times.add(rows.times[chosen][kept])
    more: dict[str, Any] = {"user_ids": rows.user_ids, "item_ids": rows.item_ids}
    dated = None if rows.times is None else sealed(times.array())
    return Ratings(np.array(ends), sealed(items.array()), sealed(values.array()), n_items, times=dated, **more)


def _ascending(users: Int32s) -> bool:
    """Whether the rows come by user."""
    last = 0
    for piece in pieces(users):
        if piece[0] < last or (np.diff(piece) < 0).any():
            return False
        last = piece[-1]
    return True


def _complain(path: Path, rows: ColumnRows, user: int, item: int) -> NoReturn:
    """Raise the error for a pair of a user and an item that is there twice."""
    first, second = (np.flatnonzero((rows.users == user) & (rows.items == item)) + 1)[:2].tolist()
    pair = f"user {rows.user_ids[user]}, item {rows.item_ids[item]}"
    raise UserError(f"{path}, row {second}: {pair} is in row {first} already: keep one of the two rows")
