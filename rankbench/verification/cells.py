"""Stored cells and trials run again: whether everything but the times comes out the same, to the last byte.

On the same basis (kernels, libraries, processor) an exact solver must give the same bytes. On another basis values may
differ in their last digits, and a solver whose threads race may differ by more: both have a stated tolerance. Where a
budget in seconds ended the training, the cell is run again for as many steps as were stored. A trial starts again from
the model of the trial from which it started, if that comes before it on its path.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from rankbench.arrays.npz import Arrays
from rankbench.execution.run import Conditions, Event, Run
from rankbench.planning.warm_starts import Paths
from rankbench.records.cells import Cell
from rankbench.records.differences import (
    DIGESTS,
    SAME_TO,
    basis_change,
    differences,
    distance,
    distance_of_users,
    races,
)
from rankbench.records.plans import Search
from rankbench.records.results import Result
from rankbench.records.store import ResultsFolder, values_of
from rankbench.records.studies import Study

RACY_TO = 0.05  # of a solver whose threads race: the difference of a mean that their order may explain
_ROUNDED = (*DIGESTS, "unscored", "functions", "objective", "gap")  # besides metrics, what rounding or races may change
_LENGTH = ("curve", "step", "stopped")  # what they may change where values decide when the training ends

Sameness = Literal["same", "close", "differs", "failed"]


@dataclass(frozen=True)
class Check:
    """A stored cell beside what came of running it again."""

    cell: Cell
    verdict: Sameness
    differing: tuple[str, ...] = ()  # fields of the result, metrics, and metrics of users
    why: str = ""

    @property
    def line(self) -> str:
        """The check in one line."""
        parts = f" in {', '.join(self.differing)}" if self.differing else ""
        return f"{self.verdict}: {self.cell.label}{parts}: {self.why}"


def verifiable(study: Study) -> tuple[Cell, ...]:
    """All cells and trials with a result, however they ended."""
    return tuple({entry.cell.key: entry.cell for entry in (*study.entries, *study.trials) if entry.result}.values())


def sampled(cells: Sequence[Cell], number: int | None, draw: int = 0) -> tuple[Cell, ...]:
    """So many of these cells, drawn at random and in their order; all for None."""
    if number is None or number >= len(cells):
        return tuple(cells)
    chosen = np.sort(np.random.default_rng(draw).choice(len(cells), number, replace=False))
    return tuple(cells[place] for place in chosen)


@dataclass(frozen=True)
class _NothingFollows:
    """The continuation of a search whose trials are all known."""

    most: int = 0

    def more(self, trials: Sequence[Cell], results: Sequence[Result]) -> tuple[Cell, ...]:
        """No further trials."""
        return ()


def run_again(
    study: Study,
    cells: Sequence[Cell],
    searches: Sequence[Search],
    afresh: ResultsFolder,
    conditions: Conditions,
    tell: Callable[[Event], None],
) -> list[Check]:
    """Run these cells and trials of a study again, with results in an empty folder, and compare.

    Of the `searches` that the experiment makes, those trials are run too whose models the given trials start from.
    """
    again = {cell.key: _for_as_many_steps(cell, study.by_key[cell.key]) for cell in cells}
    own = tuple(again[cell.key] for cell in cells if not cell.is_trial)
    known = tuple(_with_their_starts(searches, {cell.key for cell in cells if cell.is_trial}, study.by_key))
    store = afresh.store(study.name)
    plan = replace(study.plan, skips=(), trials=(), failures=())
    runs = [
        Run(replace(plan, planned=own, searches=()), store, conditions),
        Run(replace(plan, planned=(), searches=known), store, conditions),
    ]
    for run in runs:
        run.paths = run.paths.as_started(study.by_key)
        run.open()
        run.execute(tell)
    results = {key: runs[cell.is_trial].result(cell) for key, cell in again.items()}
    return [_checked_with_users(study, store.cells, cell, results[cell.key]) for cell in cells]


def _for_as_many_steps(cell: Cell, stored: Result) -> Cell:
    """The cell; where its seconds decided the number of steps, with a budget of as many steps instead."""
    budget = cell.budget
    if budget.seconds is None or not stored.curve:
        return cell
    return replace(cell, budget=replace(budget, seconds=None, steps=stored.curve[-1].step))


def _with_their_starts(searches: Sequence[Search], wanted: set[str], stored: Mapping[str, Result]) -> Iterator[Search]:
    """The searches with the trials of these keys alone, and those that they started from, one after the other."""
    for search in searches:
        keys = {trial.key for trial in search.trials} & wanted
        paths = Paths([search] if search.continuation is None else [], Path()).as_started(stored)
        for trial in [trial for trial in search.trials if trial.key in keys]:
            before = paths.before(trial)
            while before is not None:
                keys.add(before.key)
                before = paths.before(before)
        if trials := tuple(trial for trial in search.trials if trial.key in keys):
            continuation = None if search.continuation is None else _NothingFollows()
            yield replace(search, trials=trials, continuation=continuation)


def _checked_with_users(study: Study, folder: Path, cell: Cell, found: Result | None) -> Check:
    """One cell's check, with the values for each user read from both folders."""
    before = values_of(Path(study.cells), cell)
    return checked(study.by_key[cell.key], found, before, values_of(folder, found.cell) if found else {})


def checked(stored: Result, found: Result | None, before: Arrays, after: Arrays) -> Check:
    """A stored result beside another one of the same cell."""
    cell = stored.cell
    if found is None:
        return Check(cell, "failed", why="it did not run")
    if stored.status != found.status:
        now = f"{found.status}, {found.reason}" if found.reason else found.status
        verdict: Sameness = "failed" if stored.status == "ok" and found.status != "diverged" else "differs"
        return Check(cell, verdict, ("status",), f"it ended as {stored.status} when it was stored, and now: {now}")
    differing = differences(stored, found, before, after)
    if not differing:
        return Check(cell, "same")
    change = basis_change(stored.machine, found.machine)
    far = distance(stored, found)
    if before and after and not races(cell):  # where threads race, the values of single users may be anything
        far = max(far, distance_of_users(before, after))
    if "split" in differing:
        return Check(cell, "differs", differing, "it was trained on another split")
    if "start" in differing and set(differing) - {"start"}:
        return Check(cell, "differs", differing, "it started from the model of another trial")
    why = "its threads race" if races(cell) else change or "on the same basis"
    most = RACY_TO if races(cell) else SAME_TO if change else 0.0
    explained = all(_may_be_rounded(cell, name) for name in differing) and far <= most
    return Check(cell, "close" if most and explained else "differs", differing, f"{why}; off by {far:.2g}")


def _may_be_rounded(cell: Cell, name: str) -> bool:
    """Whether another order of additions can change this part of a result."""
    by_values = cell.budget.tolerance is not None or cell.budget.patience is not None
    metrics = {measure.label for measure in cell.measures}
    return name in metrics or name in _ROUNDED or name.endswith(" of users") or (by_values and name in _LENGTH)
