"""Stored cells run again: the same bytes are said to be the same, and whatever differs is named."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from helpers import TINY, prepared, ran, silent, store_in, tiny, tiny_toml, with_solver
from planning.test_warm_starts import along

from rankbench import experiments
from rankbench.api.session import Session
from rankbench.core.contract import Determinism
from rankbench.core.errors import UserError
from rankbench.execution.run import Conditions
from rankbench.experiments import Budget
from rankbench.records.cells import Selection
from rankbench.records.differences import basis_change
from rankbench.records.store import ResultsFolder, values_of
from rankbench.report.study import study
from rankbench.verification.cells import (
    Check,
    _NothingFollows,
    _with_their_starts,
    checked,
    run_again,
    sampled,
    verifiable,
)
from rankbench.verification.verify import Extent, StudyFiles, verify

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A folder with the results of the tiny experiment."""
    folder = tmp_path_factory.mktemp("results")
    ran(folder, TINY)
    return folder


@pytest.fixture
def again(out, tmp_path):
    """Runs the first cell again, after its stored result, or what is known of its users, was changed by hand."""
    store = store_in(out)
    found = study(ResultsFolder(out, silent), "tiny")
    entry = found.entries[0]
    kept, arrays = entry.result, values_of(store.cells, entry.cell)

    def checked(users=None, **changes):
        store.save(replace(kept, **changes), {**arrays, **(users or {})})
        (check,) = rerun(study(ResultsFolder(out, silent), "tiny"), [entry.cell], tmp_path)
        return check

    yield checked
    store.save(kept, arrays)


def moved(curve, by):
    """A curve whose last value is off by so much, relatively."""
    last = curve[-1]
    return (*curve[:-1], replace(last, values=(last.values[0] * (1 + by), *last.values[1:])))


def rerun(found, cells, folder, **conditions):
    """The checks of these cells, run again with results in this folder."""
    return run_again(found, cells, (), ResultsFolder(folder, silent), Conditions(**conditions), lambda event: None)


def first(out):
    """The stored result of the first cell."""
    return study(ResultsFolder(out, silent), "tiny").entries[0].result


def test_every_cell_comes_out_the_same(out, tmp_path):
    found = study(ResultsFolder(out, silent), "tiny")
    checks = rerun(found, verifiable(found), tmp_path, jobs=2)
    assert [check.verdict for check in checks] == ["same"] * len(found.entries)
    assert all(result.split and result.model for result in found.results)


