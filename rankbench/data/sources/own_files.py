"""Reading a user's own text files: detecting separator and header, and reading rows and item features."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from rankbench.core.errors import UserError
from rankbench.data.features import Block
from rankbench.data.files import File, Files
from rankbench.data.origins import OwnFile
from rankbench.data.parsed import FromFiles
from rankbench.data.sources.embeddings import ENDINGS, embeddings
from rankbench.data.sources.headers import chosen_in, found_in, named, shown
from rankbench.data.tables import Rows, Unexplained, lines, read, records_in
from rankbench.data.tables.cells import MISSING
from rankbench.data.tables.fields import Ids, is_number, is_padded, unreadable
from rankbench.data.tables.layout import Layout
from rankbench.data.tables.times import kind_of, unread

Separator = Literal["auto", "comma", "tab", "semicolon", "double-colon"]
Header = Literal["auto", "yes", "no"]
IdKind = Literal["auto", "integer", "text"]
_SEPARATORS = {"double-colon": "::", "tab": "\t", "semicolon": ";", "comma": ","}
_UNQUOTED = ("\t", "::")  # in files with these separators a quote is a letter
_PACKED = {"zip": b"PK\x03\x04", "gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zXZ", "zstd": b"\x28\xb5\x2f\xfd"}
_WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")  # of spreadsheet programs
_NEVER = "\"'.+-_\r\n\0"  # characters that cannot separate fields
_EXACT = 2**53  # beyond it, doubles do not have all whole numbers
_SECONDS = 10**8  # since 1970: the year 1973; smaller numbers may be anything
_ENCODING = "utf-8-sig"  # with or without the byte order mark that spreadsheet programs write


def scale_of(record: str, low: float | None, high: float | None) -> tuple[float, float]:
    """The lowest and the highest rating allowed; an error about the record unless low is a number below high."""
    for name, value in (("low", low), ("high", high)):
        if value is not None and np.isnan(value):
            raise UserError(f"{name}=nan is no rating", subject=record, remedy="give a number, or leave it out")
    if low is not None and high is not None and not low < high:
        raise UserError(f"low={low:g} must be below high={high:g}", subject=record)
    return -np.inf if low is None else low, np.inf if high is None else high


class OwnSource(FromFiles):
    """A data set in a file of the user's, with item features in a second one if `features` names it."""

    path: str
    features: str | None
    kind: ClassVar[str]  # what files in the cache are called after
    paths: ClassVar[tuple[str, ...]] = ("path", "features")

    @property
    def origin(self) -> OwnFile:
        """The origin: the user's files."""
        return OwnFile(self.path, self.features)

    def columns(self, *roles: str) -> dict[str, str]:
        """The columns that the user has named, by name or number, for these roles."""
        return {role: name for role in roles if (name := getattr(self, role)) is not None}

    def _files(self) -> Files:
        return self.origin.files(self.kind)

    def _parse(self, files: Files) -> Any:
        view = self._without_features()
        if self.features is None:
            return view
        block = item_features(files.paths[1], view.item_ids)
        return replace(view, item_features=block.matrix, feature_names=block.names)

    def _without_features(self) -> Any:
        """The ratings or comparisons in the file."""
        ...


@dataclass(frozen=True)
class Shape:
    """What the user has said about a file: its separator, whether it has a header, and names of its columns."""

    sep: str | None = None  # a character, or the word for it; None if it is to be detected
    header: Header = "auto"
    columns: Mapping[str, str] = field(default_factory=dict)  # user, item, ... -> a name in the header, or a number
    command: str = "csv:PATH"  # the name of such a data set, for errors

    def letter(self) -> str | None:
        """The separator that is set, or None if it is to be detected."""
        if self.sep is None:
            return None
        letter = {**_SEPARATORS, "space": " "}.get(self.sep, self.sep)
        if letter == "::" or (len(letter) == 1 and letter.isascii() and not letter.isalnum() and letter not in _NEVER):
            return letter
        raise UserError(
            f"sep={self.sep} cannot separate fields: give one character such as ; or |, or tab, space or ::"
        )


def separator_set(sep: str | None, separator: Separator) -> str | None:
    """The separator that is set by `sep`, or by its older name `separator`; None if it is to be detected."""
    if separator == "auto":
        return sep
    if sep is not None:
        raise UserError(f"sep={sep} and separator={separator} say the same thing: give only sep")
    return separator


def layout_of(file: File, base: Layout, shape: Shape) -> Layout:
    """The layout of a file, with separator, header and columns detected from its first lines unless set."""
    head = _head(file)
    number, first = head[0]
    letter = shape.letter() or _sniffed(file, number, first, base)
    layout = replace(base, separator=letter, encoding=_ENCODING, quoted=letter not in _UNQUOTED, strict=True)
    rows = [_split(text, layout) for _, text in head]
    try:
        return _with_times(_with_columns(layout, rows, shape, number), rows)
    except UserError as error:
        raise error.within(f"{file}, line {number}") from None


