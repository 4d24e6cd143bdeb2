"""Reading a user's own text files: detecting separator and header, and reading rows and item features."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from rankbench.data.building import numbered
from rankbench.data.features import Block
from rankbench.data.files import File, Files
from rankbench.data.origins import Held, Tell
from rankbench.data.tables import Ids, Layout, Rows, read, records
from rankbench.errors import UserError

Separator = Literal["auto", "comma", "tab", "semicolon", "double-colon"]
Header = Literal["auto", "yes", "no"]
IdKind = Literal["auto", "integer", "text"]
_SEPARATORS = {"double-colon": "::", "tab": "\t", "semicolon": ";", "comma": ","}
_ENCODING = "utf-8-sig"  # with or without the byte order mark that spreadsheet programs write


@dataclass(frozen=True)
class OwnFile:
    """The origin of a user's own data: a file of rows and optionally a file of item features."""

    path: str
    features: str | None = None
    licence: str = "the owner's"

    @property
    def size(self) -> str:
        """The size of the file of rows, as text."""
        path = self._paths()[0]
        return f"{path.stat().st_size:,} bytes" if path.is_file() else "unknown: there is no such file"

    @property
    def home(self) -> str:
        """The path of the file of rows, as text."""
        return f"the user's own file {self.path}"

    def missing(self) -> str | None:
        """What to do about a missing file, or None if all files exist."""
        absent = [path for path in self._paths() if not path.is_file()]
        return f"no file {str(absent[0])!r}: check the path" if absent else None

    def held(self) -> list[Held]:
        """The files that exist, without published hashes."""
        return [Held(path, None) for path in self._paths() if path.is_file()]

    def fetch(self, tell: Tell) -> None:
        """Raise an error if a file is missing, since a user's file cannot be downloaded."""
        self.files("own")

    def files(self, name: str) -> Files:
        """The files, which must exist, under this name of the data set."""
        if reason := self.missing():
            raise UserError(reason)
        return Files(name, self._paths())

    def _paths(self) -> tuple[Path, ...]:
        return tuple(Path(path).expanduser() for path in (self.path, self.features) if path is not None)


def layout_of(file: File, base: Layout, separator: Separator, header: Header) -> Layout:
    """The layout of a file, with the separator and header detected from its first lines unless set."""
    head = _head(file)
    number, first = head[0]
    letter = _SEPARATORS[separator] if separator != "auto" else _sniffed(file, number, first, base)
    layout = replace(base, separator=letter, encoding=_ENCODING, quoted=letter in ",;")
    rows = [_split(text, layout) for _, text in head]
    is_header = header == "yes" or (header == "auto" and _is_header(rows, layout))
    return replace(layout, header=number if is_header else 0)


def read_own(file: File, layout: Layout, ids: IdKind) -> Rows:
    """The rows of a file; with `ids=auto`, ids are integers if all of them are, else text."""
    if ids != "text":
        try:
            return read(file, layout)
        except UserError:
            if ids == "integer":
                raise
    return read(file, replace(layout, text_ids=True))  # raises the error if more than the ids is wrong


def item_features(path: Path, item_ids: Ids) -> Block:
    """The features of these items, from the columns after the item's id."""
    file = File(path)
    base = Layout(fields=(0, 1), names=("item", "feature"))
    layout = layout_of(file, base, "auto", "auto")
    _, columns = next(records(file, layout.separator, 2, layout.encoding, 0, layout.quoted))
    names = columns[1:] if layout.header else [f"f{number}" for number in range(1, len(columns))]
    table = _feature_rows(file, layout, len(columns), item_ids.dtype.kind == "U")
    if absent := [item for item in item_ids.tolist() if item not in table]:
        raise UserError(f"{file} has no row for item {absent[0]!r}: every item in the data needs one")
    return Block(np.array(names, np.str_), np.array([table[item] for item in item_ids.tolist()]))


def numbered_together(*columns: Ids) -> tuple[Ids, list[np.ndarray]]:
    """The distinct ids of several columns, ascending, and each column with ids replaced by their numbers."""
    distinct, numbers = numbered(np.concatenate(columns))
    return distinct, np.split(numbers, np.cumsum([len(column) for column in columns])[:-1])


def _feature_rows(file: File, layout: Layout, width: int, is_text: bool) -> dict[object, list[float]]:
    """The feature values of every item, with each line checked."""
    table: dict[object, list[float]] = {}
    lines: dict[object, int] = {}
    for number, fields in records(file, layout.separator, width, layout.encoding, layout.header, layout.quoted):
        item = fields[0] if is_text else _integer(fields[0])
        if item in lines:
            raise UserError(f"{file}, line {number}: item {item!r} is on line {lines[item]} already: keep one")
        lines[item] = number
        table[item] = [_number(field, f"{file}, line {number}: feature") for field in fields[1:width]]
    return table


def _integer(text: str) -> int | str:
    """The text as an integer if possible; other text matches no item, because all item ids are integers."""
    try:
        return int(text)
    except ValueError:
        return text


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UserError(f"{where} {text!r} is no number") from None
    if not np.isfinite(number):
        raise UserError(f"{where} {text!r} is not finite")
    return number


def _head(file: File) -> list[tuple[int, str]]:
    """The first two lines that are not blank, with their numbers."""
    head = []
    for number, text in _decoded(file):
        if text.strip():
            head.append((number, text))
        if len(head) == 2:
            break
    if not head:
        raise UserError(f"{file} holds no rows")
    return head


def _decoded(file: File) -> Iterator[tuple[int, str]]:
    """The lines of a file as (number, text), read lazily."""
    with file.open() as stream:
        for number, line in enumerate(stream, start=1):
            try:
                yield number, line.decode(_ENCODING).rstrip("\r\n")
            except UnicodeDecodeError as error:
                byte = error.object[error.start]
                raise UserError(f"{file}, line {number}: not utf-8 (byte {byte:#04x}): save it as UTF-8") from None


def _sniffed(file: File, number: int, text: str, base: Layout) -> str:
    """The first separator that cuts a line into enough fields; the comma is last, as ids may contain it."""
    for letter in _SEPARATORS.values():
        if text.count(letter) >= max(base.fields):
            return letter
    wanted = ", ".join(base.names)
    raise UserError(
        f"{file}, line {number}: no comma, tab, semicolon or :: cuts {text[:60]!r} into {wanted}: set separator"
    )


def _split(text: str, layout: Layout) -> list[str]:
    return next(csv.reader([text], delimiter=layout.separator)) if layout.quoted else text.split(layout.separator)


def _is_header(rows: list[list[str]], layout: Layout) -> bool:
    """Whether the first line is a header: it has the expected names, or no numbers in the fields that are read.

    Without values, such a line is a header only if the fields of the next line are numbers. A first line with a
    numeric id and a wrong value is not a header, so that reading it reports the error.
    """
    if any(len(row) <= max(layout.fields) for row in rows):
        return False  # reading the rows will raise an error that names the line
    first, *below = ([row[index].strip().lower() for index in layout.fields] for row in rows)
    if first == list(layout.names):
        return True
    if any(_is_number(field) for field in first):
        return False
    return layout.valued or (bool(below) and all(_is_number(field) for field in below[0]))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
