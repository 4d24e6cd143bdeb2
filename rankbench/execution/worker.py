"""The code that runs in a cell's own process: load the split, train, evaluate with the clock stopped, send results."""

import os
import pickle
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from math import inf
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter

import numpy as np

from rankbench import metrics, models
from rankbench.arrays.npz import Arrays, fingerprint, fingerprint_of, pack
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import (
    Executor,
    Flags,
    Floats,
    GoesOn,
    Model,
    Partitioned,
    Scattered,
    Solver,
    Step,
)
from rankbench.core.packages import import_needed
from rankbench.core.streams import stream
from rankbench.core.texts import LONGEST
from rankbench.data.by_item import counted, users_of
from rankbench.data.splits import Split
from rankbench.data.views import Comparisons, Ratings, View, offer
from rankbench.data.views.layout import blocks
from rankbench.distributed.in_process import InProcess
from rankbench.distributed.teams import Entrance, PartsLost, Team
from rankbench.execution.strongest_features import leading_functions
from rankbench.execution.training import Checkpoint, checkpoints, objective_lost
from rankbench.metrics import Metric, PerUser
from rankbench.names.user_lines import with_own_line
from rankbench.planning.materials import read_split
from rankbench.planning.memory import PeakMemory
from rankbench.records.cells import Cell
from rankbench.records.codec import printable
from rankbench.records.results import Counted, Measured, Point, Status, pairs_of


@dataclass(frozen=True)
class Task:
    """A cell and the file that holds its split; a trial on a path of penalties may start from a stored model."""

    cell: Cell
    parts: Path
    start: Path | None = None  # the file of the model to start from
    followed: bool = False  # whether another trial starts from this one's model
    team: Entrance | None = None  # the processes that hold the parts of the users, if the solver has partitions


@dataclass(frozen=True, kw_only=True)
class Ended(Measured):
    """How a cell ended: what its process measured, and what its driver found from outside."""

    per_user: Mapping[str, Floats] = field(default_factory=dict)  # by label; `pairs_of` names the numbers of pairs
    arrays: Arrays | None = None  # of the model, where another trial starts from it
    wall: float = 0.0
    load: float | None = None  # cores that other processes kept busy meanwhile; None if unknown


def ended_early(status: Status, reason: str, trace: str | None = None) -> Ended:
    """The end of a cell that has nothing but its curve to tell."""
    return Ended(status=status, reason=reason, curve=(), counted=(), unscored=None, trace=trace)


def main(home: Connection, task: bytes) -> None:
    """Run the pickled task; send a `Point` through `home` for each evaluation, then an `Ended` as the last message."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    own = os.getpid()
    try:
        ending = work(home.send, pickle.loads(task))
        if os.getpid() == own:
            home.send(ending)
    except BaseException as error:  # any exception of a solver is a failure of its cell only
        if os.getpid() != own:
            raise  # this is a process that the solver forked: its end is not the end of the cell
        try:
            home.send(_failure(error))
        except OSError:
            os._exit(1)  # the driver has closed its end of the pipe, or the solver has closed this one


def _failure(error: BaseException) -> Ended:
    """The last message of a cell that an exception ended."""
    if isinstance(error, MemoryError):
        return ended_early("memory", "out of memory")
    if isinstance(error, PartsLost):
        return ended_early("lost", str(error))
    return ended_early("failed", _brief(error), printable(traceback.format_exc()))


def _brief(error: BaseException) -> str:
    """An error's class and text, and the line of the user's own file that it came from.

    A long text is cut, since the traceback that is stored beside it has it all.
    """
    text = printable(with_own_line(error))
    more = f" ... ({len(text) - LONGEST:,} more characters in `trace` of the stored result)"
    return text if len(text) <= LONGEST else text[: LONGEST - len(more)] + more


def work(send: Callable[[Point], None], task: Task, read: Callable[[Path], Split] = read_split) -> Ended:
    """Train and evaluate a cell in this process; sends each point of its curve and returns the rest."""
    memory = PeakMemory()
    executor = Team(task.team) if task.team else InProcess()  # first of all, as the team waits for it
    cell, split = task.cell, read(task.parts)
    memory.note("read")
    solver: Solver = cell.solver.record
    import_needed(solver, cell.solver.written)
    measured = [measure.record for measure in cell.measures]
    started = perf_counter()
    train = offer(solver, split.train_for(solver))
    prepare = perf_counter() - started
    rng = rng_of(cell)
    memory.note("prepare")
    scored, last, patience = -1, None, Patience(cell)
    imported: tuple[str, ...] = ()
    with one_blas_thread():
        for checkpoint in checkpoints(_steps(solver, task, executor, train, rng), cell.budget):
            memory.note("train")
            last, imported = checkpoint, (*imported, *checkpoint.imported)
            if checkpoint.index % cell.every == 0:
                found = _score(send, cell, measured, checkpoint, split)
                scored = checkpoint.index
                if patience.ends(metrics.mean(next(iter(found.values.values())))):
                    last = replace(last, spent=True)
                    break
            memory.note("evaluate")
        if last is None:
            raise RuntimeError("the solver yielded no model")
        if scored != last.index:  # training ended between two evaluations
            found = _score(send, cell, measured, last, split)
        arrays = arrays_of(last.step.model) if task.followed else None
        ending = _ending(last, split, train, found)
        if isinstance(executor, Team):
            memory.at_least("train", executor.cost.memory / 1e6)
    memory.note("evaluate")
    return replace(ending, prepare=prepare, imported=imported, peaks=memory.peaks, arrays=arrays)


class Patience:
    """Says when a trial ends early: after so many evaluations in a row without a better value."""

    def __init__(self, cell: Cell) -> None:
        self._sign, self._patience = cell.measures[0].sign, cell.budget.patience
        self._best, self._without = -inf, 0

    def ends(self, value: float) -> bool:
        """Whether this value is the last one; NaN is never better."""
        better = self._sign * value > self._best
        self._best = self._sign * value if better else self._best
        self._without = 0 if better else self._without + 1
        return self._without == self._patience


def _steps(solver: Solver, task: Task, executor: Executor, train: View, rng: np.random.Generator) -> Iterator[Step]:
    """The solver's steps, from the beginning or from the model of another trial.

    One with partitions leaves the users' vectors with the executor.
    """
    threads = task.cell.threads
    if isinstance(solver, Partitioned) and solver.partitions > 1:
        return solver.steps_on(executor, train, rng, threads)
    if task.start is not None and isinstance(solver, GoesOn):
        return solver.steps_from(models.load(task.start), train, rng, threads)
    return solver.steps(train, rng, threads)


def arrays_of(model: Model) -> Arrays | None:
    """The arrays of a model that can be stored and loaded again, else None."""
    return pack(model) if models.MODELS.get(type(model).__name__) is type(model) else None


def rng_of(cell: Cell) -> np.random.Generator:
    """The random generator of a cell's solver."""
    number = cell.place.draw("search" if cell.is_trial else "start")
    return stream(cell.seed, "solver", *cell.drawn_for, cell.stream_name, number)


