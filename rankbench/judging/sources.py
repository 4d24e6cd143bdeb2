"""Reading runs and truths of other tools in blocks: text, Parquet, JSON, NumPy files, and objects of Python."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
import scipy.sparse

from rankbench.arrays.frames import pandas_of
from rankbench.core.contract import Flags, Floats
from rankbench.core.errors import UserError
from rankbench.judging.blocks import ROWS, Block, Column, Ids, column_of
from rankbench.judging.columns import Columns, Role, has_truth, named_columns
from rankbench.judging.text_files import TextFile, check_file, json_in, opens_with
from rankbench.names.grammar import parse

if TYPE_CHECKING:
    import pandas

_CELLS = 1 << 22  # numbers of a matrix in a block
_LISTS = 1 << 14  # lists of users in a block
_BY_ENDING = {".parquet": "parquet", ".pq": "parquet", ".json": "json", ".npy": "npy", ".npz": "npz"}
_IDS = ("users", "items")  # the arrays of ids in a .npz file, beside its scores


@dataclass(frozen=True)
class Source:
    """A run or a truth: where it is, what it is called in messages, and how its columns are named."""

    data: Any  # the path of a file, or an object of Python
    called: str
    given: Mapping[str, str]

    @classmethod
    def of(cls, data: Any, name: str = "") -> "Source":
        """The source of a path, with settings in brackets if columns have names of their own, or of an object."""
        if not isinstance(data, str | Path):
            return cls(data, f"{name!r}" if name else "the truth", {})
        text = str(data)
        if os.path.exists(text) or not text.endswith("]"):
            return cls(Path(text), text, {})
        spec = parse(text)
        return cls(Path(spec.name), spec.name, {key: str(value) for key, value in spec.settings.items()})

    def has_truth(self) -> bool:
        """Whether it holds relevances beside its scores."""
        kind = _kind(self)
        if kind == "frame":
            return has_truth([str(name) for name in as_pandas(self).columns], self.given)
        if kind == "parquet":
            schema = parquet_file(self).schema_arrow
            return has_truth(_names_in(schema, _nested_in(schema)), self.given)
        if kind == "text":
            layout = self.text.layout("run")
            return bool(layout.header) and has_truth(layout.first, self.given)
        return False

    def blocks(self, role: Role) -> Iterator[Block]:
        """Its rows in blocks; ranks become scores that fall with them, and every number is checked."""
        start = 0
        for block, columns in _READERS[_kind(self)](self, role):
            self._check(block, start, role)
            yield Block(block.users, block.items, -block.values) if columns.ranks else block
            start += len(block)
        if not start:
            raise UserError(f"{self.called} is empty", remedy="give it a row for each user and item")

    def place(self, row: int, role: Role) -> str:
        """Where the row with this number is, counted from 0."""
        if _kind(self) != "text":
            return f"{self.called}, row {row + 1}"
        return f"{self.called}, line {self.text.line_of(row, role)}"

    @property
    def text(self) -> TextFile:
        """Its text file."""
        return TextFile(self.data, self.called, self.given)

    def _check(self, block: Block, start: int, role: Role) -> None:
        """Refuse ids that are missing, and numbers that are none."""
        for what, column in (("user", block.users), ("item", block.items)):
            empty = (column.names == "")[column.codes]
            if empty.any():
                raise UserError(f"{self.place(start + int(empty.argmax()), role)}: the {what} is missing")
        bad = np.isnan(block.values) if role == "run" else ~np.isfinite(block.values)
        if bad.any():
            what = "score" if role == "run" else "relevance"
            row = start + int(bad.argmax())
            raise UserError(
                f"{self.place(row, role)}: its {what} is missing or no number",
                remedy="leave the row out, or give it a number",
            )


_Read = Iterator[tuple[Block, Columns]]


def _kind(source: Source) -> str:
    """Which reader a source needs."""
    data = source.data
    if isinstance(data, Path):
        check_file(data)
        kind = _BY_ENDING.get(data.suffix.lower(), "text")
        return "json" if kind == "text" and opens_with(data, b"{[") else kind
    if isinstance(data, np.ndarray) or scipy.sparse.issparse(data):  # one kind of which is a dictionary
        return "matrix"
    return "nested" if isinstance(data, Mapping) else "frame"


def _frame(source: Source, role: Role) -> _Read:
    """The rows of a table that Python hands over: of pandas, or of anything that becomes one."""
    frame = as_pandas(source)
    columns = named_columns([str(name) for name in frame.columns], role, source.given, source.called)
    values = np.ones(len(frame)) if columns.value is None else numbers_of(frame.iloc[:, columns.value])
    users, items = (_of_objects(source, frame.iloc[:, place]) for place in (columns.user, columns.item))
    yield Block(users, items, values), columns


def as_pandas(source: Source) -> "pandas.DataFrame":
    """A table as a DataFrame of pandas; an error if it is none."""
    frame = pandas_of(source.data)
    if frame is None:
        remedy = "give a DataFrame, a dictionary by user and item, a matrix, or the path of a file"
        raise UserError(f"{source.called} is a {type(source.data).__name__}, which holds no scores", remedy=remedy)
    return frame


def numbers_of(values: "pandas.Series[Any]") -> Floats:
    """A column as numbers, NaN where it has none."""
    import pandas  # noqa: PLC0415  slow to import

    found: Floats = pandas.to_numeric(values, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    return found


def _of_objects(source: Source, ids: "pandas.Series[Any]") -> Column:
    """The ids of a column as texts: 1 and "1" are one id, and 1.0 is refused, since tools write it in both ways."""
    import pandas  # noqa: PLC0415  slow to import

    try:
        found, names = pandas.factorize(ids)
    except TypeError:
        raise UserError(f"{source.called}: column {ids.name!r} holds lists or dictionaries, which are no ids") from None
    kinds = {type(name) for name in names}
    if any(issubclass(kind, float | np.floating) for kind in kinds):
        raise UserError(
            f"{source.called}: the ids in column {ids.name!r} are decimal numbers such as {names[0]}",
            remedy="make them integers or texts: frame.astype({...: 'Int64'})",
        )
    if len({issubclass(kind, str) for kind in kinds}) > 1:
        raise UserError(
            f"{source.called}: the ids in column {ids.name!r} are partly texts and partly numbers, so that 1 and '1' "
            "could be two",
            remedy="make them all texts: frame.astype({...: str})",
        )
    return column_of(found, names)


def parquet_file(source: Source) -> Any:
    """The Parquet file of a source, opened by pyarrow."""
    try:
        import pyarrow.parquet  # noqa: PLC0415  optional
    except ImportError:
        raise UserError("reading Parquet needs pyarrow", remedy='pip install "rankbench[parquet]"') from None
    try:
        return pyarrow.parquet.ParquetFile(source.data)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise UserError(f"{source.called} is no Parquet file: {str(error)[:200]}") from None


def _of_parquet(source: Source, role: Role) -> _Read:
    """The rows of a Parquet file, or of one with a list of items for each user, as LensKit writes it."""
    file = parquet_file(source)
    lists = _nested_in(file.schema_arrow)
    names = _names_in(file.schema_arrow, lists)
    columns = named_columns(names, role, source.given, source.called)
    wanted = [names[place] for place in (columns.user, columns.item, columns.value) if place is not None]
    chosen = dict(columns=wanted) if lists is None else dict(batch_size=_LISTS)
    for batch in file.iter_batches(**{"batch_size": ROWS, **chosen}):
        table = batch if lists is None else _rows_of_lists(batch, lists)
        users, items = (_of_objects(source, table.column(name).to_pandas().rename(name)) for name in wanted[:2])
        known = columns.value is not None
        values = numbers_of(table.column(wanted[2]).to_pandas()) if known else np.ones(len(users.codes))
        yield Block(users, items, values), columns


def _nested_in(schema: Any) -> str | None:
    """The column that holds a list of records, if there is one."""
    from pyarrow import types  # noqa: PLC0415  optional

    lists = (one for one in schema if types.is_list(one.type) or types.is_large_list(one.type))
    return next((one.name for one in lists if types.is_struct(one.type.value_type)), None)


def _names_in(schema: Any, lists: str | None) -> list[str]:
    """The names of the columns, those of a list's records in place of the list."""
    if lists is None:
        return list(schema.names)
    record = schema.field(lists).type.value_type
    inner = [record.field(place).name for place in range(record.num_fields)]
    return [*(name for name in schema.names if name != lists), *inner]


