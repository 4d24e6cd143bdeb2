"""Parts of a column of Arrow: without dictionaries, and their times."""

from contextlib import suppress
from typing import Any

import numpy as np

from rankbench.core.contract import Int64s
from rankbench.data.tables import times
from rankbench.data.tables.times import Kind, kind_of


def plain(part: Any) -> Any:
    """A part of a column without a dictionary, and with texts in one piece, of which Polars writes views."""
    from pyarrow import large_string, types  # noqa: PLC0415  an optional package

    part = part.dictionary_decode() if types.is_dictionary(part.type) else part
    return part.cast(large_string()) if str(part.type) == "string_view" else part


def is_text(part: Any) -> bool:
    """Whether a part of a column holds texts."""
    from pyarrow import types  # noqa: PLC0415  an optional package

    return bool(types.is_string(part.type) or types.is_large_string(part.type))


def numbers_in(part: Any) -> Any:
    """The numbers in a part of a column in which none is missing, which share its memory.

    Its own method, `to_numpy`, would import pandas first, which takes a quarter of a second.
    """
    return np.from_dlpack(part)


def kind_in(part: Any) -> Kind:
    """How the times in a column of texts are written, as its first part tells; empty if they are no texts."""
    part = plain(part)
    return kind_of(part[0].as_py() or "") if is_text(part) else ""


def texts_in(part: Any) -> list[str]:
    """The texts in a part of a column, empty where one is missing."""
    return [text or "" for text in plain(part).to_pylist()]


def are_times(part: Any, number: int) -> bool:
    """Whether the first values of a part of a column that holds no texts are times, so many of them."""
    return as_times(part.slice(0, number), "") is not None


def as_times(part: Any, kind: Kind) -> Int64s | None:
    """The times in a part of a column, of texts of this kind; None if they are neither whole numbers nor dates, or one
    is missing. Texts may have two readings, as `tables.times` has them.
    """
    from pyarrow import ArrowInvalid, int64, timestamp, types  # noqa: PLC0415  an optional package

    part = plain(part)
    with suppress(ValueError, OverflowError):
        if kind:
            return times.as_times(np.array(texts_in(part)), kind)
        if types.is_floating(part.type) and not part.null_count:
            return times.whole(numbers_in(part).astype(np.float64))
    if part.null_count or not (
        types.is_integer(part.type) or types.is_timestamp(part.type) or types.is_date(part.type)
    ):
        return None
    dates = part if types.is_integer(part.type) else part.cast(timestamp("us"), safe=False)
    try:
        found: Int64s = numbers_in(dates.cast(int64()))
    except ArrowInvalid:  # a number beyond 64 bits with a sign
        return None
    return found
