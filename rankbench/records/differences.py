"""What differs between two results of one cell, and whether another basis or a race of threads may explain it."""

from collections.abc import Iterator
from dataclasses import fields

import numpy as np

from rankbench.arrays.npz import Arrays
from rankbench.core.contract import Determinism, Floats
from rankbench.records.cells import Cell
from rankbench.records.machines import Machine
from rankbench.records.results import Point, Result

SAME_TO = 1e-6  # on another basis: the relative difference of a value that rounding may explain
DIGESTS = ("split", "model", "values")  # fields of a result that are the SHA-256 of something
NOT_REPEATED = frozenset({  # fields of a result that no other run repeats: times, memory, the machine, and traces
    "prepare", "imported", "trace", "peaks", "wall", "peak_mb", "contended", "machine", "finished", "load",
})  # fmt: skip
OF_POINTS = tuple(field.name for field in fields(Point) if field.name not in ("seconds", "values"))
_CUT_SHORT = ("timeout", "memory", "lost")  # statuses that depend on the machine, and so does the length of the curve


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


def races(cell: Cell) -> bool:
    """Whether the threads of a cell's solver race, so that another run gives other numbers."""
    return cell.determinism is Determinism.RACY and cell.threads > 1


def differences(stored: Result, found: Result, before: Arrays, after: Arrays) -> tuple[str, ...]:
    """What differs between two results of one cell: fields of the result, metrics, and metrics of users.

    Every field is compared but those that no other run repeats. A budget in seconds may allow another number of steps:
    then only the common part of the curves is compared.
    """
    if _went_differently_far(stored, found):
        return tuple(_differing_points(stored, found))
    users = tuple(differing_users(before, after))
    whole = [name for name in _differing_fields(stored, found) if name != "values" or not users]
    return (*whole, *_differing_points(stored, found), *users)


def _went_differently_far(stored: Result, found: Result) -> bool:
    """Whether the curves differ in length because a limit in seconds ended them."""
    by_clock = stored.cell.budget.seconds is not None or stored.status in _CUT_SHORT
    return by_clock and len(stored.curve) != len(found.curve)


def _differing_fields(stored: Result, found: Result) -> Iterator[str]:
    """The fields that differ; `stopped` is compared only of the same budget."""
    left_out = NOT_REPEATED | {"cell", "curve"} | (set() if stored.key == found.key else {"stopped"})
    for name in (field.name for field in fields(Result) if field.name not in left_out):
        before, after = getattr(stored, name), getattr(found, name)
        if repr(before) != repr(after):  # NaN are alike by `repr`
            yield name


def _differing_points(stored: Result, found: Result) -> Iterator[str]:
    """The metrics that differ anywhere on the common part of the curve, and what else its points differ in."""
    pairs = list(zip(stored.curve, found.curve, strict=False))
    for number, measure in enumerate(stored.cell.measures):
        old, new = (np.array([pair[side].values[number] for pair in pairs]) for side in (0, 1))
        if old.tobytes() != new.tobytes():
            yield measure.label
    for name in OF_POINTS:
        if any(repr(getattr(one, name)) != repr(getattr(other, name)) for one, other in pairs):
            yield name
    if len(stored.curve) != len(found.curve) and not _went_differently_far(stored, found):
        yield "curve"


def differing_users(before: Arrays, after: Arrays) -> Iterator[str]:
    """The metrics that differ for any user, or that one of the results lacks."""
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after or before[name].tobytes() != after[name].tobytes():
            yield f"{name} of users"


def distance(stored: Result, found: Result) -> float:
    """The largest relative difference of a number on the common part of the two curves; infinite where NaN differ."""
    pairs = list(zip(stored.curve, found.curve, strict=False))
    old, new = (np.array([_numbers(point) for point in result.curve[: len(pairs)]]) for result in (stored, found))
    return _apart(old, new)


def distance_of_users(before: Arrays, after: Arrays) -> float:
    """The largest mean difference of a metric's values for users, relative to their mean; infinite if users differ."""
    if before.keys() != after.keys() or any(before[name].shape != after[name].shape for name in before):
        return float("inf")
    return max((_apart(*(_whole(before[name], after[name]))) for name in before), default=0.0)


def _numbers(point: Point) -> tuple[float, ...]:
    """The metrics and the objective of a point, NaN where there is none."""
    return (*point.values, float("nan") if point.objective is None else point.objective)


def _whole(old: Floats, new: Floats) -> tuple[Floats, Floats]:
    """Two vectors of numbers as one number each, whose relative difference is that of the vectors in the mean."""
    if (np.isnan(old) != np.isnan(new)).any():
        return np.array([np.nan]), np.zeros(1)
    size = float(np.nansum(np.abs(old)))
    return np.array([size]), np.array([size + float(np.nansum(np.abs(old - new)))])


def _apart(old: Floats, new: Floats) -> float:
    """The largest relative difference of two arrays of numbers; infinite where NaN differ."""
    if (np.isnan(old) != np.isnan(new)).any():
        return float("inf")
    off = np.abs(old - new) / np.maximum(np.abs(old), 1e-12)
    return float(np.nanmax(off, initial=0.0))
