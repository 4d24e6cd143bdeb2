"""Files of arrays that only rankbench reads, such as a split that many processes read: large arrays are mapped.

    12 bytes     the length and the checksum of the table
    the table    in JSON, for each array its name, type, shape, place and checksum
    the arrays   each at a multiple of 64 bytes; arrays that are the same memory are written once

A split is read by each cell's process, and there an npz file of small arrays takes twice as long: a process that was
forked copies the memory of each function that it calls for the first time.
"""

import json
import struct
import zlib
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from rankbench.arrays import mapped
from rankbench.arrays.npz import Array, Arrays, sealed
from rankbench.core.errors import UserError
from rankbench.core.leftovers import replacing
from rankbench.core.regular import opened

_HEAD = struct.Struct("<QI")
_LINE = 64  # bytes
_KINDS = "biufU"  # of numbers and texts, which hold no addresses
_DAMAGED = (ValueError, TypeError, IndexError, OverflowError, MemoryError, RecursionError, struct.error)


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write arrays of numbers and texts under a temporary name, then rename the file once it is complete."""
    table: list[tuple[Any, ...]] = []
    written: dict[tuple[Any, ...], tuple[int, int]] = {}  # by the place in memory: the place in the file, the checksum
    kept: list[Array] = []
    end = 0
    for name, given in arrays.items():
        if given.dtype.kind not in _KINDS:
            raise TypeError(f"{name} holds {given.dtype}: only numbers and texts are written")
        memory = given.__array_interface__["data"], given.dtype.str, given.shape, given.strides
        if memory not in written:
            array = np.ascontiguousarray(given)
            written[memory] = end, _checksum(array)
            kept.append(array)
            end += _in_lines(array.nbytes)
        table.append((name, given.dtype.str, given.shape, *written[memory]))
    text = json.dumps(table).encode()
    with replacing(path) as partial, partial.open("r+b") as file:  # "wb" would let ext4 wait for the disk in the end
        _write(file, _HEAD.pack(len(text), zlib.crc32(text)) + text)
        for array in kept:
            _write(file, _bytes(array).data)


def read_arrays(path: Path) -> Arrays:
    """All arrays of a file that is only ever replaced as a whole, read-only; large ones are mapped, and not read."""
    try:
        with opened(path) as file:
            table, start = _table(file)
            found: Arrays = {}
            known: dict[tuple[Any, ...], Array] = {}  # arrays that were the same memory are so again
            for name, kind, shape, place, checksum in table:
                about = np.dtype(kind), tuple(shape), start + place
                known[about] = found[name] = known[about] if about in known else _array(file, *about)
                if _checksum(found[name]) != checksum:
                    raise ValueError(f"the bytes of {name} have changed")
            return found
    except _DAMAGED as error:
        raise UserError(f"{path} is damaged: {error}") from error


def _table(file: IO[bytes]) -> tuple[Any, int]:
    """The table, and where the arrays begin."""
    length, checksum = _HEAD.unpack(file.read(_HEAD.size))
    text = file.read(length)
    if zlib.crc32(text) != checksum:
        raise ValueError("the bytes of its table have changed")
    return json.loads(text), _in_lines(_HEAD.size + length)


def _array(file: IO[bytes], kind: np.dtype[Any], shape: tuple[int, ...], place: int) -> Array:
    """The array at this place of the file."""
    if kind.kind not in _KINDS or place < 0:
        raise ValueError(f"it holds {kind} at {place}")
    size = kind.itemsize * prod(shape)
    if size >= mapped.LARGE:
        return mapped.mapped(file, kind, shape, place)
    file.seek(place)
    return sealed(np.ndarray(shape, kind, file.read(size)))


def _checksum(array: Array) -> int:
    """The CRC-32 of the bytes of a contiguous array."""
    found = 0
    for piece in mapped.pieces(_bytes(array)):
        found = zlib.crc32(piece.data, found)
    return found


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _in_lines(size: int) -> int:
    """This number of bytes, rounded up to whole lines."""
    return size + -size % _LINE


def _write(file: IO[bytes], data: bytes | memoryview) -> None:
    """Write data, and fill the last line with zeros."""
    file.write(data)
    file.write(bytes(-len(data) % _LINE))
