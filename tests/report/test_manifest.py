"""The manifest of a run: what was changed, added or dropped since is named, and no other run spoils it."""

import hashlib
import json
import os
import shutil
import subprocess
import time
from dataclasses import replace

import pytest
from helpers import TINY, around, made_up, silent, store_in, tiny

from rankbench.api.session import Listening, Session
from rankbench.core.leftovers import partial_of
from rankbench.execution.run import Conditions
from rankbench.records.cells import Selection
from rankbench.records.codec import with_digest
from rankbench.records.store import ResultsFolder, values_of
from rankbench.report import manifest
from rankbench.report.render.facts import facts
from rankbench.report.study import study


@pytest.fixture
def out(tmp_path):
    """A folder with made-up results of the tiny experiment, and their manifest."""
    return made_up_in(tmp_path / "out")


def made_up_in(out, experiment=TINY, seed=0):
    """The folder, with made-up results as if a session had run the experiment."""
    session = Session(ResultsFolder(out, silent), Selection(seed=seed))
    run = session.prepared(experiment)
    run.open()
    for cell in run.plan.cells:
        run.keep(made_up(cell, 0.5), around(cell, 0.5))
    session.execute(run)
    return out


def said(out):
    """What the manifest of the only plan in a folder says of its files."""
    store = store_in(out)
    (plan,) = store.plans()
    return [f"{one.outcome}: {one.seen}" for one in manifest.findings(store, plan)]


def cell_files(out, ending):
    """The files of results with this ending."""
    return sorted((out / "tiny" / "cells").glob(f"*{ending}"))


def test_all_files_of_a_run_are_listed_as_sha256sum_lists_them(out):
    assert said(out) == []
    text = (out / "tiny" / "manifests" / "quick-0.sha256").read_text()
    names = ["cells/" + path.name for path in cell_files(out, "")] + ["plans/quick-0.json"]
    assert [line.split("  ")[1] for line in text.splitlines()] == names
    if sums := shutil.which("sha256sum"):
        done = subprocess.run([sums, "--check", "--quiet", "manifests/quick-0.sha256"], cwd=out / "tiny", check=False)
        assert done.returncode == 0


def test_what_was_changed_added_or_dropped_is_named(out):
    first, second, third, *_ = cell_files(out, ".json")
    second.write_text(first.read_text())
    assert said(out) == [f"failed: cells/{second.name}: was changed since the manifest was written"]
    third.unlink()
    third.with_suffix(".npz").unlink()
    other = third.with_name(third.stem + "@0123456789ab-01234567.json")
    other.write_text(first.read_text())
    assert said(out) == [
        f"failed: cells/{second.name}: was changed since the manifest was written",
        f"failed: cells/{other.name}: was added since the manifest was written",
        f"failed: cells/{third.name} and 1 more: is in the manifest, and not in the folder",
    ]


def test_of_many_files_the_first_is_named(out):
    for path in cell_files(out, ".npz"):
        path.write_bytes(b"")
    names = [path.name for path in cell_files(out, ".npz")]
    assert said(out) == [f"failed: cells/{names[0]} and {len(names) - 1} more: was changed since the manifest was "
                         "written"]  # fmt: skip


def test_a_run_looks_anew_only_at_files_that_may_have_changed(out, monkeypatch):
    looked_at = []
    monkeypatch.setattr(manifest, "_digest", lambda path: looked_at.append(path.name) or sha256(path))
    monkeypatch.setattr(manifest, "time", lambda: time.time() + 100)
    renewed(out, seconds=60)
    assert looked_at == []
    renewed(out, seconds=1)  # the times of files may be as coarse as that
    assert len(looked_at) == len(cell_files(out, "")) + 1


def test_a_file_that_kept_the_time_of_the_one_it_was_copied_from_is_looked_at_anew(out):
    first = cell_files(out, ".json")[0]
    first.write_text(first.read_text() + " ")
    os.utime(first, (1e9, 1e9))
    renewed(out, seconds=-60)
    assert said(out) == []


def test_a_clock_that_was_set_back_hides_no_change(out):
    first = cell_files(out, ".json")[0]
    first.write_text(first.read_text() + " ")
    renewed(out, seconds=3600)  # the manifest is from the future
    assert said(out) == []


def test_what_a_run_has_made_while_a_clock_was_set_back_is_looked_at_anew(out, monkeypatch):
    monkeypatch.setattr(manifest, "time", lambda: time.time() + 100)  # it has caught up
    first = cell_files(out, ".json")[0]
    first.write_text(first.read_text() + " ")
    renewed(out, seconds=60)
    assert said(out) != []
    renewed(out, seconds=60, made=[first.name])
    assert said(out) == []


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def renewed(out, seconds, made=()):
    """Renew the manifest, as a run that ends does, as if it had been written so many seconds from now."""
    store, written = store_in(out), time.time() + seconds
    (plan,) = store.plans()
    os.utime(manifest.path_of(store.folder, plan), (written, written))
    manifest.renew(store, plan, made)


