"""Judged runs as a study that is stored like any other, so that tables, pages, archives and `compare` take it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from rankbench.arrays.npz import Arrays, fingerprint_of
from rankbench.core.contract import Determinism, Floats, Int64s
from rankbench.core.texts import file_part
from rankbench.execution import machine
from rankbench.experiments import Budget, Experiment
from rankbench.judging.gathering import Ids
from rankbench.judging.runs import Evaluated, Truth
from rankbench.judging.subjects import lists_named, metric_named, run_named, truth_named
from rankbench.judging.tools import Asked
from rankbench.metrics import mean
from rankbench.records.cells import Cell, Measure, Place, file_name
from rankbench.records.plans import Plan
from rankbench.records.results import Counted, Point, Result, pairs_of
from rankbench.records.store import ResultsFolder
from rankbench.records.studies import Study
from rankbench.report import manifest
from rankbench.report.study import study_of


@dataclass(frozen=True, eq=False)
class Judged:
    """Runs with their values: for each name and repetition, evaluated by the truth of that repetition."""

    name: str  # of the study
    truth: str  # what the truth is called
    truths: Mapping[int, Truth]
    runs: Mapping[tuple[str, int], Evaluated]
    asked: Sequence[Asked]
    ids: Ids
    command: str
    margin: float | None = None


def name_of(truth: str) -> str:
    """The name of a study of runs that are judged by this truth."""
    return f"judge-{file_part(truth, kept='') or 'truth'}"


def stored(judged: Judged, folder: ResultsFolder) -> Study:
    """Store judged runs in place of those that have the same name, and read them again as a study."""
    users = _users(judged)
    named = [(one, metric_named(one.label, one.definition)) for one in judged.asked]
    measures = tuple(Measure(one.label, name.identity, 1, "higher", one.definition, name) for one, name in named)
    results = [
        (_result(judged, measures, name, repetition, arrays), arrays)
        for (name, repetition), found in judged.runs.items()
        for arrays in [_arrays(found, judged.asked, users)]
    ]
    made = datetime.now(UTC).isoformat()
    cells = tuple(result.cell for result, _ in results)
    plan = Plan(_experiment(judged), "full", 0, measures, cells, made=made)
    store = folder.store(judged.name)
    store.open()
    for result, arrays in results:
        store.save(result, arrays)
    store.replace_plan(plan)
    manifest.renew(store, plan, {file_name(cell) for cell in cells})
    return study_of(store, plan, [plan])


def _users(judged: Judged) -> Int64s:
    """The users of the truths, and those of whom some metric has a value besides, in the order of their ids."""
    chosen = np.zeros(len(judged.ids.users), np.bool_)
    for truth in judged.truths.values():
        chosen[truth.users] = True
    for found in judged.runs.values():
        for values in found.values.values():
            chosen[: len(values)] |= ~np.isnan(values)
    return np.flatnonzero(chosen)[np.argsort(judged.ids.users.ranks[chosen])]


def _arrays(found: Evaluated, asked: Sequence[Asked], users: Int64s) -> Arrays:
    """The values for each user as they are stored; where a mean weighs users, scaled, with the weights beside them."""
    arrays: dict[str, Floats] = {}
    for one in asked:
        values = _of_users(found.values[one.label], users)
        if one.label in found.weights:
            weights = np.nan_to_num(_of_users(found.weights[one.label], users))
            counted = ~np.isnan(values)
            share = counted.sum() / max(weights[counted].sum(), np.finfo(float).tiny)
            arrays[pairs_of(one.label)] = weights
            values = values * weights * share
        arrays[one.label] = values
    return arrays


def _of_users(values: Floats, users: Int64s) -> Floats:
    """The values of these users; a run that was read before others does not know the users met later."""
    known = users < len(values)
    found = np.full(len(users), np.nan)
    found[known] = values[users[known]]
    return found


def _result(judged: Judged, measures: tuple[Measure, ...], name: str, repetition: int, arrays: Arrays) -> Result:
    """The result of a run."""
    truth = judged.truths[repetition]
    whole = judged.truths[min(judged.truths)]
    place = Place(truth_named(judged.truth, whole.digest), lists_named(), repetition)
    cell = Cell(
        place=place, split_hash=truth.digest, seed=0, solver=run_named(name), version=1,
        determinism=Determinism.EXACT, measures=measures, budget=_BUDGET, every=1, objective=False, threads=1,
    )  # fmt: skip
    found = [arrays[measure.label] for measure in measures]
    counted = tuple(Counted(int((~np.isnan(values)).sum()), int(np.isnan(values).sum())) for values in found)
    return Result(
        status="ok", reason=None, curve=(Point(0, 0.0, tuple(mean(values) for values in found)),), counted=counted,
        unscored=None, stopped="solver", split=truth.digest, values=fingerprint_of(arrays), cell=cell, wall=0.0,
        peak_mb=None, contended=False, machine=machine.describe(), finished=datetime.now(UTC).isoformat(),
    )  # fmt: skip


_BUDGET = Budget(steps=1)  # a run is one model


def _experiment(judged: Judged) -> Experiment:
    """The experiment that the study is of."""
    labels = tuple(one.label for one in judged.asked)
    return Experiment(
        name=judged.name,
        title=f"Runs judged by {judged.truth}",
        about=f"Runs that other tools wrote, evaluated by `{judged.command}`.",
        data=(judged.truth,),
        splits=("given",),
        solvers=tuple(dict.fromkeys(name for name, _ in judged.runs)),
        metrics=labels,
        repetitions=len(judged.truths),
        margins=() if judged.margin is None else ((labels[0], judged.margin),),
    )
