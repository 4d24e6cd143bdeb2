"""Tuning: equally many trials, choices that depend only on stored results, and a test part that no trial uses."""

import re
from collections import Counter
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from helpers import SPACES, TINY, made_up, prepared, ran, store_in, tiny, tuned, with_solver
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbench import evaluate
from rankbench.arrays.npz import read_npz
from rankbench.core.errors import UserError
from rankbench.core.streams import stream
from rankbench.data import DATASETS, load
from rankbench.data.splits import SPLITS, cut
from rankbench.data.views import offer
from rankbench.execution.training import checkpoints
from rankbench.experiments import Budget
from rankbench.experiments.spaces import Range, Tune
from rankbench.metrics import metric
from rankbench.planning.materials import Materials
from rankbench.planning.plan import plan
from rankbench.planning.tuning import alone, settled
from rankbench.planning.widening import best_place
from rankbench.records.cells import Cell, Measure, Place, Selection
from rankbench.records.codec import decode, encode

pytestmark = pytest.mark.slow

ONCE = Selection(repetitions=1)
MODES = Tune({"mine.py:Mine": {"mode": ("a", "b", "c")}}, metric="ndcg@5")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The tuned experiment, run once: where, and the run."""
    out = tmp_path_factory.mktemp("done")
    return out, ran(out, tuned())


def settings_of(cell):
    """The settings of a cell's solver by name."""
    return dict(cell.solver.settings)


def chosen(run):
    """The settings that each cell runs with."""
    return [(cell.label, settings_of(cell)) for cell in run.plan.cells]


def place_of(split, repetition, validation=None):
    """A place of the tiny experiment's data."""
    named = SPLITS.resolve(validation) if validation else None
    return Place(DATASETS.resolve(TINY.data[0]), SPLITS.resolve(split), repetition, named)


def values_of(result):
    """A result's last values by the names of its metrics."""
    return {measure.label: result.value(measure.label) for measure in result.cell.measures}


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
    assert Counter(trial.solver.name for trial in made.trials) == {
        solver: trials * (repetitions if per == "repetition" else 1) for solver in ("global", "sgd")
    }
    assert len({trial.key for trial in made.trials}) == len(made.trials)


@pytest.mark.parametrize("method", ["random", "grid", "halving", "tpe"])
def test_a_solver_with_nothing_to_tune_needs_no_trial(tmp_path, method):
    if method == "tpe":
        pytest.importorskip("optuna")
    tune = Tune({"sgd": {"lam": (1.0, 2.0)}, "global": {}}, method, trials=2, eta=2)
    run = prepared(tmp_path, tuned(tune, budget=Budget(steps=2)), ONCE)
    assert [(one.cell.solver.name, len(one.trials)) for one in run.plan.searches] == [("global", 0), ("sgd", 2)]
    (cell,) = run.plan.cells  # decided before any trial has run
    assert cell.key == plan(tiny(solvers=("global",), budget=Budget(steps=2)), ONCE).cells[0].key
    assert [one.solver.name for one in run.plan.undecided] == ["sgd"]


def test_with_patience_a_trial_finds_the_number_of_steps_where_no_setting_is_tuned():
    patient = tuned(Tune({**SPACES, "global": {}}), budget=Budget(steps=20, patience=2), every=1)
    made = plan(patient, ONCE)
    assert [(search.cell.solver.name, len(search.trials)) for search in made.searches] == [("global", 1), ("sgd", 8)]


def test_a_solver_asked_for_beside_the_experiments_own_keeps_what_it_says():
    made = plan(tuned(), Selection(solvers=("sgd[lam=7,rank=2]", "sgd[lam=7]"), repetitions=1))
    whole, part = made.searches
    assert whole.trials == () and settings_of(whole.cell)["lam"] == 7.0
    assert [(settings_of(trial)["lam"], settings_of(trial)["rank"]) for trial in part.trials] == [(7.0, 2), (7.0, 3)]


def tried(made, name="lam"):
    """The values of a setting that each search tries."""
    return [tuple(settings_of(trial)[name] for trial in search.trials) for search in made.searches]


def test_each_repetition_and_each_split_tries_other_settings():
    made = plan(tuned(splits=("n-per-user[n=8,least=5]", "entries")), Selection(solvers=("sgd",), repetitions=3))
    assert len(set(tried(made))) == 6


