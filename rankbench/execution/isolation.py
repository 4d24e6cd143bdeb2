"""Running a cell in its own process, with limits on time and memory, and reporting how it ended.

A process that ends without a last message has ended in one of three ways:

    memory   SIGKILL ended it, and the system has killed a process for lack of memory meanwhile
    lost     it was killed from outside: by SIGKILL otherwise, by a signal that a user, a terminal or a batch system
             sends (`_FROM_OUTSIDE`), or because its guard or supervisor was killed
    failed   it ended by itself: by an exit code, or by a signal of a crash, such as SIGSEGV or SIGABRT

What was killed from outside says nothing of the solver, so it is run again (`run_again_if_lost`). A solver that sends
itself such a signal looks the same, and is lost after as many attempts.
"""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import forkserver, resource_tracker, util
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from time import monotonic, process_time, sleep
from types import ModuleType
from typing import Self, cast

from rankbench.core.system import busy_seconds, descendants, exceed, kill, kill_group, killed_for_memory
from rankbench.core.temporary import own_sockets
from rankbench.core.texts import error_text
from rankbench.execution.supervisor import Exit, order, order_end, supervise
from rankbench.execution.variables import AS_GIVEN, IMPORTING
from rankbench.execution.voices import OUTPUTS, relay
from rankbench.execution.worker import Ended, Task, ended_early
from rankbench.records.results import Point

_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
_START = threading.Lock()  # one process starts at a time, because starting changes state that all threads share
_WATCH = 0.05  # seconds between two looks at a running cell
_LOOKING = 0.05  # largest share of its time that the driver spends on measuring a cell's memory
_ATTEMPTS = 20  # attempts to reach a server that is shutting down
_STANDSTILL = 3.0  # seconds between two looks, from which on this process was stopped in between
_LEAVE = 0.5  # seconds in which a finished process may exit by itself
_PATIENCE = 5.0  # seconds in which a supervisor may end all processes of its cell
_FROM_OUTSIDE = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL, signal.SIGTERM})
ATTEMPTS = 3  # how often a cell is run that is killed from outside each time
_LEAST_SPAN = 0.2  # shortest time, in seconds, to measure the load over: CPU time is counted in ticks of 10 ms


@dataclass(frozen=True)
class Caps:
    """The limits of a cell: seconds from start to end, and bytes of memory for all its processes; None is no limit."""

    seconds: float | None = 600.0
    memory: int | None = None


class Interrupted(Exception):
    """Raised when the run is stopped while this cell is running."""


@dataclass(frozen=True)
class _Clocks:
    """What is read at one moment: the time, CPU seconds, and how many processes were killed for lack of memory."""

    now: float
    busy: float  # CPU seconds of the whole machine
    own: float  # CPU seconds of this process
    starved: int


@dataclass(frozen=True)
class _Running:
    """A running cell: its supervisor, and the driver's end of the way home from its process."""

    supervisor: "_Supervisor"
    home: Connection  # from the solver's process: points of the curve, then the last message
    voice: threading.Thread  # which writes out what the solver prints
    started: float
    clocks: _Clocks


def server() -> ForkServerContext:
    """The context of the fork server, the process from which cells are forked; it has imported everything they need.

    Its BLAS is limited to one thread by environment variables, so that it starts no threads, which a fork would lose.
    Others let it import from where this process does: some versions of Python look into the folder where it starts
    first, which may be a checkout of rankbench without kernels. `preloaded.py` takes these out again.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rankbench.execution.preloaded"])
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    own = {f"{AS_GIVEN}{name}": os.environ.get(name, "") for name in IMPORTING}
    with _environment(dict.fromkeys(_BLAS_THREADS, "1") | dict(zip(IMPORTING, (path, "1"), strict=True)) | own):
        with _no_main_module(), _no_interrupts(), own_sockets():
            forkserver.ensure_running()
    return context


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """A context in which the environment has these variables, too."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ |= variables
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ |= {} if value is None else {name: value}


def forked(context: ForkServerContext, target: Callable[..., None], arguments: tuple[object, ...]) -> ForkServerProcess:
    """A process, forked from the server, that calls this function."""
    process = context.Process(target=target, args=arguments)
    with _START, _no_main_module(), _no_interrupts():
        _begin(process)
    return process


def run_again_if_lost(attempt: Callable[[], Ended]) -> Ended:
    """The outcome of the first attempt at a cell that nobody killed from outside, or of the last one of all."""
    for _ in range(ATTEMPTS):
        ended = attempt()
        if ended.status != "lost":
            return ended
    return replace(ended, reason=f"{ended.reason}, each of {ATTEMPTS} times")


