"""Reading text files of ratings with pandas' C parser; errors name the file and the line."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from rankbench.contract import Floats, Ints
from rankbench.data.files import File
from rankbench.errors import UserError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Ids = np.ndarray[Any, Any]  # integers, or text
_LARGEST = np.iinfo(np.int64).max
_ROWS = 1 << 16  # rows per chunk with pandas before 3.1, which needs three times the memory without chunks
_BUFFER = 1 << 20  # bytes
_UNIT = "\x1f"  # the ASCII unit separator, which does not occur in text


@dataclass(frozen=True)
class Layout:
    """The layout of a text file: which fields to read, their separator, and the allowed values."""

    fields: tuple[int, ...] = (0, 1, 2)  # indices of the ids, then of the value if `valued`
    separator: str = ","
    header: int = 0  # number of lines before the first row
    encoding: str = "utf-8"
    names: tuple[str, ...] = ("user", "item", "rating")
    valued: bool = True  # the last field is a number, not an id
    scale: tuple[float, float] = (-np.inf, np.inf)
    step: float | None = None  # distance between allowed values; None: every number on the scale is allowed
    text_ids: bool = False
    quoted: bool = False
    escape: str | None = None  # the character that escapes a quote within quotes


@dataclass(frozen=True)
class Rows:
    """The columns of a file, in the file's order."""

    file: File
    layout: Layout
    ids: tuple[Ids, ...]
    values: Floats | None
    numbers: Ints | None = None  # the row numbers in the file, if some rows were left out

    def complain(self, row: int, what: str) -> NoReturn:
        """Raise an error that names the line of a row."""
        raise UserError(f"{self.file}, line {self.line_of(row)}: {what}")

    def line_of(self, row: int) -> int:
        """The line number of a row."""
        numbered = (number for number, _ in lines(self.file, self.layout.encoding) if number > self.layout.header)
        wanted = row if self.numbers is None else int(self.numbers[row])
        anyway = self.layout.header + wanted + 1  # a fallback for unusual line ends
        return next((line for index, line in enumerate(numbered) if index == wanted), anyway)

    def take(self, kept: Ints) -> "Rows":
        """The rows with these numbers (ascending), which keep their line numbers."""
        return replace(
            self,
            ids=tuple(column[kept] for column in self.ids),
            values=None if self.values is None else self.values[kept],
            numbers=kept if self.numbers is None else self.numbers[kept],
        )


class Watched(io.RawIOBase):
    """A stream of bytes that records whether it had zero bytes, which end a field silently in pandas before 3.1."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.zeros = False

    def readable(self) -> bool:
        """True: the stream can be read."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read the next bytes into the buffer; returns how many."""
        room = memoryview(buffer)
        piece = self.stream.read(len(room))
        room[: len(piece)] = piece
        self.zeros = self.zeros or b"\x00" in piece
        return len(piece)


def to_the_last_bit(version: str) -> dict[str, Any]:
    """The options that make pandas read numbers exactly; from 3.1 on that is the default, and the option warns."""
    return {"float_precision": "round_trip"} if _is_old(version) else {}


def _is_old(version: str) -> bool:
    """Whether a version of pandas is older than 3.1, which needs additional checks."""
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) < (3, 1)


def read(file: File, layout: Layout) -> Rows:
    """The rows of a file, with every field checked."""
    import pandas  # noqa: PLC0415  slow to import, and rarely needed because parsed data is cached

    try:
        columns = [_joined(pieces) for pieces in zip(*_pieces(file, layout), strict=True)]
    except pandas.errors.EmptyDataError:
        raise UserError(f"{file} holds no rows") from None
    except (ValueError, OverflowError) as error:  # pandas' error has no line number; `_diagnose` finds it
        _diagnose(file, layout)
        raise UserError(f"{file} cannot be read: {' '.join(str(error).split())}") from error
    ids = tuple(columns[: len(_ids(layout))])
    if layout.text_ids and any((column == "").any() for column in ids):
        _diagnose(file, layout)
    rows = Rows(file, layout, ids, columns[-1] if layout.valued else None)
    _check_values(rows)
    return rows


def _joined(pieces: Sequence[Ids]) -> Ids:
    """The pieces of a column as one array."""
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _pieces(file: File, layout: Layout) -> Iterator[list[Ids]]:
    """The columns, chunk by chunk; an error if pandas may have misread a field."""
    import pandas  # noqa: PLC0415

    kinds: dict[int, type] = {index: (str if layout.text_ids else np.int64) for index in _ids(layout)}
    if layout.valued:
        kinds[layout.fields[-1]] = np.float64
    with file.open() as stream:
        watched = Watched(stream)
        with pandas.read_csv(
            _one_letter(io.BufferedReader(watched, _BUFFER), layout.separator),
            sep=layout.separator if len(layout.separator) == 1 else _UNIT,
            header=None,
            skiprows=layout.header,
            usecols=list(layout.fields),
            dtype=kinds,
            encoding=layout.encoding,
            quoting=csv.QUOTE_MINIMAL if layout.quoted else csv.QUOTE_NONE,
            escapechar=layout.escape,
            na_filter=False,
            engine="c",
            iterator=True,
            chunksize=_ROWS if _is_old(pandas.__version__) else None,  # None reads all at once
            **to_the_last_bit(pandas.__version__),
        ) as frames:
            for frame in frames:
                columns = [frame[index].to_numpy() for index in layout.fields]
                if not layout.text_ids and any(column.dtype.kind != "i" for column in columns[: len(_ids(layout))]):
                    raise ValueError("an id does not fit into 64 bits")  # pandas before 3.1 does not notice
                yield [
                    _as_text(column) if kinds[index] is str else column
                    for index, column in zip(layout.fields, columns, strict=True)
                ]
        if watched.zeros:
            _diagnose(file, layout)