def _rows_of_lists(batch: Any, lists: str) -> Any:
    """A row for each record of the lists, with the other columns of its list."""
    from pyarrow import RecordBatch, compute  # noqa: PLC0415  optional

    column = batch.column(lists)
    rows, records = compute.list_parent_indices(column), compute.list_flatten(column)
    others = {name: batch.column(name).take(rows) for name in batch.schema.names if name != lists}
    return RecordBatch.from_pydict({**others, **dict(zip(records.type.names, records.flatten(), strict=True))})


def _of_json(source: Source, role: Role) -> _Read:
    """A JSON file: ranx's table by user and item, or a list of records, also one to a line."""
    decoded = json_in(source.data, source.called)
    if isinstance(decoded, dict) and all(isinstance(one, dict) for one in decoded.values()):
        yield from _nested(Source(decoded, source.called, source.given), role)
    elif isinstance(decoded, list) and decoded and all(isinstance(one, dict) for one in decoded):
        import pandas  # noqa: PLC0415  slow to import

        yield from _frame(Source(pandas.DataFrame(decoded), source.called, source.given), role)
    elif decoded:
        remedy = "write it as ranx does: {user: {item: score}}, or as a list of records with user, item and score"
        raise UserError(f"{source.called} holds no scores by user and item", remedy=remedy)


