"""Cells of a user's own table that are missing, or hold a comma for a point, counted for one error message."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice

_WORDS = ("", "-", "--", "?", ".", "na", "n/a", "#n/a", "nan", "null", "none", "missing")
_SPELLINGS = {form(word) for word in _WORDS for form in (str, str.upper, str.title)} | {"NaN"}
MISSING = tuple(sorted(blank + word for word in _SPELLINGS for blank in ("", " ")))
_MOST = 1_000_000  # cells that are looked at
_SHOWN = 3  # of the different texts of a kind
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
_THOUSANDS = re.compile(r"\s*[-+]?[1-9]\d{0,2},\d{3}\s*")


def has_decimal_comma(text: str) -> bool:
    """Whether a text is a number with a comma in place of the decimal point."""
    return bool(_DECIMAL_COMMA.fullmatch(text))


def counted(rows: Iterable[tuple[str | None, bool]]) -> tuple[str, str]:
    """How many rows lack a rating or an id, or have a comma in the rating, and the settings that read the file.

    A row is the text of its rating, and whether it has all ids; some row is such a one. Rows without ratings, such as
    clicks, have the text None.
    """
    looked_at = Counter(islice(rows, _MOST))
    cells: Counter[str] = Counter()
    for (text, _), count in looked_at.items():
        if text is not None:
            cells[text] += count
    missing = Counter({text: count for text, count in cells.items() if text in MISSING})
    commas = Counter({text: count for text, count in cells.items() if has_decimal_comma(text)})
    kinds = [(missing, "missing", "missing=drop"), (commas, "written with a comma", "decimal=comma")]
    found = [f"{kind.total():,} {what} ({_some(kind)})" for kind, what, _ in kinds if kind]
    settings = [setting for kind, _, setting in kinds if kind]
    if nameless := sum(count for (_, whole), count in looked_at.items() if not whole):
        found.append(f"{nameless:,} without a user or an item")
        settings = [*dict.fromkeys(["missing=drop", *settings])]
    large = (
        "take the commas out if they part thousands, else " if commas and all(map(_THOUSANDS.fullmatch, commas)) else ""
    )
    others = " to read the others" if "missing=drop" in settings else ""
    return (
        f"of {looked_at.total():,} {'ratings' if cells else 'rows'} {' and '.join(found)}",
        f"{large}write {','.join(settings)} in brackets{others}",
    )


def _some(kind: Counter[str]) -> str:
    """The most frequent texts of a kind."""
    shown = ", ".join(repr(text[:20]) for text, _ in kind.most_common(_SHOWN))
    return f"{shown}, ..." if len(kind) > _SHOWN else shown
