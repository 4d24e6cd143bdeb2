"""Saving frozen dataclasses of arrays to npz files without pickle, reading them back, and hashing them."""

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
import scipy.sparse

from rankbench.errors import UserError
from rankbench.leftovers import partial_of

T = TypeVar("T")
Array = npt.NDArray[Any]
Arrays = dict[str, Array]
LARGEST = 1e30  # the largest number in data, either sign: products of several such numbers do not overflow
_CSR_PARTS = ("data", "indices", "indptr", "shape")


def pack(record: object, prefix: str = "") -> Arrays:
    """The fields of a dataclass as named arrays; a CSR matrix becomes four, None is left out."""
    if not is_dataclass(record):
        raise TypeError(f"a {type(record).__name__} cannot be packed")
    packed: Arrays = {f"{prefix}kind": np.array(type(record).__name__)}
    for field in fields(record):
        value, name = getattr(record, field.name), prefix + field.name
        if scipy.sparse.issparse(value):
            packed |= {f"{name}.{part}": np.asarray(getattr(value, part)) for part in _CSR_PARTS}
        elif value is not None:
            packed[name] = np.asarray(value)
    return packed


def unpack(arrays: Mapping[str, Any], kinds: Mapping[str, type], prefix: str = "") -> Any:
    """The dataclass that `pack` turned into arrays; `kinds` maps the allowed class names to their classes."""
    cls = kinds[str(arrays[f"{prefix}kind"])]
    values = {}
    for field in fields(cls):
        name = prefix + field.name
        if f"{name}.data" in arrays:
            values[field.name] = _csr(name, *(arrays[f"{name}.{part}"] for part in _CSR_PARTS))
        elif name in arrays:
            array = arrays[name]
            values[field.name] = array.item() if array.ndim == 0 else array
    return cls(**values)


def as_kernels_take(values: npt.ArrayLike, dtype: npt.DTypeLike) -> Array:
    """The values as a contiguous array of this type at an address that C allows for it, copied only where needed."""
    array = np.ascontiguousarray(values, dtype)
    return array if array.flags.aligned else array.copy()


class _Seal:
    """Holds an array; NumPy refuses to make an array writable again whose memory it got from here."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, True)}


def sealed(array: Array) -> Array:
    """An array of the same memory that is read-only for good; the given array becomes read-only too.

    Only for arrays that were just made and that nobody else keeps: who owns an array can make it writable again, and
    that would change the sealed one. A data view keeps sealed arrays, and copies all others.
    """
    if is_sealed(array):
        return array
    part: object = array
    while isinstance(part, np.ndarray):
        part.flags.writeable = False
        part = part.base
    return np.asarray(_Seal(array))


def is_sealed(array: Array) -> bool:
    """Whether an array is one that `sealed` returned, or a view of one.

    Other arrays that are read-only may be written to nevertheless: their owner can make them writable again.
    """
    part: object = array
    while isinstance(part, np.ndarray):
        part = part.base
    return isinstance(part, _Seal)


def _csr(name: str, data: Array, indices: Array, indptr: Array, shape: Array) -> scipy.sparse.csr_array:
    """The CSR matrix made of these parts; an index outside its shape is an error."""
    for part, array in (("indices", indices), ("indptr", indptr), ("shape", shape)):
        if array.dtype.kind not in "iu":  # scipy would round other numbers silently
            raise UserError(f"{name}.{part} holds {array.dtype}: it must hold integers")
    if shape.shape != (2,):
        raise UserError(f"{name}.shape has {shape.size} numbers: it must have two")
    try:
        matrix = scipy.sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        matrix.check_format()
    except (ValueError, TypeError, OverflowError) as error:
        raise UserError(f"{name} is not a valid sparse matrix: {error}") from None
    return matrix


def write_npz(path: Path, arrays: Arrays) -> None:
    """Write arrays to an uncompressed npz file under a temporary name, then rename it once it is complete."""
    partial = partial_of(path)  # a name per process: two processes may write the same cache
    try:
        with partial.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_npz(path: Path) -> Arrays:
    """All arrays of an npz file; pickled arrays are refused, and a damaged file is an error with its path."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (ValueError, TypeError, EOFError, RuntimeError, MemoryError, OverflowError, BadZipFile) as error:
        raise UserError(f"{path} is damaged or not an npz file of plain arrays: {error}") from error


def fingerprint(*records: object) -> str:
    """SHA-256 of the names, types, shapes and bytes of all arrays in the records."""
    digest = hashlib.sha256()
    for record in records:
        for name, array in sorted(pack(record).items()):
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