def _nested(source: Source, role: Role) -> _Read:
    """A dictionary of scores by user and item."""
    data = source.data
    if not all(isinstance(own, Mapping) for own in data.values()):
        raise UserError(f"{source.called} is no dictionary of dictionaries", remedy="write {user: {item: score}}")
    users = np.array([str(user) for user in data], object)
    if len(set(users)) < len(users):
        raise UserError(f"{source.called} has users that are equal as texts, such as 1 and '1'")
    counts = [len(own) for own in data.values()]
    known: dict[str, int] = {}
    codes = np.fromiter((known.setdefault(str(item), len(known)) for own in data.values() for item in own), np.int32)
    try:
        values = np.array([value for own in data.values() for value in own.values()], np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{source.called} has scores that are no numbers") from None
    owners = np.repeat(np.arange(len(users), dtype=np.int32), counts)
    yield Block(Column(users, owners), Column(np.array(list(known), object), codes), values), Columns(0, 1, 2)


def _matrix(source: Source, role: Role, ids: Mapping[str, Ids] = MappingProxyType({})) -> _Read:
    """A matrix of users and items, sparse or with NaN where there is no score; ids not given are numbers from 0."""
    data = source.data
    if data.ndim != 2:
        raise UserError(f"{source.called} has {data.ndim} dimensions, not users x items")
    if data.dtype.kind not in "iufb":
        raise UserError(f"{source.called} holds {data.dtype}, not numbers")
    sizes = zip(_IDS, data.shape, strict=True)
    users, items = (ids.get(name, np.arange(size).astype(str).astype(object)) for name, size in sizes)
    if data.shape != (len(users), len(items)):
        known = f"{len(users)} users and {len(items)} items"
        raise UserError(f"{source.called} is {data.shape[0]} x {data.shape[1]}, with ids of {known}")
    step = max(1, _CELLS // max(1, data.shape[1]))
    data = data.tocsr() if scipy.sparse.issparse(data) else data  # whose rows can be taken, unlike those of others
    for low in range(0, data.shape[0], step):
        if scipy.sparse.issparse(data):
            piece = scipy.sparse.coo_array(data[low : low + step])
            rows, columns, values = piece.row, piece.col, piece.data.astype(np.float64)
        else:
            dense = np.asarray(data[low : low + step], np.float64)
            there: Flags = ~np.isnan(dense)
            (rows, columns), values = np.nonzero(there), dense[there]
        codes = rows.astype(np.int32), columns.astype(np.int32)
        yield Block(Column(users[low : low + step], codes[0]), Column(items, codes[1]), values), Columns(0, 1, 2)


def _numpy(source: Source, role: Role) -> _Read:
    """A matrix in a .npy file, which is read in blocks."""
    try:
        data = np.load(source.data, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{source.called} is no array of numbers: {str(error)[:200]}") from None
    yield from _matrix(Source(data, source.called, source.given), role)


def _archive(source: Source, role: Role) -> _Read:
    """A .npz file: a sparse matrix of SciPy, or one matrix, with the ids in `users` and `items` if it has them."""
    try:
        with np.load(source.data, allow_pickle=False) as stored:
            if "format" in stored.files:
                data, ids = scipy.sparse.load_npz(source.data), {}
            else:
                ids = {name: stored[name].astype(str).astype(object) for name in _IDS if name in stored.files}
                others = [name for name in stored.files if name not in _IDS]
                if len(others) != 1 or stored[others[0]].ndim != 2:
                    remedy = "store one matrix, and the ids as `users` and `items`"
                    raise UserError(f"{source.called} holds {', '.join(stored.files) or 'nothing'}", remedy=remedy)
                data = stored[others[0]]
    except UserError:
        raise
    except (OSError, ValueError, EOFError, KeyError, BadZipFile) as error:
        raise UserError(f"{source.called} is no archive of arrays: {str(error)[:200]}") from None
    yield from _matrix(Source(data, source.called, source.given), role, ids)


_READERS = {
    "text": lambda source, role: source.text.blocks(role),
    "parquet": _of_parquet,
    "json": _of_json,
    "npy": _numpy,
    "npz": _archive,
    "nested": _nested,
    "matrix": _matrix,
    "frame": _frame,
}