def test_a_run_says_which_results_somebody_else_changed_before_it_lists_them_anew(out):
    def what_a_run_says(rerun=()):
        display, told = Listening(), []
        object.__setattr__(display, "say", told.append)
        Session(ResultsFolder(out, silent), conditions=Conditions(rerun=frozenset(rerun)), display=display).run(TINY)
        return [text for text in told if "manifest" in text]

    first, second, *_ = cell_files(out, ".json")
    content = json.loads(first.read_text())
    content["finished"] = "2001-01-01T00:00:00+00:00"
    content.pop("sha256")
    first.write_text(with_digest(json.dumps(content)))
    second.with_suffix(".npz").touch()  # the same bytes
    assert what_a_run_says() == [
        f"note: tiny: cells/{first.name} changed since the manifest of the run before was written, and not by this "
        f"run; rankbench verify tiny --all --out {out} makes all results again"
    ]
    assert said(out) == [] == what_a_run_says()
    manifest.path_of(out / "tiny", store_in(out).plans()[0]).unlink()
    assert what_a_run_says() == []  # nothing was listed
    assert what_a_run_says(rerun=("all",)) == []  # what a run has made itself is no surprise


def test_a_folder_in_place_of_a_file_has_another_digest(out):
    path = cell_files(out, ".npz")[0]
    path.unlink()
    path.mkdir()
    assert said(out) == [f"failed: cells/{path.name}: was changed since the manifest was written"]


def test_without_a_manifest_its_files_are_said_to_be_unverified(out):
    (out / "tiny" / "manifests" / "quick-0.sha256").unlink()
    (line,) = said(out)
    assert line.startswith("not applicable: there is none")


@pytest.mark.parametrize("text", [b"\xff\n", b"nonsense\n", b"0" * 64 + b"  cells/../../x\n"])
def test_what_is_no_manifest_is_named(out, text):
    (out / "tiny" / "manifests" / "quick-0.sha256").write_bytes(text)
    assert said(out) == ["failed: quick-0.sha256 cannot be read"]


def test_a_file_that_is_listed_twice_makes_it_none(out):
    path = out / "tiny" / "manifests" / "quick-0.sha256"
    path.write_text(path.read_text() + path.read_text())
    assert said(out) == ["failed: quick-0.sha256 cannot be read"]


def test_another_run_does_not_spoil_it_and_a_run_that_changes_a_shared_cell_renews_it(tmp_path):
    out = made_up_in(tmp_path / "out")
    made_up_in(out, seed=1)
    store = store_in(out)
    zero, one = sorted(store.plans(), key=lambda plan: plan.seed)
    assert [list(manifest.findings(store, plan)) for plan in (zero, one)] == [[], []]
    shared = replace(one, planned=(zero.planned[0], *one.planned[1:]))  # as a quick and a full profile may share a cell
    store.add_plan(shared)
    manifest.renew(store, shared)
    kept = store.load(zero.planned[0])
    store.save(replace(kept, wall=9.0), values_of(store.cells, kept.cell))
    assert list(manifest.findings(store, zero))
    manifest.renew(store, shared)
    assert [list(manifest.findings(store, plan)) for plan in (zero, shared)] == [[], []]


@pytest.mark.slow
def test_a_run_that_is_stopped_lists_what_it_has(tmp_path):
    def stopping(event):
        if event.kind == "end":
            raise KeyboardInterrupt

    session = Session(ResultsFolder(tmp_path, silent), display=Listening(stopping))
    with pytest.raises(KeyboardInterrupt):
        session.run(tiny(repetitions=1))
    store = store_in(tmp_path)
    assert len(list(store.files())) == 1 and said(tmp_path) == []


def test_what_a_killed_run_left_of_one_is_removed(out):
    left = partial_of(out / "tiny" / "manifests" / "quick-0.sha256")
    left.write_text("")
    made_up_in(out)
    assert not left.exists() and said(out) == []


def test_the_page_names_its_sha256(out):
    found = study(ResultsFolder(out, silent), "tiny")
    known = {fact.name: fact.lines for fact in facts(found)}
    content = (out / "tiny" / "manifests" / "quick-0.sha256").read_bytes()
    assert known["manifest"] == (f"quick-0.sha256, SHA-256 {hashlib.sha256(content).hexdigest()}",)
    (out / "tiny" / "manifests" / "quick-0.sha256").unlink()
    assert "manifest" not in {fact.name for fact in facts(found)}


def test_a_file_that_is_gone_has_no_digest(tmp_path):
    assert manifest._Before({"a": "0" * 64}, 0.0).of("a", tmp_path) is None
