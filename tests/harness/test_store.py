"""The store and the machine: files whole or not at all, fingerprints that say where times compare."""

import json
import os
from dataclasses import fields, replace

import numpy as np
import pytest
from helpers import TINY

from rankbench.harness import machine
from rankbench.harness.plan import Selection, plan
from rankbench.harness.store import Result, Store, write_text


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    target = tmp_path / "file"
    write_text(target, "old")

    def broken(self, other):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", broken)
    with pytest.raises(OSError, match="No space"):
        write_text(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_a_killed_run_left_behind_is_cleared_and_a_running_ones_is_not(tmp_path):
    store = Store(tmp_path, "tiny")
    store.open()
    dead, alive = store.folder / ".work-999999999-x", store.folder / f".work-{os.getpid()}-x"
    dead.mkdir()
    alive.mkdir()
    with store.workshop():
        assert not dead.exists() and alive.exists()


def test_a_plan_that_cannot_be_read_counts_as_none(tmp_path):
    store = Store(tmp_path, "tiny")
    store.open()
    for text in ("{", "[]", "{}"):
        (store.folder / "plan.json").write_text(text)
        assert store.read_plan() is None
    store.write_plan(plan(TINY, Selection()))
    assert len(store.read_plan()["cells"]) == 4


def test_a_metric_without_a_value_is_null_in_the_file_and_nan_when_read(tmp_path):
    made = plan(TINY, Selection())
    cell, store = made.cells[0], Store(tmp_path, "tiny")
    store.open()
    point = {"step": 0, "seconds": 0.1, "metrics": {"ndcg@5": float("nan")}, "objective": float("inf")}
    absent = dict.fromkeys(field.name for field in fields(Result))
    stored = absent | {"key": cell.key, "status": "ok", "curve": [point], "metrics": point["metrics"]}
    store.save(cell, Result(**stored), {})
    json.loads(store.path(cell).read_text(), parse_constant=pytest.fail)
    back = store.load(cell)
    assert np.isnan(back.metrics["ndcg@5"]) and np.isnan(back.curve[0]["metrics"]["ndcg@5"])


def test_another_profile_or_seed_starts_the_plan_anew(tmp_path):
    store = Store(tmp_path, "tiny")
    store.open()
    store.write_plan(plan(TINY, Selection()))
    store.write_plan(plan(TINY, Selection(seed=1, solvers=("sgd",))))
    assert len(store.read_plan()["cells"]) == 2


def test_a_solver_that_was_changed_takes_the_seat_of_its_old_version(tmp_path):
    store, made = Store(tmp_path, "tiny"), plan(TINY, Selection())
    store.open()
    store.write_plan(made)
    changed = tuple(replace(cell, version=cell.version + 1) for cell in made.cells)
    store.write_plan(replace(made, cells=changed))
    assert [entry["key"] for entry in store.read_plan()["cells"].values()] == [cell.key for cell in changed]


def test_a_plan_of_another_format_counts_as_none(tmp_path):
    store = Store(tmp_path, "tiny")
    store.open()
    store.write_plan(plan(TINY, Selection()))
    path = store.folder / "plan.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 1}))
    assert store.read_plan() is None and store.results() == [] == store.trials()


def test_the_machine_says_all_that_decides_a_time():
    found = machine.describe()
    assert found["usable_cores"] >= 1 and found["compiler"] and found["packages"]["numpy"]
    assert found["blas"], "no BLAS was found"
    json.dumps(found)


def test_the_fingerprint_follows_what_decides_times_only():
    found = machine.describe()
    same = {**found, "git": "other", "system": "other"}
    assert machine.fingerprint(found) == machine.fingerprint(same)
    for key in ("cpu", "usable_cores", "compiler", "native"):
        assert machine.fingerprint({**found, key: "other"}) != machine.fingerprint(found)
