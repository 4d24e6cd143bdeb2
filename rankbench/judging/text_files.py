"""Text files of runs and truths: TREC's runs and qrels, RecBole's files and CSV, read by pandas' C parser in blocks."""

import csv
import gzip
import io
import os
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from rankbench.core import regular
from rankbench.core.errors import UserError
from rankbench.judging.blocks import ROWS, Block, column_of
from rankbench.judging.columns import Columns, Role, is_header, is_number, named_columns, usual_columns

if TYPE_CHECKING:
    import pandas
    from _typeshed import WriteableBuffer

_QUOTED = (",", ";")  # separators that may stand inside a field in quotes
_SEPARATORS = ("\t", *_QUOTED)
_SPACES = r"\s+"
_NO_NUMBERS = ("", "nan", "NaN", "NA", "null")
_SEEN = 32  # lines at the start that say how a file is laid out


@dataclass(frozen=True)
class TextLayout:
    """How a text file is laid out."""

    separator: str
    header: int  # lines before the first row
    first: tuple[str, ...]  # the fields of its first line
    columns: Columns


@dataclass(frozen=True)
class TextFile:
    """A text file, what it is called in messages, and the user's own names of columns."""

    path: Path
    called: str
    given: Mapping[str, str]

    def layout(self, role: Role) -> TextLayout:
        """Its layout, by its first lines."""
        lines = first_lines(self.path, self.called, _SEEN)
        place = next((number for number, line in enumerate(lines) if line.strip()), None)
        if place is None:
            raise UserError(f"{self.called} is empty", remedy="give it a row for each user and item")
        line = lines[place]
        separator = next((one for one in _SEPARATORS if one in line), _SPACES)
        first = tuple(_fields(line, separator))
        if self.given or is_header(first):
            return TextLayout(separator, place + 1, first, named_columns(first, role, self.given, self.called))
        return TextLayout(separator, 0, first, usual_columns(first, role, self.called))

    def blocks(self, role: Role) -> Iterator[tuple[Block, Columns]]:
        """Its rows in blocks, and the columns that they are from."""
        layout = self.layout(role)
        yield from ((_block(frame, layout.columns), layout.columns) for frame in self._frames(layout))

    def line_of(self, row: int, role: Role) -> int:
        """The number of the line of this row, both counted from the start, lines from 1."""
        header = self.layout(role).header
        with opened(self.path) as stream:
            lines = (number for number, line in enumerate(stream, 1) if number > header and line.strip())
            return next(islice(lines, row, None), header + row + 1)

    def _frames(self, layout: TextLayout) -> "Iterator[pandas.DataFrame]":
        """The columns by their places, in blocks."""
        import pandas  # noqa: PLC0415  slow to import

        read: Any = pandas.read_csv  # whose stubs do not know all that it takes
        texts = (layout.columns.user, layout.columns.item)
        numbers = () if layout.columns.value is None else (layout.columns.value,)
        types: dict[int, Any] = dict.fromkeys(texts, object) | dict.fromkeys(numbers, np.float64)
        quoting: Literal[0, 3] = 0 if layout.separator in _QUOTED else 3
        rows = 0
        with opened(self.path) as stream:
            counted = _Counted(stream, layout.separator)
            try:
                for frame in read(
                    io.BufferedReader(counted), sep=layout.separator, header=None, skiprows=layout.header,
                    names=range(len(layout.first)), usecols=[*texts, *numbers], dtype=types, chunksize=ROWS,
                    keep_default_na=False, na_values={place: list(_NO_NUMBERS) for place in numbers}, index_col=False,
                    engine="c", encoding="utf-8-sig", quoting=quoting,
                ):  # fmt: skip
                    yield frame
                    rows += len(frame)
            except (ValueError, OSError) as error:
                raise self._unreadable(layout, error) from None
            if counted.beyond((rows + layout.header) * (len(layout.first) - 1)):
                raise self._unreadable(layout, ValueError("a line has more fields than the first one"))

    def _unreadable(self, layout: TextLayout, error: Exception) -> UserError:
        """Where the file cannot be read, found by reading its lines one by one."""
        value = layout.columns.value
        with opened(self.path) as stream:
            try:
                for number, line in enumerate(stream, 1):
                    if number <= layout.header or not line.strip():
                        continue
                    fields = _fields(line.decode("utf-8", "replace").rstrip("\r\n"), layout.separator)
                    where = f"{self.called}, line {number}"
                    if len(fields) > len(layout.first):
                        return UserError(f"{where} has {len(fields)} fields, not {len(layout.first)}")
                    if value is not None and not is_number("".join(fields[value : value + 1]).strip('" ')):
                        seen = "".join(fields[value : value + 1]).strip()[:60]
                        return UserError(f"{where}: {seen!r} is no number")
            except OSError as broken:
                error = broken
        return UserError(f"{self.called} cannot be read: {error}")