@pytest.mark.parametrize("draws", ["random", "sobol"])
def test_repetitions_that_share_a_search_or_hold_it_try_the_same_settings(draws):
    shared = Tune(SPACES, trials=3, per="split", draws=draws)
    assert len(set(tried(plan(tuned(shared), Selection(solvers=("sgd",)))))) == 1
    anew = replace(shared, per="repetition")
    assert len(set(tried(plan(tuned(anew), Selection(solvers=("sgd",)))))) == 2
    held = plan(tuned(anew), Selection(solvers=("sgd",), redraw=("splits", "start")))
    assert len(set(tried(held))) == 1


def test_a_grid_is_the_same_in_each_repetition():
    grid = Tune({"sgd": {"lam": (1.0, 2.0)}}, "grid", trials=2)
    assert tried(plan(tuned(grid, solvers=("sgd",)), Selection())) == [(1.0, 2.0)] * 2


def test_solvers_try_the_same_evenly_spread_values_and_independent_ones_of_their_own():
    space = {"lam": Range(0.1, 100.0, "log")}
    spaces = {"sgd": {**space, "rank": (2, 3, 4, 5)}, "global": space}
    one, other = (tried(plan(tuned(Tune(spaces, trials=4, draws=draws)), ONCE)) for draws in ("random", "sobol"))
    assert one[0] != one[1] and other[0] == other[1] and len(set(other[0])) == 4


def test_another_seed_tries_other_settings():
    one, other = (settings_of(plan(tuned(), Selection(seed=seed)).trials[0]) for seed in (0, 1))
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
    assert replace(trial, place=replace(trial.place, validation=None)).key != trial.key
    assert [measure.label for measure in trial.measures] == ["ndcg@5"]
    assert trial.is_trial and trial.place.validation.identity.startswith("entries[test=0.2")
    assert decode(Cell, encode(trial)).solver.settings == trial.solver.settings


def test_a_tuned_cell_has_the_key_of_one_that_somebody_wrote_so(done):
    _, run = done
    cell = run.plan.cells[1]
    written = tiny(solvers=(cell.solver_text,))
    assert cell.key in {other.key for other in plan(written, Selection()).cells}


def test_of_a_trial_only_the_end_is_measured():
    made = plan(tuned(objective=True, budget=Budget(steps=3)), ONCE)
    assert {(trial.every, trial.objective) for trial in made.trials} == {(3, False)}
    assert {(search.cell.every, search.cell.objective) for search in made.searches} == {(1, True)}


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
    assert [measure.label for measure in plan(tuned(Tune(SPACES)), Selection()).trials[0].measures] == [
        "pairwise-error"
    ]


# ---- the parts ----


def rows(view):
    """The rows of a view as a set."""
    return set(zip(view.users.tolist(), view.items.tolist(), view.values.tolist(), strict=True))


@pytest.mark.parametrize("protocol", ["n-per-user[n=8,least=5]", "entries[test=0.2]", "cold-items[test=0.2]"])
@pytest.mark.parametrize("validation", ["entries[test=0.2]", "cold-items[test=0.3]"])
def test_validation_is_cut_from_the_training_part_and_the_test_part_is_in_neither(protocol, validation):
    materials = Materials(0)
    for repetition in (0, 1):
        outer = materials.split(place_of(protocol, repetition))
        inner = materials.split(place_of(protocol, repetition, validation))
        assert rows(inner.train) | rows(inner.test) <= rows(outer.train)
        assert rows(inner.train) and rows(inner.test) and not rows(inner.train) & rows(inner.test)
        assert not (rows(inner.train) | rows(inner.test)) & rows(outer.test)


def test_validation_is_drawn_by_a_stream_of_its_own():
    materials, protocol = Materials(0), "entries[test=0.2]"
    outer = materials.split(place_of(protocol, 0))
    same_stream = cut(outer.train, SPLITS.resolve(protocol), 0, 0)
    assert materials.split(place_of(protocol, 0, protocol)).hash != same_stream.hash


def test_a_trial_trains_and_is_measured_on_the_validation_cut_and_the_cell_on_all_of_the_split(done):
    _, run = done
    materials = Materials(0)
    for cell in (*run.plan.trials, *run.plan.cells):
        parts = materials.split(cell.place)
        assert parts.hash == cell.split_hash
        solver, place = cell.solver.record, cell.place
        rng = stream(0, "solver", place.data.identity, place.split.identity, cell.solver.name, place.repetition)
        *_, last = checkpoints(solver.steps(offer(solver, parts.train), rng), Budget(steps=3))
        labels = tuple(measure.label for measure in cell.measures)
        assert values_of(run.result(cell)) == evaluate(last.step.model, parts.test, labels)


