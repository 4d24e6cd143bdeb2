"""The trials of tuning: the settings tried, their values on the validation set, and which were chosen."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isnan

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
    return csv_text(COLUMNS, ([_exact(getattr(trial, name)) for name in COLUMNS] for trial in found))


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


def _exact(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else repr(value) if isinstance(value, float) else value