def _fields(line: str, separator: str) -> list[str]:
    """The fields of a line, as pandas reads them."""
    if separator == _SPACES:
        return line.split()
    if separator not in _QUOTED or '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator))
    except csv.Error:  # as of a field that is longer than the reader takes
        return line.split(separator)


class _Counted(io.RawIOBase):
    """A stream of bytes that counts separators, since pandas passes over fields that a line has too many."""

    def __init__(self, stream: IO[bytes], separator: str) -> None:
        self._stream = stream
        self._separator = separator.encode()
        self._separators = 0
        self._quotes = len(self._separator) > 1

    def readable(self) -> bool:
        """True: the stream can be read."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read the next bytes into the buffer; returns how many."""
        room = memoryview(buffer)
        piece = self._stream.read(len(room))
        self._separators += piece.count(self._separator)
        self._quotes = self._quotes or b'"' in piece
        room[: len(piece)] = piece
        return len(piece)

    def beyond(self, most: int) -> bool:
        """Whether there were more separators than so many; unknown, so no, where some may be quoted."""
        return not self._quotes and self._separators > most


def opened(path: Path) -> IO[bytes]:
    """The file's bytes, unpacked if it is packed by gzip."""
    try:
        stream = regular.opened(path)
        packed = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    return io.BufferedReader(_Unpacked(fileobj=stream)) if packed else stream


class _Unpacked(gzip.GzipFile):
    """A packed file whose damage is an error of the file, in whatever way it is noticed."""

    def read(self, size: int | None = -1) -> bytes:
        """Read up to so many bytes, or all."""
        try:
            return super().read(size)
        except (EOFError, zlib.error) as error:
            raise gzip.BadGzipFile(str(error)) from None


def check_file(path: Path) -> None:
    """Refuse a path that is no file, also one whose name is longer than a system allows."""
    if not os.path.isfile(path):
        raise UserError(f"{path} is no file" if os.path.exists(path) else f"{path} is not here")


def first_lines(path: Path, called: str, count: int) -> list[str]:
    """The first lines of a text file, without their ends."""
    with opened(path) as stream:
        try:
            return [line.decode("utf-8-sig").rstrip("\r\n") for line in islice(stream, count)]
        except (UnicodeDecodeError, OSError) as error:
            raise UserError(f"{called} is no text: {error}", remedy="save it as UTF-8") from None


def json_in(path: Path, called: str) -> Any:
    """What a JSON file holds; of a file with a record on each line, the list of them."""
    with opened(path) as stream:
        try:
            content = stream.read().removeprefix(BOM_UTF8)
        except OSError as error:
            raise UserError(f"{called} cannot be read: {error}") from None
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError as whole:
        try:
            return [msgspec.json.decode(line) for line in content.splitlines() if line.strip()]
        except msgspec.DecodeError:
            raise UserError(f"{called} is no JSON: {whole}") from None


def opens_with(path: Path, letters: bytes) -> bool:
    """Whether the first letter that is no space is one of these; what cannot be read is left to its reader."""
    try:
        with opened(path) as stream:
            first = stream.read(64).removeprefix(BOM_UTF8).lstrip()[:1]
            return first in {letters[place : place + 1] for place in range(len(letters))}
    except OSError:
        return False


def _block(frame: "pandas.DataFrame", columns: Columns) -> Block:
    """A block of a DataFrame whose columns are places."""
    from pandas import factorize  # noqa: PLC0415  slow to import

    values = np.ones(len(frame)) if columns.value is None else frame[columns.value].to_numpy(np.float64)
    users, items = (column_of(*factorize(frame[place])) for place in (columns.user, columns.item))
    return Block(users, items, values)