def test_nothing_is_left_behind_and_nothing_stored_is_touched(cli, out, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = {path.name: path.read_bytes() for path in store_in(out).cells.iterdir()}
    cli("verify", "tiny", "--out", out, "--sample", 1, "-q")
    assert {path.name: path.read_bytes() for path in store_in(out).cells.iterdir()} == before
    assert list(tmp_path.glob("rankbench-verify-*")) == []


def test_a_value_that_differs_is_named(out, again):
    check = again(curve=moved(first(out).curve, 1e-12))
    assert (check.verdict, check.differing) == ("differs", ("pairwise-error",))
    assert check.why == "on the same basis; off by 1e-12"


def test_the_values_of_users_are_compared_too(again, out):
    cell = first(out).cell
    users = values_of(store_in(out).cells, cell)["ndcg@5"].copy()
    users[np.flatnonzero(~np.isnan(users))[0]] += 1e-9
    check = again(users={"ndcg@5": users})
    assert (check.verdict, check.differing) == ("differs", ("ndcg@5 of users",))


@pytest.mark.parametrize("what", ["split", "model"])
def test_another_split_or_model_is_named(again, what):
    check = again(**{what: "0" * 64})
    assert (check.verdict, check.differing) == ("differs", (what,))
    assert check.why == ("it was trained on another split" if what == "split" else "on the same basis; off by 0")


@pytest.mark.parametrize("what", ["split", "model", "values"])
def test_a_digest_that_was_taken_out_is_named(again, what):
    check = again(**{what: ""})
    assert (check.verdict, check.differing) == ("differs", (what,))


@pytest.mark.parametrize(("by", "verdict"), [(1e-9, "close"), (1e-3, "differs")])
def test_another_basis_explains_the_last_digits_and_is_named(out, again, by, verdict):
    stored = first(out)
    packages = tuple((name, "1.0" if name == "scipy" else version) for name, version in stored.machine.packages)
    check = again(curve=moved(stored.curve, by), machine=replace(stored.machine, packages=packages))
    assert check.verdict == verdict
    assert check.why.startswith("SciPy 1.0 then, ") and f"off by {by:.2g}" in check.why


@pytest.mark.parametrize(("by", "verdict"), [(0.01, "close"), (0.5, "differs")])
def test_threads_that_race_explain_more(out, by, verdict):
    stored = first(out)
    cell = replace(stored.cell, determinism=Determinism.RACY, threads=2)
    one, other = replace(stored, cell=cell, curve=moved(stored.curve, by)), replace(stored, cell=cell)
    check = checked(one, other, {}, {})
    assert check.verdict == verdict and check.why.startswith("its threads race")
    users = {"ndcg@5": np.array([0.5, np.nan, 1.0])}
    turned = {"ndcg@5": np.array([1.0, np.nan, 0.5])}  # of single users anything
    assert checked(one, other, users, turned).verdict == verdict
    alone = replace(cell, threads=1)  # one thread has nobody to race with
    check = checked(replace(one, cell=alone), replace(other, cell=alone), {}, {})
    assert check.verdict == "differs" and check.why.startswith("on the same basis")


def test_a_cell_that_fails_or_does_not_run_is_said_so(out):
    stored = first(out)
    failed = replace(stored, status="failed", reason="boom", curve=(), counted=())
    assert checked(stored, failed, {}, {}) == Check(
        stored.cell, "failed", ("status",), "it ended as ok when it was stored, and now: failed, boom"
    )
    assert checked(stored, None, {}, {}).why == "it did not run"


def test_a_sample_is_drawn_without_repeats_and_in_order(out):
    cells = verifiable(study(ResultsFolder(out, silent), "tiny"))
    assert sampled(cells, 3) == tuple(cell for cell in cells if cell in sampled(cells, 3))
    assert len(set(sampled(cells, 3))) == 3 and sampled(cells, 99) == sampled(cells, None) == cells


def test_a_value_that_is_missing_on_one_side_is_not_close(out, again):
    stored = first(out)
    last = replace(stored.curve[-1], values=(float("nan"), *stored.curve[-1].values[1:]))
    packages = tuple((name, "1.0" if name == "scipy" else version) for name, version in stored.machine.packages)
    check = again(curve=(*stored.curve[:-1], last), machine=replace(stored.machine, packages=packages))
    assert check.verdict == "differs" and check.why.endswith("off by inf")


def test_a_curve_that_was_cut_is_named(out, again):
    check = again(curve=first(out).curve[:-1])
    assert (check.verdict, check.differing) == ("differs", ("curve",))


def test_a_budget_in_seconds_is_run_again_for_as_many_steps(tmp_path):
    run = ran(tmp_path / "out", tiny(repetitions=1, solvers=("sgd[rank=2]",), budget=Budget(seconds=0.05)))
    (cell,) = run.plan.cells
    (check,) = rerun(run.study(), [cell], tmp_path / "again")
    assert check.verdict == "same" and run.result(cell).stopped == "budget"


def test_what_decides_the_last_digits_is_compared(out):
    machine = first(out).machine
    assert basis_change(machine, machine) == ""
    assert basis_change(machine, replace(machine, kernels="", cpu="other")).endswith("then, unknown now")
    assert basis_change(replace(machine, cpu="one"), replace(machine, cpu="two")) == "processor one then, two now"


def test_the_verb_says_what_came_out_the_same(cli, out):
    told = cli("verify", "tiny", "--out", out, "--sample", 2, "-q").out.splitlines()
    assert told[-1] == "tiny: 2 of 2 cells came out the same to the last byte"
    assert re.fullmatch(r"sample \d+: 2 of 4 cells and trials, which show 3 changed results in 95 of 100 .*", told[-2])
    assert all(line.startswith("not verified: ") for line in told[:-2])
    assert "4 of 4 cells" in cli("verify", "tiny", "--out", out, "--sample", 1, "--all", "-q").out


def test_the_verb_names_what_differs(cli, tmp_path):
    ran(tmp_path, tiny(repetitions=1, solvers=("global",)))
    store, stored = store_in(tmp_path), study(ResultsFolder(tmp_path, silent), "tiny").entries[0].result
    store.save(replace(stored, model="0" * 64), values_of(store.cells, stored.cell))
    told = cli("verify", "tiny", "--out", tmp_path, "-q", code=1).out.splitlines()
    assert told[0].startswith("differs: ") and " in model: on the same basis; off by 0" in told[0]
    assert told[-1] == "tiny: 0 of 1 cells came out the same to the last byte"


def test_what_was_found_is_json_too(cli, out):
    found = json.loads(cli("verify", "tiny", "--out", out, "--sample", 2, "--draw", 7, "--json", "-q").out)
    assert (found["experiment"], found["good"], found["of"], found["draw"]) == ("tiny", True, 4, 7)
    assert [cell["verdict"] for cell in found["cells"]] == ["same", "same"]


def test_a_part_of_an_experiment_is_accepted_where_it_is_asked_for(cli, tmp_path):
    file = tiny_toml(tmp_path)
    session = Session(ResultsFolder(tmp_path / "out", silent), Selection(solvers=("global[lam=10]",)))
    session.run(experiments.load(file))
    words = ("verify", "tiny", "--out", tmp_path / "out", "--all", "-q")
    assert "differs: plan: it leaves out low-rank" in cli(*words, code=1).out
    assert "not verified: plan: it leaves out low-rank" in cli(*words, "--partial").out


@pytest.mark.parametrize("words", [("tiny", "--sample", "0"), ("nowhere",)])
def test_wrong_use_is_one_line(cli, out, words):
    cli.refuses("verify", *words, "--out", out)


def test_a_model_that_is_no_record_of_arrays_has_no_digest(tmp_path):
    solver = with_solver(
        tmp_path,
        "class Plain:",
        "    def score(self, users, items): return items.astype(float)",
        "    def score_all(self, users, threads=1): return np.tile(np.arange(30.0), (len(users), 1))",
        "yield Step(Plain())",
    )
    run = ran(tmp_path / "out", tiny(solvers=(solver,), repetitions=1))
    (result,) = run.study().results
    assert result.status == "ok" and result.model == "" and len(result.split) == 64


def test_a_start_from_another_trial_is_named(out):
    stored = replace(first(out), start="1" * 64)
    found = replace(stored, start="2" * 64, curve=moved(stored.curve, 0.1))
    assert checked(stored, found, {}, {}).why == "it started from the model of another trial"


def test_after_known_trials_none_follow():
    assert _NothingFollows().more([], []) == ()


def test_of_a_path_of_trials_those_before_the_wanted_ones_are_run_too(tmp_path):
    searches = prepared(tmp_path, along(tmp_path / "files")).plan.searches
    (last, *_) = [trial for one in searches for trial in one.trials if trial.solver.setting("lam") == 1.0]
    found = [trial for one in _with_their_starts(searches, {last.key}, {}) for trial in one.trials]
    same = [trial for trial in found if trial.solver.setting("rank") == last.solver.setting("rank")]
    assert len(found) == len(same) == 3 and last in found  # the penalties above it, one after the other


def test_trials_that_were_added_to_a_path_later_change_no_start_of_those_before(tmp_path):
    def ran_with(lams):
        return ran(tmp_path / "out", along(tmp_path / "files", space={"lam": lams}, trials=len(lams)))

    ran_with((1.0, 30.0))
    run = ran_with((1.0, 2.0, 4.0, 30.0))
    starts = {trial.solver.setting("lam"): run.result(trial).start for trial in run.plan.trials}
    assert starts[1.0] and starts[2.0] and not starts[4.0]  # whose models are gone with the search that had ended
    kept = StudyFiles(run.study(), run.store, run.plan)
    found = verify(kept, Extent(), ResultsFolder(tmp_path / "afresh", silent), Conditions(), lambda event: None)
    assert found.count("same") == found.of == len(run.plan.everything)


def test_a_start_that_no_path_has_is_named(tmp_path):
    run = ran(tmp_path / "out", along(tmp_path / "files", trials=3))
    store, trial = run.store, run.plan.trials[-1]
    result = run.result(trial)
    for start in ("1" * 64, trial.key):
        store.save(replace(result, start=start), values_of(store.cells, trial))
        found = run_again(
            study(ResultsFolder(tmp_path / "out", silent), "tiny"), [trial], run.plan.searches,
            ResultsFolder(tmp_path / f"afresh-{start}", silent), Conditions(), lambda event: None,
        )  # fmt: skip
        assert [check.verdict for check in found] == ["differs"] and "start" in found[0].differing


def test_a_run_of_which_no_cell_has_ended_cannot_be_verified(tmp_path):
    run = prepared(tmp_path, TINY)
    run.open()
    kept = StudyFiles(run.study(), run.store, run.plan)
    with pytest.raises(UserError, match="no cell of tiny has ended, so there is nothing to verify"):
        verify(kept, Extent(), ResultsFolder(tmp_path / "afresh", silent), Conditions(), lambda event: None)
