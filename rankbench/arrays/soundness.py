"""Checks of arrays that were read from a file: types, shapes, and indices that stay within bounds.

Kernels do not check indices themselves. Arrays made by solvers are valid; arrays in a file may hold anything.
"""

import numpy as np
import scipy.sparse

from rankbench.arrays.npz import Array
from rankbench.core.errors import UserError

Type = type[np.generic] | None  # of the elements; None: any
_SURROGATES = (0xD800, 0xDFFF)  # the first and the last code of a half of a character


def numbers(name: str, array: object, *shape: int | None) -> tuple[int, ...]:
    """The shape of an array of real numbers, checked against `shape`; None stands for any length."""
    return _array(name, array, "iuf", "real numbers", shape).shape


def doubles(name: str, array: object, *shape: int | None) -> tuple[int, ...]:
    """The shape of an array of float64, checked against `shape`; None stands for any length."""
    return _exactly(name, _array(name, array, "iuf", "real numbers", shape), np.float64).shape


def ids(name: str, array: object, size: int, *shape: int | None, dtype: Type = None) -> tuple[int, ...]:
    """The shape of an array of integers from 0 to size - 1, checked against `shape`, and the `dtype` if given."""
    return _ids(name, array, size, shape, dtype).shape


def pointers(name: str, array: object, rows: int, entries: int, dtype: Type = None) -> None:
    """Refuse an array that is not a valid CSR `indptr` for this number of rows and entries."""
    found = _ids(name, array, entries + 1, (rows + 1,), dtype)
    if found[0] != 0 or found[-1] != entries:
        raise UserError(f"{name} runs from {found[0]} to {found[-1]}: it must run from 0 to {entries}")
    if (falls := np.flatnonzero(found[1:] < found[:-1])).size:
        raise UserError(f"{name} decreases after row {falls[0]}: it must never decrease")


def features(
    name: str, matrix: Array | scipy.sparse.csr_array, rows: int | None = None, columns: int | None = None
) -> tuple[int, ...]:
    """The shape of a dense or CSR matrix, checked; the indices of a CSR matrix are checked when it is read."""
    if not scipy.sparse.issparse(matrix):
        return numbers(name, matrix, rows, columns)
    numbers(f"{name}.data", matrix.data, None)
    return _fitting(name, matrix.shape, (rows, columns))


def first_unwritable(texts: Array) -> str | None:
    """The first of these texts with a lone surrogate, half of a character that no UTF-8 file can hold, or None."""
    letters = np.ascontiguousarray(texts, texts.dtype.newbyteorder("=")).view(np.uint32)
    if not letters.size or letters.max() < _SURROGATES[0]:
        return None
    rows = letters.reshape(len(texts), -1)
    wrong = ((rows >= _SURROGATES[0]) & (rows <= _SURROGATES[1])).any(axis=1)
    return str(texts[np.argmax(wrong)]) if wrong.any() else None


def _ids(name: str, array: object, size: int, shape: tuple[int | None, ...], dtype: Type) -> Array:
    found = _array(name, array, "iu", "integers", shape)
    if found.size and not 0 <= found.min() <= found.max() < size:
        wrong = found.min() if found.min() < 0 else found.max()
        raise UserError(f"{name} holds {wrong}: {f'ids run from 0 to {size - 1}' if size else 'there is nothing'}")
    return found if dtype is None else _exactly(name, found, dtype)


def _array(name: str, array: object, kinds: str, what: str, shape: tuple[int | None, ...]) -> Array:
    """The array itself, if it holds numbers of these kinds in this shape."""
    if not isinstance(array, np.ndarray):
        raise UserError(f"{name} is not an array")
    if array.dtype.kind not in kinds:
        raise UserError(f"{name} holds {array.dtype}: it must hold {what}")
    _fitting(name, array.shape, shape)
    return array


def _fitting(name: str, found: tuple[int, ...], shape: tuple[int | None, ...]) -> tuple[int, ...]:
    """The shape `found` if it agrees with `shape`, else an error."""
    if len(found) != len(shape) or any(size not in (None, own) for size, own in zip(shape, found, strict=True)):
        wanted = " x ".join("any" if size is None else str(size) for size in shape)
        raise UserError(f"{name} has the shape {' x '.join(map(str, found)) or 'of a number'}: it must be {wanted}")
    return found


def _exactly(name: str, array: Array, dtype: type[np.generic]) -> Array:
    if array.dtype != dtype:
        raise UserError(f"{name} holds {array.dtype}: it must hold {np.dtype(dtype)}")
    return array
