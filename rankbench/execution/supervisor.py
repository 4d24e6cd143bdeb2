"""The supervisor of cells: the parent of the processes that train, which ends all processes of a cell.

    driver -- server -- guard -- supervisor -- solver -- processes that the solver starts

The server forks a guard, the guard forks the supervisor, and the supervisor forks a process for each cell that the
driver orders, one after the other. Forking a process of this size takes longer than some cells train, so each waits for
its order: it is forked while the driver stores the result of the cell before. If the supervisor is killed, the guard
ends all processes of the cell in its place; if the guard is killed, the supervisor ends them. A line connects the
supervisor to the driver, which holds its other end: when the driver closes it or dies, the supervisor reads
end-of-file. Through the line come the orders, and goes how each solver's process ended, after all of its cell's
processes are gone.

The guard and the supervisor have no threads and run no code of a solver, so nothing that a solver does can block
them.
"""

import multiprocessing
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recvfds, sendfds
from signal import SIG_DFL, SIGCHLD, SIGKILL, SIGTERM, SIGUSR1, set_wakeup_fd, signal
from time import monotonic
from typing import NoReturn

from rankbench.core.system import adopt_orphans, cpu_seconds, descendants, end_with_parent, kill, own_group
from rankbench.execution import worker
from rankbench.execution.voices import OUTPUTS, keep_outputs_free, speak_through

_GUARD_DIED = SIGUSR1  # what the supervisor gets when its guard dies
_GRACE = 0.2  # seconds in which helper processes may clean up before they are killed
_PATIENCE = 4.0  # seconds after which the supervisor gives up on a process that cannot be killed
_LOOK = 0.01  # seconds between two looks at the remaining processes
_ENDS = 1 + len(OUTPUTS)  # pipes of a cell: the way home, and what its process prints into
_END = b""  # in place of an order: the driver wants the cell to end; where it has ended already, this says nothing


@dataclass(frozen=True)
class Exit:
    """How the solver's process ended, and the CPU seconds that all processes of the cell took."""

    code: int  # its exit code, or the negative number of the signal that ended it
    seconds: float


