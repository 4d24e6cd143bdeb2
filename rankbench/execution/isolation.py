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
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from time import monotonic, process_time, sleep
from types import ModuleType
from typing import cast

from rankbench.core.system import busy_seconds, descendants, exceed, kill, kill_group, killed_for_memory
from rankbench.core.temporary import own_sockets
from rankbench.core.texts import error_text
from rankbench.execution import supervisor
from rankbench.execution.supervisor import Exit
from rankbench.execution.voices import OUTPUTS, relay
from rankbench.execution.worker import Ended, Task, ended_early
from rankbench.records.results import Point

_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
_START = threading.Lock()  # one process starts at a time, because starting changes state that all threads share
_WATCH = 0.05  # seconds between two looks at a running cell
_LOOKING = 0.05  # largest share of its time that the driver spends on measuring a cell's memory
_ATTEMPTS = 20  # attempts to reach a server that is shutting down
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
    """A running cell: its guard's process, and the driver's ends of the pipes."""

    guard: ForkServerProcess
    lifeline: Connection  # the supervisor ends the cell when this is closed
    verdict: Connection  # from the supervisor: how the solver's process ended
    home: Connection  # from the solver's process: points of the curve, then the last message
    voice: threading.Thread  # which writes out what the solver prints
    started: float
    clocks: _Clocks


def server() -> ForkServerContext:
    """The context of the fork server, the process from which cells are forked; it has imported everything they need.

    Its BLAS is limited to one thread by environment variables, so that it starts no threads, which a fork would lose.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rankbench.execution.preloaded"])
    before = {name: os.environ.get(name) for name in _BLAS_THREADS}
    os.environ |= dict.fromkeys(_BLAS_THREADS, "1")
    try:
        with _no_main_module(), _no_interrupts(), own_sockets():
            forkserver.ensure_running()
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ |= {} if value is None else {name: value}
    return context


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
    """Run a task in its own process under limits, and end all its processes; returns how it ended."""
    cell = _start(context, task)
    curve: list[Point] = []
    try:
        ended = _watch(cell, curve, caps, stop.is_set)
    finally:
        how = _end(cell)
    load = _load(cell.clocks, how)
    wall = monotonic() - cell.started
    return replace(ended or _vanished(how, cell.clocks), curve=tuple(curve), wall=wall, load=load)


def _start(context: ForkServerContext, task: Task) -> _Running:
    """Start a cell; only the cell's processes hold its ends of the pipes, and only this process holds the other ends.

    Programs that this process starts do not inherit its ends, and cells are forked from the server.
    """
    started = monotonic()
    theirs, lifeline = context.Pipe(duplex=False)
    verdict, judge = context.Pipe(duplex=False)
    home, away = context.Pipe(duplex=False)
    heard, voices = zip(*(context.Pipe(duplex=False) for _ in OUTPUTS), strict=True)
    with theirs, judge, away, ExitStack() as ours:
        for voice in voices:
            ours.enter_context(voice)
        process = forked(context, supervisor.supervise, (theirs, judge, away, replace(task, voices=voices)))
    return _Running(process, lifeline, verdict, home, relay(heard), started, _clocks())


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


def _watch(cell: _Running, curve: list[Point], caps: Caps, stopped: Callable[[], bool]) -> Ended | None:
    """Collect points until the last message comes or a limit is exceeded; None if the process is gone without one."""
    doors, next_look = [cell.home, cell.verdict], 0.0
    while True:
        if stopped():
            raise Interrupted
        ready = wait(doors, _WATCH)
        if cell.home in ready:
            message = _received(cell.home)
            if isinstance(message, Ended):
                cell.verdict.poll(_LEAVE)  # the process may still have output to write
                return message
            if message is None:
                doors.remove(cell.home)
            else:
                curve.append(message)
        elif cell.verdict in ready and not (cell.home in doors and cell.home.poll()):
            return None  # every message has been read: one may have come in after `wait` looked for it
        now = monotonic()
        if caps.seconds is not None and now - cell.started > caps.seconds:
            return ended_early("timeout", f"took longer than {caps.seconds:g} s")
        if caps.memory is not None and now >= next_look:
            if exceed(descendants(cell.guard.pid or 0), caps.memory):
                return ended_early("memory", f"took more than {caps.memory / 2**20:.0f} MiB")
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
    """End a cell and all its processes; returns the supervisor's verdict, or None if it sent none.

    A supervisor that has sent its verdict exits at once, so there is no need to wait for it.
    """
    with cell.verdict, cell.home:
        cell.lifeline.close()
        verdict = _verdict(cell.verdict)
        if verdict is None:
            _kill_all(cell.guard)
    cell.voice.join(_LEAVE)
    return verdict


def _verdict(pipe: Connection) -> Exit | None:
    try:
        return cast(Exit, pipe.recv()) if pipe.poll(_PATIENCE) else None
    except (EOFError, OSError):
        return None


def _kill_all(guard: ForkServerProcess) -> None:
    """Wait until the guard has ended all processes of a cell whose supervisor does not answer; then kill what is left.

    If the supervisor was killed, the guard ends them and exits. If the supervisor is stopped, the guard waits for it.
    """
    if guard.pid is None:  # pragma: no cover: a guard that was started has a number; this tells mypy
        return
    guard.join(_PATIENCE)
    tree = descendants(guard.pid)
    kill_group(guard.pid)
    for orphan in tree:
        kill(orphan, signal.SIGKILL)
    guard.join(_PATIENCE)


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
