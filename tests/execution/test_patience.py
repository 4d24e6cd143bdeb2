"""Stopping early: trials end after some evaluations without a better value, and cells take the best trial's steps."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import TINY, made_up, prepared, ran, tiny, tiny_toml, tuned, with_solver

import rankbench as package
from rankbench.core.errors import UserError
from rankbench.execution.worker import Patience
from rankbench.experiments import Budget
from rankbench.experiments.spaces import Tune
from rankbench.planning.tuning import alone
from rankbench.planning.warm_starts import Paths
from rankbench.records.results import Point, Result
from rankbench.report.analysis.trials import trials
from rankbench.report.render.tables import notes
from rankbench.report.rows import rows

PEAK = (
    "counts = np.bincount(train.items, minlength=train.n_items)",
    "means = np.bincount(train.items, train.values, train.n_items) / np.maximum(1, counts)",
    "means -= means.mean()",
    "best = {'early': 2, 'late': 5}[self.mode]",
    "for step in range(30):",
    "    worse = abs(step - best) + (self.mode == 'early')",
    "    hidden = np.arange(train.n_items) < 6 * worse",
    "    yield Step(ItemScores(np.where(hidden, 0.0, means)))",
)


def patient(folder, patience=3, **changes):
    """An experiment with trials of a solver that is best after three or six steps, and then gets worse."""
    solver = with_solver(folder, *PEAK)
    tune = Tune({solver: {"mode": ("early", "late")}}, "grid", 2, "pairwise-error")
    budget = Budget(steps=25, patience=patience)
    rows = [f"{user},{item},{1 + item % 5}\n" for user in range(20) for item in range(40) if (user + item) % 4]
    (folder / "alike.csv").write_text("user,item,rating\n" + "".join(rows))  # all users have the same order
    data = (f"csv:{folder / 'alike.csv'}",)
    return tuned(
        tune,
        **{
            "solvers": (solver,),
            "data": data,
            "splits": ("entries[test=0.2]",),
            "budget": budget,
            "repetitions": 1,
            **changes,
        },
    )


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([5, 4, 3, 3, 3], 4),  # lower is better; the same again is not
        ([5, 6, 4, 5, 6], 4),
        ([np.nan, np.nan], 1),
        ([5, 4, 3, 2, 1], None),
    ],
)
def test_patience_counts_evaluations_without_a_better_value(values, ends):
    cell = SimpleNamespace(measures=[SimpleNamespace(sign=-1)], budget=Budget(patience=2))
    patience = Patience(cell)
    assert next((place for place, value in enumerate(values) if patience.ends(value)), None) == ends


def test_without_patience_nothing_ends_early():
    patience = Patience(SimpleNamespace(measures=[SimpleNamespace(sign=1)], budget=Budget()))
    assert not any(patience.ends(value) for value in [1.0] * 50)


@pytest.mark.parametrize("tune", [None, Tune({"sgd": {"lam": (1.0, 2.0)}}, "halving", 4)])
def test_patience_needs_trials_that_have_no_steps_of_their_own(tune):
    with pytest.raises(UserError, match=r"patience needs the trials of \[tune\], by another method than halving"):
        tiny(budget=Budget(patience=2), tune=tune)


def test_patience_is_in_the_key_only_where_there_is_some(tmp_path):
    (trial, *_) = prepared(tmp_path / "a", patient(tmp_path)).plan.trials
    assert trial.content["budget"] == {"steps": 25, "seconds": None, "tolerance": None, "patience": 3}
    plain = replace(trial, budget=replace(trial.budget, patience=None))
    assert "patience" not in plain.content["budget"] and plain.key != trial.key


def test_the_value_of_a_trial_with_patience_is_the_best_of_its_curve(tmp_path):
    (trial, *_) = prepared(tmp_path / "a", patient(tmp_path)).plan.trials
    curve = tuple(Point(step, 0.1 * step, (value,)) for step, value in enumerate((np.nan, 0.4, 0.2, 0.3, 0.2)))
    found = Result(**{**vars(made_up(trial, 0.5)), "curve": curve})
    assert found.value("pairwise-error") == 0.2
    assert found.chosen_budget == Budget(steps=2)  # the first of the best
    nothing = Result(**{**vars(found), "curve": (Point(0, 0.0, (np.nan,)), Point(1, 0.1, (np.nan,)))})
    assert np.isnan(nothing.value("pairwise-error")) and nothing.chosen_budget.steps == 1
    whole = replace(trial, budget=Budget(steps=25))
    assert Result(**{**vars(found), "cell": whole}).chosen_budget == Budget(steps=25)


@pytest.mark.slow
def test_a_solver_takes_as_many_steps_as_its_best_trial_took_to_its_best_value(tmp_path):
    run = ran(tmp_path / "results", patient(tmp_path))
    study = run.study()
    first, second = (entry.result for entry in study.trials)
    for trial, best in ((first, 3), (second, 6)):
        values = [point.values[0] for point in trial.curve]
        assert int(np.argmin(values)) == best
        assert trial.curve[-1].step == best + 3 and trial.stopped == "budget"
    (entry,) = study.entries
    assert dict(entry.cell.solver.settings)["mode"] == "late" and entry.cell.budget == Budget(steps=6)
    assert entry.result.curve[-1].step == 6
    listed = trials(study)
    assert [trial.chosen for trial in listed] == [False, True]
    assert listed[1].value == pytest.approx(min(point.values[0] for point in second.curve))
    assert {row.chosen for row in rows(study)} == {"mode=late, steps=6"}
    assert any("A trial ends after 3 evaluations without a better value" in note for note in notes(study))


def test_trials_with_patience_all_begin_at_the_usual_start(tmp_path):
    tune = Tune({"global": {"lam": (1.0, 10.0)}}, "grid", 2, "pairwise-error")
    following = prepared(tmp_path / "a", tuned(tune, solvers=("global",), repetitions=1))
    patiently = tuned(tune, solvers=("global",), repetitions=1, budget=Budget(steps=3, patience=1))
    assert any(Paths(following.plan.searches, tmp_path).before(trial) for trial in following.plan.trials)
    run = prepared(tmp_path / "b", patiently)
    assert not any(Paths(run.plan.searches, tmp_path).before(trial) for trial in run.plan.trials)


@pytest.mark.slow
def test_from_the_command_line_and_from_python(cli, here):
    words = ("tune", "sgd[rank=2]", "-d", TINY.data[0], "--space", "lam=1|10", "--trials", "2", "--steps", "30")
    assert "steps=" in cli(*words, "--patience", "2", "-q").out
    found = package.tune("sgd[rank=2]", TINY.data[0], {"lam": [1.0, 10.0]}, trials=2, steps=30, patience=2, out="other")
    (entry,) = found.study.entries
    assert entry.cell.budget.patience is None and entry.cell.budget.steps <= 30
    path = tiny_toml(here, budget="{steps = 3, patience = 0}", tune="{space = {global = {lam = [1, 2]}}, trials = 2}")
    assert "patience=0 is out of range: must be at least 1" in cli.refuses("run", path, "-q")


def test_alone_takes_the_budget():
    tune = Tune({"sgd": {"lam": (1.0, 2.0)}}, "grid", 2, "pairwise-error")
    budget = Budget(steps=7, patience=2)
    assert alone("sgd", TINY.data[0], "entries[test=0.2]", tune, budget).budget == budget
