"""Reading text files of ratings, with every field checked; errors name the file and the line."""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import NoReturn

import numpy as np

from rankbench.core.contract import Flags, Floats, Int64s, Ints
from rankbench.core.errors import UserError
from rankbench.data.files import File
from rankbench.data.tables.cells import MISSING, counted, has_decimal_comma
from rankbench.data.tables.fields import unreadable
from rankbench.data.tables.layout import Layout, out_of_range
from rankbench.data.tables.parsing import NoRows, parsed
from rankbench.data.tables.plain import plain_start
from rankbench.data.tables.texts import Column, joined
from rankbench.data.tables.watched import Seen

_BLOCK = 1 << 15  # values that are checked together
_PIECE = 1 << 16  # bytes of a file that is read by lines, of which often only the first are wanted
_LONGEST_LINE = 1 << 22  # bytes
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_LF, _CR = b"\n\r"
_BLANKS = b" \r\n"
_IS_TEXT = np.array([byte not in _BLANKS for byte in range(256)])
_FULL = 4  # bytes of the shortest row, `1,2` with its end: where lines are shorter on average, most are blank


@dataclass(frozen=True)
class Rows:
    """The columns of a file, in the file's order."""

    file: File
    layout: Layout
    ids: tuple[Column, ...]
    values: Floats | None
    numbers: Ints | None = None  # the row numbers in the file, if some rows were left out
    padded: bool = False  # a number of the file, perhaps an id, may have leading zeros
    times: Int64s | None = None  # as in the file; of dates, microseconds since 1970
    dropped: int = 0  # how many rows were left out because their value or an id is missing

    def complain(self, row: int, what: str) -> NoReturn:
        """Raise an error that names the line of a row."""
        raise UserError(f"{self.file}, line {self.line_of(row)}: {what}")

    def line_of(self, row: int) -> int:
        """The line number of a row."""
        numbered = (number for number, _ in records_in(self.file, self.layout))
        wanted = row if self.numbers is None else int(self.numbers[row])
        anyway = self.layout.header + wanted + 1  # a fallback for unusual line ends
        return next((line for index, line in enumerate(numbered) if index == wanted), anyway)

    def followed_by(self, later: "Rows") -> tuple["Rows", Ints]:
        """The rows of two files as one, and the fold of each: 0 in the first file, 1 in the second."""
        assert self.values is not None and later.values is not None
        ids = tuple(joined(columns) for columns in zip(self.ids, later.ids, strict=True))
        folds = np.repeat(np.array([0, 1], np.int8), [len(self.values), len(later.values)])
        return Rows(later.file, later.layout, ids, np.concatenate([self.values, later.values])), folds

    def take(self, kept: Ints) -> "Rows":
        """The rows with these numbers (ascending), which keep their line numbers."""
        return replace(
            self,
            ids=tuple(column[kept] for column in self.ids),
            values=None if self.values is None else self.values[kept],
            numbers=kept if self.numbers is None else self.numbers[kept],
            times=None if self.times is None else self.times[kept],
        )


class Unexplained(UserError):
    """A file cannot be read, but no id and no value of it is wrong, as far as that was asked."""


def read(file: File, layout: Layout, explain: bool = True) -> Rows:
    """The rows of a file, with every field checked; without times if one is missing or cannot be read.

    To `explain` why a file cannot be read all of its lines are looked at one by one.
    """
    if layout.time is not None and _has_field(file, layout, layout.time):
        try:
            return _read(file, layout, explain)
        except Unexplained:
            pass  # perhaps a time is wrong; if more is, the error is raised below
    return _read(file, replace(layout, time=None), explain)


def _has_field(file: File, layout: Layout, field: int) -> bool:
    """Whether the first row of a file has a field with this number."""
    return any(len(fields) > field for _, fields in islice(records_in(file, layout), 1))


def _read(file: File, layout: Layout, explain: bool) -> Rows:
    """The rows of a file, with every field checked, times too."""
    try:
        columns, seen = parsed(file, layout)
        _check_all(file, layout, seen, len(columns[0]))
    except UserError:
        raise  # it names the line already
    except (ValueError, OverflowError) as error:  # pandas' error has no line number; `_diagnose` finds it
        if explain:
            _diagnose(file, layout)
        if isinstance(error, NoRows):
            raise UserError(f"{file} holds no rows") from None
        raise Unexplained(f"{file} cannot be read: {' '.join(str(error).split())}") from error
    ids = tuple(columns[: len(layout.of_ids)])
    whole = np.logical_and.reduce([column.is_filled for column in ids]) if layout.text_ids else np.True_
    if not layout.drop_missing and not whole.all():
        _diagnose(file, layout)
    values = columns[len(layout.fields) - 1] if layout.valued else None
    times = None if layout.time is None else columns[-1]
    rows = Rows(file, layout, ids, values, padded=seen.padded, times=times)
    if layout.drop_missing:
        kept = whole if values is None else whole & ~np.isnan(values)
        if not kept.all():
            rows = replace(rows.take(np.flatnonzero(kept)), dropped=int(np.sum(~kept)))
    _check_values(rows)
    return rows


