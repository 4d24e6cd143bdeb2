"""Text files of ratings: read by pandas' C parser; whatever is wrong is named with its file and line."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np

from rankbench.contract import Floats
from rankbench.data.files import File
from rankbench.errors import UserError

Ids = np.ndarray[Any, Any]  # integers, or text
_LARGEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Layout:
    """How rows stand in a text file: which fields matter, what separates them, what a value may be."""

    fields: tuple[int, ...] = (0, 1, 2)  # places of the ids, then of the value if `valued`
    separator: str = ","
    header: int = 0  # lines before the first row
    encoding: str = "utf-8"
    names: tuple[str, ...] = ("user", "item", "rating")
    valued: bool = True  # the last field is a number, not an id
    scale: tuple[float, float] = (-np.inf, np.inf)
    text_ids: bool = False
    quoted: bool = False


@dataclass(frozen=True)
class Rows:
    """The columns of a file as they stand in it."""

    file: File
    layout: Layout
    ids: tuple[Ids, ...]
    values: Floats | None

    def complain(self, row: int, what: str) -> NoReturn:
        """Raise an error that names the line of a row."""
        raise UserError(f"{self.file}, line {self.line_of(row)}: {what}")

    def line_of(self, row: int) -> int:
        """The number of the line that holds a row."""
        numbers = (number for number, _ in lines(self.file, self.layout.encoding) if number > self.layout.header)
        return next(number for place, number in enumerate(numbers) if place == row)


def read(file: File, layout: Layout) -> Rows:
    """The rows of a file, every field checked."""
    import pandas  # noqa: PLC0415  slow to import, and needed once: what is parsed is cached

    kinds: dict[int, type] = {place: (str if layout.text_ids else np.int64) for place in _ids(layout)}
    if layout.valued:
        kinds[layout.fields[-1]] = np.float64
    separator, step = _single(layout.separator)
    with file.open() as stream:
        try:
            frame = pandas.read_csv(
                stream,
                sep=separator,
                header=None,
                skiprows=layout.header,
                usecols=[step * place for place in layout.fields],
                dtype={step * place: kind for place, kind in kinds.items()},
                encoding=layout.encoding,
                quoting=csv.QUOTE_MINIMAL if layout.quoted else csv.QUOTE_NONE,
                na_filter=False,
                float_precision="round_trip",
                engine="c",
            )
        except pandas.errors.EmptyDataError:
            raise UserError(f"{file} holds no rows") from None
        except (ValueError, OverflowError) as error:  # what pandas found; where, we find out
            _diagnose(file, layout)
            raise UserError(f"{file} cannot be read: {error}") from error
    columns = [frame[step * place].to_numpy() for place in layout.fields]
    ids = tuple(_as_text(column) if layout.text_ids else column for column in columns[: len(_ids(layout))])
    rows = Rows(file, layout, ids, columns[-1] if layout.valued else None)
    _check_values(rows)
    return rows


def lines(file: File, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """The lines of a small file with their numbers, without line ends; blank ones are left out."""
    for number, line in enumerate(io.BytesIO(file.read()), start=1):
        try:
            text = line.decode(encoding).rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UserError(f"{file}, line {number}: not {encoding} (byte {error.object[error.start]:#04x})") from None
        if text:
            yield number, text


def records(
    file: File, separator: str, least: int, encoding: str = "utf-8", header: int = 0, quoted: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line of a small file with its number; too few fields are an error."""
    for number, text in lines(file, encoding):
        if number <= header:
            continue
        fields = next(csv.reader([text], delimiter=separator)) if quoted else text.split(separator)
        if len(fields) < least:
            raise UserError(f"{file}, line {number}: {len(fields)} fields where {least} are needed: {text[:60]!r}")
        yield number, fields


def _ids(layout: Layout) -> tuple[int, ...]:
    return layout.fields[:-1] if layout.valued else layout.fields


def _single(separator: str) -> tuple[str, int]:
    """A separator of one letter, which is all the C parser takes; «::» is «:» with empty fields between."""
    return separator[0], len(separator)


def _as_text(column: Any) -> Ids:
    """Text of fixed width, which needs no pickle to be stored."""
    return np.asarray(column, dtype=np.str_)


def _check_values(rows: Rows) -> None:
    if rows.values is None:
        return
    low, high = rows.layout.scale
    wrong = ~((rows.values >= low) & (rows.values <= high) & np.isfinite(rows.values))
    if wrong.any():
        row = int(np.argmax(wrong))
        scale = "finite" if np.isinf(low) else f"from {low:g} to {high:g}"
        rows.complain(row, f"{rows.layout.names[-1]} {rows.values[row]:g} is out of range: must be {scale}")


def _diagnose(file: File, layout: Layout) -> None:
    """Raise an error about the first line that is wrong, if a line is."""
    least = max(layout.fields) + 1
    for number, fields in records(file, layout.separator, least, layout.encoding, layout.header, layout.quoted):
        for name, place in zip(layout.names, layout.fields, strict=True):
            is_value = layout.valued and place == layout.fields[-1]
            if reason := _unreadable(fields[place], "number" if is_value else "text" if layout.text_ids else "id"):
                raise UserError(f"{file}, line {number}: {name} {fields[place]!r} {reason}")


def _unreadable(text: str, kind: Literal["number", "id", "text"]) -> str | None:
    """Why a field cannot be what it should be."""
    if kind == "text":
        return None
    try:
        if kind == "number":
            float(text)
            return None
        return "does not fit into 64 bits" if abs(int(text)) > _LARGEST else None
    except ValueError:
        return "is no number" if kind == "number" else "is no whole number"
