"""Why a field of a text file is not a valid number, id or text."""

import re
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from rankbench.data.tables.cells import has_decimal_comma

Ids = np.ndarray[Any, Any]  # integers, or text
_LARGEST = np.iinfo(np.int64).max
LONGEST_ID = 1_000  # characters: every id of a column takes as much memory as the longest one


def is_padded(ids: Ids) -> bool:
    """Whether an id among texts of integers has leading zeros."""
    return any(re.match("[-+]?0[0-9]", text.strip()) for text in ids.tolist())


def is_number(text: str) -> bool:
    """Whether Python reads a text as a number, perhaps nan or inf."""
    try:
        float(text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1 << 16)  # most fields come again
def unreadable(text: str, kind: Literal["number", "id", "text"]) -> str | None:
    """Why a field is not a valid number, id or text; None if it is valid."""
    if len(text) > LONGEST_ID:
        return f"has {len(text):,} characters: at most {LONGEST_ID:,} are allowed"
    if kind == "text":
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            return "has a lone surrogate, which no file can hold"
        return "is empty" if not text else "holds a zero byte" if "\x00" in text else None
    return _not_a_number(text) if kind == "number" else _not_whole(text)


def _not_a_number(text: str) -> str | None:
    """Why a field is not a number in the digits 0 to 9; None if it is one."""
    if has_decimal_comma(text):
        return "is no number: write a decimal point instead of the comma"
    try:
        wrong = "_" in text or np.isnan(float(text))  # Python would accept _ as a thousands separator
    except ValueError:
        wrong = True
    return "is no number" if wrong else _foreign(text)


def _not_whole(text: str) -> str | None:
    """Why a field is not an integer of 64 bits in the digits 0 to 9; None if it is one."""
    try:
        number = None if "_" in text else int(text)
    except ValueError:
        number = None
    if number is None:
        return "is no whole number"
    return _foreign(text) if -_LARGEST - 1 <= number <= _LARGEST else "does not fit into 64 bits"


def _foreign(text: str) -> str | None:
    """Why a number is written wrongly: Python reads digits of all scripts, pandas only those of ASCII."""
    return None if text.isascii() else "is not written with the digits 0 to 9"