def test_what_a_trials_process_is_given_holds_no_test_row(tmp_path):
    log = tmp_path / "log"
    lines = (f"with open({str(log)!r}, 'a') as file:", "    print(*train.users, ';', *train.items, file=file)")
    ran(tmp_path, own(tmp_path, *lines), Selection(repetitions=1))
    outer = Materials(0).split(place_of(TINY.splits[0], 0))
    test = {(user, item) for user, item, _ in rows(outer.test)}
    train = {(user, item) for user, item, _ in rows(outer.train)}
    handed = [[list(map(int, part.split())) for part in line.split(";")] for line in log.read_text().splitlines()]
    assert len(handed) == 3 + 1
    for users, items in handed:
        assert set(zip(users, items, strict=True)) <= train and not set(zip(users, items, strict=True)) & test
    assert [len(users) for users, _ in handed][-1] == len(outer.train) > max(len(users) for users, _ in handed[:-1])


# ---- the choice ----


NDCG, ERROR = (Measure.of(metric(name)) for name in ("ndcg@5", "pairwise-error"))


def results(measure, *values, **changes):
    """Results of trials with these values of a metric."""
    trials = plan(tuned(Tune(SPACES, trials=len(values), metric=measure.label)), Selection()).trials
    return [made_up(trial, 2 * value, **changes) for trial, value in zip(trials, values, strict=False)]


@pytest.mark.parametrize(("measure", "index"), [(NDCG, 1), (ERROR, 2)])
def test_the_best_trial_is_the_first_of_the_best(measure, index):
    assert best_place(results(measure, 0.2, 0.9, 0.1, 0.9, 0.1)) == index


@pytest.mark.parametrize("status", ["diverged", "failed", "timeout", "memory"])
def test_a_trial_that_did_not_end_well_or_has_no_value_cannot_win(status):
    (broken,) = results(NDCG, 2.0, status=status)
    assert best_place([broken, *results(NDCG, float("nan"), 0.1, 0.3)]) == 3
    assert best_place([broken, *results(NDCG, float("nan"))]) is None
    assert best_place([]) is None


def test_the_cell_runs_with_the_settings_of_the_best_stored_trial(done):
    out, run = done
    store, decided = store_in(out), run.plan
    assert len(decided.cells) == len(decided.searches) == 4
    for search, cell in zip(decided.searches, decided.cells, strict=True):
        values = {trial.key: store.load(trial).value("ndcg@5") for trial in search.trials}
        winner = max(search.trials, key=lambda trial: values[trial.key])
        assert cell.solver.settings == winner.solver.settings and cell.place.validation is None
        assert cell.chosen and set(dict(cell.chosen)) == set(cell.tuned)
        assert store.load(cell).cell == cell
        assert store.load(cell).status == "ok"


def test_one_choice_for_all_repetitions_comes_from_the_first(tmp_path):
    decided = ran(tmp_path, tuned(Tune(SPACES, trials=2, per="split"))).plan
    for solver in ("global", "sgd"):
        first, second = (cell for cell in decided.cells if cell.solver.name == solver)
        assert first.solver.settings == second.solver.settings
        assert (first.place.repetition, second.place.repetition) == (0, 1)
    assert {trial.place.repetition for trial in decided.trials} == {0}
    (stored,) = store_in(tmp_path).plans()
    assert len(stored.trials) == 4 and all(map(store_in(tmp_path).load, stored.trials))


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
    run = ran(tmp_path, tuned(tune, solvers=(f"{path}:Mine",)), Selection(repetitions=1))
    reasons = [store_in(tmp_path).load(trial).reason.partition(" (")[0] for trial in run.plan.trials]
    assert reasons == [f"ValueError: {limit!r} True {1 / 3!r}" for limit in (None, 3)]
    assert [trial.label.split(" · ")[2] for trial in run.plan.trials] == [
        f"{path}:Mine[limit={limit},flag=true,share={1 / 3!r}]" for limit in ("none", 3)
    ]


