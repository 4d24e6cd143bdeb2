"""What runs inside a cell's own process: load the split, train, evaluate off the clock, report home."""

import os
import signal
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import psutil

from rankbench import metrics
from rankbench.arrays import read_npz, unpack
from rankbench.contract import Model
from rankbench.data.splits import Split
from rankbench.data.views import VIEWS, Ratings, offer
from rankbench.harness.basis import leading_features
from rankbench.harness.plan import Cell
from rankbench.harness.threads import single_threaded_blas
from rankbench.harness.training import Checkpoint, checkpoints
from rankbench.solvers import SOLVERS
from rankbench.streams import stream


@dataclass(frozen=True)
class Task:
    """A cell and the file that holds its split."""

    cell: Cell
    parts: Path


class PeakMemory:
    """The highest resident memory while the solver ran; what evaluation takes between is not counted."""

    def __init__(self) -> None:
        self.megabytes = 0.0
        self.restart()

    def restart(self) -> None:
        """Forget the peak so far, where the kernel can: called last before the solver goes on."""
        try:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        except OSError:
            pass  # then the peak is that of the whole process

    def note(self) -> None:
        """Read the peak: called first after the solver stopped."""
        self.megabytes = max(self.megabytes, _peak_bytes() / 1e6)


def main(home: Connection, task: Task) -> None:
    """Run the task and send home checkpoints, then one last message with the outcome."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    own = os.getpid()
    try:
        content = _run(home, task)
        if os.getpid() == own:
            home.send(("done", content))
    except BaseException as error:  # whatever a solver throws is its cell's failure, not ours
        if os.getpid() != own:
            raise  # out of a process that the solver forked: how that one ends is not how the cell does
        try:
            home.send(_failure(error))
        except BrokenPipeError:
            os._exit(1)  # nobody is listening any more


def _failure(error: BaseException) -> tuple[str, dict[str, Any]]:
    """The last message of a cell that an exception ended."""
    if isinstance(error, MemoryError):
        return "memory", {"reason": "out of memory", "trace": None}
    return "failed", {"reason": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}


def _run(home: Connection, task: Task) -> dict[str, Any]:
    cell = task.cell
    arrays = read_npz(task.parts)
    parts = {name.removesuffix(".kind") for name in arrays if name.endswith(".kind")}
    split = Split(**{part: unpack(arrays, VIEWS, f"{part}.") for part in parts})
    solver = SOLVERS.make(cell.solver_text)
    started = perf_counter()
    train = offer(solver, split.train)  # may make comparisons out of ratings
    prepare = perf_counter() - started
    rng = stream(cell.seed, "solver", cell.data, cell.split, cell.solver, cell.repetition)
    memory = PeakMemory()
    scored, last, imported = -1, None, list[str]()
    with single_threaded_blas():
        memory.restart()
        for checkpoint in checkpoints(solver.steps(train, rng, cell.threads), cell.budget):
            memory.note()
            last = checkpoint
            imported += checkpoint.imported
            if checkpoint.index % cell.every == 0 or checkpoint.spent:
                per_user = _score(home, cell, checkpoint, split)
                scored = checkpoint.index
            memory.restart()
        if last is None:
            raise RuntimeError("the solver yielded no model")
        if scored != last.index:  # it ended by itself, between two evaluations
            per_user = _score(home, cell, last, split)
    return {
        "per_user": per_user,
        "unscored": _unscored(last.step.model, split),
        "peak_mb": memory.megabytes,
        "prepare": prepare,
        "imported": tuple(imported),
        "stopped": "budget" if last.spent else "solver",
        "basis": leading_features(last.step.model, split.train.feature_names),
    }


def _score(home: Connection, cell: Cell, checkpoint: Checkpoint, split: Split) -> dict[str, Any]:
    """Measure a checkpoint, send its point of the curve home, and return the value for each user."""
    seen = split.train if split.seen is None else split.seen
    per_user = metrics.per_user(checkpoint.step.model, split.test, cell.metrics, cell.threads, seen)
    point: dict[str, Any] = {
        "step": checkpoint.index,
        "seconds": checkpoint.seconds,
        "metrics": {label: metrics.mean(values) for label, values in per_user.items()},
    }
    if cell.objective and checkpoint.step.objective is not None:
        point["objective"] = float(checkpoint.step.objective())
    if cell.objective and checkpoint.step.gap is not None:
        point["gap"] = float(checkpoint.step.gap())
    if checkpoint.step.bound is not None:
        point["bound"] = checkpoint.step.bound
    home.send(("checkpoint", point))
    return per_user


def _unscored(model: Model, split: Split) -> float:
    """The share of held-out (user, item) pairs that the model cannot score."""
    test = split.test
    columns = [test.items] if isinstance(test, Ratings) else [test.better, test.worse]
    missing = [np.isnan(model.score(test.users, items)).mean() for items in columns]
    return float(np.mean(missing))


def _peak_bytes() -> int:
    """VmHWM of this process, or its resident memory now where there is no /proc."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return int(psutil.Process().memory_info().rss)
