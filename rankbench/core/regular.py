"""Reading files that anybody may have put there: regular files only, and no more of them than is expected.

A pipe would be waited for without end, and a device or a file of holes would fill the memory.
"""

import errno
import os
import shutil
import stat
from io import BufferedReader
from pathlib import Path


def opened(path: str | Path, most: int | None = None) -> BufferedReader:
    """A regular file of at most so many bytes, opened to be read; an OSError says what else it is."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    about, problem = os.fstat(file.fileno()), ""
    if not stat.S_ISREG(about.st_mode):
        problem = "it is a pipe or a device, not a file"
    elif most is not None and about.st_size > most:
        problem = f"it has {about.st_size:,} bytes, and at most {most:,} are expected"
    if problem:
        file.close()
        raise OSError(errno.EINVAL, problem, str(path))
    return file


def content(path: str | Path, most: int | None = None) -> bytes:
    """The bytes of a regular file of at most so many bytes."""
    with opened(path, most) as file:
        return file.read() if most is None else file.read(most)


def copied(source: str | Path, target: str | Path) -> None:
    """Copy the bytes of a regular file."""
    with opened(source) as file, open(target, "wb") as copy:
        shutil.copyfileobj(file, copy)
