"""Tuning: equal trials, choices that follow from what is stored, and a test part that no trial sees."""

import json
from collections import Counter
from dataclasses import fields, replace
from itertools import groupby

import numpy as np
import pytest
from helpers import SPACES, TINY, tiny, tuned, with_solver
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbench import evaluate
from rankbench.data import load
from rankbench.data.splits import cut
from rankbench.data.splits import split as split_of
from rankbench.data.views import offer
from rankbench.errors import UserError
from rankbench.experiments import Budget
from rankbench.experiments.spaces import Range, Tune
from rankbench.harness.plan import Materials, Selection, plan
from rankbench.harness.run import Conditions, pending, pending_trials, run, try_out
from rankbench.harness.store import Result, Store
from rankbench.harness.training import checkpoints
from rankbench.harness.tuning import alone, best, settled
from rankbench.solvers import SOLVERS
from rankbench.streams import stream

MODES = Tune({"mine.py:Mine": {"mode": ("a", "b", "c")}}, metric="ndcg@5")


def ran(out, experiment, selection=None, tell=lambda event: None, **conditions):
    """Run an experiment with its tuning; the plan with what was decided."""
    return run(plan(experiment, selection or Selection()), Conditions(out, **conditions), tell)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The tuned experiment, run once: where, and what was decided."""
    out = tmp_path_factory.mktemp("done")
    return out, ran(out, tuned())


def chosen(decided):
    """The settings that each cell runs with."""
    return [(cell.label, cell.settings) for cell in decided.cells]


def own(tmp_path, *lines, **changes):
    """A tuned experiment of one user's solver with three modes."""
    return tuned(MODES, solvers=(with_solver(tmp_path, *lines),), **changes)


# ---- the plan ----


@settings(max_examples=10)
@given(st.integers(1, 12), st.sampled_from(["repetition", "split"]), st.integers(1, 3))
def test_every_solver_gets_the_same_number_of_trials(trials, per, repetitions):
    made = plan(tuned(Tune(SPACES, trials=trials, per=per)), Selection(repetitions=repetitions))
    assert {len(search.trials) for search in made.searches} == {trials}
    assert len(made.searches) == 2 * repetitions
    assert Counter(trial.solver for trial in made.trials) == {
        solver: trials * (repetitions if per == "repetition" else 1) for solver in ("global", "sgd")
    }
    assert len({trial.key for trial in made.trials}) == len(made.trials)


def test_a_solver_with_nothing_to_tune_is_one_trial():
    made = plan(tuned(Tune({**SPACES, "global": {}})), Selection(repetitions=1))
    assert [(search.cell.solver, len(search.trials)) for search in made.searches] == [("global", 1), ("sgd", 8)]


def test_a_solver_asked_for_beside_the_experiments_own_keeps_what_it_says():
    made = plan(tuned(), Selection(solvers=("sgd[lam=7,rank=2]", "sgd[lam=7]"), repetitions=1))
    whole, part = made.searches
    assert [trial.settings["lam"] for trial in whole.trials] == [7.0]
    assert [(trial.settings["lam"], trial.settings["rank"]) for trial in part.trials] == [(7.0, 2), (7.0, 3)]


def test_repetitions_try_the_same_settings_and_splits_others():
    made = plan(tuned(splits=("n-per-user[n=8,least=5]", "entries")), Selection(solvers=("sgd",)))
    tried = [tuple(trial.settings["lam"] for trial in search.trials) for search in made.searches]
    assert tried[0] == tried[1] != tried[2] == tried[3]


def test_another_seed_tries_other_settings():
    one, other = (plan(tuned(), Selection(seed=seed)).trials[0].settings for seed in (0, 1))
    assert one != other


def test_the_number_of_trials_can_be_asked_for_and_keeps_those_there_were():
    few, more = (plan(tuned(), Selection(trials=trials)).searches[0] for trials in (3, 5))
    assert [trial.key for trial in more.trials][:3] == [trial.key for trial in few.trials]
    assert len(more.trials) == 5
    assert plan(TINY, Selection(trials=5)).trials == ()


