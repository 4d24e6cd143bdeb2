"""The times of rows: whole numbers, perhaps with a point behind them, or dates."""

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Literal

import numpy as np

from rankbench.core.contract import Floats, Int64s
from rankbench.data.tables.fields import Ids

Kind = Literal["digits", "floats", "dates"]
_FLOAT = re.compile(r"\d+\.\d*(e\+?\d+)?")
_ZONE = re.compile(r"\d(Z|[+-]\d\d:?\d\d)$")  # the time zone behind a time, and not the day of a date
_END = 2.0**63  # the first number beyond 64 bits with a sign
_SHOWN = 60  # letters of a time that an error shows


def kind_of(text: str) -> Kind:
    """How the times of a column are written, as its first one tells: 1600102000, 1600102000.0 or 2020-09-14."""
    return "digits" if text.isdecimal() else "floats" if _FLOAT.fullmatch(text) else "dates"


def as_times(column: Ids, kind: Kind) -> Int64s:
    """The times that texts of a kind stand for, of dates the microseconds since 1970; a ValueError if one is none."""
    if kind == "dates":
        return _in_microseconds(column)
    return whole(np.asarray(column, np.float64)) if kind == "floats" else np.asarray(column).astype(np.int64)


def whole(numbers: Floats) -> Int64s:
    """Numbers as the whole numbers that they are; a ValueError if one is none, or none of 64 bits."""
    with np.errstate(invalid="ignore"):
        right = (numbers % 1 == 0) & (abs(numbers) < _END)
    if not right.all():
        raise ValueError("a time is no whole number")
    return numbers.astype(np.int64)


def readable(number: int, are_read: Callable[[int], bool]) -> int:
    """How many values come before the first one that cannot be read; `are_read(n)` says if the first n can."""
    return bisect_left(range(1, number + 1), True, key=lambda n: not are_read(n))


def first_unread(texts: list[str], kind: Kind) -> int:
    """The place of the first text that is no time of this kind, or the number of texts."""

    def are_read(number: int) -> bool:
        try:
            as_times(np.array(texts[:number]), kind)
        except (ValueError, OverflowError):
            return False
        return True

    return readable(len(texts), are_read)


def complaint(text: str, first: str = "") -> str:
    """Why a time cannot be read, in words; `first` is the first time, if that could be read."""
    if text.strip().casefold() in ("", "nat", "nan", "none"):
        return "the time is missing"
    if first:
        return f"the time {text[:_SHOWN]!r} cannot be read like the first one, {first[:_SHOWN]!r}"
    return f"the time {text[:_SHOWN]!r} is neither a whole number nor a date such as 2020-01-31"


def _in_microseconds(column: Ids) -> Int64s:
    """The microseconds since 1970 of dates; a ValueError if one is none."""
    if _ZONE.search(str(column[0])):  # of which NumPy warns
        import pandas  # noqa: PLC0415

        column = pandas.to_datetime(column, utc=True, format="ISO8601").tz_localize(None).to_numpy()
    dates = np.asarray(column, dtype="datetime64[us]")
    if np.isnat(dates).any():
        raise ValueError("a date is missing")
    return dates.astype(np.int64)
