"""A cell in its own process, watched from outside: what it may take in time and memory, and how it ended."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from time import monotonic, process_time, sleep
from types import ModuleType
from typing import cast

from rankbench.harness import keeper
from rankbench.harness.keeper import Verdict
from rankbench.harness.processes import busy_seconds, descendants, exceed, kill, kill_group
from rankbench.harness.records import Point, Status
from rankbench.harness.worker import Ending, Task
from rankbench.solvers import SOLVERS

_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
_START = threading.Lock()  # one process starts at a time: starting touches what all threads share
_WATCH = 0.05  # seconds between two looks at a running cell
_LOOKING = 0.05  # the share of its time that the driver may spend on looking at a cell's memory
_ATTEMPTS = 20  # to reach a server that is ending
_LEAVE = 0.5  # seconds a finished process has to leave by itself
_PATIENCE = 5.0  # seconds a keeper has to clear up
_LEAST_SPAN = 0.2  # seconds: the system counts in ticks of 10 ms, which are 5 % of a core over this span


@dataclass(frozen=True)
class Caps:
    """What a cell may take: seconds from start to end, and bytes of memory for it and all that it starts."""

    seconds: float | None = 600.0
    memory: int | None = None


@dataclass
class Outcome:
    """How a cell ended, and all that it sent home before."""

    status: Status = "failed"
    reason: str | None = None
    curve: list[Point] = field(default_factory=list)
    ending: Ending | None = None
    wall: float = 0.0
    load: float | None = None  # cores that others kept busy meanwhile; None where that cannot be told


class Interrupted(Exception):
    """The run was stopped while this cell was under way."""


@dataclass(frozen=True)
class _Clocks:
    """The time, the CPU seconds of the whole machine, and our own, all read at once."""

    now: float
    busy: float
    own: float


@dataclass(frozen=True)
class _Running:
    """A cell under way: its keeper's process, and our ends of the pipes."""

    keeper: ForkServerProcess
    lifeline: Connection  # the keeper ends the cell when nobody holds this any more
    verdict: Connection  # from the keeper: how the solver's process ended
    home: Connection  # from the solver: checkpoints, and the last word
    started: float
    clocks: _Clocks


def server() -> ForkServerContext:
    """The process that cells are forked from: it has imported all they need, and has no threads.

    A cell's BLAS has one thread; where it is told so from the start it makes no threads that a fork must end.
    """
    context = multiprocessing.get_context("forkserver")
    solvers = sorted({entry.partition(":")[0] for entry in SOLVERS.entries.values()})
    context.set_forkserver_preload(["rankbench.harness.keeper", *solvers])
    before = {name: os.environ.get(name) for name in _BLAS_THREADS}
    os.environ |= dict.fromkeys(_BLAS_THREADS, "1")
    try:
        with _no_main_module(), _no_interrupts():
            forkserver.ensure_running()
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ |= {} if value is None else {name: value}
    return context


def run_isolated(context: ForkServerContext, task: Task, caps: Caps, stop: threading.Event) -> Outcome:
    """Start the task's process, watch it to its end, and leave nothing running behind."""
    cell, outcome = _start(context, task), Outcome()
    try:
        finished = _watch(cell, outcome, caps, stop.is_set)
        if outcome.ending:  # it has said its last word, and may still have output to write
            cell.verdict.poll(_LEAVE)
    finally:
        verdict = _end(cell)
    if not finished:
        _vanished(outcome, verdict)
    outcome.load = _load(cell.clocks, verdict)
    outcome.wall = monotonic() - cell.started
    return outcome


def _start(context: ForkServerContext, task: Task) -> _Running:
    """Start a cell. Its ends of the pipes live on in its processes alone, and ours in this process alone.

    Ours are not inherited by programs that this process starts, and cells are forked from the server.
    """
    started = monotonic()
    theirs, lifeline = context.Pipe(duplex=False)
    verdict, judge = context.Pipe(duplex=False)
    home, away = context.Pipe(duplex=False)
    with theirs, judge, away:
        process = context.Process(target=keeper.keep, args=(theirs, judge, away, task))
        with _START, _no_main_module(), _no_interrupts():
            _begin(process)
    return _Running(process, lifeline, verdict, home, started, _clocks())


