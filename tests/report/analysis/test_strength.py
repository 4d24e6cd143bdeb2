"""Certificates of strength: which searches and trainings show a solver at its best, and what follows for verdicts."""

from dataclasses import replace
from math import log10

import known_winners
import pytest
from helpers import FAILED, TINY, around, made_up, made_up_study, prepared, ran, tuned

from rankbench.api.outcomes import Outcome
from rankbench.experiments import Budget
from rankbench.experiments.spaces import Range, Tune
from rankbench.records.cells import Selection
from rankbench.records.results import Point
from rankbench.report.analysis import strength
from rankbench.report.analysis.comparison import within
from rankbench.report.analysis.evidence import key_of
from rankbench.report.analysis.strength import CERTIFIED, FIXED, MARK, strengths, weaknesses
from rankbench.report.render.answer import answer, answer_sheet
from rankbench.report.render.tables import notes, sheet, to_csv
from rankbench.report.rows import rows

LAM = Range(1.0, 1000.0, "log")


def judged(out, value, *, space=None, solvers=("global",), trials=6, last=None, budget=None, **more):
    """The study of made-up trials, whose values are those of a function of the solver, and their cells."""
    tune = Tune(space or {"global": {"lam": LAM}}, trials=trials, metric="ndcg@5", draws="sobol", **more)
    experiment = tuned(tune, solvers=solvers, budget=budget or Budget(steps=20), repetitions=2)
    run = prepared(out, experiment, Selection())
    run.open()
    while pending := run.pending_trials:
        for trial in pending:
            found = value(trial.solver)
            result = made_up(trial, 0.0, **FAILED) if found is None else made_up(trial, 2 * found, stopped="solver")
            run.keep(result, {})
        run.plan = run._settled(run.plan)
    for cell in run.plan.cells:
        level = 0.5 + 0.2 * ["global", "sgd"].index(cell.solver.name)
        result = made_up(cell, level, stopped="solver")
        run.keep(last(result) if last else result, around(cell, level))
    return run.study()


def reasons(study):
    """Why each solver is not certified."""
    return [strengths(study)[key_of(group)] for group in study.groups]


def peak(solver, best=30.0):
    """A value that is best at one penalty."""
    return 0.45 - 0.003 * abs(log10(solver.setting("lam") / best))


def test_a_penalty_between_worse_ones_is_certified(tmp_path):
    study = judged(tmp_path, peak)
    assert reasons(study) == [()] and weaknesses(study) == []
    assert {row.strength for row in rows(study)} == {CERTIFIED} and not any(row.weak for row in rows(study))


@pytest.mark.parametrize(("best", "end"), [(0.01, "lowest"), (1e6, "highest")])
def test_a_penalty_at_an_end_is_not_and_is_after_its_range_has_widened(tmp_path, best, end):
    def value(solver):
        return 0.1 + 0.4 * min(solver.setting("lam") / best, best / solver.setting("lam")) ** 0.1

    (why,) = reasons(judged(tmp_path / "one", value))
    assert f"lam is at the {end} end of what was tried in 2 of 2 searches" in why
    widened = judged(tmp_path / "two", value, widen=8)
    assert not any("lam" in reason for reason in reasons(widened)[0])


def test_an_end_where_nothing_changes_any_more_is_none(tmp_path):
    study = judged(tmp_path, lambda solver: 0.4 if solver.setting("lam") > 100 else 0.45 - solver.setting("lam") / 1e6)
    assert reasons(study) == [()]


def test_an_end_that_is_the_limit_of_the_solver_is_none(tmp_path):
    space = {"sgd": {"lam": LAM, "rank": (1, 3)}}
    study = judged(tmp_path, lambda solver: peak(solver) - 0.1 * solver.setting("rank"), space=space, solvers=("sgd",))
    assert not any("rank" in reason for reason in reasons(study)[0])


def test_trials_that_are_alike_have_chosen_nothing(tmp_path):
    (why,) = reasons(judged(tmp_path, lambda solver: 0.4 + solver.setting("lam") * 1e-9))
    assert "all its trials are alike, so that nothing was chosen" in why


def test_penalties_that_hardly_differ_are_too_few(tmp_path):
    (why,) = reasons(judged(tmp_path, peak, space={"global": {"lam": Range(20.0, 60.0, "log")}}))
    assert why == ("lam was tried within less than a factor of 30",)


