"""Folders of results joined: nothing is lost, nothing is overwritten, and conflicts are named."""

import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from helpers import MACHINE, TINY, around, made_up, made_up_run, no_values, prepared, silent, store_in, tiny, tiny_toml

from rankbench import experiments
from rankbench.core import regular
from rankbench.core.contract import Determinism
from rankbench.core.errors import UserError
from rankbench.records.by_machine import select
from rankbench.records.cells import Selection, Skip
from rankbench.records.merge import (
    Measurement,
    _clashes,
    _first_point,
    _first_user,
    agreement_of,
    carry_out,
    check_apart,
    survey,
)
from rankbench.records.store import ResultsFolder, values_of
from rankbench.report.study import mean_seconds, study
from rankbench.solvers import SOLVERS

OTHER = replace(MACHINE, cpu="another processor")


def folder(out):
    return ResultsFolder(out, silent, untouched=True)


def merged(out, *sources, warn=silent, dry=False):
    """What merging these folders did, experiment by experiment."""
    found = survey(folder(out), [(source.name, folder(source)) for source in sources], warn)
    if not dry:
        for merge in found:
            carry_out(folder(out), merge, warn)
    return found


def content(out):
    """Every file of a folder with its bytes; the plans' own time of writing is part of them."""
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def cells_of(out):
    return {name: data for name, data in content(out / "tiny" / "cells").items()}


def test_an_empty_target_becomes_a_copy(tmp_path):
    made_up_run(tmp_path / "a")
    (merge,) = merged(tmp_path / "all", tmp_path / "a")
    assert merge.count("new") == 4 and not merge.conflicts
    assert cells_of(tmp_path / "all") == cells_of(tmp_path / "a")
    one, other = (study(folder(tmp_path / name), "tiny") for name in ("a", "all"))
    assert one.entries == other.entries


def test_repetitions_of_two_machines_make_one_run(tmp_path):
    made_up_run(tmp_path / "a", selection=Selection(repetitions=1))
    made_up_run(tmp_path / "b", machine=OTHER)
    shutil.rmtree(tmp_path / "b" / "tiny" / "claims", ignore_errors=True)
    merged(tmp_path / "all", tmp_path / "a", tmp_path / "b")
    found = study(folder(tmp_path / "all"), "tiny")
    assert len(found.entries) == 4 and all(entry.good for entry in found.entries)
    by_repetition = {entry.cell.place.repetition: entry.result.machine for entry in found.entries}
    assert by_repetition == {0: MACHINE, 1: OTHER}
    assert all(mean_seconds(group) is None for group in found.groups)  # times of two machines are never averaged


def test_two_machines_times_of_one_cell_live_side_by_side(tmp_path):
    made_up_run(tmp_path / "a")
    made_up_run(tmp_path / "b", machine=OTHER, wall=7.0)
    before = content(tmp_path / "b")
    (merge,) = merged(tmp_path / "a", tmp_path / "b")
    assert (merge.count("beside"), merge.count("new"), merge.conflicts) == (4, 0, ())
    store = store_in(tmp_path / "a")
    beside = [store.read(path) for path in store.beside()]
    assert {result.machine for result in beside} == {OTHER} and {result.wall for result in beside} == {7.0}
    assert not [path for path in store.beside() if path.with_suffix(".npz").exists()]  # the values are the same
    found = study(folder(tmp_path / "a"), "tiny")
    assert {result.machine for result in found.results} == {MACHINE}
    assert len(list(store.files())) == 4 and len(list(store.summaries())) == 4
    assert content(tmp_path / "b") == before


def test_merging_again_changes_nothing(tmp_path):
    made_up_run(tmp_path / "a")
    made_up_run(tmp_path / "b", machine=OTHER)
    merged(tmp_path / "a", tmp_path / "b")
    before = content(tmp_path / "a")
    (merge,) = merged(tmp_path / "a", tmp_path / "b", tmp_path / "b")
    assert (merge.copies, merge.present) == ((), 8)
    assert content(tmp_path / "a") == before
    (back,) = merged(tmp_path / "b", tmp_path / "a")  # the measurements beside travel too
    assert (back.count("beside"), back.present) == (4, 4)