def _begin(process: ForkServerProcess) -> None:
    """Have the server fork a process. A solver that writes into every pipe may have ended it just before.

    Once it is gone another one is started; while it goes it answers nobody.
    """
    for _ in range(_ATTEMPTS):
        try:
            return process.start()
        except (ConnectionError, EOFError):
            sleep(_WATCH)
    return process.start()


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Hide the caller's main module: multiprocessing would import it again in every cell's process.

    A cell needs nothing of it, and a script that imports half the world would pay for it cell by cell.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """What is started in here never sees Ctrl-C, not even while it still imports: that is ours to handle."""
    resource_tracker.ensure_running()  # its own start would let interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch(cell: _Running, outcome: Outcome, caps: Caps, stopped: Callable[[], bool]) -> bool:
    """Collect messages until the last one comes, a cap is broken (True), or the process is gone (False)."""
    doors, next_look = [cell.home, cell.verdict], 0.0
    while True:
        if stopped():
            raise Interrupted
        ready = wait(doors, _WATCH)
        if cell.home in ready:
            message = _received(cell.home)
            if message is None:
                doors.remove(cell.home)
            elif _noted(outcome, message):
                return True
        elif cell.verdict in ready:  # only now: all that was sent home has been read
            return False
        now = monotonic()
        if caps.seconds is not None and now - cell.started > caps.seconds:
            outcome.status, outcome.reason = "timeout", f"took longer than {caps.seconds:g} s"
            return True
        if caps.memory is not None and now >= next_look:
            if exceed(descendants(cell.keeper.pid or 0), caps.memory):
                outcome.status, outcome.reason = "memory", f"took more than {caps.memory / 2**20:.0f} MiB"
                return True
            next_look = now + (monotonic() - now) / _LOOKING


def _received(home: Connection) -> Point | Ending | None:
    """The next message from a cell; None when there will be no more."""
    try:
        message: Point | Ending = home.recv()
    except (EOFError, OSError):
        return None
    except Exception as error:  # a solver's own objects may travel in it, and fail in whatever way they like
        return Ending("failed", f"what the cell sent cannot be read: {type(error).__name__}: {error}")
    if not isinstance(message, Point | Ending):  # a solver that found the pipe
        return Ending("failed", f"the cell sent a {type(message).__name__}, which says nothing")
    return message


def _noted(outcome: Outcome, message: Point | Ending) -> bool:
    """Enter a message into the outcome; whether it was the last one."""
    if isinstance(message, Point):
        outcome.curve.append(message)
        return False
    outcome.status, outcome.reason, outcome.ending = message.status, message.reason, message
    return True


def _end(cell: _Running) -> Verdict | None:
    """End a cell and everything that it started; the keeper's verdict, None if it gave none.

    A keeper that has given its verdict has nothing more to do than to leave: nobody need wait for that.
    """
    with cell.verdict, cell.home:
        cell.lifeline.close()
        verdict = _verdict(cell.verdict)
        if verdict is None:
            _kill_all(cell.keeper)
    return verdict


def _verdict(pipe: Connection) -> Verdict | None:
    try:
        return cast(Verdict, pipe.recv()) if pipe.poll(_PATIENCE) else None
    except (EOFError, OSError):
        return None


def _kill_all(process: ForkServerProcess) -> None:
    """Kill a keeper that does not answer, and what was its to clear up.

    If it was killed itself, its children have other parents by now, but most are still in its group.
    """
    if process.pid is None:
        return
    tree = descendants(process.pid)
    kill_group(process.pid)
    for orphan in tree:
        kill(orphan, signal.SIGKILL)
    process.join(_PATIENCE)


def _vanished(outcome: Outcome, verdict: Verdict | None) -> None:
    """The process ended without a word: a signal, or the machine ran out of memory."""
    if verdict is None:
        outcome.reason = "the process that watches over the cell was killed"
    elif verdict.code == -signal.SIGKILL:
        outcome.status, outcome.reason = "memory", "the system killed the process, most likely for memory"
    else:
        outcome.reason = f"the process died without a word (exit code {verdict.code})"


def _clocks() -> _Clocks:
    return _Clocks(monotonic(), busy_seconds(), process_time())


def _load(before: _Clocks, verdict: Verdict | None) -> float | None:
    """How many cores others kept busy since then: all that the machine did, less what the cell and we did."""
    after = _clocks()
    span = after.now - before.now
    if verdict is None or span < _LEAST_SPAN:
        return None
    others = (after.busy - before.busy) - (after.own - before.own) - verdict.seconds
    return max(0.0, others / span)
