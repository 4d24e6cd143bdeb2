"""Information about processes from the operating system: descendants, memory and CPU time; and killing them."""

import os
from pathlib import Path
from signal import SIGKILL

import psutil

_NOT_BUSY = ("idle", "iowait", "guest", "guest_nice")  # the system counts guests in user and nice as well


def descendants(pid: int) -> list[int]:
    """The pids of all descendants of a process, parents before their children."""
    if not os.path.exists(f"/proc/{pid}/task/{pid}/children"):
        return _searched(pid)  # only some kernels list the children, and only Linux has /proc
    found = [pid]
    for parent in found:  # the list grows during the loop
        found += _children(parent)
    return found[1:]


def _children(pid: int) -> list[int]:
    try:
        lists = [path.read_text(encoding="ascii") for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []  # the process has just ended
    return [int(child) for text in lists for child in text.split()]


def _searched(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def exceed(pids: list[int], cap: int) -> bool:
    """Whether these processes together take more than `cap` bytes of memory.

    Forked processes share pages, and the sum of their resident memory counts a shared page once for each process. So
    a sum below the limit proves that the limit is kept, but a sum above it proves nothing. In that case the limit is
    exceeded if the resident memory of a single process exceeds it, or the sum of the proportional set sizes, in which
    a page that n processes share counts as 1/n for each. These sizes are slow to read and are read last. They must
    exceed the limit twice: a process that ends while they are read leaves its share to those that are read after it.
    """
    resident = {pid: _resident(pid) for pid in pids}
    if sum(resident.values()) <= cap:
        return False
    if max(resident.values()) > cap:
        return True
    return all(sum(_proportional(pid, size) for pid, size in resident.items()) > cap for _ in range(2))


def _resident(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0  # it has just ended


def _proportional(pid: int, resident: int) -> int:
    """The proportional set size of a process, or its resident memory if the system reports none; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return resident if psutil.pid_exists(pid) else 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), resident)


def busy_seconds() -> float:
    """The CPU seconds that all cores of the machine together have been busy since boot."""
    times = psutil.cpu_times()._asdict()
    return float(sum(seconds for kind, seconds in times.items() if kind not in _NOT_BUSY))


def kill(pid: int, signal: int) -> None:
    """Send a signal to a process; nothing happens if it has ended or may not be signalled."""
    try:
        os.kill(pid, signal)
    except OSError:
        pass


def kill_group(leader: int) -> None:
    """Kill the process group of this leader, even if the leader itself has ended."""
    try:
        os.killpg(leader, SIGKILL)
    except OSError:
        pass  # the group has no processes left
