"""Stored cells run again: whether the split, the model and every value come out the same, to the last byte.

On the same basis (kernels, libraries, processor) an exact solver must give the same bytes. On another basis values may
differ in their last digits, and a solver whose threads race may differ by more: both have a stated tolerance.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from rankbench.arrays import Arrays
from rankbench.contract import Determinism
from rankbench.harness.materials import Materials
from rankbench.harness.records import Cell, Machine, Plan, Result, Selection, Study
from rankbench.harness.run import Conditions, Event, Run
from rankbench.harness.store import ResultsFolder, values_of

SAME_TO = 1e-6  # on another basis: the relative difference of a value that rounding may explain
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
    selection = Selection(seed=study.seed, full=study.profile == "full")
    plan = Plan(study.experiment, selection, study.measures, tuple(cells), ())
    again = Run(plan, store, conditions, Materials(study.seed, store.scratch))
    again.open()
    again.execute(tell)
    stored = {entry.cell.key: entry.result for entry in study.entries if entry.result}
    values = [(values_of(Path(study.cells), cell), values_of(store.cells, cell)) for cell in cells]
    found = [(stored[cell.key], again.result(cell)) for cell in cells]
    return [_checked(*results, *arrays) for results, arrays in zip(found, values, strict=True)]


def basis_change(one: Machine, other: Machine) -> str:
    """The first difference of what decides the last digits on two machines; empty where there is none."""
    pairs = {
        "kernels": (one.kernels, other.kernels),
        "NumPy": (one.version("numpy"), other.version("numpy")),
        "SciPy": (one.version("scipy"), other.version("scipy")),
        "BLAS": (", ".join(one.blas), ", ".join(other.blas)),
        "processor": (one.cpu, other.cpu),
        "architecture": (one.system.rpartition(" ")[2], other.system.rpartition(" ")[2]),
    }
    for name, (here, there) in pairs.items():
        if here != there:
            return f"{name} {here or 'unknown'} then, {there or 'unknown'} now"
    return ""


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


def differences(stored: Result, found: Result, before: Arrays, after: Arrays) -> tuple[str, ...]:
    """What differs between two results of one cell: the split, the model, metrics, and metrics of users."""
    return (*_differing_digests(stored, found), *_differing_values(stored, found, before, after))


def races(cell: Cell) -> bool:
    """Whether the threads of a cell's solver race, so that another run gives other numbers."""
    return cell.determinism is Determinism.RACY and cell.threads > 1


def _differing_digests(stored: Result, found: Result) -> list[str]:
    """Which of the split and the model have other bytes; older results know neither."""
    names = ["split"]
    if len(stored.curve) == len(found.curve):  # a budget in seconds may allow another number of steps
        names.append("model")
    pairs = ((name, getattr(stored, name), getattr(found, name)) for name in names)
    return [name for name, before, after in pairs if before and after and before != after]


def _differing_values(stored: Result, found: Result, before: Arrays, after: Arrays) -> list[str]:
    """The metrics that differ anywhere on the common part of the curve, or for any user at its end."""
    labels = [measure.label for measure in stored.cell.measures]
    common = min(len(stored.curve), len(found.curve))
    old, new = (np.array([point.values for point in result.curve[:common]]) for result in (stored, found))
    differing = [label for label, x, y in zip(labels, old.T, new.T, strict=True) if x.tobytes() != y.tobytes()]
    if len(stored.curve) == len(found.curve):
        both = [label for label in labels if label in before and label in after]
        differing += [f"{name} of users" for name in both if before[name].tobytes() != after[name].tobytes()]
    return differing


def distance(stored: Result, found: Result) -> float:
    """The largest relative difference of a value on the common part of the two curves; infinite where NaN differ."""
    common = min(len(stored.curve), len(found.curve))
    old, new = (np.array([point.values for point in result.curve[:common]]) for result in (stored, found))
    if (np.isnan(old) != np.isnan(new)).any():
        return float("inf")
    off = np.abs(old - new) / np.maximum(np.abs(old), 1e-12)
    return float(np.nanmax(off, initial=0.0))