def _check_all(file: File, layout: Layout, seen: Seen, rows: int) -> None:
    """Raise an error about the first wrong line if the bytes that were read had something that pandas passes over."""
    if seen.zeros or seen.controls:
        _diagnose(file, layout)
    if layout.width and not seen.quotes and seen.separators != (layout.width - 1) * (rows + 1):
        for number, fields in records_in(file, layout, layout.width):
            if len(fields) > layout.width:
                raise UserError(
                    f"{file}, line {number}: {len(fields)} fields where the header has {layout.width}: "
                    "put a field that holds the separator in quotes"
                )


def lines(
    file: File, encoding: str = "utf-8", strict: bool = False, start: tuple[int, int] = (0, 0)
) -> Iterator[tuple[int, str]]:
    """The lines of a file as (number, text), without line ends and blank lines; a control character is an error if
    `strict`. So many bytes and lines at the `start` are left out.
    """
    for number, line in _raw_lines(file, start):
        try:
            text = line.decode(encoding).rstrip("\r\n")
        except UnicodeDecodeError as error:
            name, byte = encoding.removesuffix("-sig"), error.object[error.start]
            remedy = ": save it as UTF-8" if name == "utf-8" else ""
            raise UserError(f"{file}, line {number}: not {name} (byte {byte:#04x}){remedy}") from None
        if strict and (control := _CONTROLS.search(text)):
            remedy = ", or save the file as UTF-8 if it is UTF-16" if control[0] == "\0" else ""
            raise UserError(f"{file}, line {number}: control character {control[0]!r}: take it out{remedy}")
        if text.strip(" "):
            yield number, text


def _raw_lines(file: File, start: tuple[int, int]) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, with their numbers and their ends; read piece by piece.

    A line ends as on Unix, Windows or old Macs. The last line of a piece is kept for the next one, which may go on
    with it or with its end.
    """
    (left, passed), rest = start, b""
    number = passed + 1
    with file.open() as stream:
        while left and (piece := stream.read(min(left, _PIECE))):
            left -= len(piece)
        while piece := stream.read(_PIECE):
            text = rest + piece
            before = len(text) - (2 if text.endswith(b"\r\n") else 1)  # of the end of the last line, if it has one
            cut = max(text.rfind(b"\n", 0, before), text.rfind(b"\r", 0, before)) + 1
            whole, rest = text[:cut], text[cut:]
            yield from ((number + place, line) for place, line in _not_blank(whole))
            number += _count(whole)
            if len(rest) > _LONGEST_LINE:
                raise UserError(f"{file}, line {number}: longer than {_LONGEST_LINE:,} bytes: this is no table of rows")
    if rest.strip(_BLANKS):
        yield number, rest


def _count(text: bytes) -> int:
    """How many lines a text of whole lines has."""
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def _not_blank(text: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines of a text of whole lines that are not blank, by their places among all its lines.

    Where most lines are blank they are not looked at one by one: a packed file of 10 kB can hold ten million.
    """
    if len(text) >= _FULL * _count(text):
        yield from ((place, line) for place, line in enumerate(text.splitlines(keepends=True)) if line.strip(_BLANKS))
        return
    letters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero((letters == _LF) | ((letters == _CR) & (np.append(letters[1:], 0) != _LF)))
    starts = np.append(0, ends + 1)
    for place in np.unique(np.searchsorted(ends, np.flatnonzero(_IS_TEXT[letters]))).tolist():
        yield place, text[starts[place] : starts[place + 1]]


def records(
    file: File,
    separator: str,
    least: int,
    encoding: str = "utf-8",
    header: int = 0,
    quoted: bool = False,
    escape: str | None = None,
) -> Iterator[tuple[int, list[str]]]:
    """The records of a file as (number of the first line, fields); too few fields are an error."""
    below = (line for line in lines(file, encoding) if line[0] > header)
    return _split(file, below, separator, least, quoted, escape)