@dataclass(frozen=True)
class _Order:
    """A cell to run: its task as bytes, which only its own process reads, and the ends of its pipes."""

    task: bytes
    ends: tuple[Connection, ...]  # the way home, and what its process prints into

    @classmethod
    def received(cls, line: Connection) -> "_Order | None":
        """The order that comes through a line, or None if it says to end."""
        if not (task := line.recv_bytes()):
            return None
        with socket.fromfd(line.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as at:
            return cls(task, tuple(Connection(end, readable=False) for end in recvfds(at, _ENDS)))

    def hand_over(self, line: Connection) -> None:
        """Pass the order on to a process; one that has just died cannot take it, which who waits for it will see."""
        with suppress(ConnectionError):
            order(line, self.task, self.ends)
        for end in self.ends:
            end.close()


class _Signals:
    """The numbers of signals that come to this process, in a pipe that can be waited for."""

    _NUMBERS = (SIGCHLD, SIGTERM, _GUARD_DIED)

    def __init__(self) -> None:
        self.reading, self._writing = os.pipe()
        os.set_blocking(self.reading, False)
        os.set_blocking(self._writing, False)
        set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in self._NUMBERS:
            signal(number, lambda *_: None)  # without a handler nothing would be written

    def read(self) -> bytes:
        """The numbers that have come since the last look; there is at least one."""
        return os.read(self.reading, 4096)

    def close(self) -> None:  # pragma: no cover: after a fork, coverage sees only later calls
        """Let this process, a child of the one that waits for signals, take them as every process does."""
        set_wakeup_fd(-1)
        for number in self._NUMBERS:
            signal(number, SIG_DFL)
        os.close(self.reading)
        os.close(self._writing)


def order(line: Connection, task: bytes, ends: tuple[Connection, ...]) -> None:
    """Have the supervisor at the other end of the line run a task; `ends` are the way home, and where it prints."""
    line.send_bytes(task)
    with socket.fromfd(line.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as at:
        sendfds(at, [end.fileno() for end in ends])


def order_end(line: Connection) -> None:
    """Have the supervisor at the other end of the line end the cell that it runs, if it runs one."""
    line.send_bytes(_END)


def supervise(line: Connection) -> None:
    """Run what is ordered through the line, each task in a process of its own, until the driver closes the line.

    The call returns in each process that trains, once it is done; in the guard and in the supervisor it never returns.
    """
    own_group()  # so that Ctrl-C reaches only the driver; a new session could change the scheduling
    adopt_orphans()  # descendants that lose their parent become our children
    guard = os.getpid()
    supervisor = os.fork()
    if supervisor:
        line.close()
        _guard(supervisor)
    _supervise(guard, line)  # pragma: no cover: after a fork, coverage sees only later calls


def _supervise(guard: int, line: Connection) -> None:
    """Look after the processes that train in this process; returns in each of them when it has trained."""
    own_group()  # so that a solver that kills its own group does not kill the guard
    adopt_orphans()  # a child does not inherit this
    supervisor, signals = os.getpid(), _Signals()
    end_with_parent(_GUARD_DIED)
    try:
        way = _serve(guard, line, signals)
    except (EOFError, ConnectionError):
        way = None  # the driver has closed the line, or died
    if way:  # pragma: no cover: after a fork, coverage sees only later calls
        line.close()
        signals.close()
        return _train(supervisor, way)
    os._exit(0)


def _serve(guard: int, line: Connection, signals: _Signals) -> Connection | None:
    """Run the tasks that are ordered, until there are no more.

    Returns in each process that is to train, too, with the line through which it will get its order.
    """
    while True:
        near, far = multiprocessing.Pipe()
        solver = os.fork()
        if not solver:  # pragma: no cover: after a fork, coverage sees only later calls
            near.close()
            return far
        far.close()
        with near:
            if not (ordered := _next(guard, line, signals)):
                return None
            before = cpu_seconds()
            ordered.hand_over(near)
        codes: dict[int, int] = {}
        if not _outlast(solver, guard, line, signals, codes):
            return None  # the driver takes a missing verdict for what it is: somebody killed a process of ours
        cleared = _clear(codes, signals)
        line.send(Exit(codes.get(solver, -SIGKILL), cpu_seconds() - before))
        if not cleared:
            return None


def _next(guard: int, line: Connection, signals: _Signals) -> _Order | None:
    """The next order; None if the guard has died."""
    while os.getppid() == guard:
        ready = wait([line, signals.reading])
        if signals.reading in ready:
            signals.read()
        elif ordered := _Order.received(line):
            return ordered
    return None


def _train(supervisor: int, line: Connection) -> None:
    """Wait for an order, and run its task in this process, which ends with its supervisor."""
    end_with_parent(SIGKILL)
    if os.getppid() != supervisor:
        os._exit(1)  # pragma: no cover: the supervisor died in the moment before the death signal was set
    multiprocessing.set_start_method(None, force=True)  # back to the platform's default for the solver
    keep_outputs_free()
    with line:
        try:
            ordered = _Order.received(line)
        except EOFError:
            ordered = None
    if not ordered:
        os._exit(0)  # the supervisor has none for this process
    home, *voices = ordered.ends
    speak_through(tuple(voices))
    worker.main(home, ordered.task)


def _guard(supervisor: int) -> NoReturn:
    """Wait until the supervisor has ended; end all processes that it left if it was killed."""
    signals = _Signals()
    codes: dict[int, int] = {}
    try:
        while _reap(codes) and supervisor not in codes:
            wait([signals.reading])
            signals.read()
        _clear(codes, signals)
    finally:
        os._exit(0)


def _outlast(solver: int, guard: int, line: Connection, signals: _Signals, codes: dict[int, int]) -> bool:
    """Wait until the solver, the driver or the guard ends, or the driver wants the cell to end; end the solver.

    Returns whether the guard lives; if not, everything else below is ended too.
    """
    alone = os.getppid() != guard
    while _reap(codes) and solver not in codes and not alone:
        ready = wait([line, signals.reading])
        if line in ready:
            break
        numbers = signals.read()
        alone = _GUARD_DIED in numbers
        if SIGTERM in numbers:
            kill(solver, SIGTERM)  # pass the signal on: it was meant for the cell
    if solver not in codes:
        kill(solver, SIGKILL)
    if alone:
        _clear(codes, signals)
    return not alone


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


def _clear(codes: dict[int, int], signals: _Signals) -> bool:
    """End all descendants: first with SIGTERM, then those that are left with SIGKILL; returns whether none is left.

    The resource trackers of multiprocessing and joblib, which remove shared memory and temporary folders, ignore
    SIGTERM and exit by themselves once the processes that they serve are gone.
    """
    if not _reap(codes):
        return True
    for pid in descendants(os.getpid()):
        kill(pid, SIGTERM)
    if _left(codes, signals, _GRACE):
        deadline = monotonic() + _PATIENCE
        while monotonic() < deadline:
            for pid in descendants(os.getpid()):
                kill(pid, SIGKILL)
            if not _left(codes, signals, _LOOK):
                return True
        return False  # pragma: no cover: a process that the system cannot end, such as one that waits for a dead disk
    return True


def _left(codes: dict[int, int], signals: _Signals, seconds: float) -> bool:
    """Whether any child is left after this many seconds; returns early once none is left."""
    deadline = monotonic() + seconds
    while _reap(codes):
        patience = deadline - monotonic()
        if patience <= 0:
            return True
        if wait([signals.reading], patience):
            signals.read()
    return False
