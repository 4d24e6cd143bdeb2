"""Trials: what tuning tried, what each try gave on the validation part, and which one was chosen."""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan

from rankbench.harness.records import Cell, Entry, Measure, Study
from rankbench.names import show_settings
from rankbench.report.tables import Sheet

COLUMNS = tuple("experiment data split repetition solver settings metric value seconds status chosen".split())


@dataclass(frozen=True)
class Trial:
    """A line of the list of trials; scripts build on these names, `shown` is not in the CSV."""

    experiment: str
    data: str
    split: str
    repetition: int
    solver: str
    settings: str  # those that were searched; empty where there was nothing to tune
    metric: str
    value: float | None  # on the validation part
    seconds: float | None  # in the solver, where nothing ran beside it
    status: str
    chosen: bool
    shown: tuple[str, str]  # data and split as somebody wrote them; this and what follows not in the CSV
    measure: Measure


def trials(study: Study) -> list[Trial]:
    """Every trial of a study in the order of the plan."""
    chosen = {_choice(entry.cell) for entry in study.entries if not entry.failure}
    return [_trial(study.name, entry, _choice(entry.cell) in chosen) for entry in study.trials]


def best_first(found: Iterable[Trial]) -> list[Trial]:
    """The trials by what they gave; those that gave nothing last, equals in their order."""

    def order(trial: Trial) -> float:
        """Low for what is good."""
        return float("inf") if trial.value is None or isnan(trial.value) else -trial.measure.sign * trial.value

    return sorted(found, key=order)


def trial_sheet(found: Iterable[Trial]) -> Sheet:
    """The trials as people read them, the chosen ones in bold."""
    listed = list(found)
    several = len({trial.split for trial in listed}) > 1
    return Sheet(
        headings=("data", "repetition", "solver", "settings", "metric", "value", "seconds", "chosen", "status"),
        numeric=(False, True, False, False, False, True, True, False, False),
        lines=tuple(_line(trial, several) for trial in listed),
        best=frozenset((number, 5) for number, trial in enumerate(listed) if trial.chosen),
    )


def trials_to_csv(found: Iterable[Trial]) -> str:
    """These columns, in this order, empty where there is nothing."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for trial in found:
        writer.writerow(_exact(getattr(trial, name)) for name in COLUMNS)
    return out.getvalue()


def _choice(cell: Cell) -> tuple[object, ...]:
    """What a trial and the cell that took its settings have in common, and no other trial has.

    Where all repetitions share their trials, these are of the first repetition, and so is one of the cells.
    """
    place = cell.place
    return place.data.identity, place.split.identity, place.repetition, cell.solver.written, cell.solver.settings


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


def _line(trial: Trial, several: bool) -> tuple[str, ...]:
    data, split = trial.shown
    rows = f"{data} {split}" if several else data
    value = "" if trial.value is None else f"{trial.value:.4f}"
    seconds = "" if trial.seconds is None else f"{trial.seconds:.3f}"
    chosen = "chosen" if trial.chosen else ""
    return (
        rows,
        str(trial.repetition),
        trial.solver,
        trial.settings or "nothing to tune",
        trial.metric,
        value,
        seconds,
        chosen,
        trial.status,
    )


def _exact(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else repr(value) if isinstance(value, float) else value