def test_words_and_single_values_are_no_ends(tmp_path):
    space = {"global": {"lam": LAM, "loss": ("squared-hinge", "logistic")}}
    assert reasons(judged(tmp_path / "one", peak, space=space)) == [()]
    (why,) = reasons(judged(tmp_path / "two", peak, trials=1))
    assert "only one value of lam was tried" in why


def test_last_trials_that_still_bring_something_are_told(tmp_path):
    values = iter([0.30, 0.31, 0.32, 0.33, 0.34, 0.40] * 2)
    study = judged(tmp_path, lambda solver: next(values), solvers=("sgd",), space={"sgd": {"lam": LAM}})
    (why,) = reasons(study)
    assert any(reason.startswith("its last trials still brought 1") for reason in why)


def test_few_trials_tell_nothing_unless_they_are_all_there_are(tmp_path):
    (why,) = reasons(judged(tmp_path / "one", peak, trials=3))
    assert "it had 3 trials, too few to tell whether more would bring something" in why
    whole = judged(tmp_path / "two", peak, space={"global": {"lam": (1.0, 30.0, 900.0)}}, trials=3)
    assert reasons(whole) == [()]


def test_trials_that_failed_are_counted(tmp_path):
    study = judged(tmp_path, lambda solver: None if solver.setting("lam") > 100 else peak(solver))
    failed = sum(trial.cell.solver.setting("lam") > 100 for trial in study.trials)
    assert failed > 0 and reasons(study)[0][0] == f"{failed} of 12 trials did not end well"


def test_settings_that_were_not_tuned_are_named(tmp_path):
    study = judged(tmp_path, lambda solver: 0.4, solvers=("sgd[lam=3]", "sgd"), space={"sgd": {"lam": LAM}})
    assert reasons(study)[0][0] == "rank and lam were not tuned" and reasons(study)[1][0] == "rank was not tuned"


def curve(values, stopped="budget"):
    """A change of a result: one point for each of these values of its second metric."""

    def change(result):
        width = len(result.cell.measures)
        points = tuple(Point(step, 0.1, (value / 2, value)[:width]) for step, value in enumerate(values))
        return replace(result, curve=points, stopped=stopped)

    return change


RISING = [0.1 * step for step in range(1, 11)]


@pytest.mark.parametrize(
    ("values", "stopped", "reason"),
    [
        (RISING, "budget", "its last quarter of 9 steps still changed pairwise-error by 30.0% (2 of 2 repetitions)"),
        (RISING, "solver", ""),
        ([*RISING, *[1.0] * 5], "budget", ""),
        (
            [0.5, 0.9, 0.9],
            "budget",
            "it took 2 steps, too few to tell whether more would change it (2 of 2 repetitions)",
        ),
    ],
)
def test_steps_that_still_change_something_are_told_unless_the_solver_has_ended(tmp_path, values, stopped, reason):
    (why,) = reasons(judged(tmp_path, peak, last=curve(values, stopped)))
    assert why == ((reason,) if reason else ())


def test_an_evaluation_at_the_end_alone_does_not_tell(tmp_path):
    def last(result):
        return replace(result, curve=(Point(0, 0.0, (0.1, 0.2)), Point(20, 1.0, (0.4, 0.9))), stopped="budget")

    (why,) = reasons(judged(tmp_path, peak, last=last))
    assert "evaluated at its end alone" in why[0]


def test_patience_and_a_tolerance_end_a_training_that_has_converged(tmp_path):
    budget = Budget(steps=20, tolerance=1e-3)
    assert reasons(judged(tmp_path / "one", peak, budget=budget, last=curve(RISING))) == [()]
    spent = judged(tmp_path / "two", peak, budget=Budget(steps=9, tolerance=1e-3), last=curve(RISING))
    assert "last quarter of 9 steps" in reasons(spent)[0][0]


@pytest.mark.slow
def test_of_a_search_with_patience_the_steps_of_the_best_trial_are_judged(tmp_path):
    space = {"global": {"lam": LAM}}
    for patience, steps, converged in ((2, 60, True), (50, 5, False)):
        tune = Tune(space, trials=6, metric="ndcg@5")
        experiment = tuned(tune, solvers=("sgd[rank=2]",), budget=Budget(steps=steps, patience=patience), repetitions=1)
        sgd = replace(experiment, tune=replace(tune, space={"sgd[rank=2]": {"lam": LAM}}))
        study = ran(tmp_path / str(steps), sgd).study()
        assert any("steps" in reason for reason in reasons(study)[0]) != converged


