"""The winner against the number of trials: which solver would lead had each been tuned with fewer trials.

A solver's value after n trials is the validation value of the best of its first n, the mean over repetitions. It comes
from stored trials alone, so that nothing is trained again. A lead that changes hands as n grows depends on the effort
of tuning, and not on the solvers alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isnan, nan

from rankbench.core.errors import UserError
from rankbench.records.studies import Study
from rankbench.report.analysis.trials import Trial, trials
from rankbench.report.render.tables import Sheet


@dataclass(frozen=True)
class Standing:
    """One solver's best validation value after each number of trials, on one data set and split."""

    data: str
    split: str
    solver: str
    metric: str
    sign: int  # 1 where a higher value is better
    values: tuple[float, ...]  # after 1, 2, ... trials; NaN while none has ended well

    def after(self, n: int) -> float:
        """The value after n trials; a solver whose space has fewer keeps its last."""
        return self.values[min(n, len(self.values)) - 1]


def standings(study: Study) -> list[Standing]:
    """The standing of each solver on each data set and split, in the order of the plan."""
    if any(entry.cell.rung for entry in study.trials):
        raise UserError(f"{study.name} tunes by halving: by-trials compares trials of the same budget")
    by_solver: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in trials(study):
        by_solver.setdefault((*trial.shown, trial.solver), []).append(trial)
    return [_standing(*names, tried) for names, tried in by_solver.items()]


def by_trials_sheet(found: Iterable[Standing]) -> Sheet:
    """A line for each data set and number of trials, with the leader's value in bold and its name in the last column.

    Solvers have a column each; of equal values the solver that comes first in the experiment leads.
    """
    listed = list(found)
    solvers = list(dict.fromkeys(one.solver for one in listed))
    lines: list[tuple[str, ...]] = []
    best: set[tuple[int, int]] = set()
    for (data, split), group in groupby(listed, lambda one: (one.data, one.split)):
        own = {one.solver: one for one in group}
        for n in range(1, max(len(one.values) for one in own.values()) + 1):
            leader = _leader(list(own.values()), n)
            if leader:
                best.add((len(lines), 3 + solvers.index(leader.solver)))
            values = [_text(own[solver].after(n)) if solver in own else "" for solver in solvers]
            metric = next(iter(own.values())).metric
            lines.append((f"{data} {split}", metric, str(n), *values, leader.solver if leader else ""))
    return Sheet(
        headings=("data", "metric", "trials", *solvers, "leader"),
        numeric=(False, False, True, *(True for _ in solvers), False),
        lines=tuple(lines),
        best=frozenset(best),
    )


def _standing(data: str, split: str, solver: str, tried: Sequence[Trial]) -> Standing:
    """The standing from the trials of all repetitions."""
    sign = tried[0].measure.sign
    courses = []
    for _, own in groupby(sorted(tried, key=lambda trial: trial.repetition), lambda trial: trial.repetition):
        courses.append(_best_so_far([nan if trial.value is None else trial.value for trial in own], sign))
    length = max(map(len, courses))
    full = [course + [course[-1]] * (length - len(course)) for course in courses]
    values = tuple(sum(column) / len(column) for column in zip(*full, strict=True))
    return Standing(data, split, solver, tried[0].metric, sign, values)


def _best_so_far(values: Sequence[float], sign: int) -> list[float]:
    """The best of the first values, for each number of them; NaN while all are."""
    best, course = nan, []
    for value in values:
        if isnan(best) or sign * value > sign * best:
            best = value
        course.append(best)
    return course


def _leader(standing: Sequence[Standing], n: int) -> Standing | None:
    """The standing with the best value after n trials; None if none has a value."""
    known = [one for one in standing if not isnan(one.after(n))]
    return max(known, key=lambda one: one.sign * one.after(n)) if known else None


def _text(value: float) -> str:
    return "" if isnan(value) else f"{value:.4f}"