def test_a_grid_has_its_own_number_of_trials():
    grid = Tune({"global": {"lam": (1.0, 2.0)}, "sgd": {"lam": (1.0, 2.0)}}, "grid", trials=2)
    assert len(plan(tuned(grid), Selection()).trials) == 8
    with pytest.raises(UserError, match="--trials=3: tiny tunes on a grid"):
        plan(tuned(grid), Selection(trials=3))


def test_a_trial_is_a_cell_whose_key_says_that_it_is_one():
    made = plan(tuned(), Selection())
    ordinary = {cell.key for cell in plan(tiny(solvers=("global", "sgd[step=0.1]")), Selection()).cells}
    trial = made.trials[0]
    assert not ordinary & {trial.key for trial in made.trials}
    assert replace(trial, validation="").key != trial.key
    assert trial.metrics == ("ndcg@5",) and trial.validation.startswith("entries[test=0.2")
    assert json.loads(json.dumps(trial.settings)) == trial.settings


def test_a_tuned_cell_has_the_key_of_one_that_somebody_wrote_so(done):
    _, decided = done
    cell = decided.cells[1]
    written = tiny(solvers=(cell.solver_text,))
    assert cell.key in {other.key for other in plan(written, Selection()).cells}


def test_other_validation_is_another_trial():
    half = plan(tuned(Tune(SPACES, validation="entries[test=0.5]")), Selection())
    assert not {t.key for t in half.trials} & {t.key for t in plan(tuned(Tune(SPACES)), Selection()).trials}


def test_a_validation_that_cannot_be_cut_says_of_what():
    with pytest.raises(UserError, match=r"the training part of n-per-user\[n=8,least=5\] of low-rank"):
        plan(tuned(Tune(SPACES, validation="n-per-user[n=50]")), Selection())


def test_a_metric_that_the_validation_part_cannot_give_is_an_error():
    comparisons = {"data": ("btl",), "splits": ("entries",), "metrics": ("pairwise-error",)}
    with pytest.raises(UserError, match=r"tiny: .*needs held-out ratings"):
        plan(tuned(Tune(SPACES, metric="ndcg@5"), **comparisons), Selection())


def test_the_first_metric_decides_unless_another_is_named():
    assert plan(tuned(Tune(SPACES)), Selection()).trials[0].metrics == ("pairwise-error",)


# ---- the parts ----


def rows(view):
    """The rows of a view as a set."""
    return set(zip(view.users.tolist(), view.items.tolist(), view.values.tolist(), strict=True))


@pytest.mark.parametrize("protocol", ["n-per-user[n=8,least=5]", "entries[test=0.2]", "cold-items[test=0.2]"])
@pytest.mark.parametrize("validation", ["entries[test=0.2]", "cold-items[test=0.3]"])
def test_validation_is_cut_from_the_training_part_and_the_test_part_is_in_neither(protocol, validation):
    materials = Materials(0)
    for repetition in (0, 1):
        outer = materials.split(TINY.data[0], protocol, repetition)
        inner = materials.split(TINY.data[0], protocol, repetition, validation)
        assert rows(inner.train) | rows(inner.test) <= rows(outer.train)
        assert rows(inner.train) and rows(inner.test) and not rows(inner.train) & rows(inner.test)
        assert not (rows(inner.train) | rows(inner.test)) & rows(outer.test)


def test_validation_is_drawn_by_a_stream_of_its_own():
    materials, protocol = Materials(0), "entries[test=0.2]"
    outer = materials.split(TINY.data[0], protocol, 0)
    same_stream = cut(outer.train, split_of.__globals__["SPLITS"].make(protocol), protocol, 0, 0)
    assert materials.split(TINY.data[0], protocol, 0, protocol).hash != same_stream.hash


def test_a_trial_trains_and_is_measured_on_the_validation_cut_and_the_cell_on_all_of_the_split(done):
    out, decided = done
    store, materials = Store(out, "tiny"), Materials(0)
    for cell in (*decided.trials, *decided.cells):
        parts = materials.split(*cell.place)
        assert parts.hash == cell.split_hash
        solver = SOLVERS.make(cell.solver_text)
        rng = stream(0, "solver", cell.data, cell.split, cell.solver, cell.repetition)
        *_, last = checkpoints(solver.steps(offer(solver, parts.train), rng), Budget(steps=3))
        assert store.load(cell).metrics == evaluate(last.step.model, parts.test, cell.metrics)


