"""A cell's keeper: a small process above the solver's own, which leaves nothing of the cell running behind it.

    driver -- server -- keeper -- solver -- whatever the solver starts

The server forks a keeper for each cell, and the keeper forks the process that trains. Two pipes lead to
the driver. The driver holds one end of the lifeline and writes nothing to it: when it lets go, or dies,
the keeper reads the end of it. Through the other pipe the keeper says how the solver's process ended,
after all that stood below it is gone.

The keeper has no threads and runs nothing of the solver's, so nothing that a solver does can hold it up.
"""

import ctypes
import multiprocessing
import os
import resource
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from signal import SIGCHLD, SIGKILL, SIGTERM, set_wakeup_fd, signal
from time import monotonic

from rankbench.harness import worker
from rankbench.harness.processes import descendants, kill
from rankbench.harness.worker import Task

_DEATH_SIGNAL, _SUBREAPER = 1, 36  # PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of Linux' prctl
_GRACE = 0.2  # seconds in which helpers may clean up after themselves
_PATIENCE = 4.0  # seconds after which a process that cannot be killed is given up
_LOOK = 0.01  # seconds between two looks at what is still there


@dataclass(frozen=True)
class Verdict:
    """How the solver's process ended, and the CPU seconds that it and everything around it took."""

    code: int  # what it exited with; the negative number of the signal that ended it
    seconds: float


def keep(lifeline: Connection, verdict: Connection, home: Connection, task: Task) -> None:
    """Run the task in a process below this one, and end all that is below when it ends or the driver lets go.

    The call returns in the process that trains, once it is done; in the keeper it never returns.
    """
    os.setpgid(0, 0)  # the terminal's keys are the driver's; a session would cost: some kernels schedule by it
    _control(_SUBREAPER, 1)  # whoever loses its parent below us becomes our child
    keeper = os.getpid()
    solver = os.fork()
    if not solver:
        _control(_DEATH_SIGNAL, SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)  # the keeper died before it could take us along
        lifeline.close()
        verdict.close()
        multiprocessing.set_start_method(None, force=True)  # the platform's own again, not that of our server
        worker.main(home, task)
        return
    home.close()
    try:
        _judge(solver, lifeline, verdict)
    except OSError:
        pass  # the driver is gone: nobody wants to know
    finally:
        os._exit(0)


def _control(option: int, value: int) -> None:
    """Call Linux' prctl; elsewhere there is none, and a cell is watched a little less closely."""
    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (AttributeError, OSError):
        pass


def _judge(solver: int, lifeline: Connection, verdict: Connection) -> None:
    """Wait for the solver's end or the driver's, clear up, and say how it went."""
    waking = _wake_for_signals()
    codes: dict[int, int] = {}
    while _reap(codes) and solver not in codes:
        ready = wait([lifeline, waking])
        if lifeline in ready:
            kill(solver, SIGKILL)
            break
        if SIGTERM in os.read(waking, 4096):
            kill(solver, SIGTERM)  # somebody wants to end the cell and took us for it
    _clear(codes, waking)
    own, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = own.ru_utime + own.ru_stime + below.ru_utime + below.ru_stime
    verdict.send(Verdict(codes.get(solver, -SIGKILL), seconds))


def _wake_for_signals() -> int:
    """A descriptor from which the numbers of signals can be read as they come in."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (SIGCHLD, SIGTERM):
        signal(number, lambda *_: None)  # without a handler nothing would be written
    return reading


def _reap(codes: dict[int, int]) -> bool:
    """Note how children ended since the last look; whether any is left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not pid:
            return True
        codes[pid] = os.waitstatus_to_exitcode(status)


def _clear(codes: dict[int, int], waking: int) -> None:
    """End everything below: first those that can be asked, then all.

    The processes that remove other processes' shared memory and temporary folders, multiprocessing's and
    joblib's, pass over SIGTERM and leave by themselves once all they work for are gone.
    """
    if not _reap(codes):
        return
    for pid in descendants(os.getpid()):
        kill(pid, SIGTERM)
    if _left(codes, waking, _GRACE):
        deadline = monotonic() + _PATIENCE
        while monotonic() < deadline:
            for pid in descendants(os.getpid()):
                kill(pid, SIGKILL)
            if not _left(codes, waking, _LOOK):
                return


def _left(codes: dict[int, int], waking: int, seconds: float) -> bool:
    """Whether anything is still there after so many seconds; answers at once when nothing is."""
    deadline = monotonic() + seconds
    while _reap(codes):
        patience = deadline - monotonic()
        if patience <= 0:
            return True
        if wait([waking], patience):
            os.read(waking, 4096)
    return False
