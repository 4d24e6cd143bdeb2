"""The winner against the number of trials, from made-up trials."""

import pytest
from helpers import SPACES, altered, made_up, prepared, silent, tuned

from rankbench.experiments.spaces import Tune
from rankbench.records.cells import Selection
from rankbench.records.store import ResultsFolder
from rankbench.report.analysis.trials import by_trials_sheet, standings
from rankbench.report.study import study

pytestmark = pytest.mark.slow

GRID = Tune({"global": {"lam": (10.0, 20.0, 30.0)}, "sgd": {"lam": (1.0, 2.0, 3.0)}}, "grid", 3, "ndcg@5")
RISING = {"global": [(0.6, 0.6), (0.5, 0.7), (0.6, 0.6)], "sgd": [(0.5, 0.5), (0.6, 0.6), (0.9, 0.7)]}


def told(out, values, tune=GRID):
    """A study whose trials have these values: for each solver and trial one for each repetition, None for a failure."""
    run = prepared(out, tuned(tune), Selection(repetitions=2))
    run.open()
    for search in run.plan.searches:
        for place, trial in enumerate(search.trials):
            value = values[trial.solver.name][place][trial.place.repetition]
            if value is None:
                run.keep(made_up(trial, 0.0, status="failed", reason="no", curve=(), counted=()), {})
            else:
                run.keep(made_up(trial, 2 * value), {})
    run.try_out(silent)
    return study(ResultsFolder(out, silent), "tiny")


def test_a_value_is_the_mean_over_repetitions_of_the_best_so_far(tmp_path):
    by_solver = {one.solver: one for one in standings(told(tmp_path, RISING))}
    assert by_solver["global"].values == pytest.approx((0.6, (0.6 + 0.7) / 2, (0.6 + 0.7) / 2))
    assert by_solver["sgd[step=0.1]"].values == pytest.approx((0.5, 0.6, 0.8))
    assert [by_solver["sgd[step=0.1]"].after(n) for n in (3, 4, 9)] == pytest.approx([0.8] * 3)


def test_the_leader_changes_with_the_number_of_trials(tmp_path):
    made = by_trials_sheet(standings(told(tmp_path, RISING)))
    assert made.headings == ("data", "metric", "trials", "global", "sgd[step=0.1]", "leader")
    assert [line[1:] for line in made.lines] == [
        ("ndcg@5", "1", "0.6000", "0.5000", "global"),
        ("ndcg@5", "2", "0.6500", "0.6000", "global"),
        ("ndcg@5", "3", "0.6500", "0.8000", "sgd[step=0.1]"),
    ]
    assert made.best == {(0, 3), (1, 3), (2, 4)}


def test_where_lower_is_better_the_lowest_leads(tmp_path):
    tune = Tune(GRID.space, "grid", 3, "pairwise-error")
    made = by_trials_sheet(standings(told(tmp_path, RISING, tune)))
    assert [line[2:] for line in made.lines] == [
        ("1", "0.6000", "0.5000", "sgd[step=0.1]"),
        ("2", "0.5500", "0.5000", "sgd[step=0.1]"),
        ("3", "0.5500", "0.5000", "sgd[step=0.1]"),
    ]


def test_trials_that_failed_have_no_value_and_cannot_lead(tmp_path):
    failing = {"global": [(None, None), (0.2, 0.3), (0.1, 0.1)], "sgd": [(None, None)] * 3}
    made = by_trials_sheet(standings(told(tmp_path, failing)))
    assert [line[2:] for line in made.lines] == [
        ("1", "", "", ""),
        ("2", "0.2500", "", "global"),
        ("3", "0.2500", "", "global"),
    ]
    assert made.best == {(1, 3), (2, 3)}


def test_a_space_with_fewer_values_keeps_its_last(tmp_path):
    tune = Tune({"global": {"lam": (10.0, 20.0)}, "sgd": SPACES["sgd"]}, trials=3, metric="ndcg@5")
    values = {"global": [(0.6, 0.6), (0.7, 0.7)], "sgd": [(0.5, 0.5), (0.5, 0.5), (0.8, 0.8)]}
    made = by_trials_sheet(standings(told(tmp_path, values, tune)))
    assert [line[3:] for line in made.lines] == [
        ("0.6000", "0.5000", "global"),
        ("0.7000", "0.5000", "global"),
        ("0.7000", "0.8000", "sgd[step=0.1]"),
    ]


def test_a_repetition_with_fewer_trials_keeps_its_last_value(tmp_path):
    found = told(tmp_path, RISING)
    last = [one for one in found.trials if one.cell.solver_text == "sgd[step=0.1,lam=3]"][1]
    assert last.cell.place.repetition == 1
    fewer = tuple(one for one in found.trials if one is not last)
    by_solver = {one.solver: one for one in standings(altered(found, trials=fewer))}
    assert by_solver["sgd[step=0.1]"].values == pytest.approx((0.5, 0.6, (0.9 + 0.6) / 2))