def test_a_second_time_of_the_same_machine_is_kept_too(tmp_path):
    made_up_run(tmp_path / "a")
    made_up_run(tmp_path / "b", finished="2026-01-05T00:00:00+00:00")
    (merge,) = merged(tmp_path / "a", tmp_path / "b")
    assert merge.count("beside") == 4 and len(store_in(tmp_path / "a").beside()) == 4


def test_other_numbers_of_the_same_cell_are_a_conflict_and_nothing_is_overwritten(tmp_path):
    made_up_run(tmp_path / "a", value=0.5)
    made_up_run(tmp_path / "b", value=0.6, machine=OTHER)
    before = content(tmp_path / "a")
    (merge,) = merged(tmp_path / "a", tmp_path / "b")
    assert cells_of(tmp_path / "a") == {k.removeprefix("tiny/cells/"): v for k, v in before.items() if "cells" in k}
    found = {(one.what, one.kept, one.other, one.source) for one in merge.conflicts}
    assert ("ndcg@5", "0.5", "0.6", "b") in found and ("pairwise-error", "0.25", "0.3", "b") in found
    assert {one.file for one in merge.conflicts} == {
        f"tiny/cells/{name.name}" for name in store_in(tmp_path / "a").files()
    }
    assert not merge.copies


def test_two_sources_that_contradict_each_other_conflict_in_a_new_folder(tmp_path):
    made_up_run(tmp_path / "a", value=0.5)
    made_up_run(tmp_path / "b", value=0.6)
    (dry,) = merged(tmp_path / "all", tmp_path / "a", tmp_path / "b", dry=True)
    assert not (tmp_path / "all").exists()
    (merge,) = merged(tmp_path / "all", tmp_path / "a", tmp_path / "b")
    assert dry == merge and merge.count("new") == 4 and merge.conflicts
    assert cells_of(tmp_path / "all") == cells_of(tmp_path / "a")


@pytest.mark.parametrize("what", ["split", "model"])
def test_another_split_or_model_is_a_conflict(tmp_path, what):
    made_up_run(tmp_path / "a", split="1" * 64, model="2" * 64)
    made_up_run(tmp_path / "b", **{"split": "1" * 64, "model": "2" * 64, what: "0" * 64})
    (merge,) = merged(tmp_path / "a", tmp_path / "b")
    assert {(one.what, one.other) for one in merge.conflicts} == {(what, "0" * 12)}
    assert len(merge.conflicts) == 4


def test_one_users_value_is_enough_for_a_conflict(tmp_path):
    def off(cell, value):
        arrays = around(cell, value)
        arrays["ndcg@5"][3] += 1e-12
        return arrays

    made_up_run(tmp_path / "a")
    made_up_run(tmp_path / "b", arrays=off, machine=replace(MACHINE, cores=4))
    (merge,) = merged(tmp_path / "a", tmp_path / "b")
    assert {one.what for one in merge.conflicts} == {"ndcg@5 of users, user 3"} and not merge.copies


def test_a_last_digit_on_another_basis_is_no_conflict_but_is_kept_apart(tmp_path):
    made_up_run(tmp_path / "a", value=0.5)
    made_up_run(tmp_path / "b", value=0.5 * (1 + 1e-9), machine=OTHER)
    (merge,) = merged(tmp_path / "a", tmp_path / "b")
    assert not merge.conflicts and merge.count("beside") == 4
    store = store_in(tmp_path / "a")
    assert all(path.with_suffix(".npz").exists() for path in store.beside())  # with its own values for each user
    assert {result.value("ndcg@5") for result in study(folder(tmp_path / "a"), "tiny").results} == {0.5}


