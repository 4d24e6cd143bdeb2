"""The times of rows: whole numbers, perhaps with a point behind them, or dates."""

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from rankbench.core.contract import Floats, Int64s
from rankbench.data.tables.fields import Ids

# How the times of a column are written: `digits`, `floats`, `dates` as in ISO 8601, or as strptime has other dates. Of
# those in which the day comes before the month it may as well be the other way round.
Kind = str
_WHOLE = re.compile("[-+]?[0-9]+")
_FLOAT = re.compile(r"\d+\.\d*(e\+?\d+)?", re.ASCII)
_DATE = re.compile(r"(\d+)([-/.])\d\d?\2(\d+)(?:([ T])\d\d?:\d\d(:\d\d)?)?", re.ASCII)
_DIGITS = b"0123456789"
_OF_DATES = _DIGITS + b" +-:.TZ"  # the letters of dates, which may not be words such as `today` and `nan`
_AS_BLANKS = bytes(code if code in _DIGITS else 32 for code in range(256))
_LIMITS = {"%Y": (1000, 9999), "%m": (1, 12), "%d": (1, 31), "%H": (0, 23), "%M": (0, 59), "%S": (0, 59)}
_SECONDS = {"%H": 3600, "%M": 60, "%S": 1}  # of an hour, a minute and a second
_BLOCK = 1 << 16  # dates that are looked at together
_MISSING = np.iinfo(np.int64).min  # NumPy's time that is none
_END = 2.0**63  # the first number beyond 64 bits with a sign
_SHOWN = 60  # letters of a time that an error shows


def kind_of(text: str) -> Kind:
    """How the times of a column are written, as its first one tells: 160010, 160010.0, 2020-09-14, 14/9/2020."""
    if _WHOLE.fullmatch(text):
        return "digits"
    if _FLOAT.fullmatch(text):
        return "floats"
    found = _DATE.fullmatch(text)
    if not found:
        return "dates"
    first, letter, last, before, seconds = found.groups()
    clock = f"{before}%H:%M{':%S' if seconds else ''}" if before else ""
    if len(last) == 4 and len(first) <= 2:
        return f"%d{letter}%m{letter}%Y{clock}"
    return f"%Y{letter}%m{letter}%d{clock}" if len(first) == 4 and letter != "-" else "dates"


def as_times(column: Ids, kind: Kind) -> Int64s:
    """The times that texts of a kind stand for, of dates the microseconds since 1970; a ValueError if one is none.

    Where the first number of a date may be its day or its month there are two columns, one for either reading, with
    NumPy's missing time where it cannot be read so: only `settled` can tell, from the whole column.
    """
    if kind == "floats":
        return whole(np.asarray(column, np.float64))
    starts = range(0, len(column), _BLOCK)
    read = {"digits": _whole_numbers, "dates": _in_microseconds}.get(kind, partial(_readings, kind=kind))
    return np.concatenate([read(column[start : start + _BLOCK].tolist()) for start in starts])


def settled(times: Int64s) -> Int64s:
    """The times of a whole column, of two readings the one that fits all; a ValueError if none or both do."""
    if times.ndim == 1:
        return times
    fits = (times != _MISSING).all(axis=0)
    if fits.all() and (times[:, 0] != times[:, 1]).any():
        raise ValueError("either number may be the day")
    if not fits.any():
        raise ValueError("a date is missing")
    return times[:, int(np.argmax(fits))]


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


def first_unread(texts: Sequence[str], kind: Kind) -> int:
    """The place of the first text that is no time of this kind, or the number of texts."""

    def are_read(number: int) -> bool:
        try:
            times = as_times(np.array(texts[:number]), kind)
        except (ValueError, OverflowError):
            return False
        return times.ndim == 1 or bool((times != _MISSING).all(axis=0).any())

    return readable(len(texts), are_read)


def unread(texts: Sequence[str], kind: Kind) -> tuple[int, str]:
    """The place of the first text that cannot be read, and why, in words; no words if all can."""
    place = first_unread(texts, kind)
    if place < len(texts):
        return place, complaint(texts[place], texts[0] if place else "")
    times = as_times(np.array(texts), kind)
    try:
        settled(times)
    except ValueError:
        place = int(np.argmax(times[:, 0] != times[:, 1]))
        problem = f"in the time {texts[place]!r}, as in all others, either number may be the day"
        return place, f"{problem}: write dates such as 2020-01-31"
    return 0, ""


def complaint(text: str, first: str = "") -> str:
    """Why a time cannot be read, in words; `first` is the first time, if that could be read."""
    if text.strip().casefold() in ("", "nat", "nan", "none"):
        return "the time is missing"
    if first:
        return f"the time {text[:_SHOWN]!r} cannot be read like the first one, {first[:_SHOWN]!r}"
    return f"the time {text[:_SHOWN]!r} is neither a whole number nor a date such as 2020-01-31"


def _whole_numbers(texts: list[str]) -> Int64s:
    """The whole numbers that texts stand for; a ValueError if one is none."""
    if not all(map(_WHOLE.fullmatch, texts)):
        raise ValueError("a time is no whole number")
    return np.array(list(map(int, texts)), np.int64)


def _in_microseconds(texts: list[str]) -> Int64s:
    """The microseconds since 1970 of dates as in ISO 8601; a ValueError if one is none."""
    letters = "".join(texts).encode()
    if letters.translate(None, _OF_DATES):
        raise ValueError("a date holds words")
    if b"Z" in letters or b"+" in letters or letters.count(b"-") > 2 * len(texts):  # of time zones NumPy warns
        import pandas  # noqa: PLC0415

        zoned = pandas.to_datetime(texts, utc=True, format="ISO8601")
        dates = zoned.tz_localize(None).to_numpy("datetime64[us]")
    else:
        dates = np.array(texts, "datetime64[us]")
    if np.isnat(dates).any():
        raise ValueError("a date is missing")
    return dates.astype(np.int64)


def _readings(texts: list[str], kind: Kind) -> Int64s:
    """The microseconds since 1970 of dates of another kind, by either reading where there are two."""
    parts, between = re.findall("%.", kind), re.sub("%.", "", kind)
    letters = "\n".join([*texts, ""]).encode()
    numbers = np.array(letters.translate(_AS_BLANKS).split(), np.int64)
    if letters.translate(None, _DIGITS) != f"{between}\n".encode() * len(texts) or len(numbers) % len(parts):
        raise ValueError("a date is missing, or written like no other")
    found = dict(zip(parts, numbers.reshape(-1, len(parts)).T, strict=True))
    if kind.startswith("%d"):
        turned = {**found, "%d": found["%m"], "%m": found["%d"]}
        return np.stack([_moments(found), _moments(turned)], axis=1)
    times = _moments(found)
    if (times == _MISSING).any():
        raise ValueError("a date is none")
    return times


def _moments(parts: Mapping[str, Int64s]) -> Int64s:
    """The microseconds since 1970 of dates from their parts, missing where one is no date."""
    limits = [(parts[name], *_LIMITS[name]) for name in parts]
    wrong = np.any([(numbers < low) | (numbers > high) for numbers, low, high in limits], axis=0)
    months = np.where(wrong, 0, (parts["%Y"] - 1970) * 12 + parts["%m"] - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + np.where(wrong, 0, parts["%d"] - 1)
    wrong |= days.astype("datetime64[M]") != months  # as of the 31st of February
    seconds = sum(parts[name] * long for name, long in _SECONDS.items() if name in parts)
    found: Int64s = np.where(wrong, _MISSING, days.astype("datetime64[us]").astype(np.int64) + 1_000_000 * seconds)
    return found
