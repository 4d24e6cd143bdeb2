"""The order of rows by a whole number each, in linear time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

_MOST = np.iinfo(np.int32).max  # rows that SciPy numbers by 32 bits; beyond, it would take more memory than sorting
_BLOCK = 1 << 16  # rows to look at together
_SPARSE = 4  # codes for each row from which the memory of counting is out of proportion

Codes = npt.NDArray[Any]


def order_of(codes: Codes, n_codes: int) -> Codes:
    """The rows by their codes, which are at least 0 and below `n_codes`; those of equal codes stay in their order.

    It is `np.argsort(codes, kind="stable")`, which takes several times as long for many rows: here they are counted, as
    SciPy does where it lists the rows of a matrix by columns.
    """
    if len(codes) and not (0 <= codes.min() and codes.max() < n_codes):  # SciPy would write beyond its arrays
        raise ValueError(f"codes from {codes.min()} to {codes.max()}, and not from 0 to {n_codes - 1}")
    if len(codes) > _MOST or n_codes > _SPARSE * len(codes):
        return np.argsort(codes, kind="stable")
    ones, ends = np.ones(len(codes), np.int8), np.arange(len(codes) + 1, dtype=np.int32)
    by_row = scipy.sparse.csr_array((ones, codes, ends), shape=(len(codes), n_codes))
    order: Codes = by_row.tocsc().indices
    return order


def lexical_order(*columns: tuple[Codes, int]) -> Codes:
    """The rows by several codes, the first one first, each given with the number that all of its codes are below."""
    (codes, n_codes), *before = reversed(columns)
    order = order_of(codes, n_codes)
    for codes, n_codes in before:
        order = order[order_of(codes[order], n_codes)]
    return order


def ascend(*columns: Codes) -> bool:
    """Whether every row is above the one before, by several columns of numbers, the first one first.

    Block by block, so that what is computed stays in a cache.
    """
    starts = range(0, len(columns[0]), _BLOCK)
    return all(_ascend([column[start : start + _BLOCK + 1] for column in columns]) for start in starts)


def _ascend(columns: Sequence[Codes]) -> bool:
    """Whether every row of a block is above the one before."""
    above, level = np.zeros(len(columns[0]) - 1, bool), np.ones(len(columns[0]) - 1, bool)
    for column in columns:
        above |= level & (column[1:] > column[:-1])
        level &= column[1:] == column[:-1]
    return bool(above.all())
