"""Searches that go on from their results: successive halving, and TPE by Optuna."""

import sys
from dataclasses import replace

import pytest
from helpers import FAILED, SPACES, made_up, prepared, ran, silent, tuned

from rankbench.core.errors import UserError
from rankbench.experiments import Budget
from rankbench.experiments.spaces import Range, Tune, described
from rankbench.planning.adaptive import halving
from rankbench.planning.plan import plan
from rankbench.records.cells import Selection
from rankbench.records.store import ResultsFolder
from rankbench.report.analysis.trials import standings, trials
from rankbench.report.study import study

pytestmark = pytest.mark.slow

ONCE = Selection(repetitions=1)
HALVED = Tune(SPACES, "halving", 9, "ndcg@5")
WIDE = {"global": {"lam": Range(1.0, 1000.0, "log")}, "sgd": {"lam": Range(0.1, 100.0, "log"), "rank": Range(1, 9)}}


def halved(**changes):
    """The tiny experiment tuned by halving, with nine steps."""
    return tuned(replace(HALVED, **changes), budget=Budget(steps=9))


def by_hand(out, experiment, value):
    """A run whose trials get these values, round by round, until no trial follows."""
    run = prepared(out, experiment, ONCE)
    run.open()
    rounds = []
    while pending := run.pending_trials:
        rounds.append(pending)
        for trial in pending:
            found = value(trial)
            run.keep(made_up(trial, 0.0, **FAILED) if found is None else made_up(trial, 2 * found), {})
        run.plan = run._settled(run.plan)
    return run, rounds


def lam(trial):
    """The setting that these tests look at."""
    return dict(trial.solver.settings)["lam"]


@pytest.mark.parametrize(
    ("trials", "steps", "eta", "expected"),
    [
        (9, 9, 3, ((1, 3, 9), (9, 3, 1))),
        (8, 90, 3, ((30, 90), (8, 2))),
        (16, 100, 2, ((6, 12, 25, 50, 100), (16, 8, 4, 2, 1))),
        (27, 4, 3, ((1, 4), (27, 9))),
        (1, 50, 3, ((50,), (1,))),
    ],
)
def test_rungs_fall_in_size_as_they_rise_in_steps(trials, steps, eta, expected):
    rungs = halving(trials, steps, eta)
    assert (rungs.steps, rungs.sizes) == expected
    assert rungs.most == sum(rungs.sizes)


def test_the_best_of_each_rung_go_on_and_the_last_one_is_chosen(tmp_path):
    run, rounds = by_hand(tmp_path, halved(), lambda trial: 1 / lam(trial))
    for name in ("global", "sgd"):
        rungs = [[trial for trial in one if trial.solver.name == name] for one in rounds]
        assert [len(rung) for rung in rungs] == [9, 3, 1]
        assert [{trial.budget.steps for trial in rung} for rung in rungs] == [{1}, {3}, {9}]
        best = sorted(map(lam, rungs[0]))
        assert sorted(map(lam, rungs[1])) == best[:3] and [lam(trial) for trial in rungs[2]] == best[:1]
        (cell,) = [cell for cell in run.plan.cells if cell.solver.name == name]
        assert lam(cell) == best[0] and cell.budget.steps == 9
    assert not run.plan.undecided


def test_every_solver_costs_the_same_number_of_steps(tmp_path):
    run, _ = by_hand(tmp_path, halved(), lam)
    cost = {"global": 0, "sgd": 0}
    for trial in run.plan.trials:
        cost[trial.solver.name] += trial.budget.steps
    assert cost == {"global": 27, "sgd": 27}


def test_a_trial_that_failed_goes_nowhere_and_a_rung_of_failures_is_the_end(tmp_path):
    run, rounds = by_hand(tmp_path, halved(), lambda trial: None if trial.solver.name == "sgd" else lam(trial))
    assert {trial.solver.name for trial in rounds[1]} == {"global"}
    (failure,) = run.plan.failures
    assert failure.cell.solver.name == "sgd" and "none of its 9 trials ended well" in failure.reason


def test_a_run_of_halving_gives_results_and_is_complete_when_run_again(tmp_path):
    run = ran(tmp_path, halved(), ONCE)
    assert len(run.plan.cells) == 2 and not run.pending and not run.pending_trials
    again = prepared(tmp_path, halved(), ONCE)
    assert not again.pending_trials and not again.pending
    assert [trial.key for trial in again.plan.trials] == [trial.key for trial in run.plan.trials]
    found = study(ResultsFolder(tmp_path, silent), "tiny")
    assert len(found.trials) == 26
    assert sorted(trial.chosen for trial in trials(found)) == [False] * 24 + [True] * 2
    with pytest.raises(UserError, match="tiny tunes by halving: by-trials compares trials of the same budget"):
        standings(found)


def test_a_search_that_was_interrupted_goes_on_with_the_same_trials(tmp_path):
    whole, _ = by_hand(tmp_path / "whole", halved(), lam)
    run = prepared(tmp_path / "cut", halved(), ONCE)
    run.open()
    for trial in run.pending_trials[:13]:
        run.keep(made_up(trial, 2 * lam(trial)), {})
    cut, rounds = by_hand(tmp_path / "cut", halved(), lam)
    assert len(rounds[0]) == 5 + 3  # five of the first rung are left, and one solver is at its second
    assert {trial.key for trial in cut.plan.trials} == {trial.key for trial in whole.plan.trials}
    assert [cell.key for cell in cut.plan.cells] == [cell.key for cell in whole.plan.cells]


