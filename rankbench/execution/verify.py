"""Stored cells run again: whether the split, the model and every value come out the same, to the last byte.

On the same basis (kernels, libraries, processor) an exact solver must give the same bytes. On another basis values may
differ in their last digits, and a solver whose threads race may differ by more: both have a stated tolerance.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from rankbench.arrays.npz import Arrays
from rankbench.execution.run import Conditions, Event, Run
from rankbench.planning.materials import Materials
from rankbench.records.cells import Cell
from rankbench.records.differences import SAME_TO, basis_change, differences, distance, races
from rankbench.records.results import Result
from rankbench.records.store import ResultsFolder, values_of
from rankbench.records.studies import Study

RACY_TO = 0.05  # of a solver whose threads race: the difference of a value that their order may explain

Verdict = Literal["same", "close", "differs", "failed"]


@dataclass(frozen=True)
class Check:
    """A stored cell beside what came of running it again."""

    cell: Cell
    verdict: Verdict
    differing: tuple[str, ...] = ()  # the split, the model, and metrics
    why: str = ""


def sampled(study: Study, number: int | None, seed: int = 0) -> tuple[Cell, ...]:
    """So many of the cells that ended well, drawn at random and in the order of the plan; all of them for None."""
    cells = [entry.cell for entry in study.entries if entry.good]
    if number is None or number >= len(cells):
        return tuple(cells)
    chosen = np.sort(np.random.default_rng(seed).choice(len(cells), number, replace=False))
    return tuple(cells[place] for place in chosen)


def verify(
    study: Study, cells: Sequence[Cell], afresh: ResultsFolder, conditions: Conditions, tell: Callable[[Event], None]
) -> list[Check]:
    """Run these cells of a study again, with results in an empty folder, and compare."""
    store = afresh.store(study.name)
    plan = replace(study.plan, planned=tuple(cells), skips=(), trials=(), failures=(), searches=())
    again = Run(plan, store, conditions, Materials(study.seed, store.scratch))
    again.open()
    again.execute(tell)
    stored = {entry.cell.key: entry.result for entry in study.entries if entry.result}
    values = [(values_of(Path(study.cells), cell), values_of(store.cells, cell)) for cell in cells]
    found = [(stored[cell.key], again.result(cell)) for cell in cells]
    return [_checked(*results, *arrays) for results, arrays in zip(found, values, strict=True)]


def _checked(stored: Result, found: Result | None, before: Arrays, after: Arrays) -> Check:
    """One cell's check."""
    cell = stored.cell
    if found is None or found.status != "ok":
        return Check(cell, "failed", why=(found.reason or found.status) if found else "it did not run")
    differing = differences(stored, found, before, after)
    if not differing:
        return Check(cell, "same")
    change, far = basis_change(stored.machine, found.machine), distance(stored, found)
    if "split" in differing:
        return Check(cell, "differs", differing, "it was trained on another split")
    if races(cell):
        return Check(cell, "close" if far <= RACY_TO else "differs", differing, f"its threads race; off by {far:.2g}")
    if change:
        return Check(cell, "close" if far <= SAME_TO else "differs", differing, f"{change}; off by {far:.2g}")
    return Check(cell, "differs", differing, f"on the same basis; off by {far:.2g}")
