"""Text files of ratings: read by pandas' C parser; whatever is wrong is named with its file and line."""

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
_ROWS = 1 << 16  # that pandas before 3.1 reads at a time: all at once would take three times the memory
_BUFFER = 1 << 20  # bytes
_UNIT = "\x1f"  # the control letter that ASCII has for a border between fields: no text holds it


@dataclass(frozen=True)
class Layout:
    """How rows stand in a text file: which fields matter, what separates them, what a value may be."""

    fields: tuple[int, ...] = (0, 1, 2)  # indices of the ids, then of the value if `valued`
    separator: str = ","
    header: int = 0  # lines before the first row
    encoding: str = "utf-8"
    names: tuple[str, ...] = ("user", "item", "rating")
    valued: bool = True  # the last field is a number, not an id
    scale: tuple[float, float] = (-np.inf, np.inf)
    step: float | None = None  # between two values of the scale, None where every number on it is one
    text_ids: bool = False
    quoted: bool = False
    escape: str | None = None  # the letter that takes a quote within quotes for itself


@dataclass(frozen=True)
class Rows:
    """The columns of a file as they stand in it."""

    file: File
    layout: Layout
    ids: tuple[Ids, ...]
    values: Floats | None
    numbers: Ints | None = None  # which of the file's rows these are, where some were left out

    def complain(self, row: int, what: str) -> NoReturn:
        """Raise an error that names the line of a row."""
        raise UserError(f"{self.file}, line {self.line_of(row)}: {what}")

    def line_of(self, row: int) -> int:
        """The number of the line that holds a row."""
        numbered = (number for number, _ in lines(self.file, self.layout.encoding) if number > self.layout.header)
        wanted = row if self.numbers is None else int(self.numbers[row])
        anyway = self.layout.header + wanted + 1  # where lines end otherwise than ours do
        return next((line for index, line in enumerate(numbered) if index == wanted), anyway)

    def take(self, kept: Ints) -> "Rows":
        """Some of a file's rows (their numbers, ascending), which still know their lines."""
        return replace(
            self,
            ids=tuple(column[kept] for column in self.ids),
            values=None if self.values is None else self.values[kept],
            numbers=kept if self.numbers is None else self.numbers[kept],
        )


class Watched(io.RawIOBase):
    """A stream of bytes that notices zeros, where the fields of pandas before 3.1 end without a word."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.zeros = False

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """The next bytes."""
        room = memoryview(buffer)
        piece = self.stream.read(len(room))
        room[: len(piece)] = piece
        self.zeros = self.zeros or b"\x00" in piece
        return len(piece)


def to_the_last_bit(version: str) -> dict[str, Any]:
    """What pandas needs to be told to read numbers exactly; from 3.1 on it does, and warns if it is told."""
    return {"float_precision": "round_trip"} if _is_old(version) else {}


def _is_old(version: str) -> bool:
    """Whether this is pandas before 3.1, which needs watching."""
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) < (3, 1)


def read(file: File, layout: Layout) -> Rows:
    """The rows of a file, every field checked."""
    import pandas  # noqa: PLC0415  slow to import, and needed once: what is parsed is cached

    try:
        columns = [_joined(pieces) for pieces in zip(*_pieces(file, layout), strict=True)]
    except pandas.errors.EmptyDataError:
        raise UserError(f"{file} holds no rows") from None
    except (ValueError, OverflowError) as error:  # what pandas found; where, we find out
        _diagnose(file, layout)
        raise UserError(f"{file} cannot be read: {' '.join(str(error).split())}") from error
    ids = tuple(columns[: len(_ids(layout))])
    if layout.text_ids and any((column == "").any() for column in ids):
        _diagnose(file, layout)
    rows = Rows(file, layout, ids, columns[-1] if layout.valued else None)
    _check_values(rows)
    return rows


def _joined(pieces: Sequence[Ids]) -> Ids:
    """One column."""
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _pieces(file: File, layout: Layout) -> Iterator[list[Ids]]:
    """The columns of so many rows at a time; what pandas might have read as something else is an error."""
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
                    raise ValueError("an id does not fit into 64 bits")  # which pandas before 3.1 does not say
                yield [
                    _as_text(column) if kinds[index] is str else column
                    for index, column in zip(layout.fields, columns, strict=True)
                ]
        if watched.zeros:
            _diagnose(file, layout)


def lines(file: File, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """The lines of a small file with their numbers, without line ends; blank ones are left out."""
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
    """The fields of each line of a small file with its number; too few fields are an error."""
    for number, text in lines(file, encoding):
        if number <= header:
            continue
        fields = next(csv.reader([text], delimiter=separator, escapechar=escape)) if quoted else text.split(separator)
        if len(fields) < least:
            raise UserError(f"{file}, line {number}: {len(fields)} fields where {least} are needed: {text[:60]!r}")
        yield number, fields


def identified(rows: Iterable[tuple[int, list[str]]], file: File) -> Iterator[tuple[int, list[str]]]:
    """The fields of each record with the id that stands first in it, instead of the line's number."""
    for number, fields in rows:
        if reason := _unreadable(fields[0], "id"):
            raise UserError(f"{file}, line {number}: id {fields[0]!r} {reason}")
        yield int(fields[0]), fields


def _ids(layout: Layout) -> tuple[int, ...]:
    return layout.fields[:-1] if layout.valued else layout.fields


def _one_letter(stream: IO[bytes], separator: str) -> IO[bytes]:
    """The same text with a separator of one letter, which is all the C parser takes."""
    if len(separator) == 1:
        return stream
    return io.BytesIO(stream.read().replace(separator.encode(), _UNIT.encode()))


def _as_text(column: Ids) -> Ids:
    """Text of fixed width, which needs no pickle to be stored."""
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
    """That a value is none of the scale, and what it must be."""
    must = f"must be {_in_words(*layout.scale)}" + (f" in steps of {layout.step:g}" if layout.step else "")
    return f"{layout.names[-1]} {value:g} is out of range: {must}"


def _in_words(low: float, high: float) -> str:
    """A scale that may be open at either end."""
    if np.isinf(low) and np.isinf(high):
        return "finite"
    if np.isinf(high):
        return f"at least {low:g}"
    return f"at most {high:g}" if np.isinf(low) else f"from {low:g} to {high:g}"


def _diagnose(file: File, layout: Layout) -> None:
    """Raise an error about the first line that is wrong, if a line is."""
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
    """Why a field cannot be what it should be."""
    if kind == "text":
        return "is empty" if not text else "holds a zero byte" if "\x00" in text else None
    try:
        if kind == "number":
            return "is no number" if "_" in text or np.isnan(float(text)) else None
        if "_" in text:  # which Python would take for a border between thousands
            return "is no whole number"
        return None if -_LARGEST - 1 <= int(text) <= _LARGEST else "does not fit into 64 bits"
    except ValueError:
        return "is no number" if kind == "number" else "is no whole number"
