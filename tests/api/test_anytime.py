"""Comparisons part by part: cheap solvers first, verdicts on the way, and an end when the time is up."""

from dataclasses import replace
from time import monotonic

import pytest
from helpers import prepared, tuned

from rankbench.api import anytime
from rankbench.api.anytime import Part, compared, finished, parts, usual_seconds
from rankbench.api.session import Listening, Session
from rankbench.execution.run import Run, TimeIsUp
from rankbench.experiments import Budget
from rankbench.experiments.spaces import Range, Tune
from rankbench.planning.materials import Materials
from rankbench.records.cells import Selection
from rankbench.records.store import ResultsFolder
from rankbench.report.render.answer import answer_sheet

FLOORS = ("random", "popularity", "global")


class Told(Listening):
    """Keeps what is said."""

    def say(self, line):
        LINES.append(line)


LINES = []


def started(out, deadline=None, solvers=("random", "sgd"), **changes):
    """A prepared run of a small comparison with its session, which has a deadline on the clock."""
    tune = Tune({"random": {}, "sgd": {"lam": Range(1.0, 100.0, "log")}}, trials=2, metric="ndcg@5")
    experiment = tuned(tune, solvers=solvers, repetitions=2, budget=Budget(steps=2), **changes)
    run = prepared(out, experiment, Selection(), deadline=deadline)
    return Session(ResultsFolder(out, str), Selection(), run.conditions, display=Told()), run


def test_the_first_repetition_of_cheap_solvers_is_first_and_dear_solvers_are_last():
    found = parts(("random", "mf", "sgd", "robirank", "lcr", "mine.py:Mine"), 3)
    cheap = ("random", "mf", "sgd", "mine.py:Mine")
    assert found[:4] == [Part(0, (some,)) for some in cheap]
    assert found[4:6] == [Part(1, cheap), Part(2, cheap)]
    assert found[6:] == [Part(number, (dear,)) for dear in ("robirank", "lcr") for number in range(3)]
    assert parts(("random",), 1) == [Part(0, ("random",))]
    assert parts((*FLOORS, "ease", "mf"), 1) == [Part(0, FLOORS), Part(0, ("ease", "mf"))]


@pytest.mark.parametrize(("rows", "seconds"), [(100, 60), (20_000, 60), (40_000, 120), (10**9, 1800)])
def test_the_time_grows_with_the_rows_within_limits(rows, seconds):
    assert usual_seconds(rows) == pytest.approx(seconds)


@pytest.mark.parametrize(("seconds", "for_trainings"), [(240, 236), (10, 9), (None, None)])
def test_some_of_the_time_is_kept_for_the_report(tmp_path, monkeypatch, seconds, for_trainings):
    session, run = started(tmp_path)
    monkeypatch.setattr(anytime, "finished", lambda session, run: run.conditions.deadline)
    deadline = compared(session, run.plan.experiment, seconds, Materials(0))
    assert (deadline and deadline - monotonic()) == (for_trainings and pytest.approx(for_trainings, abs=0.5))


@pytest.mark.slow
def test_a_verdict_so_far_is_said_only_some_time_after_the_one_before(tmp_path, monkeypatch):
    monkeypatch.setattr(anytime, "_PAUSE", 1e9)
    LINES.clear()
    assert finished(*started(tmp_path)).missing == ""
    assert [line.partition(":")[0] for line in LINES] == ["so far, 1 of 4 trainings"]


@pytest.mark.slow
def test_every_part_is_run_and_the_verdict_so_far_is_said_after_each(tmp_path, monkeypatch):
    monkeypatch.setattr(anytime, "_PAUSE", 0.0)
    LINES.clear()
    session, run = started(tmp_path)
    found = finished(session, run)
    assert found.missing == "" and all(entry.good for entry in found.study.entries)
    assert [line.partition(":")[0] for line in LINES] == [
        "so far, 1 of 4 trainings", "so far, 2 of 4 trainings", "so far, 4 of 4 trainings",
    ]  # fmt: skip
    assert all("has the best" in line for line in LINES)
    LINES.clear()
    again = finished(*started(tmp_path))
    assert LINES == [] and again.missing == "" and len(again.study.results) == 4


