"""Temporary files and folders that a process holds as long as it lives, and the removal of those that none holds.

    <name>~<system>~<random>~.partial    a file that is being written, and is locked meanwhile
    <name>~<system>~<random>/.held       the locked file of a temporary folder

The system releases a lock when its process ends, however it ends. A process id could not tell that: two containers
that share a folder have processes with the same id. Not every file system passes locks on to other machines, so a
lock decides only about what was made since this system was started (`<system>`). Anything else, and anything on a file
system without locks, counts as left behind once it has not been touched for a week.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from platform import node
from time import time
from uuid import uuid4
from weakref import finalize

from rankbench.core import system

HELD = ".held"
_NAME = re.compile(r"~(?P<system>[0-9a-f]{8})~[^~]*(~\.partial)?")
_FORGOTTEN = 7 * 86400  # seconds
_UNLOCKED = -1  # stands for the descriptor of a lock on a file system that has none


def partial_of(path: Path) -> Path:
    """A new temporary path beside a path, at which it is written before it is renamed."""
    return path.with_name(f"{path.name}~{_system()}~{uuid4().hex[:12]}~.partial")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A context with the path of a new empty file, which in the end replaces `path`, or is removed on an error."""
    partial, handle = partial_of(path), None
    try:
        while (handle := _hold(partial)) is None:
            partial = partial_of(path)
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
        _let_go(handle)


class HeldFolder:
    """A new temporary folder that this process holds; it is removed at the end of the context, or of the process.

    Folders with the same prefix that no process holds any more are removed first.
    """

    def __init__(self, parent: Path, prefix: str) -> None:
        remove_left_behind(parent, f"{prefix}~*")
        handle = None
        while handle is None:
            path = Path(tempfile.mkdtemp(prefix=f"{prefix}~{_system()}~", dir=parent))
            with suppress(FileNotFoundError):  # another process took it for a leftover before it was held
                handle = _hold(path / HELD)
        self.name = str(path)
        self.remove = finalize(self, _removed, path, handle, os.getpid())

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *_: object) -> None:
        self.remove()


def remove_left_behind(folder: Path, pattern: str) -> None:
    """Remove the files and folders of this pattern that no process holds any more."""
    for path in folder.glob(pattern):
        with suppress(OSError):  # another process is removing it, or it is another user's
            _remove_left(path)


def _remove_left(path: Path) -> None:
    """Remove a file or folder if no process holds it; its lock is held meanwhile."""
    named = _NAME.search(path.name)
    if named is None:
        return
    inner = path / HELD if path.is_dir() else path
    handle = None
    if named["system"] == _system() and inner.exists():
        with suppress(OSError):  # no locks here
            handle = _locked(os.open(inner, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK))
            if handle is None:
                return
    try:
        touched = max(one.lstat().st_mtime for one in (path, inner) if one is path or one.exists())
        if handle is not None or time() - touched > _FORGOTTEN:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    finally:
        _let_go(handle)


def _hold(path: Path) -> int | None:
    """Make a new file and lock it; returns its descriptor, or None if another process took it for a leftover."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        held = _locked(handle)
    except OSError:
        return _UNLOCKED
    if held is not None and not path.exists():
        os.close(held)
        return None
    return held


def _locked(handle: int) -> int | None:
    """This descriptor once it is locked, else None; if it cannot be locked, it is closed."""
    try:
        if system.lock(handle):
            return handle
    except OSError:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _let_go(handle: int | None) -> None:
    if handle is not None and handle != _UNLOCKED:
        os.close(handle)


def _removed(path: Path, handle: int, process: int) -> None:
    """Remove a folder in the process that made it; one that was forked from it does not."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
        _let_go(handle)


def _system() -> str:
    """Eight hex digits of this machine since it was started; all of its containers have the same."""
    return sha256((system.boot_id() or node()).encode()).hexdigest()[:8]
