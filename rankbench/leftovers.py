"""Names for files that a process writes for a while, so that a later one can tell what a dead one left behind."""

import os
import platform
import re
from pathlib import Path

_OWNER = re.compile(r"~(?P<machine>[^~]*)~(?P<process>\d+)~")


def owner() -> str:
    """This process on this machine, as a part of a name: a folder may be shared by several machines."""
    return f"~{platform.node()}~{os.getpid()}~"


def partial_of(path: Path) -> Path:
    """The name under which this process writes a file, until it is whole and gets its own."""
    return path.with_name(f"{path.name}{owner()}.partial")


def is_left_behind(path: Path) -> bool:
    """Whether the name says that a process of this machine made it, and that process has ended."""
    found = _OWNER.search(path.name)
    if found is None or found["machine"] != platform.node():
        return False
    import psutil  # noqa: PLC0415  asked for once in a run; the arrays' floor does without

    return not psutil.pid_exists(int(found["process"]))
