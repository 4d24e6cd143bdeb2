"""Tuning: choosing the best trial of each search from stored results, and making the cells with its settings."""

from collections.abc import Callable
from dataclasses import replace

from rankbench.core.errors import UserError
from rankbench.data import DATASETS
from rankbench.experiments import Budget, Experiment
from rankbench.experiments.spaces import Tune
from rankbench.metrics import metric
from rankbench.names import Named, show_value, without_folder
from rankbench.planning.adaptive import finals
from rankbench.planning.widening import best_place
from rankbench.records.cells import Cell
from rankbench.records.plans import Failure, Plan, Search, distinct_trials
from rankbench.records.results import Result
from rankbench.solvers import SOLVERS

Find = Callable[[Cell], Result | None]  # the result of a cell, if there is one


def settled(plan: Plan, find: Find) -> Plan:
    """The plan with a cell or a failure for every search whose trials have all ended.

    A search whose known trials have ended, and which goes on from their results, has its next trials instead.
    """
    searches = tuple(_continued(search, find) for search in plan.searches)
    outcomes = [_outcome(search, find) for search in searches]
    chosen = {cell.slot: cell for cell in (*(search.cell for search in searches), *outcomes) if isinstance(cell, Cell)}
    return replace(
        plan,
        planned=tuple(chosen.get(cell.slot, cell) for cell in plan.planned) if chosen else plan.planned,
        trials=distinct_trials(searches),
        failures=tuple(outcome for outcome in outcomes if isinstance(outcome, Failure)),
        searches=searches,
    )


def alone(solver: str, data: str, split: str, tune: Tune, budget: Budget) -> Experiment:
    """An experiment that tunes one solver on one data set, and runs it with the best settings."""
    named, data_set = SOLVERS.resolve(solver), DATASETS.resolve(data)
    if not tune.space_of(solver):
        raise UserError(f"nothing to tune: give the values to try, like --space {_example(named)}")
    names = [without_folder(one.name) for one in (named, data_set)]
    plain = ["".join(letter if letter.isalnum() else "-" for letter in name) for name in names]
    label = metric(tune.metric).label
    return Experiment(
        name="-".join(("tune", *plain)),
        title=f"{names[0]} tuned on {names[1]}",
        paper="No paper: rankbench tune",
        about=f"What {solver} reaches on {data} with the best of its trials.",
        data=(data,),
        splits=(split,),
        solvers=(solver,),
        metrics=(label,),
        repetitions=1,
        budget=budget,
        tune=replace(tune, metric=label).fitted((solver,)),
    )


def _example(solver: Named) -> str:
    """An example of a value of `--space` for this solver."""
    for name, value in solver.settings:
        if isinstance(value, float) and value > 0:
            return f"{name}={show_value(value / 10)}..{show_value(value * 10)}:log"
    return f"'{next(iter(dict(solver.settings)), 'setting')}=a|b'"


def _results(search: Search, find: Find) -> list[Result] | None:
    """The results of a search's trials, once all that are known have ended."""
    found = [result for trial in search.trials if (result := find(trial))]
    return found if len(found) == len(search.trials) else None


def _continued(search: Search, find: Find) -> Search:
    """The search with all trials that follow from the results of others, until one has no result yet."""
    while search.continuation and (results := _results(search, find)):
        if not (more := search.continuation.more(search.trials, results)):
            break
        search = replace(search, trials=search.trials + more)
    return search


def _outcome(search: Search, find: Find) -> Cell | Failure | None:
    """The search's cell with the settings of its best trial, or a failure; None while trials are missing."""
    if not search.trials:
        return search.cell
    results = _results(search, find)
    if results is None:
        return None
    measure, last = search.trials[0].measures[0], finals(search.trials)
    index = best_place([results[place] for place in last])
    if index is not None:
        place = last[index]
        return replace(search.cell, solver=search.trials[place].solver, budget=results[place].chosen_budget)
    first = results[0]
    why = f"{measure.label} has no value" if first.status == "ok" else f"{first.status}, {first.reason}"
    several = f"none of its {len(results)} trials ended well; the first: {why}"
    reason = f"its only trial did not end well: {why}" if len(results) == 1 else several
    return Failure(search.cell, reason, search.trials[0])
