"""What the harness asks of the operating system, gathered here: no other module reads /proc or calls prctl and flock.

Every function has an answer on every POSIX system; where Linux' own sources of information are missing, it is the
weaker one that its docstring names. Results do not depend on any of them. Beside this module only `supervisor.py` forks
and reaps processes, and `isolation.py` starts the fork server and blocks Ctrl-C meanwhile.

Tested on Linux only. On macOS, which has all that POSIX asks for, runs should work with these weaker answers, which
tests reach by hiding /proc: memory is measured as the present and not the highest, and if a cell's supervisor and guard
are both killed, its processes stay behind. On Windows there is no `fork`: commands that train in processes of their
own say so in a line. What describes, and what trains in the process that asks (`rankbench.load`, `split`, `fit`,
`evaluate` and `save`), should work; a test tries it with `fork`, `fcntl` and `resource` taken away.
"""

import ctypes
import errno
import os
import platform
import signal
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

_DEATH_SIGNAL, _SUBREAPER = 1, 36  # PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of Linux' prctl
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of new kernels and old ones

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
    kilobytes = _entry(f"/proc/{pid}/smaps_rollup", "Pss:").removesuffix("kB")
    if kilobytes:
        return int(kilobytes) * 1024
    return resident if psutil.pid_exists(pid) else 0


def busy_seconds() -> float:
    """The CPU seconds that all cores of the machine together have been busy since boot."""
    times = psutil.cpu_times()._asdict()
    return float(sum(seconds for kind, seconds in times.items() if kind not in _NOT_BUSY))


def killed_for_memory() -> int:
    """How many processes the system has killed for lack of memory since boot; 0 where it does not tell."""
    return int(_entry("/proc/vmstat", "oom_kill ") or 0)


def kill(pid: int, number: int) -> None:
    """Send a signal to a process; nothing happens if it has ended or may not be signalled."""
    with suppress(OSError):
        os.kill(pid, number)


def kill_group(leader: int) -> None:
    """Kill the process group of this leader, even if the leader itself has ended."""
    with suppress(OSError):  # the group has no processes left
        os.killpg(leader, signal.SIGKILL)


def own_group() -> None:
    """Make this process the leader of a new process group, which signals to the old one do not reach."""
    os.setpgid(0, 0)


def adopt_orphans() -> None:
    """Let descendants that lose their parent become children of this process; without Linux they become init's."""
    _control(_SUBREAPER, 1)


def end_with_parent(number: signal.Signals) -> None:
    """Let the system send this signal to this process when its parent ends; without Linux nothing is sent."""
    _control(_DEATH_SIGNAL, number)


def _control(option: int, value: int) -> None:
    """Call Linux' prctl; on other systems do nothing."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def cpu_seconds() -> float:
    """The CPU seconds of this process and of its children that have ended and were waited for."""
    import resource  # noqa: PLC0415  which only POSIX has

    own, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + below.ru_utime + below.ru_stime


@cache  # three files that are made for each cell have it in their names
def boot_id() -> str:
    """A text that is another one after each start of the machine; empty if unknown."""
    return _text("/proc/sys/kernel/random/boot_id")


def pid_namespace() -> str:
    """A text that is equal for processes that share their numbers, as those of a container do; empty if unknown."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:  # pragma: no cover: only on systems without /proc
        return ""


def started(pid: int) -> str:
    """When a process started, in clock ticks since boot; `ended` for a zombie, empty if unknown.

    Without /proc it is psutil's time of creation, a time of day that moves when the clock is set.
    """
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()  # the program's name ends at the last ")"
    if len(fields) > 19:
        return "ended" if fields[0] in "ZX" else fields[19]
    if Path("/proc/self/stat").exists():
        return ""
    with suppress(psutil.Error):  # pragma: no cover: only on systems without /proc
        return f"{psutil.Process(pid).create_time():.1f}"
    return ""  # pragma: no cover: only on systems without /proc


def _text(path: str) -> str:
    """The content of a system file, or an empty string if it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().decode(errors="replace").strip()
    except OSError:  # pragma: no cover: only on systems without /proc, and of processes that have just ended
        return ""


def _entry(path: str, name: str) -> str:
    """What stands behind a name at the beginning of a line of a system file; empty if there is none."""
    return next((line.removeprefix(name).strip() for line in _text(path).splitlines() if line.startswith(name)), "")


def restart_peak() -> None:
    """Let the peak memory of this process begin anew; without Linux it stays that of the whole process so far."""
    with suppress(OSError), open("/proc/self/clear_refs", "wb", buffering=0) as entry:
        entry.write(b"5")


def peak_bytes() -> int:
    """The peak memory of this process (VmHWM), or its current resident memory if there is no /proc."""
    kilobytes = _entry("/proc/self/status", "VmHWM:").removesuffix("kB")
    return int(kilobytes) * 1024 if kilobytes else int(psutil.Process().memory_info().rss)


def mapped_bytes() -> int:
    """How much of the mapped files of this process is in memory; 0 where the system does not tell."""
    fields = _text("/proc/self/statm").split()
    return int(fields[2]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def total_memory() -> int:
    """The memory that this process can use: the machine's, or less where its container is limited."""
    found = [int(psutil.virtual_memory().total)]
    found += [int(text) for path in _LIMITS if (text := _text(path)).isdecimal()]
    return min(found)


def reserve(handle: int, size: int) -> None:
    """Give an open file this size, and room for it on the disk: writing to its mapping without room ends the process.

    Systems other than Linux only give it the size.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
    else:  # pragma: no cover: only on systems other than Linux
        os.ftruncate(handle, size)


def usable_cores() -> int:
    """The number of cores that this process may use, or of all cores where the system does not tell."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover: only on systems other than Linux
        return psutil.cpu_count() or 1


def cpu_name() -> str:
    """The processor's name from /proc/cpuinfo, or from Python's `platform`."""
    return _entry("/proc/cpuinfo", "model name\t:") or platform.processor() or platform.machine()


def lock(handle: int) -> bool:
    """Lock an open file until it is closed or this process ends; returns False if another process has locked it.

    An OSError means that there are no locks: on this file system, or on systems other than POSIX.
    """
    try:
        import fcntl  # noqa: PLC0415  which only POSIX has
    except ImportError:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