def run_isolated(context: ForkServerContext, task: Task, caps: Caps, stop: threading.Event) -> Ended:
    """Run one task in its own process under limits, and end all its processes; returns how it ended."""
    with Supervisors(context) as supervisors:
        return supervisors.run(task, caps, stop)


class Supervisors:
    """Runs tasks, each in a process of its own, under supervisors that stay to run the next ones, too.

    Several threads may run tasks at a time; there are at most twice as many supervisors as ever ran one at a time.
    """

    def __init__(self, context: ForkServerContext) -> None:
        self._context = context
        self._idle: list[_Supervisor] = []
        self._leaving: list[_Running] = []  # short cells that have sent their last message, and may still exit
        # A process that ends waits for its children, and these wait for the lines to be closed.
        util.Finalize(self, _let_go, (self._idle, self._leaving), exitpriority=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, task: Task, caps: Caps, stop: threading.Event) -> Ended:
        """Run a task in its own process under limits; returns how it ended.

        All processes of the cell have ended then. Only after a cell that is too short for its load to be measured may
        they exit while its result is stored and the process of the next task, under another supervisor, begins.
        """
        started, curve, load = monotonic(), list[Point](), None
        cell = _start(self._take(), task, started)
        try:
            self._end_leaving()
            ended, leave = _watch(cell, curve, caps, stop.is_set)
        except BaseException:
            self._end(cell, 0.0)
            raise
        if ended and leave and monotonic() - started < _LEAST_SPAN:
            self._leaving.append(cell)
        else:
            how = self._end(cell, leave)
            load, ended = _load(cell.clocks, how), ended or _vanished(how, cell.clocks)
        return replace(ended, curve=tuple(curve), wall=monotonic() - started, load=load)

    def close(self) -> None:
        """End the supervisors, which run nothing now."""
        self._end_leaving()
        _let_go(self._idle, ())
        while self._idle:
            self._idle.pop().dismiss()

    def _end(self, cell: _Running, leave: float) -> Exit | None:
        """End a cell whose process may take some seconds to exit by itself; its supervisor waits for new orders."""
        cell.supervisor.line.poll(leave)
        if how := _end(cell):
            self._idle.append(cell.supervisor)
        return how

    def _end_leaving(self) -> None:
        """End the cells that were left to exit by themselves."""
        with suppress(IndexError):
            while True:
                self._end(self._leaving.pop(), _LEAVE)

    def _take(self) -> "_Supervisor":
        """A supervisor that waits for orders: one that was kept and still lives, or a new one."""
        with suppress(IndexError):
            while True:
                supervisor = self._idle.pop()
                if not supervisor.line.poll():  # one that has died has closed its end
                    return supervisor
                supervisor.dismiss()
        line, far = self._context.Pipe()
        with far:
            return _Supervisor(forked(self._context, supervise, (far,)), line)


@dataclass(frozen=True)
class _Supervisor:
    """A supervisor as its driver sees it: its guard's process, and the line through which it takes orders."""

    guard: ForkServerProcess
    line: Connection

    def run(self, task: Task, ends: tuple[Connection, ...]) -> None:
        """Order a task; a supervisor that has just died cannot take it, which who waits for the task will see."""
        with suppress(ConnectionError):
            order(self.line, pickle.dumps(task), ends)

    def end(self) -> Exit | None:
        """End the cell, if it still runs; returns how its process ended, or None if the supervisor does not say so."""
        try:
            if not self.line.poll():
                order_end(self.line)
            return cast(Exit, self.line.recv()) if self.line.poll(_PATIENCE) else None
        except (EOFError, OSError):
            return None

    def dismiss(self) -> None:
        """End the supervisor and all that it still runs.

        It ends when its line is closed. If it was killed, its guard ends what it ran, and exits. If it is stopped, the
        guard waits for it, and both are killed from here.
        """
        self.line.close()
        self.guard.join(_PATIENCE)
        if self.guard.pid is not None and self.guard.is_alive():
            tree = descendants(self.guard.pid)
            kill_group(self.guard.pid)
            for orphan in tree:
                kill(orphan, signal.SIGKILL)
            self.guard.join(_PATIENCE)


def _let_go(idle: Sequence[_Supervisor], leaving: Sequence[_Running]) -> None:
    """Close the lines of these supervisors, so that all of them end."""
    for supervisor in (*idle, *(cell.supervisor for cell in leaving)):
        supervisor.line.close()


