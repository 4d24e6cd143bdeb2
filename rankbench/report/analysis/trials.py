"""The trials of tuning: settings, values on the validation set, which were chosen, and who leads after how many.

A solver's value after n trials is the validation value of the best of its first n, the mean over repetitions. It comes
from stored trials alone, so that nothing is trained again. A lead that changes hands as n grows depends on the effort
of tuning, and not on the solvers alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from math import isnan, nan

import numpy as np

from rankbench.core.errors import UserError
from rankbench.names import show_settings
from rankbench.records.cells import Cell, Measure
from rankbench.records.studies import Entry, Study
from rankbench.report.render.tables import Sheet, csv_text

COLUMNS = tuple("experiment data split repetition solver settings metric value seconds status chosen".split())


@dataclass(frozen=True)
class Trial:
    """A row of the CSV of trials, whose column names scripts rely on."""

    experiment: str
    data: str
    split: str
    repetition: int
    solver: str
    settings: str  # the tuned settings; empty if there was nothing to tune
    metric: str
    value: float | None  # on the validation set
    seconds: float | None  # training seconds, if no other cells disturbed them
    status: str
    chosen: bool
    shown: tuple[str, str]  # data and split as the user wrote them; from here on not in the CSV
    measure: Measure


def trials(study: Study) -> list[Trial]:
    """All trials of a study, in the order of the plan."""
    chosen = {_choice(entry.cell) for entry in study.entries if not entry.failure}
    return [_trial(study.name, entry, _choice(_as_chosen(entry)) in chosen) for entry in study.trials]


def best_first(found: Iterable[Trial]) -> list[Trial]:
    """The trials sorted from best to worst value; trials without a value come last, ties keep their order."""

    def order(trial: Trial) -> float:
        """A number that is lower for better trials."""
        return float("inf") if trial.value is None or isnan(trial.value) else -trial.measure.sign * trial.value

    return sorted(found, key=order)


def trial_sheet(found: Iterable[Trial]) -> Sheet:
    """The table of trials, with the values of the chosen ones in bold."""
    listed = list(found)
    where = ("data", "split") if len({trial.split for trial in listed}) > 1 else ("data",)
    headings = (*where, "repetition", "solver", "settings", "metric", "value", "seconds", "chosen", "status")
    return Sheet(
        headings=headings,
        numeric=tuple(heading in ("repetition", "value", "seconds") for heading in headings),
        lines=tuple((*trial.shown[: len(where)], *_line(trial)) for trial in listed),
        best=frozenset((number, headings.index("value")) for number, trial in enumerate(listed) if trial.chosen),
    )


def trials_to_csv(found: Iterable[Trial]) -> str:
    """The trials as CSV with the columns `COLUMNS` in this order; missing values are empty."""
    told = ({**vars(trial), "chosen": "yes" if trial.chosen else "no"} for trial in found)
    return csv_text(COLUMNS, ([values[name] for name in COLUMNS] for values in told))


def _as_chosen(entry: Entry) -> Cell:
    """The cell of a trial, with the budget that the cell with its settings gets."""
    result = entry.good
    return entry.cell if result is None else replace(entry.cell, budget=result.chosen_budget)


def _choice(cell: Cell) -> tuple[object, ...]:
    """A key that a chosen trial shares with the cell that uses its settings, and with no other trial.

    If all repetitions share their trials, the trials belong to the first repetition, and so does one of the cells.
    """
    place = cell.place
    names = place.data.identity, place.split.identity, cell.solver.written
    return *names, place.repetition, cell.solver.settings, cell.budget


def _trial(experiment: str, entry: Entry, chosen: bool) -> Trial:
    cell, result = entry.cell, entry.result
    (measure,), place = cell.measures, cell.place
    searched = {name: "none" if value is None else value for name, value in cell.chosen}
    return Trial(
        experiment=experiment,
        data=place.data.full,
        split=place.split.full,
        repetition=place.repetition,
        solver=cell.solver.written,
        settings=show_settings(searched),
        metric=measure.label,
        value=entry.good.value(measure.label) if entry.good else None,
        seconds=result.seconds if result and not result.contended else None,
        status=entry.status,
        chosen=chosen,
        shown=(place.data.written, place.split.written),
        measure=measure,
    )


def _line(trial: Trial) -> tuple[str, ...]:
    value = "" if trial.value is None else f"{trial.value:.4f}"
    seconds = "" if trial.seconds is None else f"{trial.seconds:.3f}"
    settings, chosen = trial.settings or "nothing to tune", "chosen" if trial.chosen else ""
    return str(trial.repetition), trial.solver, settings, trial.metric, value, seconds, chosen, trial.status


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
    found: dict[int, list[float]] = {}
    for trial in sorted(tried, key=lambda trial: trial.repetition):
        found.setdefault(trial.repetition, []).append(nan if trial.value is None else trial.value)
    values = np.array(list(zip_longest(*found.values(), fillvalue=nan)))  # trials x repetitions
    best = sign * np.fmax.accumulate(sign * values)  # of the first trials, NaN only while all are
    means = tuple(sum(column) / len(column) for column in best.tolist())
    return Standing(data, split, solver, tried[0].metric, sign, means)


def _leader(standing: Sequence[Standing], n: int) -> Standing | None:
    """The standing with the best value after n trials; None if none has a value."""
    known = [one for one in standing if not isnan(one.after(n))]
    return max(known, key=lambda one: one.sign * one.after(n)) if known else None


def _text(value: float) -> str:
    return "" if isnan(value) else f"{value:.4f}"
