"""The distinct values of a long array, and where others are among them."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Values = TypeVar("Values", bound=Array)

_SPAN = 8  # whole numbers from the lowest value to the highest for each value, at most, for which a table is made


def distinct(values: Values) -> Values:
    """The distinct values, ascending, as `np.unique` gives them; it hashes integers, ten times slower than sorting."""
    found = _noted(values)
    if found is None:
        found = np.sort(values, axis=None)
        if len(found):
            found = found[np.concatenate([[True], found[1:] != found[:-1]])]
    return found  # type: ignore[no-any-return]


def _noted(values: Array) -> Any:
    """The distinct values among whole numbers that lie close together, noted in a table, which is faster than sorting.

    None of others.
    """
    if values.dtype.kind not in "iu" or values.dtype == np.uint64 or not values.size:
        return None
    low, high = int(values.min()), int(values.max())
    if high - low > _SPAN * values.size:
        return None
    there = np.zeros(high - low + 1, bool)
    there[values.astype(np.int64) - low] = True
    return (np.flatnonzero(there) + low).astype(values.dtype)


def places_among(known: Array, asked: Array, order: Array | None = None) -> tuple[Array, Array]:
    """The place of each value among the known ones, and whether it is there; `order` sorts the known ones if needed.

    Integers are compared as such: NumPy would search signed ones among unsigned ones as floats, and miss some.
    """
    sought = asked.astype(known.dtype) if known.dtype.kind in "iu" and asked.dtype.kind in "iu" else asked
    found = np.minimum(np.searchsorted(known, sought, sorter=order), len(known) - 1)
    places = found if order is None else order[found]
    return places, known[places] == asked