def test_nothing_is_called_better_than_a_solver_that_was_not_at_its_best(tmp_path):
    space = {"global": {"lam": LAM}, "sgd": {"lam": LAM}}
    study = judged(tmp_path, peak, space=space, solvers=("global", "sgd"))
    by_solver = {row.solver: row for row in rows(study) if row.metric == "pairwise-error"}
    strong, weak = by_solver["global"], by_solver["sgd"]
    assert (strong.verdict, weak.verdict) == ("open", "open") and strong.settled_by == weak.settled_by == ""
    assert strong.reason == "sgd was not at its best: rank was not tuned"
    assert weak.reason == "sgd was not at its best: rank was not tuned"
    assert strong.difference_high is not None and strong.difference_high < 0
    assert (strong.strength, weak.strength) == (CERTIFIED, "rank was not tuned")
    (pair,) = [one for one in within(study) if one.metric == "pairwise-error"]
    assert pair.verdict == "open" and pair.reason == "sgd was not at its best: rank was not tuned"
    assert "against sgd it is open (sgd was not at its best: rank was not tuned)" in answer(study)
    assert f"sgd {MARK}" in [line[0] for line in answer_sheet(study).lines]
    assert any(f"sgd {MARK}" in line for line in sheet(study).lines)
    assert f"{MARK} sgd was not shown at its best: rank was not tuned." in notes(study)
    assert ",rank was not tuned\n" in to_csv(rows(study))
    assert set(Outcome(study).table()["strength"]) == {CERTIFIED, "rank was not tuned"}


def test_a_weak_solver_may_be_called_better_than_a_strong_one(tmp_path, monkeypatch):
    space = {"global": {"lam": LAM}, "sgd": {"lam": LAM}}
    study = judged(tmp_path, peak, space=space, solvers=("global", "sgd"))
    weak_first = {key_of(group): (("weak",) if group.solver.name == "global" else ()) for group in study.groups}
    monkeypatch.setattr(strength, "strengths", lambda study: weak_first)
    weak, strong = ((key_of(group), group.solver.written) for group in study.groups)
    assert strength.fair(study, "better", weak, strong) == ("better", "")
    assert strength.fair(study, "worse", strong, weak) == ("worse", "")
    assert strength.fair(study, "worse", weak, strong) == ("open", "global was not at its best: weak")
    assert strength.fair(study, "better", strong, weak) == ("open", "global was not at its best: weak")
    assert strength.fair(study, "equal", weak, strong) == ("equal", "")


def test_without_tuning_settings_are_fixed_and_verdicts_stand(tmp_path):
    study = made_up_study(tmp_path, TINY, (0.3, 0.5, 0.3, 0.5))
    found = rows(study)
    assert {row.strength for row in found} == {FIXED} and not any(row.weak for row in found)
    assert {row.verdict for row in found} == {"better", "worse"} and weaknesses(study) == []


def test_repetitions_that_share_their_trials_are_judged_by_them(tmp_path):
    study = judged(tmp_path, peak, per="split")
    assert reasons(study) == [()]


@pytest.mark.one_in(4)
@pytest.mark.slow
@pytest.mark.parametrize("solver", known_winners.CHEAP)
def test_a_sound_search_is_certified(tmp_path, solver):
    assert known_winners.sound_reasons(solver, 0, tmp_path) == ()


@pytest.mark.one_in(5)
@pytest.mark.slow
@pytest.mark.parametrize("number", (0, 6, 12, 18, 4))  # each way once, and each solver
def test_a_crippled_search_is_found_out(tmp_path, number):
    how, solver = known_winners.way(number)
    why, loss = known_winners.weakened(solver, how, number, tmp_path)
    assert why or loss <= 0.01, (how, solver, loss)


def test_a_last_rung_of_one_trial_says_nothing_of_what_the_last_trials_brought(tmp_path):
    tune = Tune({"sgd": {"lam": LAM}}, "halving", 9, "ndcg@5")
    study = ran(tmp_path, tuned(tune, solvers=("sgd",), budget=Budget(steps=9), repetitions=1)).study()
    assert [entry.cell.rung for entry in study.trials].count(2) == 1
    (why,) = reasons(study)
    assert not any("trials" in reason for reason in why)