def _ending(last: Checkpoint, split: Split, train: View, found: PerUser) -> Ended:
    """The last message of a training that did not raise an exception."""
    model = last.step.model
    unscored, lost = without_score(model, split.test, train)
    reason = lost or objective_lost(last)
    per_user = found.values | {pairs_of(label): pairs for label, pairs in found.pairs.items()}
    return Ended(
        status="diverged" if reason else "ok",
        reason=reason,
        curve=(),
        per_user=per_user,
        counted=tuple(_counted(values) for values in found.values.values()),
        unscored=unscored,
        stopped="budget" if last.spent else "solver",
        functions=leading_functions(model, split.train.feature_names),
        split=split.hash,
        model=digest_of(model),
        values=fingerprint_of(per_user),
    )


def digest_of(model: Model) -> str:
    """SHA-256 of the arrays that a model scores by; empty where it is no record of arrays."""
    if isinstance(model, Scattered):
        return model.digest()
    if not is_dataclass(model) or any(array.dtype == object for array in pack(model).values()):
        return ""
    beside = {each.name: None for each in fields(model) if not each.metadata.get("scores", True)}
    return fingerprint(replace(model, **beside) if beside else model)


def _score(
    send: Callable[[Point], None], cell: Cell, measured: list[Metric], checkpoint: Checkpoint, split: Split
) -> PerUser:
    """Evaluate a checkpoint, send its point of the curve, and return each metric's value for each user."""
    seen = split.train if split.seen is None else split.seen
    step = checkpoint.step
    found = metrics.measure(step.model, split.test, measured, cell.threads, seen)
    point = Point(
        step=checkpoint.index,
        seconds=checkpoint.seconds,
        values=tuple(metrics.mean(values) for values in found.values.values()),
        objective=float(step.objective()) if cell.objective and step.objective is not None else None,
        gap=float(step.gap()) if cell.objective and step.gap is not None else None,
        bound=None if step.bound is None else float(step.bound),
    )
    send(point)
    return found


def _counted(values: Floats) -> Counted:
    """How many users have a value, and how many have none."""
    left_out = int(np.isnan(values).sum())
    return Counted(len(values) - left_out, left_out)


def without_score(model: Model, test: View, train: View) -> tuple[float, str | None]:
    """The share of held-out items that the model scores NaN for their user, and why it is of no use if it should not.

    It should not where it was trained on both the user and the item.
    """
    columns = [test.items] if isinstance(test, Ratings) else [test.better, test.worse]
    (users, items), missing, lost = _trained_on(train), np.zeros(len(columns)), 0
    for block, rows in blocks(test.indptr):
        owners = users_of(test.indptr[block.start : block.stop + 1]) + block.start
        for number, column in enumerate(columns):
            unscored = np.isnan(model.score(owners, column[rows]))
            missing[number] += np.count_nonzero(unscored)
            lost += int(np.count_nonzero(unscored & users[owners] & items[column[rows]]))
    reason = f"NaN for {lost} held-out pairs whose user and item it was trained on" if lost else None
    return float(np.mean(missing / len(test))), reason


def _trained_on(train: View) -> tuple[Flags, Flags]:
    """Which users have a preference in the training data, and which items these preferences are about.

    A user whose ratings are all equal has no preference, so a model need not score this user.
    """
    if isinstance(train, Comparisons):
        return np.diff(train.indptr) > 0, counted(train.better, train.n_items) + counted(train.worse, train.n_items) > 0
    users, items = train.has_order, np.zeros(train.n_items, bool)
    for block, rows in blocks(train.indptr):
        items[train.items[rows][np.repeat(users[block], np.diff(train.indptr[block.start : block.stop + 1]))]] = True
    return users, items
