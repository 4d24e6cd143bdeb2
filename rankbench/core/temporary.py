"""This process's folder for temporary files outside the results, which no other process removes while it lives."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path

from rankbench.core.errors import writing_to
from rankbench.core.leftovers import HeldFolder, remove_left_behind

_PREFIX = "rankbench-run"
_LONGEST = 107 - len(f"/{_PREFIX}~12345678~12345678/pymp-12345678/listener-12345678")  # a socket's path has 107 bytes
_LAST = -200  # the priority of the folder's removal at exit: after multiprocessing has removed its own inside


def own_folder() -> Path:
    """The folder of this process, which is removed when the process ends; the first call removes leftovers."""
    return Path(_made(os.getpid()).name)


def remove_folders_left_behind() -> None:
    """Remove the folders of processes that were killed, such as drivers, and workers of clusters on this machine."""
    remove_left_behind(_base(), f"{_PREFIX}~*")


@contextmanager
def own_sockets() -> Iterator[None]:
    """A context in which multiprocessing makes its folder for sockets inside the folder of this process."""
    before, tempfile.tempdir = tempfile.tempdir, str(own_folder())
    try:
        yield
    finally:
        tempfile.tempdir = before


@cache
def _made(process: int) -> HeldFolder:
    """The folder of this process, new and locked."""
    base = _base()
    with writing_to(base, "make room or set TMPDIR to another folder"):
        folder = HeldFolder(base, _PREFIX)
    if found := folder.remove.detach():  # its own turn at exit would come too early
        Finalize(None, found[1], found[2], exitpriority=_LAST)
    return folder


def _base() -> Path:
    """The folder for temporary files, or /tmp if its path is too long for sockets."""
    usual = tempfile.gettempdir()
    return Path(usual if len(os.fsencode(usual)) <= _LONGEST else "/tmp")