def test_the_first_rung_tries_what_random_search_would():
    of_halving, of_random = (
        plan(tuned(replace(HALVED, method=method)), ONCE).trials for method in ("halving", "random")
    )
    assert [trial.solver for trial in of_halving] == [trial.solver for trial in of_random]


def test_halving_needs_steps_to_share():
    with pytest.raises(UserError, match=r'method = "halving" gives trials a share of the steps of \[budget\], which'):
        plan(tuned(HALVED, budget=Budget(steps=None, seconds=1.0)), ONCE)


def test_a_sentence_says_how_the_cost_is_shared():
    assert described(HALVED, ["kendall"]).startswith(
        "9 random trials by successive halving (one in 3 goes on with 3 times the steps, so that all cost the same "
        "number of steps) for each solver, or its whole space where that is smaller; the best ndcg@5"
    )
    assert described(Tune(WIDE, "tpe", 9), ["kendall"]).startswith("9 trials (4 random, then by TPE) for each solver")


@pytest.fixture
def optuna():
    """The package, or the test is skipped."""
    return pytest.importorskip("optuna", reason='pip install "rankbench[tpe]"')


def test_tpe_makes_as_many_trials_for_every_solver_and_none_twice(tmp_path, optuna):
    experiment = tuned(Tune(WIDE, "tpe", 12, "ndcg@5"))
    run, rounds = by_hand(tmp_path, experiment, lambda trial: -abs(lam(trial) - 50))
    assert [len(one) for one in rounds] == [12, *([2] * 6)]  # six drawn for each of two solvers, then one by one
    for name in ("global", "sgd"):
        settings = [trial.solver.settings for trial in run.plan.trials if trial.solver.name == name]
        assert len(settings) == len(set(settings)) == 12
    assert {trial.budget for trial in run.plan.trials} == {experiment.budget}
    again, _ = by_hand(tmp_path, experiment, lambda trial: 0)
    assert [trial.key for trial in again.plan.trials] == [trial.key for trial in run.plan.trials]


def test_tpe_proposes_values_near_the_best(tmp_path, optuna):
    space = {"global": {"lam": Range(1.0, 1000.0, "log")}, "sgd": {"lam": (1.0, 2.0)}}
    run, _ = by_hand(tmp_path, tuned(Tune(space, "tpe", 40, "ndcg@5")), lambda trial: -abs(lam(trial) - 50) / 1000)
    tried = [lam(trial) for trial in run.plan.trials if trial.solver.name == "global"]
    drawn, proposed = tried[:20], tried[20:]
    assert sum(25 < value < 100 for value in proposed) > 2 * sum(25 < value < 100 for value in drawn)
    assert len([trial for trial in run.plan.trials if trial.solver.name == "sgd"]) == 2  # its whole space


def test_tpe_chooses_among_texts_and_ends_where_nothing_new_turns_up(tmp_path, optuna):
    lists = {"step": (0.01, 0.02, 0.05, 0.1, 0.2), "loss": ("squared-hinge", "logistic")}
    space = {"global": {"lam": Range(1.0, 1.017)}, "sgd": lists}  # three values of three digits, ten pairs
    run, _ = by_hand(tmp_path, tuned(Tune(space, "tpe", 8, "ndcg@5"), solvers=("global", "sgd")), lambda trial: 0.5)
    tried = [trial.solver for trial in run.plan.trials]
    assert sorted(solver.setting("lam") for solver in tried if solver.name == "global") == [1.0, 1.01, 1.017]
    pairs = {(solver.setting("step"), solver.setting("loss")) for solver in tried if solver.name == "sgd"}
    assert len(pairs) == 8 and not run.plan.undecided


@pytest.mark.filterwarnings("ignore:PartialFixedSampler is experimental")
def test_where_tpe_repeats_itself_random_proposals_follow(tmp_path, optuna, monkeypatch):
    fixed = {"step": 0.1, "loss": "logistic"}
    same = optuna.samplers.PartialFixedSampler(fixed, optuna.samplers.RandomSampler(0))
    monkeypatch.setattr(optuna.samplers, "TPESampler", lambda **_: same)
    lists = {"step": (0.01, 0.02, 0.05, 0.1, 0.2), "loss": ("squared-hinge", "logistic")}
    run, _ = by_hand(tmp_path, tuned(Tune({"sgd": lists}, "tpe", 8, "ndcg@5"), solvers=("sgd",)), lambda trial: 0.5)
    assert len({trial.solver.settings for trial in run.plan.trials}) == 8


def test_tpe_goes_on_past_trials_that_failed(tmp_path, optuna):
    run, _ = by_hand(tmp_path, tuned(Tune(WIDE, "tpe", 6, "ndcg@5")), lambda trial: None)
    assert len(run.plan.trials) == 12 and len(run.plan.failures) == 2


def test_without_optuna_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UserError) as error:
        plan(tuned(Tune(WIDE, "tpe", 6, "ndcg@5")), ONCE)
    assert str(error.value) == (
        'method = "tpe" needs the package optuna, which is not installed; pip install "rankbench[tpe]"'
    )
