"""Each stored result by itself: whether its parts agree with each other, which needs no other run."""

from collections.abc import Iterator
from math import isfinite

import numpy as np

from rankbench.arrays.npz import Arrays, fingerprint_of
from rankbench.metrics import mean
from rankbench.records.results import Result, pairs_of


def contradictions(result: Result, arrays: Arrays) -> Iterator[str]:
    """What in a result contradicts something else in it, or the values for each user that are stored beside it."""
    if result.split and result.split != result.cell.split_hash:
        yield "it was trained on another split than its cell says"
    yield from _of_curve(result)
    if result.status in ("ok", "diverged"):
        yield from _of_users(result, arrays)
    elif arrays or result.values or result.counted:
        yield f"it ended as {result.status}, and has values for users"


def _of_curve(result: Result) -> Iterator[str]:
    """What is wrong with the steps and seconds of a curve."""
    cell, steps = result.cell, [point.step for point in result.curve]
    grid = list(range(0, cell.every * len(steps), cell.every))
    seconds = [0.0, *(point.seconds for point in result.curve)]
    if steps[:-1] != grid[:-1] or (steps and not 0 <= grid[-1] - steps[-1] < cell.every):
        yield f"its curve is not evaluated at every {cell.every} steps"
    if not all(map(isfinite, seconds)) or seconds != sorted(seconds):
        yield "the seconds of its curve do not rise"
    most, alone = cell.budget.steps, cell.budget.seconds is None and cell.budget.tolerance is None
    if steps and most is not None:
        short = result.stopped == "budget" and alone and cell.budget.patience is None and steps[-1] < most
        if steps[-1] > most or short:
            yield f"its curve ends at step {steps[-1]}, and its budget is {most}"


def _of_users(result: Result, arrays: Arrays) -> Iterator[str]:
    """Where the values for each user are not those of the curve and of the counts."""
    labels = [measure.label for measure in result.cell.measures]
    if not result.curve:
        yield f"it ended as {result.status}, and has no curve"
        return
    if result.values and fingerprint_of(arrays) != result.values:
        yield "its values for users do not have the digest that it names"
    known = {name for label in labels for name in (label, pairs_of(label))}
    if missing := [label for label in labels if label not in arrays]:
        yield f"it has no values for users of {', '.join(missing)}"
    if added := sorted(arrays.keys() - known):
        yield f"it has values for users of {', '.join(added)}, which it does not measure"
    if len(result.counted) != len(labels):
        yield "it does not count the users of each metric"
    for label, counted, value in zip(labels, result.counted, result.curve[-1].values, strict=False):
        if (found := arrays.get(label)) is None:
            continue
        left_out = int(np.isnan(found).sum())
        if (counted.users, counted.left_out) != (len(found) - left_out, left_out):
            yield f"it does not count the users of {label} as they are"
        if np.float64(mean(found)).tobytes() != np.float64(value).tobytes():
            yield f"its {label} is not the mean of its users"