def with_solver_text(*lines):
    """The text of a user's solver with these settings; the last line is what it does."""
    from helpers import SOLVER_HEAD

    *declared, does = lines
    head = SOLVER_HEAD.replace('    mode: str = "ok"\n', "".join(f"    {line}\n" for line in declared))
    return f"{head}        {does}\n"


# ---- resuming ----


def test_what_is_there_is_not_run_again_and_the_choice_is_the_same(done):
    out, run = done
    started = []
    again = ran(out, tuned(), tell=started.append)
    assert started == []
    assert chosen(again) == chosen(run)
    assert again.pending_trials == again.pending == again.plan.undecided == ()


class Killed(BaseException):
    """Somebody pulled the plug."""


@pytest.mark.parametrize("cells", [1, 4, 7])
def test_a_run_killed_anywhere_goes_on_where_it_was_and_chooses_the_same(tmp_path, done, cells):
    _, run = done
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
    assert chosen(resumed) == chosen(run)[:2]
    assert sorted(ended) == sorted(cell.key for cell in (*resumed.plan.trials, *resumed.plan.cells))  # each once


@pytest.fixture
def busy(monkeypatch):
    """A machine on which others keep two cores busy all the time."""
    monkeypatch.setattr("rankbench.execution.isolation._load", lambda before, verdict: 2.0)
    monkeypatch.setattr("rankbench.execution.isolation._LEAST_SPAN", 0.0)


def test_side_by_side_chooses_the_same(tmp_path, done, busy):
    _, run = done
    once = Selection(repetitions=1)
    assert chosen(ran(tmp_path, tuned(), once, jobs=2)) == chosen(run)[:2]
    assert prepared(tmp_path, tuned(), once).pending == ()
    beside = prepared(tmp_path, tuned(), once, rerun="disturbed")
    assert beside.pending_trials == ()  # of a trial only the quality counts
    assert len(beside.pending) == 2  # the cells' times were contended


def test_a_limit_in_seconds_is_no_quality_when_others_ran_beside(tmp_path, busy):
    experiment, selection = tuned(budget=Budget(steps=3, seconds=60.0)), Selection(repetitions=1, solvers=("sgd",))
    first = prepared(tmp_path, experiment, selection, jobs=2)
    first.open()
    first.try_out(lambda event: None)
    assert first.pending_trials == ()
    assert len(prepared(tmp_path, experiment, selection).pending_trials) == 3


def test_a_cell_that_is_written_twice_is_run_once(tmp_path):
    started = []
    experiment = tiny(solvers=("sgd[rank=10]", "sgd"), repetitions=1)
    ran(tmp_path, experiment, tell=lambda event: started.append(event.kind))
    assert started == ["start", "end"]


def test_trials_can_be_forced_again(done):
    out, run = done
    forced = prepared(out, tuned(), rerun="all")
    assert forced.pending_trials == forced.paths.ordered(forced.plan.trials)
    assert forced.pending == forced.plan.cells == run.plan.cells


# ---- failures ----


def entries(run):
    """The cells as the study has them: the solver's class, and what came of them."""
    return [(entry.cell.solver.name.rpartition("/")[2], entry.status) for entry in run.study().entries]


def test_a_trial_that_fails_cannot_win_and_stops_nobody(tmp_path):
    lines = ("if self.mode != 'b':", "    raise ValueError('boom')")
    run = ran(tmp_path, own(tmp_path, *lines), Selection(repetitions=1))
    assert [settings_of(cell)["mode"] for cell in run.plan.cells] == ["b"]
    assert entries(run) == [("mine.py:Mine", "ok")]


def test_a_trial_that_diverges_cannot_win_however_well_it_measured(tmp_path):
    lines = (
        "worst = self.mode == 'c'",
        "scores = np.zeros(train.n_items) if worst else np.arange(train.n_items)",
        "yield Step(ItemScores(scores.astype(float)), objective=lambda: 1.0 if worst else float('nan'))",
    )
    run = ran(tmp_path, own(tmp_path, *lines), Selection(repetitions=1))
    assert [run.result(trial).status for trial in run.plan.trials] == ["diverged", "diverged", "ok"]
    assert [settings_of(cell)["mode"] for cell in run.plan.cells] == ["c"]


