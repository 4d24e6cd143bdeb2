"""Trials: what tuning tried, what each try gave on the validation part, and which one was chosen."""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan

from rankbench.harness.store import Result
from rankbench.metrics import metric
from rankbench.report.tables import Entry, Sheet, Study
from rankbench.specs import show_settings

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
    shown: tuple[str, str]  # data and split as somebody wrote them


def trials(study: Study) -> list[Trial]:
    """Every trial of a study in the order of the plan."""
    shared = bool(study.trials) and study.experiment["tune"]["per"] == "split"
    chosen = {_choice(entry, shared) for entry, _ in study.cells if entry["file"] and not entry["failure"]}
    return [_trial(study.name, entry, result, _choice(entry, shared) in chosen) for entry, result in study.trials]


def best_first(found: Iterable[Trial]) -> list[Trial]:
    """The trials by what they gave; those that gave nothing last, equals in their order."""

    def place(trial: Trial) -> float:
        """Low for what is good."""
        sign = -1 if metric(trial.metric).better == "higher" else 1
        return float("inf") if trial.value is None or isnan(trial.value) else sign * trial.value

    return sorted(found, key=place)


def trial_sheet(found: Iterable[Trial]) -> Sheet:
    """The trials as people read them, the chosen ones in bold."""
    listed = list(found)
    several = len({trial.split for trial in listed}) > 1
    return Sheet(
        headings=["data", "repetition", "solver", "settings", "metric", "value", "seconds", "chosen", "status"],
        numeric=[False, True, False, False, False, True, True, False, False],
        lines=[_line(trial, several) for trial in listed],
        best={(number, 5) for number, trial in enumerate(listed) if trial.chosen},
    )


def trials_to_csv(found: Iterable[Trial]) -> str:
    """These columns, in this order, empty where there is nothing."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for trial in found:
        writer.writerow(_exact(getattr(trial, name)) for name in COLUMNS)
    return out.getvalue()


def _choice(entry: Entry, shared: bool) -> tuple[str, ...]:
    """What a trial and the cell that took its settings have in common, and no other trial has."""
    repetition = 0 if shared else entry["repetition"]
    return (entry["data"], entry["split"], str(repetition), *entry["shown"], show_settings(entry["settings"]))


def _trial(experiment: str, entry: Entry, result: Result | None, chosen: bool) -> Trial:
    name = entry["metrics"][0]
    searched = {setting: entry["settings"][setting] for setting in entry["tuned"]}
    shown = {setting: "none" if value is None else value for setting, value in searched.items()}
    return Trial(
        experiment=experiment,
        data=entry["data"],
        split=entry["split"],
        repetition=entry["repetition"],
        solver=entry["shown"][2],
        settings=show_settings(shown),
        metric=name,
        value=result.metrics.get(name) if result and result.status == "ok" else None,
        seconds=result.seconds if result and not result.contended else None,
        status=result.status if result else "pending",
        chosen=chosen,
        shown=tuple(entry["shown"][:2]),
    )


def _line(trial: Trial, several: bool) -> list[str]:
    data, split = trial.shown
    place = f"{data} {split}" if several else data
    value = "" if trial.value is None else f"{trial.value:.4f}"
    seconds = "" if trial.seconds is None else f"{trial.seconds:.3f}"
    chosen = "chosen" if trial.chosen else ""
    return [
        place,
        str(trial.repetition),
        trial.solver,
        trial.settings or "nothing to tune",
        trial.metric,
        value,
        seconds,
        chosen,
        trial.status,
    ]


def _exact(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else repr(value) if isinstance(value, float) else value
