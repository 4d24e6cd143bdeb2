"""Measuring two programs in turns, so that a busy machine slows both."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

import numpy as np

Run = Callable[[], float]  # measures once: updates per second, or fits per second


@dataclass(frozen=True)
class Row:
    """One comparison: the measurements of both in each turn, in a unit where larger is better."""

    what: str
    unit: str
    target: float | None
    peer: list[float]
    ours: list[float]

    @property
    def ratios(self) -> list[float]:
        """The ratio of rankbench to the other library, turn by turn."""
        return [ours / peer for ours, peer in zip(self.ours, self.peer, strict=True)]


def in_turns(repeats: int, runs: dict[str, Run]) -> dict[str, list[float]]:
    """The measurements of each run, all runs once per turn; the first turn is a warm-up and is dropped."""
    turns = [{name: run() for name, run in runs.items()} for _ in range(repeats + 1)]
    return {name: [turn[name] for turn in turns[1:]] for name in runs}


def compared(repeats: int, what: str, unit: str, target: float | None, *, peer: Run, ours: Run) -> Row:
    """One comparison, measured in turns."""
    return Row(what, unit, target, **in_turns(repeats, {"peer": peer, "ours": ours}))


def per_second(work: Callable[[], object], units: float = 1.0) -> Run:
    """A function that calls this once, which does so many units of work, and gives the units per second."""
    return lambda: units / seconds(work)


def iterations_of_implicit(model: Any, data: Any, units: float = 1.0) -> Run:
    """The same for one more iteration of a model of the package implicit, as timed by its callback."""

    def run() -> float:
        elapsed: list[float] = []
        model.fit(data, show_progress=False, callback=lambda _iteration, taken, *_rest: elapsed.append(taken))
        return units / elapsed[0]

    return run


def seconds(work: Callable[[], object]) -> float:
    """The seconds that one call takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def cpu_seconds(work: Callable[[], object]) -> float:
    """The seconds of the processor in one call, which do not depend on the load of the machine."""
    start = process_time()
    work()
    return process_time() - start


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The p of the power size^p that fits the times best."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def insist(difference: float, most: float, of: str = "answers") -> None:
    """End the program if two answers are further apart than this: it is no use to time different work."""
    if not difference <= most:
        raise SystemExit(f"the {of} differ by more than {most:g}: their times would mean nothing")


@dataclass(frozen=True)
class Measure:
    """One number without a comparison: a share, an exponent, a memory size or a time on this machine."""

    what: str
    unit: str
    value: float
    at_most: float | None = None
    at_least: float | None = None


def show(found: list[Row | Measure]) -> str:
    """A plain table with one line per comparison, then one line per single number."""
    rows, figures = ([row for row in found if isinstance(row, kind)] for kind in (Row, Measure))
    width = max(len(row.what) for row in found)
    head = f"{'ours : peer':{width}}  {'unit':14}  {'peer':>26}  {'ours':>26}  {'ratio':>20}  target"
    lines = (
        f"{row.what:{width}}  {row.unit:14}  {_spread(row.peer):>26}  {_spread(row.ours):>26}  "
        f"{_spread(row.ratios):>20}  {_verdict(float(np.median(row.ratios)), at_least=row.target)}"
        for row in rows
    )
    measures = (
        f"{own.what:{width}}  {own.value:.4g} {own.unit}  {_verdict(own.value, own.at_least, own.at_most)}"
        for own in figures
    )
    return "\n".join([*([head] if rows else []), *lines, *measures])


def _verdict(value: float, at_least: float | None = None, at_most: float | None = None) -> str:
    """Whether a value reaches its target, as text; empty if it has no target."""
    if at_least is not None:
        return f"{'met' if value >= at_least else 'MISSED'} (>= {at_least:g})"
    if at_most is not None:
        return f"{'met' if value <= at_most else 'MISSED'} (<= {at_most:g})"
    return ""


def _spread(values: list[float]) -> str:
    """The text `median (min..max)`, in millions for large values."""
    scale, letter = (1e6, "M") if np.median(values) >= 1e6 else (1.0, "")
    middle, least, most = (f"{value / scale:.2f}" for value in (np.median(values), min(values), max(values)))
    return f"{middle}{letter} ({least}..{most})"