def test_threads_that_race_explain_other_numbers_but_not_another_split(tmp_path):
    cell = replace(prepared(tmp_path, TINY).plan.cells[0], determinism=Determinism.RACY, threads=2)
    one, other = (Measurement(tmp_path / "none.json", made_up(cell, value, split="a")) for value in (0.5, 0.9))
    assert agreement_of(one, other) == "apart"
    assert agreement_of(one, Measurement(other.path, replace(other.result, split="b"))) == "conflict"
    alone = [Measurement(m.path, replace(m.result, cell=replace(cell, threads=1))) for m in (one, other)]
    assert agreement_of(*alone) == "conflict"


def test_a_result_that_did_not_end_well_gives_way_and_is_kept(tmp_path):
    bad = {"status": "timeout", "reason": "10 s", "curve": (), "counted": ()}
    made_up_run(tmp_path / "a", arrays=no_values, **bad)
    made_up_run(tmp_path / "b", machine=OTHER)
    (merge,) = merged(tmp_path / "a", tmp_path / "b")
    assert merge.count("instead") == 4
    store, found = store_in(tmp_path / "a"), study(folder(tmp_path / "a"), "tiny")
    assert all(entry.good and entry.good.machine == OTHER for entry in found.entries)
    assert {store.read(path).status for path in store.beside()} == {"timeout"}
    assert len(values_of(store.cells, found.entries[0].cell)) == 2
    made_up_run(tmp_path / "c", arrays=no_values, finished="2026-02-01T00:00:00+00:00", **bad)
    merged(tmp_path / "a", tmp_path / "c")
    assert all(entry.good for entry in study(folder(tmp_path / "a"), "tiny").entries)


@pytest.mark.parametrize("damage", [b"{", b"\xff\xfe", b"[]", b'{"format": 99}', b"{}"])
def test_a_damaged_source_is_named_and_left_as_it_is(tmp_path, damage):
    made_up_run(tmp_path / "a")
    victim = sorted((tmp_path / "a" / "tiny" / "cells").glob("*.json"))[0]
    victim.write_bytes(damage)
    before, told = content(tmp_path / "a"), []
    (merge,) = merged(tmp_path / "all", tmp_path / "a", warn=told.append)
    assert merge.count("new") == 3 and content(tmp_path / "a") == before
    assert len(told) == 1 and victim.name in told[0] and "cannot be read" in told[0] and "\n" not in told[0]


def test_a_folder_in_the_place_of_a_result_is_named_and_left_out(tmp_path):
    made_up_run(tmp_path / "a")
    victim, told = sorted((tmp_path / "a" / "tiny" / "cells").glob("*.json"))[0], []
    victim.unlink()
    victim.mkdir()
    (merge,) = merged(tmp_path / "all", tmp_path / "a", warn=told.append)
    assert merge.count("new") == 3 and told == [f"{victim} cannot be read (Is a directory): left out"]


def test_of_one_machines_results_those_that_cannot_be_read_are_left_out(tmp_path):
    made_up_run(tmp_path / "a")
    victim = sorted((tmp_path / "a" / "tiny" / "cells").glob("*.json"))[0]
    victim.write_text("{")
    select(folder(tmp_path / "a"), MACHINE.fingerprint, tmp_path / "chosen")
    chosen = {path.name for path in (tmp_path / "chosen" / "tiny" / "cells").glob("*.json")}
    assert len(chosen) == 3 and victim.name not in chosen


def test_values_for_users_that_cannot_be_read_leave_the_result_out(tmp_path):
    made_up_run(tmp_path / "a")
    victim = sorted((tmp_path / "a" / "tiny" / "cells").glob("*.npz"))[0]
    victim.write_bytes(victim.read_bytes()[:100])
    told = []
    (merge,) = merged(tmp_path / "all", tmp_path / "a", warn=told.append)
    assert merge.count("new") == 3 and victim.name in told[0]


def test_a_damaged_result_of_the_target_stays_and_blocks_its_cell(tmp_path):
    made_up_run(tmp_path / "a")
    made_up_run(tmp_path / "b", machine=OTHER)
    victim = sorted((tmp_path / "a" / "tiny" / "cells").glob("*.json"))[0]
    victim.write_bytes(b"{")
    told = []
    (merge,) = merged(tmp_path / "a", tmp_path / "b", warn=told.append)
    assert victim.read_bytes() == b"{" and merge.count("beside") == 3
    assert "is in its way" in told[-1]