def test_what_a_trials_process_is_given_holds_no_test_row(tmp_path):
    log = tmp_path / "log"
    lines = (f"with open({str(log)!r}, 'a') as file:", "    print(*train.users, ';', *train.items, file=file)")
    ran(tmp_path, own(tmp_path, *lines), Selection(repetitions=1))
    outer = Materials(0).split(TINY.data[0], TINY.splits[0], 0)
    test = {(user, item) for user, item, _ in rows(outer.test)}
    train = {(user, item) for user, item, _ in rows(outer.train)}
    handed = [[list(map(int, part.split())) for part in line.split(";")] for line in log.read_text().splitlines()]
    assert len(handed) == 3 + 1
    for users, items in handed:
        assert set(zip(users, items, strict=True)) <= train and not set(zip(users, items, strict=True)) & test
    assert [len(users) for users, _ in handed][-1] == len(outer.train) > max(len(users) for users, _ in handed[:-1])


# ---- the choice ----


def results(*values, **changes):
    """Results of trials with these values of ndcg@5 and pairwise-error."""
    absent = dict.fromkeys(field.name for field in fields(Result))
    kind = [Result(**{**absent, "status": "ok", "metrics": {"ndcg@5": v, "pairwise-error": v}}) for v in values]
    return [replace(result, **changes) for result in kind]


def test_the_best_trial_is_the_first_of_the_best():
    found = results(0.2, 0.9, 0.1, 0.9, 0.1)
    assert best(found, "ndcg@5") == 1
    assert best(found, "pairwise-error") == 2


def test_a_trial_that_failed_or_has_no_value_cannot_win():
    (broken,) = results(2.0, status="timeout")
    assert best([broken, *results(float("nan"), 0.1, 0.3)], "ndcg@5") == 3
    assert best([broken, *results(float("nan"))], "ndcg@5") is None


def test_the_cell_runs_with_the_settings_of_the_best_stored_trial(done):
    out, decided = done
    store = Store(out, "tiny")
    assert len(decided.cells) == len(decided.searches) == 4
    for search, cell in zip(decided.searches, decided.cells, strict=True):
        values = {trial.key: store.load(trial).metrics["ndcg@5"] for trial in search.trials}
        winner = max(search.trials, key=lambda trial: values[trial.key])
        assert cell.settings == winner.settings and cell.validation == ""
        assert store.load(cell).cell["settings"] == winner.settings
        assert store.load(cell).status == "ok"


def test_one_choice_for_all_repetitions_comes_from_the_first(tmp_path):
    decided = ran(tmp_path, tuned(Tune(SPACES, trials=2, per="split")))
    for solver in ("global", "sgd"):
        first, second = (cell for cell in decided.cells if cell.solver == solver)
        assert first.settings == second.settings and (first.repetition, second.repetition) == (0, 1)
    assert {trial.repetition for trial in decided.trials} == {0}
    assert len(Store(tmp_path, "tiny").trials()) == 4


def test_settings_of_every_kind_arrive_as_they_were_tried(tmp_path):
    path = tmp_path / "kinds.py"
    path.write_text(
        with_solver_text(
            "limit: int | None = 5", "flag: bool = False", "share: float = 0.5",
            "raise ValueError(f'{self.limit!r} {self.flag!r} {self.share!r}')",
        )
    )  # fmt: skip
    space = {"limit": ("none", 3), "flag": (True,), "share": (1 / 3,)}
    tune = Tune({"kinds.py:Mine": space}, "grid", trials=2).fitted((f"{path}:Mine",))
    decided = ran(tmp_path, tuned(tune, solvers=(f"{path}:Mine",)), Selection(repetitions=1))
    reasons = [Store(tmp_path, "tiny").load(trial).reason for trial in decided.trials]
    assert reasons == [f"ValueError: {limit!r} True {1 / 3!r}" for limit in (None, 3)]
    assert [trial.label.split(" · ")[2] for trial in decided.trials] == [
        f"kinds.py:Mine[limit={limit},flag=true,share={1 / 3!r}]" for limit in ("none", 3)
    ]


