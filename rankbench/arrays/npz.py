"""Saving frozen dataclasses of arrays to npz files without pickle, reading them back, and hashing them."""

import hashlib
import struct
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import IO, Any, TypeVar
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt
import scipy.sparse

from rankbench.arrays.mapped import home_of, pieces
from rankbench.core.errors import UserError
from rankbench.core.leftovers import replacing
from rankbench.core.regular import opened

T = TypeVar("T")
Array = npt.NDArray[Any]
Arrays = dict[str, Array]
LARGEST = 1e30  # the largest number in data, either sign: products of several such numbers do not overflow
_CSR_PARTS = ("data", "indices", "indptr", "shape")
_BLOCK = 1 << 20  # bytes to read at a time
_UNPACKED = 256 << 20  # bytes that arrays may take beyond those of their file, which is not compressed by rankbench
_DAMAGED = (ValueError, TypeError, EOFError, RuntimeError, MemoryError, OverflowError, BadZipFile, struct.error)


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
    given = np.asarray(values)
    if given.dtype.kind == "c":
        raise UserError(f"the values are of type {given.dtype}: they must be real numbers")
    array = np.ascontiguousarray(given, dtype)
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
    return isinstance(part, _Seal) or home_of(array) is not None  # a mapped file cannot be written to


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
    with (
        replacing(path) as partial,  # a name of its own: two processes may write the same cache
        partial.open("wb") as file,
        ZipFile(file, "w", ZIP_STORED) as archive,
    ):
        for name, array in arrays.items():
            with archive.open(ZipInfo(f"{name}.npy"), "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)


def read_npz(path: Path, most: int | None = None) -> Arrays:
    """All arrays of an npz file of at most so many bytes; pickled arrays are refused, and so are those that unpack to
    far more than the file has. A damaged file is an error with its path.
    """
    try:
        with opened(path, most) as file, ZipFile(file) as archive:
            _refuse_unpacking(path, file, archive)
            return {entry.filename.removesuffix(".npy"): _array(archive, entry) for entry in archive.infolist()}
    except _DAMAGED as error:
        raise UserError(f"{path} is damaged or not an npz file of plain arrays: {error}") from error


def _refuse_unpacking(path: Path, file: IO[bytes], archive: ZipFile) -> None:
    """Raise an error if an array begins before the file, or all would take far more memory than the file has bytes."""
    if any(entry.header_offset < 0 for entry in archive.infolist()):
        raise BadZipFile("its beginning is missing")
    unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > file.seek(0, 2) + _UNPACKED:
        raise UserError(f"{path} would unpack to {unpacked:,} bytes: it is no file of rankbench")


def _array(archive: ZipFile, entry: ZipInfo) -> Array:
    """The array of a zip entry, read; small ones by headers that were read before, as thousands are alike."""
    array: Array
    if entry.file_size > _BLOCK:
        with archive.open(entry) as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
        return array
    content = archive.read(entry)
    wide = content[6:7] > b"\x01"  # its version: the length of the header has two bytes in the first, then four
    start = struct.unpack_from("<I" if wide else "<H", content, 8)[0] + (12 if wide else 10)
    shape, by_column, dtype = _of_header(content[:start])
    array = np.ndarray(shape, dtype, content, start, order="F" if by_column else "C")
    return array.copy("K")


@lru_cache(1 << 10)
def _of_header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape of an array, whether it lies by columns, and its type, by the header of its entry."""
    stream = BytesIO(header)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_column, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("pickled arrays are refused")
    return shape, by_column, dtype


def fingerprint(*records: object) -> str:
    """SHA-256 of the names, types, shapes and bytes of all arrays in the records."""
    return fingerprint_of(*map(pack, records))


def fingerprint_of(*packed: Arrays) -> str:
    """SHA-256 of the names, types, shapes and bytes of named arrays, in the order of their names."""
    digest = hashlib.sha256()
    for arrays in packed:
        for name, array in sorted(arrays.items()):
            digest.update(_heading(name, array.dtype, array.shape))
            for piece in pieces(np.ascontiguousarray(array)):
                digest.update(piece.data)
    return digest.hexdigest()


def fingerprint_in_pieces(record: object, last: str, rows: int, pieces: Iterable[Array]) -> str:
    """The fingerprint of the record whose field `last`, by name the last one, has these pieces of so many rows in all.

    The record holds that field without any row; one piece at a time is in memory.
    """
    digest, arrays = hashlib.sha256(), pack(record)
    empty = arrays.pop(last)
    for name, array in sorted(arrays.items()):
        digest.update(_heading(name, array.dtype, array.shape))
        digest.update(np.ascontiguousarray(array).data)
    digest.update(_heading(last, empty.dtype, (rows, *empty.shape[1:])))
    for piece in pieces:
        digest.update(np.ascontiguousarray(piece).data)
    return digest.hexdigest()


def _heading(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    return f"{name} {dtype.str} {shape}".encode()