def test_a_file_under_another_cells_name_is_refused(tmp_path):
    made_up_run(tmp_path / "a")
    one, other = sorted((tmp_path / "a" / "tiny" / "cells").glob("*.json"))[:2]
    shutil.copy(one, other)
    told = []
    merged(tmp_path / "all", tmp_path / "a", warn=told.append)
    assert other.name in told[0] and "its key is not that of its cell" in told[0]


def test_a_folder_is_not_merged_into_itself(tmp_path):
    made_up_run(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for same in (tmp_path / "a", tmp_path / "link", tmp_path / "a" / ".." / "a"):
        with pytest.raises(UserError, match="cannot be merged into itself"):
            check_apart(tmp_path / "a", [same])
    check_apart(tmp_path / "b", [tmp_path / "a"])


def test_a_full_disk_stops_with_one_line_and_the_merge_can_be_repeated(tmp_path, monkeypatch):
    made_up_run(tmp_path / "a")
    copies, real = [], regular.copied

    def full(source, target):
        copies.append(target)
        if len(copies) == 4:
            real(source, target)
            raise OSError(28, "No space left on device")
        return real(source, target)

    monkeypatch.setattr("rankbench.records.merge.copied", full)
    with pytest.raises(UserError, match="No space left on device; what was copied before is kept; make room"):
        merged(tmp_path / "all", tmp_path / "a")
    assert not list((tmp_path / "all").rglob("*.partial"))
    monkeypatch.setattr("rankbench.records.merge.copied", real)
    (merge,) = merged(tmp_path / "all", tmp_path / "a")
    assert (merge.present, merge.count("new")) == (1, 3)
    assert cells_of(tmp_path / "all") == cells_of(tmp_path / "a")


def test_a_cell_that_is_being_run_or_has_appeared_is_left_out(tmp_path):
    made_up_run(tmp_path / "a")
    (merge,) = survey(folder(tmp_path / "all"), [("a", folder(tmp_path / "a"))], silent)
    store, told = store_in(tmp_path / "all"), []
    store.open()
    first, second = (copy.measurement.result for copy in merge.copies[:2])
    store.path(second.cell).write_text("another driver's")
    with store.claims() as claims:
        assert claims.take(first.key)
        assert carry_out(folder(tmp_path / "all"), merge, told.append) == 2
    assert not store.path(first.cell).exists() and store.path(second.cell).read_text() == "another driver's"
    assert "another process is running its cell" in told[0] and "has appeared since" in told[1]


def test_a_machines_failure_has_no_values_of_another_machines_success(tmp_path):
    made_up_run(tmp_path / "a")
    made_up_run(tmp_path / "b", machine=OTHER, status="timeout", reason="10 s", curve=(), counted=(), arrays=no_values)
    merged(tmp_path / "a", tmp_path / "b")
    select(folder(tmp_path / "a"), OTHER.fingerprint, tmp_path / "chosen")
    store = store_in(tmp_path / "chosen")
    assert {store.read(path).status for path in store.measurements()} == {"timeout"}
    assert not list(store.cells.glob("*.npz"))


@pytest.mark.parametrize("damaged", [False, True])
def test_a_failure_that_was_run_again_since_the_folders_were_read_does_not_give_way(tmp_path, damaged):
    run = made_up_run(tmp_path / "a", status="timeout", reason="10 s", curve=(), counted=(), arrays=no_values)
    made_up_run(tmp_path / "b", machine=OTHER)
    (merge,) = survey(folder(tmp_path / "a"), [("b", folder(tmp_path / "b"))], silent)
    store, told, cell = store_in(tmp_path / "a"), [], merge.copies[0].measurement.result.cell
    run.keep(made_up(cell, 0.5), around(cell, 0.5))  # by another driver
    if damaged:
        store.path(cell).write_text("{}")
    before = store.path(cell).read_bytes()
    assert carry_out(folder(tmp_path / "a"), merge, told.append) == 1
    assert told == [f"{store.path(cell)} is left out: it has changed since the folders were read; merge again"]
    assert store.path(cell).read_bytes() == before and not store.beside(store.path(cell).name)
    assert len(store.beside()) == 3


def test_plans_that_ask_something_else_are_a_conflict_but_their_results_come_along(tmp_path):
    made_up_run(tmp_path / "a")
    made_up_run(tmp_path / "b", tiny(metrics=("ndcg@5", "pairwise-error")))
    (merge,) = merged(tmp_path / "a", tmp_path / "b")
    assert merge.count("new") == 4
    (conflict,) = merge.conflicts
    assert conflict.what == "metrics, budget or tuning" and conflict.kept == "pairwise-error, ndcg@5; steps=3"
    assert study(folder(tmp_path / "a"), "tiny").measures[0].label == "pairwise-error"


def test_what_one_machine_lacked_is_no_longer_skipped(tmp_path):
    both = tiny(data=(*TINY.data, "low-rank[users=24,items=30,per_user=20]"))
    made_up_run(tmp_path / "b", both)
    plans = store_in(tmp_path / "b").plans()
    made_up_run(tmp_path / "a")
    data = plans[0].planned[-1].place.data
    store = store_in(tmp_path / "a")
    store.write_plan(replace(store.plans()[0], skips=(Skip(data, None, None, "not here", "fetch it"),)))
    assert len(study(folder(tmp_path / "a"), "tiny").skips) == 1
    merged(tmp_path / "a", tmp_path / "b")
    found = study(folder(tmp_path / "a"), "tiny")
    assert len(found.entries) == 8 and not found.skips


def test_a_solver_that_one_machine_lacked_is_no_longer_skipped(tmp_path):
    made_up_run(tmp_path / "b")
    made_up_run(tmp_path / "a", selection=Selection(solvers=("global[lam=10]",)))
    store, (other, *_) = store_in(tmp_path / "a"), store_in(tmp_path / "b").plans()
    (cell, *_) = (cell for cell in other.planned if cell.solver.name == "sgd")
    place = (cell.place.data, cell.place.split)
    absent = Skip(*place, SOLVERS.resolve("svrank"), "svrank needs item features")
    store.write_plan(replace(store.plans()[0], skips=(Skip(*place, cell.solver, "not here", "install it"), absent)))
    merged(tmp_path / "a", tmp_path / "b")
    found = study(folder(tmp_path / "a"), "tiny")
    assert len(found.entries) == 4 and found.skips == (absent,)


def test_an_experiment_file_at_two_paths_stays_one_experiment(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = (experiments.load(tiny_toml(tmp_path / name)) for name in ("one", "two"))
    made_up_run(tmp_path / "a", one, selection=Selection(repetitions=1))
    made_up_run(tmp_path / "b", two)
    merged(tmp_path / "a", tmp_path / "b")
    (plan,) = store_in(tmp_path / "a").plans()
    assert plan.experiment.source == one.source and len(plan.planned) == 4


def test_measurements_beside_are_no_hidden_results_and_belong_to_their_cell(tmp_path):
    made_up_run(tmp_path / "a")
    made_up_run(tmp_path / "b", machine=OTHER)
    merged(tmp_path / "a", tmp_path / "b")
    found = study(folder(tmp_path / "a"), "tiny")
    assert not any("not shown here" in note for note in found.notes)
    store = store_in(tmp_path / "a")
    name = store.path(found.entries[0].cell).name
    assert [path.name.partition("@")[0] for path in store.beside(name)] == [name.removesuffix(".json")]
    assert np.isclose(store.load(found.entries[0].cell).value("ndcg@5"), 0.5)


MERGE = """
import sys
from pathlib import Path
from rankbench.records.merge import carry_out, survey
from rankbench.records.store import ResultsFolder
target, *sources = (ResultsFolder(Path(name), print, True) for name in sys.argv[1:])
print("started", flush=True)
for merge in survey(target, [("source", source) for source in sources], print):
    assert carry_out(target, merge, print) == 0
"""


def killed_after(seconds, *folders):
    """Merge in another process, which is killed so many seconds after it has started; returns whether it was."""
    words = [sys.executable, "-c", MERGE, *map(str, folders)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return True
        assert process.returncode == 0, process.stdout.read()
        return False


@pytest.mark.trust
def test_a_merge_that_is_killed_at_random_moments_ends_as_if_it_had_not_been(tmp_path):
    many = tiny(solvers=tuple(f"sgd[rank={rank}]" for rank in range(1, 21)), repetitions=5)
    made_up_run(tmp_path / "a", many)
    made_up_run(tmp_path / "b", many, machine=OTHER)
    merged(tmp_path / "whole", tmp_path / "a", tmp_path / "b")
    draw, kills = np.random.default_rng(0), 0
    for _ in range(25):
        kills += killed_after(draw.uniform(0.05, 0.6), tmp_path / "all", tmp_path / "a", tmp_path / "b")
        found = study(folder(tmp_path / "all"), "tiny")  # whatever is there is complete
        assert found is None or all(entry.status in ("ok", "pending") for entry in found.entries)
    assert kills > 5
    while killed_after(60, tmp_path / "all", tmp_path / "a", tmp_path / "b"):
        pass
    assert cells_of(tmp_path / "all").keys() >= cells_of(tmp_path / "whole").keys()
    left = {name for name in cells_of(tmp_path / "all") if not name.endswith(".partial")}
    assert left == cells_of(tmp_path / "whole").keys()
    assert all(cells_of(tmp_path / "all")[name] == data for name, data in cells_of(tmp_path / "whole").items())
    assert study(folder(tmp_path / "all"), "tiny") == replace(
        study(folder(tmp_path / "whole"), "tiny"), cells=str(tmp_path / "all" / "tiny" / "cells")
    )


@pytest.mark.slow
def test_a_merge_that_was_stopped_anywhere_is_finished_by_the_next(tmp_path, monkeypatch):
    made_up_run(tmp_path / "a", tiny(repetitions=1))
    made_up_run(tmp_path / "b", tiny(repetitions=1), machine=OTHER)
    merged(tmp_path / "whole", tmp_path / "a", tmp_path / "b")
    real, stops = regular.copied, 0
    for last in range(10):
        calls = iter(range(last))

        def stopping(source, target, calls=calls):
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return real(source, target)

        out = tmp_path / f"out{last}"
        monkeypatch.setattr("rankbench.records.merge.copied", stopping)
        try:
            merged(out, tmp_path / "a", tmp_path / "b")
        except KeyboardInterrupt:
            stops += 1
        monkeypatch.setattr("rankbench.records.merge.copied", real)
        merged(out, tmp_path / "a", tmp_path / "b")
        assert cells_of(out) == cells_of(tmp_path / "whole")
    assert stops == 6  # two results with their values for users, and two measurements beside


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_cell_that_ended_well_once_and_diverged_once_contradicts_itself_unless_threads_race(tmp_path, threads):
    cell = prepared(tmp_path, TINY).plan.cells[0]
    racing = replace(cell, threads=threads, determinism=Determinism.RACY)
    good = made_up(racing, 0.5)
    bad = replace(good, status="diverged", reason="NaN for 3 held-out pairs")
    one, other = (Measurement(tmp_path / "none.json", result) for result in (good, bad))
    assert agreement_of(one, other) == ("conflict" if threads == 1 else "apart")


def test_what_contradicts_is_told_with_both_values(tmp_path):
    cell = prepared(tmp_path, TINY).plan.cells[0]
    good = made_up(cell, 0.5)
    one = Measurement(tmp_path / "none.json", good)
    bad = Measurement(tmp_path / "none.json", replace(good, status="diverged", reason="NaN"))
    assert next(iter(_clashes(one, bad))) == ("status", "ok", "diverged")
    fewer = {"kendall": np.zeros(2)}, {"kendall": np.zeros(3)}
    assert _first_user("kendall of users", *fewer) == ("kendall of users", "2 users", "3 users")
    assert _first_point("pairwise-error", good, good) == ("pairwise-error", "NaN", "NaN of other bytes")