def with_solver_text(*lines):
    """The text of a user's solver with these settings; the last line is what it does."""
    from helpers import SOLVER_HEAD

    *declared, does = lines
    head = SOLVER_HEAD.replace('    mode: str = "ok"\n', "".join(f"    {line}\n" for line in declared))
    return f"{head}        {does}\n"


# ---- resuming ----


def test_what_is_there_is_not_run_again_and_the_choice_is_the_same(done):
    out, decided = done
    started = []
    again = ran(out, tuned(), tell=started.append)
    assert started == []
    assert chosen(again) == chosen(decided)


class Killed(BaseException):
    """Somebody pulled the plug."""


@pytest.mark.parametrize("cells", [1, 4, 7])
def test_a_run_killed_anywhere_goes_on_where_it_was_and_chooses_the_same(tmp_path, done, cells):
    _, decided = done
    once = Selection(repetitions=1)
    ended = []

    def tell(event):
        if event.kind == "end":
            ended.append(event.cell.key)
            if len(ended) == cells:
                raise Killed

    with pytest.raises(Killed):
        ran(tmp_path, tuned(), once, tell)
    resumed = ran(tmp_path, tuned(), once, tell)
    assert chosen(resumed) == chosen(decided)[:2]
    assert sorted(ended) == sorted(cell.key for cell in (*resumed.trials, *resumed.cells))  # each once


def test_side_by_side_chooses_the_same(tmp_path, done):
    _, decided = done
    once = Selection(repetitions=1)
    assert chosen(ran(tmp_path, tuned(), once, jobs=2)) == chosen(decided)[:2]
    beside = plan(tuned(), once)
    store, timed = Store(tmp_path, "tiny"), Conditions(tmp_path)
    assert pending_trials(beside, store, timed) == ()  # of a trial only the quality counts
    assert len(pending(settled(beside, store), store, timed)) == 2  # the cells' times were contended


def test_a_limit_in_seconds_is_no_quality_when_others_ran_beside(tmp_path):
    experiment = tuned(budget=Budget(steps=3, seconds=60.0))
    made = plan(experiment, Selection(repetitions=1, solvers=("sgd",)))
    try_out(made, Conditions(tmp_path, jobs=2), lambda event: None)
    assert len(pending_trials(made, Store(tmp_path, "tiny"), Conditions(tmp_path))) == 3


def test_a_cell_that_is_written_twice_is_run_once(tmp_path):
    started = []
    experiment = tiny(solvers=("sgd[rank=10]", "sgd"), repetitions=1)
    ran(tmp_path, experiment, tell=lambda event: started.append(event.kind))
    assert started == ["start", "end"]


def test_trials_can_be_forced_again(done):
    out, decided = done
    made, store, force = plan(tuned(), Selection()), Store(out, "tiny"), Conditions(out, force=True)
    assert pending_trials(made, store, force) == made.trials
    assert pending(decided, store, force) == decided.cells


# ---- failures ----


def entries(out):
    """The cells as the plan has them, with what came of them."""
    return [(entry["solver"], result and result.status) for entry, result in Store(out, "tiny").results()]


def test_a_trial_that_fails_cannot_win_and_stops_nobody(tmp_path):
    lines = ("if self.mode != 'b':", "    raise ValueError('boom')")
    decided = ran(tmp_path, own(tmp_path, *lines), Selection(repetitions=1))
    assert [cell.settings["mode"] for cell in decided.cells] == ["b"]
    assert entries(tmp_path) == [("mine.py:Mine", "ok")]


