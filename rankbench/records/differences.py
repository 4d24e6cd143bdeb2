"""What differs between two results of one cell, and whether another basis or a race of threads may explain it."""

import numpy as np

from rankbench.arrays.npz import Arrays
from rankbench.core.contract import Determinism
from rankbench.records.cells import Cell
from rankbench.records.machines import Machine
from rankbench.records.results import Result

SAME_TO = 1e-6  # on another basis: the relative difference of a value that rounding may explain


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