def test_a_solver_whose_trials_all_fail_is_failed_with_the_reason_and_the_others_run(tmp_path):
    experiment = own(tmp_path, "raise ValueError(f'boom {self.mode}')")
    space = {**MODES.space, "sgd": {"rank": (2, 3)}}
    experiment = replace(experiment, solvers=(*experiment.solvers, "sgd"), tune=replace(MODES, space=space))
    run = ran(tmp_path, experiment, Selection(repetitions=1))
    (failure,) = run.plan.failures
    assert failure.reason.startswith("none of its 3 trials ended well; the first: failed, ValueError: boom a (")
    assert [cell.solver.name for cell in run.plan.cells] == ["sgd"] and run.plan.undecided == ()
    assert entries(run) == [("mine.py:Mine", "failed"), ("sgd", "ok")]
    entry, _ = run.study().entries
    assert entry.reason == failure.reason and entry.good is None and entry.result is None
    (stored,) = store_in(tmp_path).plans()
    assert [one.reason for one in stored.failures] == [failure.reason] and len(stored.planned) == 2
    assert run.result(failure.trial).machine.fingerprint == run.machine.fingerprint


def test_an_only_trial_that_fails_is_called_so(tmp_path):
    experiment = own(tmp_path, "raise ValueError('boom')")
    experiment = replace(experiment, tune=replace(MODES, trials=1))
    (failure,) = ran(tmp_path, experiment, ONCE).plan.failures
    assert failure.reason.startswith("its only trial did not end well: failed, ValueError: boom (")


def test_trials_that_all_diverge_make_no_cell(tmp_path):
    run = ran(tmp_path, own(tmp_path, "yield Step(ItemScores(np.full(train.n_items, np.nan)))"), ONCE)
    (failure,) = run.plan.failures
    assert failure.reason.startswith("none of its 3 trials ended well; the first: diverged, NaN for ")
    assert run.plan.cells == () and entries(run) == [("mine.py:Mine", "failed")]


def test_a_trial_that_succeeds_when_it_is_retried_may_take_the_cell(tmp_path):
    flag = tmp_path / "flag"
    lines = (
        f"if self.mode == 'a' and not os.path.exists({str(flag)!r}):",
        "    raise ValueError('boom')",
    )
    experiment = own(tmp_path, *lines)
    first = ran(tmp_path, experiment, ONCE)
    flag.touch()
    second = ran(tmp_path, experiment, ONCE, rerun="failed")
    modes = [settings_of(cell)["mode"] for cell in (*first.plan.cells, *second.plan.cells)]
    assert modes == ["b", "a"]  # of equals the first
    (stored,) = store_in(tmp_path).plans()
    assert [settings_of(cell)["mode"] for cell in stored.planned] == ["a"]  # nobody is counted twice


def test_nothing_is_decided_before_the_last_trial_is_there(tmp_path):
    run = prepared(tmp_path, tuned(), ONCE)
    *some, last = run.plan.searches[0].trials
    stored = {trial: made_up(trial, 0.5) for trial in some}
    assert settled(run.plan, stored.get).cells == ()
    decided = settled(run.plan, {**stored, last: made_up(last, 0.25)}.get)
    assert [cell.solver.name for cell in decided.cells] == ["global"] and len(decided.undecided) == 1


def test_while_trials_run_their_cell_is_pending(tmp_path):
    run = prepared(tmp_path, tuned())
    run.open()
    assert entries(run) == [("global", "pending"), ("sgd", "pending")] * 2
    assert [entry.result for entry in run.study().trials] == [None] * 12
    (stored,) = store_in(tmp_path).plans()
    assert [cell.slot for cell in stored.planned] == [cell.slot for cell in run.plan.undecided]
    assert stored.trials == run.plan.trials
    assert len(run.plan.undecided) == 4 and settled(run.plan, lambda trial: None).undecided == run.plan.undecided


def test_a_validation_part_without_anything_to_measure_is_refused(tmp_path):
    one_item_each = tuned(
        Tune({"sgd": {"rank": (2, 3)}}, metric="pairwise-error", validation="entries[test=0.006]"),  # one row
        solvers=("sgd",),
        repetitions=1,
    )
    with pytest.raises(UserError, match="'pairwise-error' has no value: no user has two held-out items"):
        ran(tmp_path, one_item_each)


# ---- one solver alone ----