def _start(supervisor: _Supervisor, task: Task, started: float) -> _Running:
    """Start a cell; only the cell's processes hold its ends of the pipes, and only this process holds the other ends.

    Programs that this process starts do not inherit its ends, and cells are forked from the server.
    """
    clocks = _clocks()
    home, away = multiprocessing.Pipe(duplex=False)
    heard, voices = zip(*(multiprocessing.Pipe(duplex=False) for _ in OUTPUTS), strict=True)
    with away, ExitStack() as ours:
        for voice in voices:
            ours.enter_context(voice)
        supervisor.run(task, (away, *voices))
    return _Running(supervisor, home, relay(heard), started, clocks)


def _begin(process: ForkServerProcess) -> None:
    """Let the server fork a process, and try again if the server is just shutting down.

    A solver that writes into every pipe may have ended the server. Once the server is gone, a new one is started.
    """
    for _ in range(_ATTEMPTS):
        try:
            return process.start()
        except (ConnectionError, EOFError):
            sleep(_WATCH)
    return process.start()


@contextmanager
def _no_main_module() -> Iterator[None]:
    """A context that hides the main module, which multiprocessing would import again in every cell's process.

    A cell does not need it, and importing a large script for every cell would be slow.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """A context in which new processes start with Ctrl-C blocked; only the driver handles Ctrl-C."""
    resource_tracker.ensure_running()  # started first, because its start would unblock Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch(cell: _Running, curve: list[Point], caps: Caps, stopped: Callable[[], bool]) -> tuple[Ended | None, float]:
    """Collect points until the last message comes or a limit is exceeded; None if the process is gone without one.

    Beside it come the seconds that the process may take to exit by itself: it may still have output to write. Time in
    which this process stood still, as by Ctrl-Z, does not count: it could not see the cell end.
    """
    doors, next_look, looked, stood_still = [cell.home, cell.supervisor.line], 0.0, cell.started, 0.0
    while True:
        if stopped():
            raise Interrupted
        ready = wait(doors, _WATCH)
        if cell.home in ready:
            message = _received(cell.home)
            if isinstance(message, Ended):
                return message, _LEAVE
            if message is None:
                doors.remove(cell.home)
            else:
                curve.append(message)
        elif cell.supervisor.line in ready and not (cell.home in doors and cell.home.poll()):
            return None, 0.0  # every message has been read: one may have come in after `wait` looked for it
        now = monotonic()
        stood_still += now - looked if now - looked > _STANDSTILL else 0.0
        looked = now
        if caps.seconds is not None and now - cell.started - stood_still > caps.seconds:
            return ended_early("timeout", f"took longer than {caps.seconds:g} s"), 0.0
        if caps.memory is not None and now >= next_look:
            if exceed(descendants(cell.supervisor.guard.pid or 0), caps.memory):
                return ended_early("memory", f"took more than {caps.memory / 2**20:.0f} MiB"), 0.0
            next_look = now + (monotonic() - now) / _LOOKING


def _received(home: Connection) -> Point | Ended | None:
    """The next message from a cell, or None if there will be no more."""
    try:
        message: Point | Ended = home.recv()
    except (EOFError, OSError):
        return None
    except Exception as error:  # a message may contain a solver's own objects, and unpickling them may raise anything
        return ended_early("failed", f"what the cell sent cannot be read: {error_text(error)}")
    if not isinstance(message, Point | Ended):  # a solver has written into the pipe
        return ended_early("failed", f"the cell sent a {type(message).__name__}, which is not a valid message")
    return message


def _end(cell: _Running) -> Exit | None:
    """End a cell and all its processes; returns how the solver's process ended, or None if nobody says so."""
    with cell.home:
        how = cell.supervisor.end()
        if how is None:
            cell.supervisor.dismiss()
    cell.voice.join(_LEAVE)
    return how


def _vanished(how: Exit | None, before: _Clocks) -> Ended:
    """The end of a cell without a last message."""
    if how is None:
        return ended_early("lost", "the process that watches over the cell was killed")
    if how.code == -signal.SIGKILL and killed_for_memory() > before.starved:
        return ended_early("memory", "the system killed the process for lack of memory")
    if -how.code in _FROM_OUTSIDE:
        return ended_early("lost", f"it was killed by {signal.Signals(-how.code).name}")
    return ended_early("failed", f"the process ended without a message (exit code {how.code})")


def _clocks() -> _Clocks:
    return _Clocks(monotonic(), busy_seconds(), process_time(), killed_for_memory())


def _load(before: _Clocks, verdict: Exit | None) -> float | None:
    """The number of cores that other processes kept busy since `before`, without the cell and this process."""
    after = _clocks()
    span = after.now - before.now
    if verdict is None or span < _LEAST_SPAN:
        return None
    others = (after.busy - before.busy) - (after.own - before.own) - verdict.seconds
    return max(0.0, others / span)
