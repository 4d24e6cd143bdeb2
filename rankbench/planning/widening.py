"""Ranges that widen by themselves: further trials beyond the outermost value that was tried, while it is the best.

The rule is one for all solvers and settings. As long as the best trial's value of a range's setting is next to the
lowest or the highest one of all trials, there is one trial more, with a value `FACTOR` times lower or higher than the
best one (half or twice, if the setting is a whole number; by the width of the range, on a linear scale) and the best
trial's other settings. This is repeated a stated number of times, and ends at the limits that the solver sets. It all
follows from stored results, so that an interrupted search goes on where it was.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, log

from rankbench.core.errors import UserError
from rankbench.experiments.spaces import Range, Space
from rankbench.names import Named, with_settings
from rankbench.records.cells import Cell
from rankbench.records.results import Result

FACTOR = 5.0
ROUNDS = 4  # of further trials, in `on` and `tune`
_NEAR = 1 / 8  # of the way from the lowest to the highest value that was tried
_WIDE = 4.0  # from this ratio of the two on, the way is measured on a log scale


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


def rounds_of(method: str, asked: int | None = None) -> int:
    """How many times ranges widen in a search by this method: as often as asked for, else as is usual."""
    if asked is not None:
        return asked
    return ROUNDS if method in ("random", "grid") else 0


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
    """On which side, -1 or 1, the best trial's value of a setting is next to the end of all that were tried.

    Next to it means within an eighth of the way from the lowest to the highest one, but not as far from it as a value
    that was tried beyond the best one.
    """
    tried = [trial.solver.setting(name) for trial in trials]
    by_ratio = min(tried) > 0 and max(tried) > _WIDE * min(tried)
    low, own, high = (
        log(value) if by_ratio else value for value in (min(tried), best.solver.setting(name), max(tried))
    )
    near = min(_NEAR * (high - low), log(FACTOR) / 2) if by_ratio else _NEAR * (high - low)
    if low < high and own <= low + near:
        yield -1
    if low < high and own >= high - near:
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