def _with_times(layout: Layout, rows: list[list[str]]) -> Layout:
    """The layout with the column of times: one with a usual name, or without a header the next one, of seconds.

    Comparisons have no times.
    """
    first, last = rows[0], rows[-1]
    columns = named(first, "timestamp") if layout.header else [len(layout.fields)]
    if "item" not in layout.names or len(columns) != 1 or len(last) <= columns[0] or columns[0] in layout.fields:
        return layout
    text = last[columns[0]].strip()
    kind = kind_of(text)
    if not layout.header and (kind not in ("digits", "floats") or float(text) < _SECONDS):
        return layout
    return replace(layout, time=columns[0], times=kind)


def untimed(file: File, layout: Layout) -> str:
    """The first row of a file whose time cannot be read, and why; empty if there is none, or no column of times."""
    if (column := layout.time) is None:
        return ""
    rows = [
        (number, fields[column].strip() if len(fields) > column else "") for number, fields in records_in(file, layout)
    ]
    place, why = unread([text for _, text in rows], layout.times)
    return f"{file}, line {rows[place][0]}: {why}" if why else ""


def _with_columns(layout: Layout, rows: list[list[str]], shape: Shape, number: int) -> Layout:
    """The layout with the columns to read, and with the number of its header line, or 0 if there is no header."""
    first, roles = rows[0], layout.names
    has_header = replace(layout, header=number, width=len(first))
    if shape.columns:
        fields = chosen_in(first, roles, shape.columns)
        by_name = not all(text.isdecimal() for text in shape.columns.values())
        if by_name and shape.header == "no":
            raise UserError("header=no leaves the columns without names: give their numbers, counted from 1")
        is_header = by_name or _is_header(rows, replace(layout, fields=fields), shape.header)
        return replace(has_header if is_header else layout, fields=fields)
    if shape.header != "no" and (known := found_in(first, roles)):
        return replace(has_header, fields=known)
    if not _is_header(rows, layout, shape.header):
        return layout
    if any(map(is_number, first)):  # header=yes is set above a line of numbers: they are no names
        return has_header
    wanted = ",".join(f"{role}=NAME" for role in roles)
    raise UserError(
        f"the header {shown(first)} does not say which column is which of {', '.join(roles)}: "
        f"write {shape.command}[{wanted}], or header=no if this is a row{_if_wide(rows, layout)}"
    )


def _if_wide(rows: list[list[str]], layout: Layout) -> str:
    """How to convert a file that may have a row per user and a column per item, with empty cells; empty if it has not.

    All cells behind the first one are numbers or empty, and there are more than in a long table or some are empty.
    """
    cells = [text.strip() for row in rows[1:] for text in row[1:]]
    is_empty = [text in MISSING for text in cells]
    many = len(rows[0]) > len(layout.fields) + 1 or any(is_empty)
    if not many or not all(empty or is_number(text) for empty, text in zip(is_empty, cells, strict=True)):
        return ""
    how = "" if layout.separator == "," else f", sep={layout.separator!r}"
    long = 'stack().dropna().to_csv("long.csv", header=["rating"], index_label=["user", "item"])'
    return f". If it has a column per item, make it long: pandas.read_csv(PATH, index_col=0{how}).{long}"


def read_own(file: File, layout: Layout, ids: IdKind) -> Rows:
    """The rows of a file; with `ids=auto`, ids are integers if all of them are and none has leading zeros, else text.

    So `007` and `7` stay two ids, while 7.0 is 7, since tools write whole numbers in both ways. Ids of rows that are
    left out do not count.
    """
    as_text = replace(layout, text_ids=True)
    if ids == "text":
        return read(file, as_text)
    try:
        rows = read(file, layout, explain=ids == "integer")
    except UserError as error:
        if ids == "integer" and not (layout.drop_missing and isinstance(error, Unexplained)):
            raise
        rows = read(file, as_text)  # raises the error if more than the ids is wrong
        return _with_integers(rows, ids) if rows.dropped else rows
    if ids == "auto" and any(map(_may_be_rounded, rows.ids)):
        return _with_integers(read(file, as_text), ids)
    if ids == "integer" or not rows.padded:
        return rows
    texts = read(file, as_text)
    return texts if any(is_padded(column.texts) for column in texts.ids) else rows


def _may_be_rounded(ids: Ids) -> bool:
    """Whether ids may have been written as floats, such as 9007199254740993.0, which pandas rounds."""
    if not len(ids) or max(-int(ids.min()), int(ids.max())) < _EXACT:
        return False
    with np.errstate(invalid="ignore"):
        return bool((ids.astype(np.float64).astype(np.int64) == ids).all())


def _with_integers(rows: Rows, ids: IdKind) -> Rows:
    """The rows with integers as ids, if all of them are, and with `ids=auto` none has leading zeros."""
    try:
        integers = [column.texts.astype(np.int64) for column in rows.ids]
    except (ValueError, OverflowError):
        return rows
    if ids == "auto" and any(
        (one.astype(np.str_) != column.texts).any() for one, column in zip(integers, rows.ids, strict=True)
    ):
        return rows
    found = tuple(one[column.codes] for one, column in zip(integers, rows.ids, strict=True))
    return replace(rows, ids=found, layout=replace(rows.layout, text_ids=False))