def test_a_solver_whose_trials_all_fail_is_failed_with_the_reason_and_the_others_run(tmp_path):
    experiment = own(tmp_path, "raise ValueError(f'boom {self.mode}')")
    space = {**MODES.space, "sgd": {"rank": (2, 3)}}
    experiment = replace(experiment, solvers=(*experiment.solvers, "sgd"), tune=replace(MODES, space=space))
    decided = ran(tmp_path, experiment, Selection(repetitions=1))
    (failure,) = decided.failures
    assert failure.reason == "none of its 3 trials ended well; the first: failed, ValueError: boom a"
    assert [cell.solver for cell in decided.cells] == ["sgd"]
    assert entries(tmp_path) == [("mine.py:Mine", "failed"), ("sgd", "ok")]
    (_, result), _ = Store(tmp_path, "tiny").results()
    assert result.reason == failure.reason and result.metrics == {} and result.fingerprint


def test_a_trial_that_succeeds_when_it_is_retried_may_take_the_cell(tmp_path):
    flag = tmp_path / "flag"
    lines = (
        f"if self.mode == 'a' and not os.path.exists({str(flag)!r}):",
        "    raise ValueError('boom')",
    )
    experiment = own(tmp_path, *lines)
    once = Selection(repetitions=1)
    first = ran(tmp_path, experiment, once)
    flag.touch()
    second = ran(tmp_path, experiment, once, retry_failed=True)
    assert [cell.settings["mode"] for cell in (*first.cells, *second.cells)] == ["b", "a"]  # of equals the first
    found = Store(tmp_path, "tiny").results()
    assert [entry["settings"]["mode"] for entry, _ in found] == ["a"]  # nobody is counted twice


def test_while_trials_run_their_cell_is_pending(tmp_path):
    made = plan(tuned(), Selection())
    store = Store(tmp_path, "tiny")
    store.open()
    store.write_plan(made)
    assert entries(tmp_path) == [("global", None), ("sgd", None)] * 2
    assert [result for _, result in store.trials()] == [None] * 12
    assert len(made.undecided) == 4 and settled(made, store).undecided == made.undecided


def test_a_solver_that_gives_nothing_to_measure_cannot_be_chosen(tmp_path):
    one_item_each = tuned(
        Tune({"sgd": {"rank": (2, 3)}}, metric="pairwise-error", validation="entries[test=0.006]"),  # one row
        solvers=("sgd",),
        repetitions=1,
    )
    (failure,) = ran(tmp_path, one_item_each).failures
    assert failure.reason == "none of its 2 trials ended well; the first: pairwise-error has no value"


# ---- one solver alone ----


def test_one_solver_is_an_experiment_of_its_own():
    tune = Tune({"sgd[rank=2]": {"lam": Range(1, 100, "log")}}, trials=4, metric="kendall")
    found = alone("sgd[rank=2]", TINY.data[0], "entries", tune, 5)
    assert (found.name, found.metrics, found.budget.steps, found.repetitions) == (
        "tune-sgd-low-rank",
        ("kendall",),
        5,
        1,
    )
    assert len(plan(found, Selection()).trials) == 4


def test_nothing_to_tune_alone_is_an_error_that_shows_how():
    with pytest.raises(UserError, match=r"like --space lam=0\.01\.\.1:log"):
        alone("sgd", "low-rank", "entries", Tune({"sgd": {}}, metric="kendall"), 5)


def test_data_loads_once_for_all_trials_of_it(monkeypatch):
    calls = []
    monkeypatch.setattr("rankbench.data.load", lambda *names: calls.append(names[0]) or load(*names))
    plan(tuned(data=(TINY.data[0], "low-rank[users=25,items=30,per_user=20]")), Selection())
    assert len(calls) == 2


def test_a_plan_has_the_trials_of_a_split_together():
    made = plan(tuned(splits=("n-per-user[n=8,least=5]", "entries")), Selection())
    places = [place for place, _ in groupby(made.trials, lambda trial: trial.place)]
    assert len(places) == len(set(places)) == 4


def test_numbers_of_trials_are_kept_with_their_users(done):
    out, decided = done
    store = Store(out, "tiny")
    trial = decided.trials[0]
    assert np.nanmean(store.per_user(trial)["ndcg@5"]) == store.load(trial).metrics["ndcg@5"]
    assert len(store.load(trial).curve) == 2  # only its start and its end are measured