def lines(file: File, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """The lines of a small file as (number, text), without line ends and blank lines."""
    for number, line in enumerate(io.BytesIO(file.read()), start=1):
        try:
            text = line.decode(encoding).rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UserError(f"{file}, line {number}: not {encoding} (byte {error.object[error.start]:#04x})") from None
        if text.strip(" "):
            yield number, text


def records(
    file: File,
    separator: str,
    least: int,
    encoding: str = "utf-8",
    header: int = 0,
    quoted: bool = False,
    escape: str | None = None,
) -> Iterator[tuple[int, list[str]]]:
    """The lines of a small file as (number, fields); too few fields are an error."""
    for number, text in lines(file, encoding):
        if number <= header:
            continue
        fields = next(csv.reader([text], delimiter=separator, escapechar=escape)) if quoted else text.split(separator)
        if len(fields) < least:
            raise UserError(f"{file}, line {number}: {len(fields)} fields where {least} are needed: {text[:60]!r}")
        yield number, fields


def identified(rows: Iterable[tuple[int, list[str]]], file: File) -> Iterator[tuple[int, list[str]]]:
    """The records as (id, fields), where the id is the first field."""
    for number, fields in rows:
        if reason := _unreadable(fields[0], "id"):
            raise UserError(f"{file}, line {number}: id {fields[0]!r} {reason}")
        yield int(fields[0]), fields


def _ids(layout: Layout) -> tuple[int, ...]:
    return layout.fields[:-1] if layout.valued else layout.fields


def _one_letter(stream: IO[bytes], separator: str) -> IO[bytes]:
    """The stream with its separator replaced by a single character, the only kind that the C parser accepts."""
    if len(separator) == 1:
        return stream
    return io.BytesIO(stream.read().replace(separator.encode(), _UNIT.encode()))


def _as_text(column: Ids) -> Ids:
    """A column as fixed-width text, which can be stored without pickle."""
    return np.asarray(column, dtype=np.str_)


def _check_values(rows: Rows) -> None:
    if rows.values is None:
        return
    low, high = rows.layout.scale
    right = (rows.values >= low) & (rows.values <= high) & np.isfinite(rows.values)
    if step := rows.layout.step:
        right &= np.rint(rows.values / step) * step == rows.values
    if not right.all():
        row = int(np.argmin(right))
        rows.complain(row, _out_of_range(rows.values[row], rows.layout))


def _out_of_range(value: float, layout: Layout) -> str:
    """The error text for a value that is not on the scale."""
    must = f"must be {_in_words(*layout.scale)}" + (f" in steps of {layout.step:g}" if layout.step else "")
    return f"{layout.names[-1]} {value:g} is out of range: {must}"


def _in_words(low: float, high: float) -> str:
    """A scale as text; either end may be infinite."""
    if np.isinf(low) and np.isinf(high):
        return "finite"
    if np.isinf(high):
        return f"at least {low:g}"
    return f"at most {high:g}" if np.isinf(low) else f"from {low:g} to {high:g}"


def _diagnose(file: File, layout: Layout) -> None:
    """Raise an error about the first wrong line, if there is one."""
    least = max(layout.fields) + 1
    how = (layout.encoding, layout.header, layout.quoted, layout.escape)
    for number, fields in records(file, layout.separator, least, *how):
        for name, index in zip(layout.names, layout.fields, strict=True):
            is_value = layout.valued and index == layout.fields[-1]
            if reason := _unreadable(fields[index], "number" if is_value else "text" if layout.text_ids else "id"):
                raise UserError(f"{file}, line {number}: {name} {fields[index]!r} {reason}")
            if is_value and np.isinf(float(fields[index])):
                raise UserError(f"{file}, line {number}: {_out_of_range(float(fields[index]), layout)}")


def _unreadable(text: str, kind: Literal["number", "id", "text"]) -> str | None:
    """Why a field is not a valid number, id or text; None if it is valid."""
    if kind == "text":
        return "is empty" if not text else "holds a zero byte" if "\x00" in text else None
    try:
        if kind == "number":
            return "is no number" if "_" in text or np.isnan(float(text)) else None
        if "_" in text:  # Python would accept it as a thousands separator
            return "is no whole number"
        return None if -_LARGEST - 1 <= int(text) <= _LARGEST else "does not fit into 64 bits"
    except ValueError:
        return "is no number" if kind == "number" else "is no whole number"
