"""Tuning: which trial of a search is the best, and the cells that follow; stored results alone decide."""

from collections.abc import Sequence
from dataclasses import replace
from math import isnan

from rankbench.errors import UserError
from rankbench.experiments import Budget, Experiment
from rankbench.experiments.spaces import Tune
from rankbench.harness.plan import Cell, Failure, Plan, Search
from rankbench.harness.store import Result, Store
from rankbench.metrics import metric
from rankbench.solvers import SOLVERS
from rankbench.specs import parse, settings_of, show_value, without_folder


def best(results: Sequence[Result], name: str) -> int | None:
    """The place of the trial that measures best, the first of equals; None where none ended well with a value."""
    sign = 1 if metric(name).better == "higher" else -1
    values = {
        place: sign * result.metrics[name]
        for place, result in enumerate(results)
        if result.status == "ok" and not isnan(result.metrics[name])
    }
    return max(values, key=values.__getitem__) if values else None


def settled(plan: Plan, store: Store) -> Plan:
    """The plan with a cell, or a failure, for every search whose trials have all ended."""
    if not plan.searches:
        return plan
    stored = {trial.key: store.load(trial) for trial in plan.trials}
    outcomes = [_outcome(search, [stored[trial.key] for trial in search.trials]) for search in plan.searches]
    return replace(
        plan,
        cells=tuple(outcome for outcome in outcomes if isinstance(outcome, Cell)),
        failures=tuple(outcome for outcome in outcomes if isinstance(outcome, Failure)),
    )


def alone(solver: str, data: str, split: str, tune: Tune, steps: int) -> Experiment:
    """An experiment that tunes one solver on one data set, and runs it with what was chosen."""
    if not tune.space_of(solver):
        raise UserError(f"nothing to tune: say what may be tried, like --space {_example(solver)}")
    names = [parse(without_folder(text)).name for text in (solver, data)]
    plain = ["".join(letter if letter.isalnum() else "-" for letter in name) for name in names]
    label = metric(tune.metric).label
    return Experiment(
        name="-".join(("tune", *plain)),
        title=f"{names[0]} tuned on {names[1]}",
        paper="No paper: rankbench tune",
        about=f"What {without_folder(solver)} reaches on {without_folder(data)} with the best of its trials.",
        data=(data,),
        splits=(split,),
        solvers=(solver,),
        metrics=(label,),
        repetitions=1,
        budget=Budget(steps=steps),
        tune=replace(tune, metric=label).fitted((solver,)),
    )


def _example(solver: str) -> str:
    """What could stand behind `--space` for this solver."""
    settings = settings_of(SOLVERS.make(solver))
    for name, value in settings.items():
        if isinstance(value, float) and value > 0:
            return f"{name}={show_value(value / 10)}..{show_value(value * 10)}:log"
    return f"'{next(iter(settings), 'setting')}=a|b'"


def _outcome(search: Search, stored: Sequence[Result | None]) -> Cell | Failure | None:
    """The search's cell with the settings of its best trial; None while trials are still to come."""
    results = [result for result in stored if result is not None]
    if len(results) < len(stored):
        return None
    name = search.trials[0].metrics[0]
    place = best(results, name)
    if place is not None:
        return replace(search.cell, settings=search.trials[place].settings)
    first = results[0]
    why = f"{name} has no value" if first.status == "ok" else f"{first.status}, {first.reason}"
    count = "its only trial" if len(results) == 1 else f"none of its {len(results)} trials"
    return Failure(search.cell, search.trials[0], f"{count} ended well; the first: {why}")