def test_one_solver_is_an_experiment_of_its_own():
    tune = Tune({"sgd[rank=2]": {"lam": Range(1, 100, "log")}}, trials=4, metric="kendall")
    found = alone("sgd[rank=2]", TINY.data[0], "entries", tune, Budget(steps=5))
    assert (found.name, found.metrics, found.budget.steps, found.repetitions) == (
        "tune-sgd-low-rank",
        ("kendall",),
        5,
        1,
    )
    assert len(plan(found, Selection()).trials) == 4


def test_nothing_to_tune_alone_is_an_error_that_shows_how():
    with pytest.raises(UserError, match=r"like --space lam=0\.01\.\.1:log"):
        alone("sgd", "low-rank", "entries", Tune({"sgd": {}}, metric="kendall"), Budget(steps=5))


def test_where_no_setting_has_a_range_around_its_value_the_example_is_a_list(tmp_path):
    for solver, shown in (("popularity", "setting=a|b"), (with_solver(tmp_path), "mode=a|b")):
        with pytest.raises(UserError, match=re.escape(f"like --space '{shown}'")):
            alone(solver, "low-rank", "entries", Tune({}, metric="kendall"), Budget(steps=5))


def test_data_loads_once_for_all_trials_of_it(monkeypatch):
    calls = []
    monkeypatch.setattr("rankbench.data.load", lambda *names: calls.append(names[0]) or load(*names))
    plan(tuned(data=(TINY.data[0], "low-rank[users=25,items=30,per_user=20]")), Selection())
    assert len(calls) == 4  # two data sets, drawn anew for each of two repetitions


def test_a_plan_has_the_trials_of_a_split_together():
    made = plan(tuned(splits=("n-per-user[n=8,least=5]", "entries")), Selection())
    places = [place for place, _ in groupby(made.trials, lambda trial: trial.place)]
    assert len(places) == len(set(places)) == 4


def test_numbers_of_trials_are_kept_with_their_users(done):
    out, run = done
    store = store_in(out)
    trial = run.plan.trials[0]
    found = store.load(trial)
    assert np.nanmean(read_npz(store.path(trial).with_suffix(".npz"))["ndcg@5"]) == found.value("ndcg@5")
    assert len(found.curve) == 2  # only its start and its end are measured


def test_trials_shared_by_all_repetitions_are_refused_where_others_test_on_their_rows(tmp_path):
    (tmp_path / "r.csv").write_text("".join(f"u{i},i{j},{(i * j) % 5}\n" for i in range(12) for j in range(20)))
    fixed = tuned(Tune(SPACES, trials=2, per="split"), data=(f"csv:{tmp_path / 'r.csv'}",))
    with pytest.raises(UserError, match="settings are chosen on rows that others test on"):
        plan(fixed, Selection())
    assert plan(fixed, Selection(repetitions=1)).searches
    assert plan(replace(fixed, data=TINY.data), Selection()).searches


LAST = {"splits": ("leave-last-out",), "metrics": ("pairwise-error",)}


def timed(tmp_path):
    """The name of a file of ratings with times."""
    rows = [f"{user},{item},{1 + (user + item) % 5},{1500000000 + item}" for user in range(9) for item in range(12)]
    (tmp_path / "timed.csv").write_text("user,item,rating,timestamp\n" + "\n".join(rows) + "\n")
    return f"csv:{tmp_path / 'timed.csv'}"


def test_a_metric_without_a_value_on_the_split_is_refused_before_any_trial_runs(cli, tmp_path):
    words = ("tune", "sgd", "-d", timed(tmp_path), "--space", "lam=1..10:log", "--trials", "2",
             "--split", "leave-last-out", "--out", str(tmp_path / "results"))  # fmt: skip
    assert "no user has two held-out items with different ratings" in cli.refuses(*words)
    assert not list(tmp_path.glob("results/*/cells/*"))
    cli(*words, "--metric", "recall@10[candidates=catalogue,relevant=any]")


def test_a_metric_without_a_value_leaves_the_others_theirs(tmp_path):
    data = (timed(tmp_path),)
    both = ("pairwise-error", "recall@5[candidates=catalogue,relevant=any]")
    assert plan(tiny(data=data, **LAST), ONCE).cells  # nothing is tuned, and so nothing is lost by running it
    tune = Tune(SPACES, trials=2, metric="pairwise-error")
    assert plan(tuned(tune, data=data, **{**LAST, "metrics": both}), ONCE).searches  # chosen by what it has a value for
    with pytest.raises(UserError, match="'pairwise-error' has no value"):
        plan(tuned(tune, data=data, **LAST), ONCE)