def item_features(path: Path, item_ids: Ids) -> Block:
    """The features of these items, from the columns after the item's id, or from a file of arrays."""
    if path.suffix in ENDINGS:
        return embeddings(path, item_ids)
    file = File(path)
    layout, columns = _features_layout(file)
    names = columns[1:] if layout.header else [f"f{number}" for number in range(1, len(columns))]
    table = _feature_rows(file, layout, len(columns), item_ids.dtype.kind == "U")
    if absent := [item for item in item_ids.tolist() if item not in table]:
        raise UserError(f"{file} has no row for item {absent[0]!r}: every item in the data needs one")
    return Block(np.array(names, np.str_), np.array([table[item] for item in item_ids.tolist()]))


def _features_layout(file: File) -> tuple[Layout, list[str]]:
    """The layout of a file of item features, whose first column is the item, and the fields of its first line."""
    head = _head(file)
    number, first = head[0]
    base = Layout(fields=(0, 1), names=("item", "feature"), encoding=_ENCODING, strict=True)
    letter = _sniffed(file, number, first, base)
    layout = replace(base, separator=letter, quoted=letter not in _UNQUOTED)
    columns = _split(first, layout)
    if not _is_header([columns], layout, "auto"):
        return layout, columns
    if (items := named(columns, "item")) and items[0] != 0:
        raise UserError(f"{file}, line {number}: {columns[items[0]]!r} must be the first column, before the features")
    return replace(layout, header=number), columns


def _feature_rows(file: File, layout: Layout, width: int, is_text: bool) -> dict[object, list[float]]:
    """The feature values of every item, with each line checked."""
    table: dict[object, list[float]] = {}
    at: dict[object, int] = {}
    for number, fields in records_in(file, layout, width):
        if len(fields) > width:
            raise UserError(f"{file}, line {number}: {len(fields)} fields where {width} are needed")
        item = fields[0] if is_text else _integer(fields[0])
        if item in at:
            raise UserError(f"{file}, line {number}: item {item!r} is on line {at[item]} already: keep one")
        at[item] = number
        table[item] = [_number(text, f"{file}, line {number}: feature") for text in fields[1:width]]
    return table


def _integer(text: str) -> int | str:
    """The text as an integer if it is written as one; other text matches no item, because all item ids are integers."""
    return text if unreadable(text, "id") or is_padded(np.array([text])) else int(text)


def _number(text: str, where: str) -> float:
    reason = unreadable(text, "number")
    if text.strip().lower() in ("nan", "inf", "-inf") or (not reason and not np.isfinite(float(text))):
        raise UserError(f"{where} {text!r} is not finite")
    if reason:
        raise UserError(f"{where} {text!r} {reason}")
    return float(text)


def _head(file: File) -> list[tuple[int, str]]:
    """The first two lines that are not blank, with their numbers."""
    with file.open() as stream:
        start = stream.read(6)
    if file.path.suffix.lower() in _WORKBOOKS:
        columns = f"pandas.read_excel({file.path.name!r}).to_csv({file.path.with_suffix('.csv').name!r}, index=False)"
        raise UserError(
            f"{file} is a workbook: save it as CSV in its program, or in Python by {columns}, which needs openpyxl"
        )
    if kind := next((kind for kind, letters in _PACKED.items() if start.startswith(letters)), None):
        raise UserError(f"{file} is compressed ({kind}): unpack it, or pack it with gzip under a name ending in .gz")
    head = list(islice(lines(file, _ENCODING, strict=True), 2))
    if not head:
        raise UserError(f"{file} holds no rows")
    return head


def _sniffed(file: File, number: int, text: str, base: Layout) -> str:
    """The first separator that cuts a line into enough fields; the comma is last, as ids may contain it."""
    for letter in _SEPARATORS.values():
        if text.count(letter) >= max(base.fields):
            return letter
    wanted = ", ".join(base.names)
    raise UserError(f"{file}, line {number}: no comma, tab, semicolon or :: cuts {text[:60]!r} into {wanted}: set sep")


def _split(text: str, layout: Layout) -> list[str]:
    return next(csv.reader([text], delimiter=layout.separator)) if layout.quoted else text.split(layout.separator)


def _is_header(rows: list[list[str]], layout: Layout, header: Header) -> bool:
    """Whether the first line is a header: as the user says, or else if it has no numbers in the fields that are read.

    Without values, such a line is a header only if it has a usual name, or the fields of the next line are numbers.
    A first line with a numeric id and a wrong value is not a header, so that reading it reports the error.
    """
    if header != "auto":
        return header == "yes"
    if any(len(row) <= max(layout.fields) for row in rows):
        return False  # reading the rows will raise an error that names the line
    first, *below = ([row[index] for index in layout.fields] for row in rows)
    if any(is_number(text) for text in first):
        return False
    if layout.valued or any(named(first, role) for role in layout.names):
        return True
    return bool(below) and all(is_number(text) for text in below[0])
