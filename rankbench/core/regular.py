"""Reading files that anybody may have put there: regular files only, and no more of them than is expected.

A pipe would be waited for without end, and a device or a file of holes would fill the memory.
"""

import errno
import os
import shutil
import stat
from io import BufferedReader
from pathlib import Path

_PIECE = 1 << 16  # bytes to read at a time, at least
_LARGE = 256 << 20  # bytes: of a larger file it is asked whether it is a hole, which takes a minute to read


def opened(path: str | Path, most: int | None = None) -> BufferedReader:
    """A regular file of at most so many bytes, opened to be read; an OSError says what else it is."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    try:
        _check(file.fileno(), path, most)
    except OSError:
        file.close()
        raise
    return file


def content(path: str | Path, most: int | None = None) -> bytes:
    """The bytes of a regular file of at most so many bytes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # of thousands of files `open` is slow
    try:
        size = max(_check(descriptor, path, most) + 1, _PIECE)  # the file may be growing, or not tell its size
        found = b""
        while piece := os.read(descriptor, size if most is None else min(size, most - len(found))):
            found = found + piece if found else piece
        return found
    finally:
        os.close(descriptor)


def _check(descriptor: int, path: str | Path, most: int | None) -> int:
    """The bytes of an open file; an OSError if it is not a regular one, or has more bytes than expected."""
    about, code, problem = os.fstat(descriptor), errno.EINVAL, ""
    if stat.S_ISDIR(about.st_mode):
        code, problem = errno.EISDIR, os.strerror(errno.EISDIR)
    elif not stat.S_ISREG(about.st_mode):
        problem = "it is a pipe or a device, not a file"
    elif most is not None and about.st_size > most:
        problem = f"it has {about.st_size:,} bytes, and at most {most:,} are expected"
    elif about.st_size > _LARGE and _hole(descriptor, about.st_size) > _LARGE:
        problem = f"it has {about.st_size:,} bytes, but nothing was written to its beginning"
    if problem:
        raise OSError(code, problem, str(path))
    return about.st_size


def _hole(descriptor: int, size: int) -> int:
    """The bytes before the first one of a file that was ever written; this leaves the file at its beginning."""
    try:
        return os.lseek(descriptor, 0, os.SEEK_DATA)
    except OSError as error:
        return size if error.errno == errno.ENXIO else 0  # ENXIO: nothing was; else the file system does not tell
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)


def copied(source: str | Path, target: str | Path) -> None:
    """Copy the bytes of a regular file."""
    with opened(source) as file, open(target, "wb") as copy:
        shutil.copyfileobj(file, copy)


def state(path: Path) -> tuple[int, int]:
    """What tells whether a file is still the one that was at this path: every writing makes another."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_ino, found.st_mtime_ns
