"""This process's folder for temporary files outside the results; those of processes that were killed are removed.

    TMPDIR/rankbench-run-<random>/    locked by the process that uses it, for as long as it lives

The system releases a lock when its process ends, however it ends, so a folder without a lock is a leftover. A process
id could not tell that: two containers that share a folder have processes with the same id.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path

from rankbench.core.errors import writing_to
from rankbench.core.system import locked

_PREFIX = "rankbench-run-"
_LONGEST = 107 - len(f"/{_PREFIX}12345678/pymp-12345678/listener-12345678")  # a path of a socket has 107 bytes
_LAST = -200  # the priority of the folder's removal at exit: after multiprocessing has removed its own inside


def own_folder() -> Path:
    """The folder of this process, which is removed when the process ends; the first call removes leftovers."""
    return _made(os.getpid())


@contextmanager
def own_sockets() -> Iterator[None]:
    """A context in which multiprocessing makes its folder for sockets inside the folder of this process."""
    before, tempfile.tempdir = tempfile.tempdir, str(own_folder())
    try:
        yield
    finally:
        tempfile.tempdir = before


@cache
def _made(process: int) -> Path:
    """The folder of this process, new and locked."""
    base = _base()
    for left in base.glob(f"{_PREFIX}*"):
        _remove_if_left(left)
    with writing_to(base, "make room or set TMPDIR to another folder"):
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        while not (_is_locked_now(path) and path.exists()):  # another process took it for a leftover before the lock
            path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    Finalize(None, shutil.rmtree, (path,), {"ignore_errors": True}, exitpriority=_LAST)
    return path


def _base() -> Path:
    """The folder for temporary files, or /tmp if its path is too long for sockets."""
    usual = tempfile.gettempdir()
    return Path(usual if len(os.fsencode(usual)) <= _LONGEST else "/tmp")


def _is_locked_now(path: Path) -> bool:
    """Whether this process got the lock of a folder; also true on a file system without locks."""
    try:
        return locked(path) is not None
    except OSError:
        return True  # no other process can lock it and take it for a leftover


def _remove_if_left(path: Path) -> None:
    """Remove a folder that no process has locked."""
    with suppress(OSError):  # another driver may be removing it, or it is another user's
        handle = locked(path)
        if handle is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(handle)
