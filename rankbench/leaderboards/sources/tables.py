"""Tables of votes: their columns as texts with the number of each row's, or as numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankbench.core.contract import Floats, Int32s
from rankbench.core.errors import UserError
from rankbench.judging.sources import Source, as_pandas, numbers_of, parquet_file
from rankbench.judging.text_files import check_file, first_lines, json_in, opened, opens_with
from rankbench.leaderboards.votes import Names

if TYPE_CHECKING:
    import pandas

_SEPARATORS = ("\t", ",", ";", "|")


@dataclass(frozen=True, eq=False)
class Column:
    """A column of texts: the distinct ones, and the number of each row's, below 0 where it is missing."""

    role: str
    names: Names
    codes: Int32s


@dataclass(frozen=True, eq=False)
class Table:
    """A table, what it is called in messages, and what its rows are called."""

    frame: "pandas.DataFrame"
    called: str
    first: int = 1  # the number of the first row in messages
    row: str = "row"
    as_written: Callable[[int], Any] | None = None  # a column by its place, of a file whose numbers pandas has read

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [str(name) for name in self.frame.columns]

    @property
    def rows(self) -> int:
        """The number of its rows."""
        return len(self.frame)

    def place(self, row: int) -> str:
        """Where a row is, counted from 0."""
        return f"{self.called}, {self.row} {row + self.first}"

    def texts(self, name: str, role: str) -> Column:
        """A column as texts without blanks at the ends; equal texts are one."""
        import pandas  # noqa: PLC0415  slow to import

        values = self._column(name)
        if isinstance(values.dtype, pandas.CategoricalDtype):
            if self.as_written and pandas.api.types.is_numeric_dtype(values.cat.categories):
                values = self.as_written(self.names.index(name))  # 01 and 1 are two ids, which pandas takes for one
        if isinstance(values.dtype, pandas.CategoricalDtype):
            codes, found = values.cat.codes.to_numpy(), values.cat.categories
            used = np.zeros(len(found) + 1, bool)
            used[codes] = True  # a missing value has the code -1
            found, places = found[used[:-1]], np.cumsum(used[:-1]) - 1
            codes = np.append(places, -1)[codes]
        else:
            codes, found = pandas.factorize(values)
        names, places = np.unique(np.array([_text(value) for value in found], str), return_inverse=True)
        numbers = np.append(places, -1).astype(np.int32)[codes]
        return Column(role, names.astype(object), numbers)

    def numbers(self, name: str) -> Floats:
        """A column as numbers, NaN where it has none."""
        import pandas  # noqa: PLC0415  slow to import

        values = self._column(name)
        return numbers_of(values.astype(object) if isinstance(values.dtype, pandas.CategoricalDtype) else values)

    def _column(self, name: str) -> "pandas.Series[Any]":
        if name not in self.names:
            raise UserError(f"{self.called} has no column {name!r}", remedy=f"it has {', '.join(self.names)}")
        return self.frame.iloc[:, self.names.index(name)]


def table_of(source: Source, called: str) -> Table:
    """The table of a source: a text file, Parquet, JSON or a DataFrame."""
    data = source.data
    if not isinstance(data, Path):
        return Table(as_pandas(source), called)
    check_file(data)
    if data.suffix.lower() in (".parquet", ".pq"):
        return Table(parquet_file(source).read().to_pandas(), called)
    if opens_with(data, b"{["):
        return Table(_of_json(data, called), called)
    separator = _separator(data, called)

    def as_written(place: int) -> Any:
        column: Any = _of_text(data, called, separator, usecols=[place], dtype=object).iloc[:, 0]
        return column

    return Table(_of_text(data, called, separator, dtype="category"), called, 2, "line", as_written)


def _separator(path: Path, called: str) -> str:
    """What separates the columns of a text file: the usual one that its heading has most of."""
    heading, *_ = first_lines(path, called, 2) or [""]  # the row below shows whether it is a text, too
    if not heading.strip():
        raise UserError(f"{called} has no heading", remedy="name the columns in its first line")
    return max(_SEPARATORS, key=heading.count)


def _of_text(path: Path, called: str, separator: str, **how: Any) -> "pandas.DataFrame":
    """A CSV file with a heading."""
    import pandas  # noqa: PLC0415  slow to import

    with opened(path) as stream:
        try:
            frame = pandas.read_csv(
                stream, sep=separator, keep_default_na=False, na_values=[""], encoding="utf-8-sig", engine="c",
                skipinitialspace=True, **how,
            )  # fmt: skip
        except UnicodeDecodeError as error:
            raise UserError(f"{called} is no text: {error}", remedy="save it as UTF-8") from None
        except (ValueError, OSError) as error:
            raise UserError(f"{called} cannot be read: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(frame.index, pandas.RangeIndex):  # pandas takes what is too much for an index
        raise UserError(f"{called} cannot be read: its lines have more fields than its heading")
    read: pandas.DataFrame = frame
    return read


def _of_json(path: Path, called: str) -> "pandas.DataFrame":
    """A list of records, or a record on each line."""
    import pandas  # noqa: PLC0415  slow to import

    records = json_in(path, called)
    if not isinstance(records, list) or not records or not all(isinstance(one, dict) for one in records):
        raise UserError(
            f"{called} holds no list of records", remedy='write [{"left": ..., "right": ..., "winner": ...}]'
        )
    flat = (int, float, str, bool, type(None))
    return pandas.DataFrame([{key: value for key, value in one.items() if isinstance(value, flat)} for one in records])


def _text(value: Any) -> str:
    """A value as a text: 3.0 as 3, since tools write whole numbers in both ways."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()
