"""Names of temporary files; each name tells which process made the file, so that leftovers can be found."""

import os
import platform
import re
from pathlib import Path

_OWNER = re.compile(r"~(?P<machine>[^~]*)~(?P<process>\d+)~")


def owner() -> str:
    """A part of a file name that identifies this process and this machine (machines may share a folder)."""
    return f"~{platform.node()}~{os.getpid()}~"


def partial_of(path: Path) -> Path:
    """The temporary path to which this process writes the file `path` before it renames it."""
    return path.with_name(f"{path.name}{owner()}.partial")


def is_left_behind(path: Path) -> bool:
    """Whether the file name shows that a process on this machine made the file and has ended since."""
    found = _OWNER.search(path.name)
    if found is None or found["machine"] != platform.node():
        return False
    import psutil  # noqa: PLC0415  rarely needed, and slow to import

    return not psutil.pid_exists(int(found["process"]))
