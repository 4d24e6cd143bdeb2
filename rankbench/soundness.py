"""Checks of arrays that were read from a file: types, shapes, and indices that stay within bounds.

Kernels do not check indices themselves. Arrays made by solvers are valid; arrays in a file may hold anything.
"""

from typing import Any

import numpy as np
import scipy.sparse

from rankbench.errors import UserError


def numbers(name: str, array: Any, *shape: int | None) -> tuple[int, ...]:
    """The shape of an array of real numbers, checked against `shape`; None stands for any length."""
    return _array(name, array, "iuf", "real numbers", shape)


def doubles(name: str, array: Any, *shape: int | None) -> tuple[int, ...]:
    """The shape of an array of float64, checked against `shape`; None stands for any length."""
    found = numbers(name, array, *shape)
    return _exactly(name, array, np.float64, found)


def ids(name: str, array: Any, size: int, *shape: int | None, dtype: Any = None) -> tuple[int, ...]:
    """The shape of an array of integers from 0 to size - 1, checked against `shape`, and the `dtype` if given."""
    found = _array(name, array, "iu", "integers", shape)
    if array.size and not 0 <= array.min() <= array.max() < size:
        wrong = array.min() if array.min() < 0 else array.max()
        raise UserError(f"{name} holds {wrong}: {f'ids run from 0 to {size - 1}' if size else 'there is nothing'}")
    return found if dtype is None else _exactly(name, array, dtype, found)


def pointers(name: str, array: Any, rows: int, entries: int, dtype: Any = None) -> None:
    """Refuse an array that is not a valid CSR `indptr` for this number of rows and entries."""
    ids(name, array, entries + 1, rows + 1, dtype=dtype)
    if array[0] != 0 or array[-1] != entries:
        raise UserError(f"{name} runs from {array[0]} to {array[-1]}: it must run from 0 to {entries}")
    if (falls := np.flatnonzero(array[1:] < array[:-1])).size:
        raise UserError(f"{name} decreases after row {falls[0]}: it must never decrease")


def features(name: str, matrix: Any, rows: int | None = None, columns: int | None = None) -> tuple[int, ...]:
    """The shape of a dense or CSR matrix, checked; the indices of a CSR matrix are checked when it is read."""
    if not scipy.sparse.issparse(matrix):
        return numbers(name, matrix, rows, columns)
    numbers(f"{name}.data", matrix.data, None)
    return _fitting(name, matrix.shape, (rows, columns))


def _array(name: str, array: Any, kinds: str, what: str, shape: tuple[int | None, ...]) -> tuple[int, ...]:
    if not isinstance(array, np.ndarray):
        raise UserError(f"{name} is not an array")
    if array.dtype.kind not in kinds:
        raise UserError(f"{name} holds {array.dtype}: it must hold {what}")
    return _fitting(name, array.shape, shape)


def _fitting(name: str, found: tuple[int, ...], shape: tuple[int | None, ...]) -> tuple[int, ...]:
    """The shape `found` if it agrees with `shape`, else an error."""
    if len(found) != len(shape) or any(size not in (None, own) for size, own in zip(shape, found, strict=True)):
        wanted = " x ".join("any" if size is None else str(size) for size in shape)
        raise UserError(f"{name} has the shape {' x '.join(map(str, found)) or 'of a number'}: it must be {wanted}")
    return found


def _exactly(name: str, array: Any, dtype: Any, found: tuple[int, ...]) -> tuple[int, ...]:
    if array.dtype != dtype:
        raise UserError(f"{name} holds {array.dtype}: it must hold {np.dtype(dtype)}")
    return found
