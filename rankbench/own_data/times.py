"""The column of times in a user's own text file, which no solver sees and only the audit reads."""

from dataclasses import replace
from itertools import islice

import numpy as np

from rankbench.contract import Floats
from rankbench.data.sources.headers import named
from rankbench.data.tables import Rows, read, records
from rankbench.errors import UserError

_HEAD = 100  # lines that are looked at to find the column
_FIRST, _LAST = 3e8, 5e9  # seconds since 1970: from 1979 to 2128
_UNITS = (1.0, 1e3, 1e6, 1e9)  # seconds, milliseconds, microseconds, nanoseconds


def is_time(values: Floats) -> bool:
    """Whether all of these numbers look like times since 1970, in seconds or in parts of seconds."""
    if not len(values) or not np.isfinite(values).all() or (values % 1 != 0).any():
        return False
    low, high = values.min(), values.max()
    return any(_FIRST * unit <= low and high <= _LAST * unit for unit in _UNITS)


def times_of(rows: Rows) -> Floats | str | None:
    """The time of each row, as numbers that grow with time; a text says why not, and None that there is no such column.

    The column is found by a usual name in the header; without a header it is a further column of numbers like times.
    """
    layout = rows.layout
    how = (layout.encoding, 0, layout.quoted, layout.escape)
    head = list(islice(records(rows.file, layout.separator, 0, *how), _HEAD))
    lines = [fields for number, fields in head if number > layout.header]
    header = next((fields for number, fields in head if number == layout.header), [])
    width = min(map(len, lines), default=0)
    places = [place for place in named(header, "timestamp") if place < width]
    if not header:
        places = [place for place in range(width) if place not in layout.fields and _numbers(lines, place)]
    return _read(rows, places[0]) if len(places) == 1 else None


def _numbers(lines: list[list[str]], place: int) -> bool:
    """Whether the first lines have numbers like times in this column."""
    try:
        return is_time(np.array([float(fields[place]) for fields in lines]))
    except ValueError:
        return False


def _read(rows: Rows, place: int) -> Floats | str:
    """A column of times: read as numbers, which is fast, or line by line as dates."""
    layout = replace(rows.layout, fields=(*rows.layout.fields[:2], place), names=("user", "item", "time"), valued=True)
    try:
        values = read(rows.file, replace(layout, scale=(-np.inf, np.inf))).values
        assert values is not None  # the layout has them
        return values
    except UserError:
        how = (layout.encoding, layout.header, layout.quoted, layout.escape)
        return _parsed([fields[place] for _, fields in records(rows.file, layout.separator, place + 1, *how)])


def _parsed(texts: list[str]) -> Floats | str:
    """The times as numbers, from dates."""
    import pandas  # noqa: PLC0415  slow to import

    dates = pandas.to_datetime(pandas.Series(texts), errors="coerce", format="mixed", utc=True)
    if dates.isna().any():
        wrong = texts[int(np.argmax(dates.isna().to_numpy()))]
        return f"the time {wrong[:60]!r} cannot be read as a number or a date"
    return dates.astype("int64").to_numpy().astype(np.float64)
