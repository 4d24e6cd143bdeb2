"""A cell in its own process, watched from outside: what it may take in time and memory, and how it ended."""

import multiprocessing
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from time import monotonic
from types import ModuleType

import psutil

from rankbench.harness import worker
from rankbench.harness.records import Point, Status
from rankbench.harness.worker import Ending, Task
from rankbench.solvers import SOLVERS

_START = threading.Lock()  # one process starts at a time: starting touches what all threads share
_WATCH = 0.05  # seconds between two looks at a running cell
_PATIENCE = 5.0  # seconds a finished process has to leave


@dataclass(frozen=True)
class Caps:
    """What a cell may take: seconds from start to end, and bytes of resident memory."""

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
    load: float | None = None


class Interrupted(Exception):
    """The run was stopped while this cell was under way."""


def server() -> ForkServerContext:
    """The process that cells are forked from: it has imported all they need, and has no threads."""
    context = multiprocessing.get_context("forkserver")
    solvers = sorted({entry.partition(":")[0] for entry in SOLVERS.entries.values()})
    context.set_forkserver_preload(["rankbench.harness.worker", *solvers])
    return context


def run_isolated(context: ForkServerContext, task: Task, caps: Caps, stop: threading.Event) -> Outcome:
    """Start the task's process, watch it to its end, and leave nothing running behind."""
    home, away = context.Pipe(duplex=False)
    process = context.Process(target=worker.main, args=(away, task), daemon=True)
    started = monotonic()
    with _START, _no_main_module(), _no_interrupts():
        process.start()
    away.close()
    try:
        outcome = _watch(process, home, started, caps, stop.is_set)
    finally:
        _end(process)
        home.close()
    outcome.wall = monotonic() - started
    return outcome


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


def _watch(
    process: ForkServerProcess, home: Connection, started: float, caps: Caps, stopped: Callable[[], bool]
) -> Outcome:
    """Collect messages until the last one comes or a cap is broken."""
    outcome = Outcome()
    while True:
        if stopped():
            raise Interrupted
        if home.poll(_WATCH):
            try:
                message = home.recv()
            except EOFError:
                return _vanished(process, outcome)
            if isinstance(message, Point):
                outcome.curve.append(message)
            else:
                outcome.status, outcome.reason, outcome.ending = message.status, message.reason, message
                return outcome
        if caps.seconds is not None and monotonic() - started > caps.seconds:
            outcome.status, outcome.reason = "timeout", f"took longer than {caps.seconds:g} s"
            return outcome
        if caps.memory is not None and _resident(process.pid) > caps.memory:
            outcome.status, outcome.reason = "memory", f"took more than {caps.memory / 2**20:.0f} MiB"
            return outcome


def _vanished(process: ForkServerProcess, outcome: Outcome) -> Outcome:
    """The process ended without a word: a signal, or the machine ran out of memory."""
    process.join(_PATIENCE)
    outcome.reason = f"the process died without a word (exit code {process.exitcode})"
    if process.exitcode == -9:
        outcome.status, outcome.reason = "memory", "the system killed the process, most likely for memory"
    return outcome


def _resident(pid: int | None) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0  # it has just ended; the pipe will tell


def _end(process: ForkServerProcess) -> None:
    """Let a finished process leave; kill one that does not."""
    process.join(_WATCH)
    if process.is_alive():
        process.kill()
        process.join(_PATIENCE)
