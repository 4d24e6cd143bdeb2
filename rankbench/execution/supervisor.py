"""A cell's supervisor: the parent process of the solver's process, which ends all processes of the cell.

    driver -- server -- guard -- supervisor -- solver -- processes that the solver starts

The server forks a guard for each cell, the guard forks the supervisor, and the supervisor forks the process that
trains. If the supervisor is killed, the guard ends all processes of the cell in its place; if the guard is killed, the
supervisor ends them. Two pipes connect the supervisor to the driver. The driver holds one end of the lifeline and
writes nothing to it: when the driver closes it or dies, the supervisor reads end-of-file. Through the other pipe the
supervisor reports how the solver's process ended, after all of the cell's processes are gone.

The guard and the supervisor have no threads and run no code of the solver, so nothing that a solver does can block
them.
"""

import multiprocessing
import os
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from signal import SIGCHLD, SIGKILL, SIGTERM, SIGUSR1, set_wakeup_fd, signal
from time import monotonic
from typing import NoReturn

from rankbench.core.system import adopt_orphans, cpu_seconds, descendants, end_with_parent, kill, own_group
from rankbench.execution import worker
from rankbench.execution.voices import speak_through
from rankbench.execution.worker import Task

_GUARD_DIED = SIGUSR1  # what the supervisor gets when its guard dies
_GRACE = 0.2  # seconds in which helper processes may clean up before they are killed
_PATIENCE = 4.0  # seconds after which the supervisor gives up on a process that cannot be killed
_LOOK = 0.01  # seconds between two looks at the remaining processes


@dataclass(frozen=True)
class Exit:
    """How the solver's process ended, and the CPU seconds that all processes of the cell took."""

    code: int  # its exit code, or the negative number of the signal that ended it
    seconds: float


def supervise(lifeline: Connection, verdict: Connection, home: Connection, task: Task) -> None:
    """Run the task in a child process; end all processes below when the child ends or the driver closes the lifeline.

    The call returns in the process that trains, once it is done; in the guard and in the supervisor it never returns.
    """
    own_group()  # so that Ctrl-C reaches only the driver; a new session could change the scheduling
    adopt_orphans()  # descendants that lose their parent become our children
    guard = os.getpid()
    supervisor = os.fork()
    if supervisor:
        for end in (lifeline, verdict, home, *task.voices):
            end.close()
        _guard(supervisor)
    _supervise(guard, lifeline, verdict, home, task)  # pragma: no cover: after a fork, coverage sees only later calls


def _supervise(guard: int, lifeline: Connection, verdict: Connection, home: Connection, task: Task) -> None:
    """Fork the process that trains, in which the call returns; look after it in this one."""
    own_group()  # so that a solver that kills its own group does not kill the guard
    adopt_orphans()  # a child does not inherit this
    supervisor = os.getpid()
    solver = os.fork()
    if not solver:  # pragma: no cover: after a fork, coverage sees only later calls
        for end in (lifeline, verdict):
            end.close()
        _train(supervisor, home, task)
        return
    for end in (home, *task.voices):
        end.close()
    try:
        _judge(solver, guard, lifeline, verdict)
    except OSError:  # pragma: no cover: the driver died in the moment before the verdict
        pass
    finally:
        os._exit(0)


def _train(supervisor: int, home: Connection, task: Task) -> None:
    """Run the task in this process, which ends with its supervisor."""
    end_with_parent(SIGKILL)
    if os.getppid() != supervisor:
        os._exit(1)  # pragma: no cover: the supervisor died in the moment before the death signal was set
    speak_through(task.voices)
    multiprocessing.set_start_method(None, force=True)  # back to the platform's default for the solver
    worker.main(home, task)


def _guard(supervisor: int) -> NoReturn:
    """Wait until the supervisor has ended; end all processes that it left if it was killed."""
    waking = _wake_for_signals()
    codes: dict[int, int] = {}
    try:
        while _reap(codes) and supervisor not in codes:
            wait([waking])
            os.read(waking, 4096)
        _clear(codes, waking)
    finally:
        os._exit(0)


def _judge(solver: int, guard: int, lifeline: Connection, verdict: Connection) -> None:
    """Wait until the solver, the driver or the guard ends, end all processes below, and send the verdict."""
    waking = _wake_for_signals()
    end_with_parent(_GUARD_DIED)
    codes: dict[int, int] = {}
    alone = os.getppid() != guard  # the guard died before the death signal was set
    while _reap(codes) and solver not in codes and not alone:
        ready = wait([lifeline, waking])
        if lifeline in ready:
            break
        numbers = os.read(waking, 4096)
        alone = _GUARD_DIED in numbers
        if SIGTERM in numbers:
            kill(solver, SIGTERM)  # pass the signal on: it was meant for the cell
    if solver not in codes:
        kill(solver, SIGKILL)
    _clear(codes, waking)
    if alone:
        return  # the driver takes a missing verdict for what it is: somebody killed a process of ours
    verdict.send(Exit(codes.get(solver, -SIGKILL), cpu_seconds()))


def _wake_for_signals() -> int:
    """A file descriptor from which the numbers of incoming signals can be read."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (SIGCHLD, SIGTERM, _GUARD_DIED):
        signal(number, lambda *_: None)  # without a handler nothing would be written
    return reading


def _reap(codes: dict[int, int]) -> bool:
    """Record the exit codes of ended children; returns whether any child is left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not pid:
            return True
        codes[pid] = os.waitstatus_to_exitcode(status)


def _clear(codes: dict[int, int], waking: int) -> None:
    """End all descendants: first with SIGTERM, then those that are left with SIGKILL.

    The resource trackers of multiprocessing and joblib, which remove shared memory and temporary folders, ignore
    SIGTERM and exit by themselves once the processes that they serve are gone.
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
    """Whether any child is left after this many seconds; returns early once none is left."""
    deadline = monotonic() + seconds
    while _reap(codes):
        patience = deadline - monotonic()
        if patience <= 0:
            return True
        if wait([waking], patience):
            os.read(waking, 4096)
    return False
