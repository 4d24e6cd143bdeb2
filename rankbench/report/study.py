"""Studies: the stored results of experiments, read from the results folder and grouped over repetitions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar
from weakref import ReferenceType, ref

from rankbench.records.cells import BESIDE, SOURCES, file_name, file_of_cell
from rankbench.records.plans import Plan
from rankbench.records.results import Point, Result
from rankbench.records.store import ResultsFolder, Store
from rankbench.records.studies import Group, Study

Answer = TypeVar("Answer")


def cached_by_study(function: Callable[[Study], Answer]) -> Callable[[Study], Answer]:
    """Cache a function's answer for each study, as long as the study is in use: tables and pages ask many times."""
    known: list[tuple[ReferenceType[Study], Answer]] = []

    @wraps(function)
    def asked(study: Study) -> Answer:
        for one, found in known:
            if one() is study:
                return found
        found = function(study)
        known[:] = [(ref(study), found), *(entry for entry in known if entry[0]() is not None)]
        return found

    return asked


@dataclass(frozen=True)
class StoredRun:
    """The latest stored plan of an experiment; its results are read when they are asked for."""

    store: Store
    plan: Plan
    plans: Sequence[Plan]  # all of the experiment

    @property
    def study(self) -> Study:
        """The plan with its results."""
        return study_of(self.store, self.plan, self.plans)


def stored_runs(folder: ResultsFolder) -> list[StoredRun]:
    """The latest run of every experiment in a results folder, in alphabetical order."""
    found: list[StoredRun] = []
    for name in folder.names():
        store = folder.store(name)
        plans = store.plans()
        found += [StoredRun(store, plan, plans) for plan in _latest(plans)]
    return found


def studies(folder: ResultsFolder) -> list[Study]:
    """The latest study of every experiment in a results folder, in alphabetical order."""
    return [run.study for run in stored_runs(folder)]


def study(
    folder: ResultsFolder, name: str, seed: int | None = None, full: bool | None = None, source: str | None = None
) -> Study | None:
    """The latest study of one experiment, or None if nothing is stored.

    A seed, a profile and a user's experiment file select among several runs. If the package and a user's file have
    experiments of the same name, the package's is preferred.
    """
    store = folder.store(name)
    plans = store.plans()
    chosen = chosen_plan(plans, seed, full, source)
    return study_of(store, chosen, plans) if chosen else None


def chosen_plan(
    plans: Sequence[Plan], seed: int | None = None, full: bool | None = None, source: str | None = None
) -> Plan | None:
    """The latest of these plans of one experiment that has this seed, profile and source, as `study` says.

    One whose repetitions draw everything anew is preferred.
    """
    fitting = [
        plan
        for plan in plans
        if seed in (None, plan.seed)
        and full in (None, plan.profile == "full")
        and source in (None, plan.experiment.source)
    ]
    own = [plan for plan in fitting if not plan.experiment.source] or fitting
    return next(iter(([plan for plan in own if not plan.held] or own)[-1:]), None)


def like(plans: Iterable[Plan], plan: Plan) -> Plan | None:
    """The one of these plans that is stored in the same file as this one, or None."""
    return next((one for one in plans if one.is_filed_as(plan)), None)


def study_of(store: Store, plan: Plan, plans: Sequence[Plan]) -> Study:
    """A stored plan with the results of its cells."""
    found = {cell.key: result for cell in plan.everything if (result := store.load(cell))}
    shown = [found[cell.key] for cell in plan.planned if cell.key in found]
    return Study(plan, found, (*_hidden(store, plan, plans), *_beside(store, shown)), str(store.cells))


def redrawn(shown: Study) -> list[Study]:
    """The stored studies that differ from this one in what their repetitions draw anew, and in nothing else."""
    if not shown.cells:
        return []
    folder = Path(shown.cells).parent
    store = ResultsFolder(folder.parent, lambda problem: None, untouched=True).store(folder.name)
    own = (shown.profile, shown.seed, shown.experiment.source)
    return [
        study_of(store, plan, ())
        for plan in store.plans()
        if (plan.profile, plan.seed, plan.experiment.source) == own
        and plan.held != shown.plan.held
        and plan.asks_as(shown.plan)
    ]


def settings_of(group: Group) -> dict[str, list[Any]]:
    """Every setting of a group's solver with its value in each repetition; `?` if tuning has not chosen it yet."""
    found = [dict(entry.cell.solver.settings) for entry in group.entries]
    fullest = max(found, key=len)  # has all settings in the solver's order, once tuning has chosen them
    names = dict.fromkeys((*fullest, *group.tuned))
    return {name: [settings.get(name, "?") for settings in found] for name in names}