def records_in(
    file: File, layout: Layout, least: int = 0, start: tuple[int, int] = (0, 0)
) -> Iterator[tuple[int, list[str]]]:
    """The records of a file with this layout, without its header and so many bytes and lines at the start."""
    below = (line for line in lines(file, layout.encoding, start=start) if line[0] > layout.header)
    return _split(file, below, layout.separator, least, layout.quoted, layout.escape)


def _split(
    file: File, below: Iterator[tuple[int, str]], separator: str, least: int, quoted: bool, escape: str | None
) -> Iterator[tuple[int, list[str]]]:
    """The records of lines; too few fields are an error."""
    split = ((number, text.split(separator)) for number, text in below)
    for number, fields in _unquoted(file, below, separator, escape) if quoted else split:
        if len(fields) < least:
            text = separator.join(fields)
            raise UserError(f"{file}, line {number}: {len(fields)} fields where {least} are needed: {text[:60]!r}")
        yield number, fields


def _unquoted(
    file: File, below: Iterable[tuple[int, str]], separator: str, escape: str | None
) -> Iterator[tuple[int, list[str]]]:
    """The records of lines with quoted fields, which may go on over several lines."""
    numbers: list[int] = []  # of the lines of the current record

    def texts() -> Iterator[str]:
        for number, text in below:
            numbers.append(number)
            yield text + "\n"

    reader = csv.reader(texts(), delimiter=separator, escapechar=escape)
    while True:
        numbers.clear()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(f"{file}, line {numbers[0]}: {error}: check its quotes") from None
        yield numbers[0], fields


def identified(rows: Iterable[tuple[int, list[str]]], file: File) -> Iterator[tuple[int, list[str]]]:
    """The records as (id, fields), where the id is the first field."""
    for number, fields in rows:
        if reason := unreadable(fields[0], "id"):
            raise UserError(f"{file}, line {number}: id {fields[0][:60]!r} {reason}")
        yield int(fields[0]), fields


def _of_all(file: File, layout: Layout, text: str) -> tuple[str, str]:
    """How many of all rows are like the one with this cell, and what to do; empty texts where no setting helps."""
    if not (text in MISSING or (has_decimal_comma(text) and layout.decimal == ".")):
        return "", ""
    rows = records_in(file, layout, max(layout.fields) + 1)
    try:
        counts, remedy = counted(
            (fields[layout.fields[-1]] if layout.valued else None, all(fields[place] for place in layout.of_ids))
            for _, fields in rows
        )
    except UserError:  # the file is worse than that, but the first error stays the first one
        return "", ""
    return f" ({counts})", remedy


def _check_values(rows: Rows) -> None:
    """Raise an error about the first value that is not on the scale; block by block, which the cache holds."""
    every = np.empty(0) if rows.values is None else rows.values
    for start in range(0, len(every), _BLOCK):
        values = every[start : start + _BLOCK]
        right = _on_scale(values, rows.layout)
        if not right.all():
            row = int(np.argmin(right))
            rows.complain(start + row, out_of_range(values[row], rows.layout))


def _on_scale(values: Floats, layout: Layout) -> Flags:
    """Which values are allowed."""
    low, high = layout.scale
    right: Flags = (values >= low) & (values <= high) & np.isfinite(values)
    if step := layout.step:
        right &= np.rint(values / step) * step == values
    return right


def _diagnose(file: File, layout: Layout) -> None:
    """Raise an error about the first wrong line, if there is one."""
    start = plain_start(file, layout)
    for number, fields in records_in(file, layout, max(layout.fields) + 1, start):
        for name, index in zip(layout.names, layout.fields, strict=True):
            is_value, text = layout.valued and index == layout.fields[-1], fields[index]
            if layout.drop_missing and (text in MISSING if is_value else not text):
                continue
            plain = text.replace(layout.decimal, ".") if is_value else text
            reason = unreadable(plain, "number" if is_value else "text" if layout.text_ids else "id")
            if is_value and layout.decimal != "." and "." in text:
                reason = "has a point: with decimal=comma decimals stand behind a comma, and nothing parts thousands"
            if reason:
                counts = layout.may_drop and (is_value or not text)
                also, remedy = _of_all(file, layout, text) if counts else ("", "")
                raise UserError(f"{file}, line {number}: {name} {text[:60]!r} {reason}{also}", remedy=remedy)
            if is_value and np.isinf(float(plain)):
                raise UserError(f"{file}, line {number}: {out_of_range(float(plain), layout)}")
    for _ in lines(file, layout.encoding, layout.strict, start):
        pass  # it raises the error about a control character
