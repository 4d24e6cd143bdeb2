"""Arrays that are kept in files and mapped into memory, so that large data need not fit into memory.

A `Pile` takes an array block by block. Once it is large it goes on in a temporary file without a name, of which the
system disposes when the array is no longer used, however the process ends. `mapped` maps a part of an existing file.
The system reads and drops the pages of a mapped array as it needs, so such arrays are read in pieces, in order.
"""

import mmap
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from rankbench.core.errors import writing_to

Array = npt.NDArray[Any]
LARGE = 1 << 27  # bytes from which an array is kept in a file
PIECE = 1 << 22  # elements to look at together
_ROOM = "make room there, or set TMPDIR to another folder"


class FileMap(mmap.mmap):
    """The mapping of a file that nobody changes, so that arrays in it need no copy."""


class Pile:
    """A vector or matrix that is made of blocks of rows; kept in memory while it is small, and in a file afterwards.

    A block that was added must not be changed.
    """

    def __init__(self, dtype: npt.DTypeLike, row: tuple[int, ...] = ()) -> None:
        self._dtype, self._row = np.dtype(dtype), row  # `row` is the shape of a row: empty for a vector
        self._blocks: list[Array] = []
        self._size = 0  # bytes
        self._file: IO[bytes] | None = None

    def add(self, block: Array) -> None:
        """Append rows."""
        block = np.ascontiguousarray(block, self._dtype)
        self._size += block.nbytes
        self._blocks.append(block)
        if self._size >= LARGE:
            self._write()

    def array(self) -> Array:
        """All rows, read-only; the pile must not be used afterwards."""
        if self._file is None:
            whole = self._blocks[0] if len(self._blocks) == 1 else np.concatenate([self._none(), *self._blocks])
            whole.flags.writeable = False
            return whole
        with self._file, writing_to(_folder(), _ROOM):
            self._file.flush()
            return mapped(self._file, self._dtype, (-1, *self._row))

    def _none(self) -> Array:
        """An array without a row."""
        return np.empty((0, *self._row), self._dtype)

    def _write(self) -> None:
        """Move the blocks to the file."""
        with writing_to(_folder(), _ROOM):
            self._file = self._file or tempfile.TemporaryFile(dir=_folder())
            for block in self._blocks:
                self._file.write(block.data)
        self._blocks.clear()


def mapped(file: IO[bytes], dtype: npt.DTypeLike, shape: tuple[int, ...], start: int = 0) -> Array:
    """The array of this type and shape (-1: as many rows as there are) from a place in a file to which nobody writes.

    The mapping stays when the file is closed or its name is removed.
    """
    page = start - start % mmap.ALLOCATIONGRANULARITY
    size = os.fstat(file.fileno()).st_size - page
    row = int(np.prod(shape[1:], dtype=np.int64))
    count = -1 if shape[0] < 0 else shape[0] * row
    pages = FileMap(file.fileno(), size, access=mmap.ACCESS_READ, offset=page)
    return np.frombuffer(pages, dtype, count, start - page).reshape(shape)


def home_of(array: object) -> FileMap | None:
    """The mapping that an array is a part of, or None if it is kept in memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    found = array.obj if isinstance(array, memoryview) else None
    return found if isinstance(found, FileMap) else None


def put_aside(*arrays: object) -> None:
    """Tell the system that the pages of mapped arrays are not needed now; they stay readable. Others are left alone."""
    for array in arrays:
        if home := home_of(array):
            home.madvise(mmap.MADV_DONTNEED)


def pieces(array: Array) -> Iterator[Array]:
    """The elements of a contiguous array in order, as vectors of at most `PIECE` elements, put aside after use."""
    flat = array.reshape(-1)
    for start in range(0, len(flat), PIECE):
        yield flat[start : start + PIECE]
        put_aside(array)


def _folder() -> Path:
    """Where large temporary files go: TMPDIR, or else /var/tmp, since many systems keep /tmp in memory."""
    usual = Path("/var/tmp")
    return usual if "TMPDIR" not in os.environ and os.access(usual, os.W_OK) else Path(tempfile.gettempdir())