@pytest.mark.slow
def test_at_the_deadline_the_run_ends_and_a_later_one_goes_on(tmp_path, monkeypatch):
    session, run = started(tmp_path, deadline=monotonic() + 600)
    execute, parts_run = Run.execute, []

    def late(self, tell, wanted):
        if parts_run:
            raise TimeIsUp
        parts_run.append(wanted)
        execute(self, tell, wanted)

    monkeypatch.setattr(Run, "execute", late)
    found = finished(session, run)
    monkeypatch.undo()
    assert [entry.status for entry in found.study.entries] == ["ok", "pending", "pending", "pending"]
    assert found.missing.startswith("not finished in the time: ") and "sgd (2 of 2 repetitions left)" in found.missing
    assert "random (1 of 2 repetitions left)" in found.missing
    left = "s, without 6 trials and trainings of unknown length (--time none, or a longer one, goes on)"
    assert "; to go: about " in found.missing and found.missing.endswith(left)
    assert [line[4] for line in answer_sheet(found.study).lines] == ["", "not finished"]
    assert finished(*started(tmp_path)).missing == ""


@pytest.mark.slow
def test_a_solver_that_takes_more_than_its_share_of_the_time_goes_on_after_all_others(tmp_path, monkeypatch):
    solvers = ("random", "global", "sgd", "altsvm", "robirank")
    session, run = started(tmp_path, deadline=monotonic() + 100_000, solvers=solvers)
    execute, ran = Run.execute, []

    def slow(self, tell, wanted):
        solvers = sorted({cell.solver.name for cell in self.plan.planned if wanted(cell)})
        ran.append((*solvers, round((self.conditions.deadline - monotonic()) / 100, -1)))  # whatever the machine
        if solvers == ["sgd"] and self.conditions.deadline != run_deadline:
            raise TimeIsUp
        execute(self, tell, wanted)

    run_deadline = run.conditions.deadline
    monkeypatch.setattr(Run, "execute", slow)
    assert finished(session, run).missing == ""
    assert ran[:3] == [("global", "random", 1000), ("sgd", 330), ("altsvm", 500)]
    assert ran[3:6] == [("altsvm", "global", "random", 750), ("robirank", 1000), ("robirank", 1000)]
    assert ran[6:] == [("sgd", 1000), ("sgd", 1000)]


@pytest.mark.slow
def test_a_cell_that_is_under_way_at_the_deadline_is_given_up_and_leaves_no_result(tmp_path):
    run = started(tmp_path, solvers=("sgd",))[1]
    run.open()
    begun = monotonic()
    slow = replace(run.plan, trials=(), searches=(), planned=tuple(
        replace(cell, budget=Budget(steps=10**6), solver=trial.solver)
        for cell, trial in zip(run.plan.planned, run.plan.trials, strict=False)))  # fmt: skip
    endless = Run(slow, run.store, replace(run.conditions, deadline=begun + 2))
    with pytest.raises(TimeIsUp):
        endless.execute()
    assert monotonic() - begun < 60 and endless.study().results == ()
    ((key, seconds),) = endless.given_up.items()
    assert key == endless.pending[0].key and 0 < seconds < 60


def test_the_time_to_go_is_by_the_clock_however_many_run_at_a_time(tmp_path, monkeypatch):
    run = started(tmp_path)[1]
    run.conditions = replace(run.conditions, jobs=4)
    monkeypatch.setattr(anytime, "estimate", lambda run: (60.0 * run.conditions.jobs, 0))  # which knows the jobs
    assert "; to go: about 4 min (" in anytime._missing(run)


def test_a_training_that_was_given_up_takes_longer_than_it_had(tmp_path):
    run = started(tmp_path)[1]
    first, *others = run.pending_trials
    run.given_up[first.key] = 12.4
    left = f"without {len(run.to_run) - 1} trials and trainings of unknown length"
    assert f"; to go: more than 12 s, {left} (" in anytime._missing(run)
    for trial in others:
        run.given_up[trial.key] = 60.0
    assert f"; to go: more than {round((12.4 + 60 * len(others)) / 60)} min, without " in anytime._missing(run)


def test_less_than_a_second_is_not_nothing(tmp_path, monkeypatch):
    run = started(tmp_path)[1]
    monkeypatch.setattr(anytime, "estimate", lambda run: (0.312, 0))
    assert "; to go: about 0.31 s (" in anytime._missing(run)