def setting_of(group: Group, name: str) -> float:
    """The value of a setting of the group's split, else of its data set, else 0."""
    value = group.split.setting(name, group.data.setting(name, 0.0))
    return float(value)


def mean_seconds(group: Group) -> float | None:
    """Mean training seconds, or None unless all repetitions ran here, undisturbed and on the same kind of machine."""
    good = group.good
    if (
        any(result.contended or result.cell.is_judged for result in good)
        or len({result.machine.fingerprint for result in good}) != 1
    ):
        return None
    return fmean(result.seconds or 0.0 for result in good)


def varies_threads(study: Study) -> bool:
    """Whether the experiment runs every solver with several numbers of threads."""
    return len(study.experiment.threads) > 1


def speed_ups(study: Study, group: Group, setting_up: bool = False) -> list[float]:
    """Each repetition's speed-up per step relative to the fewest threads; empty if unknown.

    Time before the first evaluated step, which the solver spends on setting up, counts only with `setting_up`.
    """
    pace = _overall_pace if setting_up else pace_of
    fewest = min(study.experiment.threads)
    base = [
        other
        for other in study.groups
        if other.threads == fewest and other.key == group.key and mean_seconds(other) is not None
    ]
    if not base or mean_seconds(group) is None:
        return []
    paces = {result.cell.place.repetition: found for result in base[0].good if (found := pace(result))}
    pairs = ((paces.get(result.cell.place.repetition), pace(result)) for result in group.good)
    return [one / many for one, many in pairs if one and many]


def bound_of(group: Group) -> float | None:
    """The largest speed-up that the solver's schedule allows with the group's threads, or None if unknown."""
    found = [result.curve[-1].bound for result in group.good]
    known = [bound for bound in found if bound is not None]
    return fmean(known) if known else None


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not None, or None if there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def stored_beyond(store: Store, shown: Plan) -> int:
    """How many stored results belong to none of a plan's cells."""
    names = {file_name(cell) for cell in shown.everything}
    return sum(1 for file in store.files() if file.name not in names)


def _latest(plans: Sequence[Plan]) -> list[Plan]:
    """The latest plan of each source, the package or a user's file; one that draws everything anew is preferred."""
    whole_last = sorted(plans, key=lambda plan: not plan.held)
    return list({plan.experiment.source: plan for plan in whole_last}.values())


def _hidden(store: Store, plan: Plan, plans: Sequence[Plan]) -> list[str]:
    """A note on the experiment's stored results that this plan does not show; empty if there are none."""
    if not (count := stored_beyond(store, plan)):
        return []
    others = [
        f"{other.profile} profile with seed {other.seed}{drawn(other)}" + (f" from {source}" if source else "")
        for other in plans
        if other is not plan
        for source in [other.experiment.source]
    ]
    runs = f" ({', '.join(others)})" if others else ""
    name = plan.experiment.name
    return [f"{count} more results of {name} are stored and not shown here{runs}: rankbench status {name} lists them"]


def drawn(plan: Plan) -> str:
    """What the repetitions of a plan draw anew, if it is not everything."""
    anew = " and ".join(source for source in SOURCES if source not in plan.held)
    return f", redrawing {anew} alone" if plan.held else ""


def _beside(store: Store, results: Sequence[Result]) -> list[str]:
    """A note on the measurements of other machines that lie beside the results shown; empty if there are none."""
    shown = {file_name(result.cell): result for result in results}
    files = [path for path in store.beside() if file_of_cell(path.name) in shown]
    if not files:
        return []
    others = sorted({path.stem.partition(BESIDE)[2].partition("-")[0] for path in files})
    machines = sorted({result.machine.fingerprint for result in shown.values()})
    return [
        f"Times are those of machine {', '.join(machines)}. Beside them lie {len(files)} more measurements of these "
        f"cells, from machine {', '.join(others)}: table --machine shows those of one machine."
    ]


def pace_of(result: Result) -> float | None:
    """Seconds per step, measured from the first point after the start; None if unknown."""
    points: list[Point] = [point for point in result.curve if point.step >= 1]
    steps = points[-1].step - points[0].step if points else 0
    return (points[-1].seconds - points[0].seconds) / steps if steps else None


def _overall_pace(result: Result) -> float | None:
    """Seconds per step of the whole training, set-up included; None if unknown."""
    last = result.curve[-1]
    return last.seconds / last.step if last.step else None
