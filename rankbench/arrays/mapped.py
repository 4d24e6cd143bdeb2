"""Arrays that are kept in files and mapped into memory, so that large data need not fit into memory.

A `Pile` takes an array block by block. Once it is large it goes on in a temporary file without a name, of which the
system disposes when the array is no longer used, however the process ends. `zeros` and `empty` make an array to work
in, which is kept in such a file if it is large for this machine. `mapped` maps a part of an existing file. The system
reads and drops the pages of a mapped array as it needs. While there are large ones, a thread gives their pages back to
the system whenever many are in memory; what was written to them stays in the file.
"""

import math
import mmap
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from rankbench.core import system
from rankbench.core.errors import writing_to

Array = npt.NDArray[Any]
LARGE = 1 << 27  # bytes from which an array is kept in a file
SHARE = 1 / 8  # of the machine's memory: an array to work in that takes more is kept in a file
RESIDENT = 1 << 29  # bytes of mapped files in memory at which the pages of large ones are given back
_INTERVAL = 0.02  # seconds between two looks at how many there are
PIECE = 1 << 22  # elements to look at together
_ROOM = "make room there, or set TMPDIR to another folder"


class FileMap(mmap.mmap):
    """The mapping of a file that nobody changes, so that arrays in it need no copy."""


class _Work(mmap.mmap):
    """The mapping of a file without a name that is written to."""


_large: "weakref.WeakSet[mmap.mmap]" = weakref.WeakSet()  # the mappings of large files
_watcher = 0  # the process with a thread that gives their pages back; after a fork it is another one


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


def zeros(shape: int | tuple[int, ...], dtype: npt.DTypeLike, share: float = SHARE) -> Array:
    """An array of zeros to work in; one that takes more than this share of the memory is kept in a file."""
    found = _in_file(shape, dtype, share)
    return np.zeros(shape, dtype) if found is None else found


def empty(shape: int | tuple[int, ...], dtype: npt.DTypeLike, share: float = SHARE) -> Array:
    """The same with any content, for who writes all of it."""
    found = _in_file(shape, dtype, share)
    return np.empty(shape, dtype) if found is None else found


def _in_file(shape: int | tuple[int, ...], dtype: npt.DTypeLike, share: float) -> Array | None:
    """An array of zeros in a file, or None if it is small for this machine."""
    size = math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize
    if size < LARGE or size < share * system.total_memory():
        return None
    with writing_to(_folder(), _ROOM), tempfile.TemporaryFile(dir=_folder()) as file:
        system.reserve(file.fileno(), size)
        return np.frombuffer(_watched(_Work(file.fileno(), size)), dtype).reshape(shape)


def mapped(file: IO[bytes], dtype: npt.DTypeLike, shape: tuple[int, ...], start: int = 0) -> Array:
    """The array of this type and shape (-1: as many rows as there are) from a place in a file to which nobody writes.

    The mapping stays when the file is closed or its name is removed.
    """
    page = start - start % mmap.ALLOCATIONGRANULARITY
    size = os.fstat(file.fileno()).st_size - page
    row = int(np.prod(shape[1:], dtype=np.int64))
    count = -1 if shape[0] < 0 else shape[0] * row
    pages = _watched(FileMap(file.fileno(), size, access=mmap.ACCESS_READ, offset=page))
    return np.frombuffer(pages, dtype, count, start - page).reshape(shape)


def home_of(array: object) -> FileMap | None:
    """The mapping that an array is a part of, or None if it is kept in memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    found = array.obj if isinstance(array, memoryview) else None
    return found if isinstance(found, FileMap) else None


def pieces(array: Array) -> Iterator[Array]:
    """The elements of a contiguous array in order, as vectors of at most `PIECE` elements."""
    flat = array.reshape(-1)
    for start in range(0, len(flat), PIECE):
        yield flat[start : start + PIECE]


def _watched(pages: mmap.mmap) -> mmap.mmap:
    """The same mapping; if it is large, its pages are given back from time to time."""
    global _watcher  # noqa: PLW0603
    if len(pages) >= LARGE:
        _large.add(pages)
        if _watcher != os.getpid():
            _watcher = os.getpid()
            threading.Thread(target=_give_back, name="mapped files", daemon=True).start()
    return pages


def _give_back() -> None:
    """Give the pages of large mappings back whenever many are in memory, until there is no such mapping.

    It needs no lock: should a mapping come just before the end, it starts a thread of its own.
    """
    global _watcher  # noqa: PLW0603
    while True:
        time.sleep(_INTERVAL)
        if system.mapped_bytes() >= RESIDENT:
            _give_back_now()
        _watcher = 0
        if not _large:
            return
        _watcher = os.getpid()


def _give_back_now() -> None:
    """Give the pages of large mappings back; when they are needed they are read again, as they were written."""
    for pages in list(_large):
        pages.madvise(mmap.MADV_DONTNEED)


def _folder() -> Path:
    """Where large temporary files go: TMPDIR, or else /var/tmp, since many systems keep /tmp in memory."""
    usual = Path("/var/tmp")
    return usual if "TMPDIR" not in os.environ and os.access(usual, os.W_OK) else Path(tempfile.gettempdir())
