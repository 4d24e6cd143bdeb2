"""The layout of a text file of rows: its fields, their separator, and the values that are allowed."""

from dataclasses import dataclass

import numpy as np

from rankbench.data.tables.times import Kind

UNIT = "\x1f"  # the ASCII unit separator, which does not occur in text


@dataclass(frozen=True)
class Layout:
    """The layout of a text file: which fields to read, their separator, and the allowed values."""

    fields: tuple[int, ...] = (0, 1, 2)  # indices of the ids, then of the value if `valued`
    separator: str = ","
    header: int = 0  # number of lines before the first row
    encoding: str = "utf-8"
    names: tuple[str, ...] = ("user", "item", "rating")
    valued: bool = True  # the last field is a number, not an id
    scale: tuple[float, float] = (-np.inf, np.inf)
    step: float | None = None  # distance between allowed values; None: every number on the scale is allowed
    text_ids: bool = False
    quoted: bool = False
    escape: str | None = None  # the character that escapes a quote within quotes
    strict: bool = False  # a user's own file: control characters are errors wherever they are
    width: int = 0  # the number of fields of every line, if the header tells it
    time: int | None = None  # the field with the time of the row, which is read if every row has one
    decimal: str = "."  # the letter before the decimals of a value
    drop_missing: bool = False  # rows without a value or an id are left out, instead of being an error
    times: Kind = "digits"  # how times are written

    @property
    def of_ids(self) -> tuple[int, ...]:
        """Indices of the fields with ids."""
        return self.fields[:-1] if self.valued else self.fields

    @property
    def may_drop(self) -> bool:
        """Whether a user may ask that rows without a value or an id are left out: only of own ratings or clicks."""
        return self.strict and self.names[:2] == ("user", "item")


def letter_of(separator: str) -> str:
    """The single character that stands for a separator while the C parser reads."""
    return separator if len(separator) == 1 else UNIT


def out_of_range(value: float, layout: Layout) -> str:
    """The error text for a value that is not on the scale."""
    must = f"must be {_in_words(*layout.scale)}" + (f" in steps of {layout.step:g}" if layout.step else "")
    return f"{layout.names[-1]} {value:g} is out of range: {must}"


def _in_words(low: float, high: float) -> str:
    """A scale as text; either end may be infinite."""
    if np.isinf(low) and np.isinf(high):
        return "finite"
    if np.isinf(high):
        return f"at least {low:g}"
    return f"at most {high:g}" if np.isinf(low) else f"from {low:g} to {high:g}"
