"""Ranges that widen by themselves: further trials beyond the outermost value that was tried, while it is the best.

The rule is one for all solvers and settings. As long as the best trial has the lowest or the highest value of a range's
setting among all trials, there is one trial more, `FACTOR` times lower or higher (twice, if the setting is a whole
number; by the width of the range, on a linear scale), with the best trial's other settings. This is repeated a stated
number of times, and ends at the limits that the solver sets. As all of it follows from stored results, an interrupted
search goes on where it was.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan

from rankbench.core.errors import UserError
from rankbench.experiments.spaces import Range, Space
from rankbench.names import Named, with_settings
from rankbench.records.cells import Cell
from rankbench.records.results import Result

FACTOR = 5.0


@dataclass(frozen=True)
class Widening:
    """Trials that follow from the ones before them where the best value of a setting is the outermost one."""

    ranges: Mapping[str, Range]
    first: int  # trials before any is added
    rounds: int  # how many times trials are added, at most

    @property
    def most(self) -> int:
        """How many trials there are in the end, at most."""
        return self.first + self.rounds * len(self.ranges)

    def more(self, trials: Sequence[Cell], results: Sequence[Result]) -> tuple[Cell, ...]:
        """The trials beyond the outermost values where one of them is the best; empty once none is, or all are made."""
        known = self.first
        for _ in range(self.rounds):
            added = self._beyond(trials[:known], results[:known])
            if not added or known >= len(trials):
                return added
            known += len(added)
        return ()

    def _beyond(self, trials: Sequence[Cell], results: Sequence[Result]) -> tuple[Cell, ...]:
        """A trial for each setting whose best value is the outermost one that was tried."""
        place = best_place(results)
        if place is None:
            return ()
        best, others = trials[place], {trial.solver.settings for trial in trials}
        found = (further(best.solver, name, self.ranges[name], side)
                 for name in sorted(self.ranges) for side in outermost(best, trials, name))  # fmt: skip
        return tuple(replace(best, solver=solver) for solver in found if solver and solver.settings not in others)


def widening(space: Space, first: int, rounds: int) -> Widening | None:
    """How a search of this space widens; None where it has no ranges, or none that should."""
    ranges = {name: values for name, values in space.items() if isinstance(values, Range)}
    return Widening(ranges, first, rounds) if ranges and first > 1 and rounds else None


def best_place(results: Sequence[Result]) -> int | None:
    """The place of the trial with the best value, the first of ties; None if no trial ended well with a value."""
    values = {place: value for place, result in enumerate(results) if (value := value_of(result)) is not None}
    return max(values, key=values.__getitem__) if values else None


def value_of(result: Result) -> float | None:
    """The value of a trial times its sign, so that higher is better; None if the trial did not end well."""
    measure = result.cell.measures[0]
    value = measure.sign * result.value(measure.label) if result.status == "ok" else float("nan")
    return None if isnan(value) else value


def outermost(best: Cell, trials: Sequence[Cell], name: str) -> Iterator[int]:
    """On which side, -1 or 1, no trial has a value of this setting beyond the best trial's."""
    tried = [trial.solver.setting(name) for trial in trials]
    own = best.solver.setting(name)
    if own == min(tried) < max(tried):
        yield -1
    if own == max(tried) > min(tried):
        yield 1


def further(solver: Named, name: str, values: Range, side: int) -> Named | None:
    """The solver with a setting beyond its own, on this side; None where the solver has none there."""
    own = solver.setting(name)
    if values.scale == "log":
        beyond = own * (2 if values.whole else FACTOR) ** side
    else:
        beyond = own + side * (values.high - values.low)
    value = max(int(beyond), min(own, 1)) if values.whole else float(f"{beyond:.3g}")
    try:
        return None if value == own else with_settings(solver, {name: value})
    except UserError:  # it is outside of the limits that the solver sets
        return None
