"""Runs: isolation, limits, resuming, failures, and equal results under all conditions."""

import errno
import fcntl
import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path

import numpy as np
import psutil
import pytest
from helpers import (
    MACHINE,
    SPACES,
    TINY,
    made_up,
    prepared,
    ran,
    silent,
    store_in,
    tiny,
    tiny_toml,
    tuned,
    until,
    with_solver,
)

from rankbench.arrays.npz import read_npz
from rankbench.core import system
from rankbench.core.errors import Unfinished, UserError
from rankbench.core.leftovers import HELD, partial_of
from rankbench.core.streams import stream
from rankbench.data.splits import cut
from rankbench.data.views import offer
from rankbench.execution import run as execution_run
from rankbench.execution.forecast import HANDING, estimate
from rankbench.execution.isolation import Caps
from rankbench.execution.run import _from_own_place, result_of
from rankbench.execution.training import checkpoints
from rankbench.execution.worker import ended_early
from rankbench.experiments import PER_STEP, Budget, Figure, Published
from rankbench.experiments.spaces import Tune
from rankbench.metrics import evaluate
from rankbench.planning import materials
from rankbench.planning.plan import plan
from rankbench.records.cells import Selection
from rankbench.records.claims import Claims
from rankbench.records.results import Result
from rankbench.records.store import ResultsFolder, Store, write_text
from rankbench.report.render.tables import sheet
from rankbench.report.study import study
from rankbench.report.writing import write_report

pytestmark = pytest.mark.slow

ONCE = Selection(repetitions=1)


def results_of(run):
    """The results in the order of the plan."""
    return [run.result(cell) for cell in run.plan.cells]


def values_of(result):
    """A result's last values by the names of its metrics."""
    return {measure.label: result.value(measure.label) for measure in result.cell.measures}


def alone(tmp_path, *lines, caps=None, **changes):
    """The one result of a user's solver that goes on with these lines."""
    selection = Selection(solvers=(with_solver(tmp_path, *lines),), repetitions=1)
    (result,) = results_of(ran(tmp_path, tiny(**changes), selection, caps=caps or Caps()))
    return result


def numbers(run):
    """All that must not depend on when and where a cell ran."""
    results: list[Result] = results_of(run)
    return [(r.key, r.status, values_of(r), [(p.step, p.values) for p in r.curve], r.counted) for r in results]


def test_every_cell_ends_well_and_says_what_it_measured(tmp_path):
    results = results_of(ran(tmp_path))
    assert [result.status for result in results] == ["ok"] * 4
    first = results[0]
    assert set(values_of(first)) == {"pairwise-error", "ndcg@5"} and not any(map(np.isnan, values_of(first).values()))
    assert first.seconds > 0 and first.peak_mb > 10 and first.machine.fingerprint and first.machine.cpu
    assert first.machine.kernels and first.stopped
    assert [point.step for point in results[1].curve] == [0, 1, 2, 3]
    assert results_of(prepared(tmp_path, TINY)) == results  # what is stored is what was told


def test_the_same_seed_gives_the_same_numbers_alone_side_by_side_and_in_parts(tmp_path):
    reference = numbers(ran(tmp_path / "one"))
    assert numbers(ran(tmp_path / "two", jobs=2)) == reference
    ran(tmp_path / "three", selection=Selection(solvers=("sgd[rank=2]",)))
    assert numbers(ran(tmp_path / "three")) == reference
    assert numbers(ran(tmp_path / "four", selection=Selection(seed=1))) != reference


def test_threads_change_no_metric(tmp_path):
    one, three = (ran(tmp_path / str(n), selection=Selection(threads=n)) for n in (1, 3))
    assert [values_of(result) for result in results_of(one)] == [values_of(result) for result in results_of(three)]


def test_each_users_value_is_kept_and_averages_to_the_metric(tmp_path):
    run = ran(tmp_path)
    result = results_of(run)[0]
    values = read_npz(store_in(tmp_path).path(result.cell).with_suffix(".npz"))["ndcg@5"]
    assert np.nanmean(values) == result.value("ndcg@5")
    assert int(np.isnan(values).sum()) == result.counted_by("ndcg@5").left_out
    assert len(values) == result.counted_by("ndcg@5").users + result.counted_by("ndcg@5").left_out


def stamps(out):
    """When each stored result was written last."""
    return {path: path.stat().st_mtime_ns for path in out.rglob("*.json") if path.parent.name == "cells"}


def test_what_is_there_is_not_run_again(tmp_path):
    ran(tmp_path)
    before = stamps(tmp_path)
    assert prepared(tmp_path, TINY).pending == ()
    ran(tmp_path)
    assert stamps(tmp_path) == before and len(before) == 4
    forced = prepared(tmp_path, TINY, rerun="all")
    assert forced.pending == forced.plan.cells


def test_force_runs_each_cell_once(tmp_path):
    experiment = tuned(Tune(SPACES, trials=2))
    ran(tmp_path, experiment, ONCE)
    ended = []
    run = ran(tmp_path, experiment, ONCE, tell=lambda event: ended.append((event.kind, event.cell.key)), rerun="all")
    keys = [cell.key for cell in (*run.plan.trials, *run.plan.cells)]
    assert Counter(ended) == Counter((kind, key) for kind in ("start", "end") for key in keys)
    assert run.pending_trials == run.pending == ()


@pytest.fixture
def busy(monkeypatch):
    """A machine on which others keep two cores busy all the time."""
    monkeypatch.setattr("rankbench.execution.isolation._load", lambda before, verdict: 2.0)
    monkeypatch.setattr("rankbench.execution.isolation._LEAST_SPAN", 0.0)


def test_contended_results_are_kept_until_somebody_asks_for_their_times(tmp_path, busy):
    assert all(result.contended for result in results_of(ran(tmp_path, jobs=2)))
    assert prepared(tmp_path, TINY, jobs=2, rerun="disturbed").pending == ()
    assert prepared(tmp_path, TINY).pending == ()
    assert len(prepared(tmp_path, TINY, rerun="disturbed").pending) == 4
    assert not any(result.contended for result in results_of(ran(tmp_path, rerun="disturbed")))


def test_cells_side_by_side_on_a_machine_that_is_free_are_not_contended(tmp_path, monkeypatch):
    monkeypatch.setattr("rankbench.execution.isolation._load", lambda before, verdict: 0.1)
    monkeypatch.setattr("rankbench.execution.isolation._LEAST_SPAN", 0.0)
    assert not any(result.contended for result in results_of(ran(tmp_path, jobs=2)))


def most_at_a_time(run, kind_of, apart=False):
    """The most cells and trials of each kind that ran at the same time; `apart` from those of other kinds."""
    under_way, most = {}, Counter()

    def tell(event):
        kind = kind_of(event.cell)
        open_cells = under_way.setdefault(kind, set())
        (open_cells.add if event.kind == "start" else open_cells.discard)(event.cell.key)
        most[kind] = max(most[kind], len(open_cells))
        assert not apart or sum(map(bool, under_way.values())) <= 1

    run.open()
    run.execute(tell)
    return most


def test_cells_run_alone_where_seconds_are_published(tmp_path):
    data = ("low-rank[users=20,items=30,per_user=20]", "low-rank[users=25,items=30,per_user=20]")
    published = (Published("sgd", PER_STEP, 0.1, data="low-rank[users=20]"),)
    for name, numbers, alone in (("none", (), 2), ("some", published, 1)):
        run = prepared(tmp_path / name, tiny(data=data, published=numbers), jobs=2)
        assert most_at_a_time(run, lambda cell: cell.place.data.setting("users")) == {20: alone, 25: 2}


class Nodes:
    """A workplace of two machines with two places each, which notes how many cells it was given at the same time."""

    places, nodes = 4, 2

    def __init__(self):
        self.under_way, self.most, self.change = [], {True: 0, False: 0}, threading.Condition()

    def run(self, task, caps, stop, alone):
        with self.change:
            self.under_way.append(alone)
            assert len(set(self.under_way)) == 1
            self.most[alone] = max(self.most[alone], len(self.under_way))
            self.change.notify_all()
            assert self.change.wait_for(lambda: self.most[alone] > 1, 60)
        time.sleep(0.1)
        with self.change:
            self.under_way.remove(alone)
        return ended_early("timeout", "too long"), MACHINE


def test_of_cells_that_run_alone_each_machine_gets_one(tmp_path):
    published = Published("sgd", PER_STEP, 0.1, data="low-rank[users=20]")
    data = ("low-rank[users=20,items=30,per_user=20]", "low-rank[users=25,items=30,per_user=20]")
    run = prepared(tmp_path, tiny(data=data, repetitions=4, published=(published,)), jobs=4)
    run.workplace = Nodes()
    run.execute()
    assert run.workplace.most[True] in (2, 3) and run.workplace.most[False] in (
        2,
        3,
        4,
        5,
    )  # one more waits for a place


def test_cells_that_ran_alone_are_disturbed_at_most_by_others_than_the_run(tmp_path, busy):
    run = ran(tmp_path, tiny(figure=Figure(kind="curve", x="seconds")), jobs=2)
    assert all(result.disturbed and not result.contended for result in results_of(run))


def stored(out, experiment=TINY, **changes):
    """Made-up results of an experiment's cells, stored as if they had been run."""
    run = prepared(out, experiment)
    run.store.open()
    for cell in run.plan.cells:
        run.store.save(made_up(cell, 0.5, **{"machine": run.machine, **changes}), {})
    return run.plan.cells


def test_cells_that_ran_beside_others_are_run_again_on_request_whatever_their_load(tmp_path):
    cells = stored(tmp_path, contended=True)
    assert prepared(tmp_path, TINY).pending == () and prepared(tmp_path, TINY, rerun="disturbed").pending == cells


def test_cells_timed_while_others_were_busy_are_run_again_on_request(tmp_path):
    cells = stored(tmp_path, load=1.0)
    assert prepared(tmp_path, TINY).pending == ()
    assert prepared(tmp_path, TINY, rerun="disturbed").pending == cells
    assert prepared(tmp_path, TINY, rerun="disturbed", jobs=2).pending == ()  # side by side nothing is timed
    stored(tmp_path, load=0.1)
    assert prepared(tmp_path, TINY, rerun="disturbed").pending == ()


def test_results_made_on_another_basis_are_counted_and_run_again_on_request(tmp_path):
    cells = stored(tmp_path, machine=MACHINE)
    assert prepared(tmp_path, TINY).pending == ()
    assert prepared(tmp_path, TINY).reused() == 4
    strict = prepared(tmp_path, TINY, rerun="foreign")
    assert strict.pending == cells
    strict.open()
    strict.execute(lambda event: None)
    assert strict.reused() == prepared(tmp_path, TINY).reused() == 0
    assert prepared(tmp_path, TINY, rerun="foreign").pending == ()


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ({"kernels": "other"}, 4),
        ({"blas": ("other",)}, 4),
        ({"cpu": "other"}, 4),
        ({"packages": (("numpy", "1"), ("scipy", "1"))}, 4),
        ({"git": "other", "python": "other", "memory_gib": 1.0, "cores": 99}, 0),
    ],
)
def test_what_may_change_the_last_digits_makes_another_basis(tmp_path, change, again):
    stored(tmp_path, machine=replace(prepared(tmp_path, TINY).machine, **change))
    assert len(prepared(tmp_path, TINY, rerun="foreign").pending) == prepared(tmp_path, TINY).reused() == again


_BOOM = "ValueError: boom (mine.py, line 18: raise ValueError('boom'))"


def test_a_failed_cell_stops_nobody_and_is_retried_on_request(tmp_path):
    selection = Selection(solvers=(with_solver(tmp_path, "raise ValueError('boom')"), "sgd"), repetitions=1)
    run = ran(tmp_path, TINY, selection)
    failed, good = results_of(run)
    assert (failed.status, failed.reason, good.status) == ("failed", _BOOM, "ok")
    assert "boom" in failed.trace
    assert prepared(tmp_path, TINY, selection).pending == ()
    assert prepared(tmp_path, TINY, selection, rerun="failed").pending == run.plan.cells[:1]


def test_too_long_is_a_timeout_and_keeps_the_curve_so_far(tmp_path):
    result = alone(tmp_path, "time.sleep(60)", caps=Caps(seconds=4.0))
    assert (result.status, result.reason) == ("timeout", "took longer than 4 s")
    assert [point.step for point in result.curve] == [0]


def test_too_much_memory_is_said_so(tmp_path):
    lines = ("kept = []", "while True:", "    kept.append(np.ones(1_000_000))", "    time.sleep(0.005)")
    result = alone(tmp_path, *lines, caps=Caps(seconds=60, memory=300 * 2**20))
    assert (result.status, result.reason) == ("memory", "took more than 300 MiB")


def test_the_clock_stands_still_while_a_model_is_scored(tmp_path):
    lines = (
        "class Slow:",
        "    def score(self, users, items):",
        f"        with open({str(tmp_path / 'log')!r}, 'a') as file:",
        "            print('scored', file=file)",
        "        time.sleep(0.4)",
        "        return np.zeros(len(users))",
        "yield Step(Slow())",
    )
    result = alone(tmp_path, *lines)
    scorings = len((tmp_path / "log").read_text().splitlines())
    assert scorings >= 2
    assert result.wall - result.seconds >= 0.4 * scorings


def test_the_last_model_before_the_end_is_always_scored(tmp_path):
    lines = ("for _ in range(4):", "    yield Step(ItemScores(np.ones(train.n_items)))")
    result = alone(tmp_path, *lines, every=3, budget=Budget(steps=100))
    assert [point.step for point in result.curve] == [0, 3, 4]
    assert result.stopped == "solver"


def test_a_cells_process_has_one_blas_thread(tmp_path):
    lines = (
        "from threadpoolctl import threadpool_info",
        "import scipy.linalg",
        "most = max(p['num_threads'] for p in threadpool_info() if p['user_api'] == 'blas')",
        "raise ValueError(f'blas threads {most}')",
    )
    assert alone(tmp_path, *lines).reason.startswith("ValueError: blas threads 1 (")


def test_a_result_cut_short_is_set_aside_and_made_anew(tmp_path):
    ran(tmp_path)
    path = next((tmp_path / "tiny" / "cells").glob("sgd-*.json"))
    path.write_text(path.read_text()[:200])
    assert [result.status for result in results_of(ran(tmp_path))] == ["ok"] * 4
    assert path.with_suffix(".json.broken").exists() and len(stamps(tmp_path)) == 4


def test_a_full_disk_is_one_line_and_what_was_finished_stays(tmp_path, monkeypatch):
    run = prepared(tmp_path, TINY)
    written = write_text

    def write(path, text):
        if path == run.store.path(run.plan.cells[2]):
            raise OSError(28, "No space left on device")
        written(path, text)

    monkeypatch.setattr("rankbench.records.store.write_text", write)
    with pytest.raises(UserError, match=r"No space left on device; .* are kept"):
        run.execute(lambda event: None)
    monkeypatch.undo()
    assert prepared(tmp_path, TINY).pending == run.plan.cells[2:]


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write to .* choose another folder with --out"):
        ran(tmp_path / "file" / "out")


def leftovers(out):
    """What a run that has ended should have removed."""
    names = (".scratch*", "*.partial", ".writable*", "claims")
    return [path for name in names for path in out.rglob(name)]


def test_nothing_is_left_behind(tmp_path):
    ran(tmp_path)
    ran(tmp_path, tuned(), ONCE, jobs=2)
    assert leftovers(tmp_path) == []


HOLD = """
import sys
from pathlib import Path
from rankbench.core.leftovers import replacing
from rankbench.records.store import ResultsFolder
store = ResultsFolder(Path(sys.argv[1]), print).store("tiny")
with store.scratch() as scratch, replacing(store.cells / "sgd-0.json") as partial:
    Path(scratch, "0.npz").write_bytes(b"half a split")
    partial.write_bytes(b"half a result")
    print(scratch, partial, flush=True)
    sys.stdin.read()
    partial.write_bytes(b"{}")
"""


def holder(out):
    """A process that writes into a folder of results, its scratch folder and the file that is half written."""
    command = [sys.executable, "-c", HOLD, str(out)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, [Path(path) for path in process.stdout.readline().split()]


@pytest.mark.trust
def test_what_a_killed_run_left_behind_goes_with_the_next_and_a_living_ones_stays(tmp_path, monkeypatch):
    (dead, left), (alive, used) = holder(tmp_path), holder(tmp_path)
    dead.kill()
    dead.communicate()
    assert all(path.exists() for path in left)
    monkeypatch.setattr("psutil.pid_exists", lambda pid: False)  # as of a process in another namespace
    odd = store_in(tmp_path).cells / "notes.partial"
    odd.touch()
    ran(tmp_path, TINY, ONCE)
    assert not any(path.exists() for path in left)
    look = "import sys, helpers, pathlib; helpers.store_in(pathlib.Path(sys.argv[1])).open()"
    apart = ["unshare", "--pid", "--fork", "--mount-proc"]  # where no process has the number of the living one
    if not subprocess.run([*apart, "true"], check=False).returncode:
        subprocess.run([*apart, sys.executable, "-c", look, str(tmp_path)], cwd=Path(__file__).parents[1], check=True)
    assert all(path.exists() for path in used) and (used[0] / "0.npz").exists() and odd.exists()
    alive.communicate("")
    assert alive.returncode == 0 and not any(path.exists() for path in used)
    assert (store_in(tmp_path).cells / "sgd-0.json").read_bytes() == b"{}"
    odd.unlink()


def test_what_a_killed_run_left_behind_goes_even_when_nothing_is_left_to_run(tmp_path):
    ran(tmp_path)
    left = partial_of(store_in(tmp_path).folder / ".scratch")
    left.mkdir()
    (left / HELD).touch()
    assert ran(tmp_path).pending == () and leftovers(tmp_path) == []


@pytest.mark.parametrize("where", ["known-splits.json", "cells/a.json", "plans/a.json", "shown/a.json", "starts/a.npz",
                                   "manifests/a.sha256"])  # fmt: skip
def test_what_a_killed_run_left_half_written_goes_with_the_next_wherever_it_lies(tmp_path, where):
    left = partial_of(store_in(tmp_path).folder / where)
    left.parent.mkdir(parents=True)
    left.touch()
    store_in(tmp_path).open()
    assert not left.exists()


@pytest.mark.parametrize(("days", "there"), [(0, True), (6, True), (8, False)])
def test_what_another_machine_left_behind_goes_once_it_is_forgotten(tmp_path, monkeypatch, days, there):
    ran(tmp_path)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(system, "boot_id", lambda: "another machine's")
        left = partial_of(store_in(tmp_path).folder / ".scratch"), partial_of(store_in(tmp_path).cells / "sgd-0.json")
    left[0].mkdir()
    (left[0] / HELD).touch()
    left[1].touch()
    for path in (left[0] / HELD, *left):
        os.utime(path, (time.time() - 86400 * days,) * 2)
    ran(tmp_path)
    assert [path.exists() for path in left] == [there, there]


class Emptying:
    """A workplace that is lost while it runs several cells: the first one ends all the same."""

    places = nodes = 2

    def __init__(self):
        self.begun = []

    def run(self, task, caps, stop, alone):
        self.begun.append(task.cell)
        if len(self.begun) > 1:
            raise Unfinished("everybody has left")
        assert stop.wait(180)
        return ended_early("timeout", "too long"), MACHINE


def test_what_ends_beside_a_workplace_that_is_lost_is_stored(tmp_path):
    run = prepared(tmp_path, TINY)
    run.workplace = Emptying()
    with pytest.raises(Unfinished, match="everybody has left"):
        run.execute()
    kept, *lost = run.workplace.begun
    assert run.store.load(kept).status == "timeout" and not any(run.store.load(cell) for cell in lost)
    assert leftovers(tmp_path) == []


def test_what_a_killed_run_left_in_the_folder_for_temporary_files_goes_even_when_nothing_is_left_to_run(
    tmp_path, monkeypatch
):
    swept = []
    monkeypatch.setattr(execution_run, "remove_folders_left_behind", lambda: swept.append(True))
    ran(tmp_path, TINY, ONCE)
    ran(tmp_path, TINY, ONCE)
    assert len(swept) == 2


def test_an_estimate_comes_from_what_is_stored(tmp_path):
    assert estimate(prepared(tmp_path, TINY)) == (0, 4)
    results = results_of(ran(tmp_path))
    seconds, unknown = estimate(prepared(tmp_path, TINY, rerun="all"))
    assert unknown == 0
    assert 0 < seconds < 4 * (max(result.wall for result in results) + HANDING)
    on_two, _ = estimate(prepared(tmp_path, TINY, rerun="all", jobs=2))
    assert seconds / 2 <= on_two < seconds
    assert estimate(prepared(tmp_path, TINY)) == (0, 0)


# ---- once each ----


@pytest.fixture
def cuts(monkeypatch):
    """The data, split, repetition and rows of every split that is cut."""
    calls = []

    def counted(view, named, seed, repetition, data=None):
        calls.append((named.identity, seed, repetition, data))
        return cut(view, named, seed, repetition, data)

    monkeypatch.setattr(materials, "cut", counted)
    return calls


@pytest.mark.parametrize("kept", [materials.KEPT, 0])
@pytest.mark.parametrize(
    ("experiment", "cells"),
    [(tiny(splits=("n-per-user[n=8,least=5]", "entries")), 8), (tuned(Tune(SPACES, trials=2)), 4)],
    ids=["plain", "with validation parts"],
)
def test_plan_and_run_together_cut_each_split_once(tmp_path, monkeypatch, cuts, kept, experiment, cells):
    monkeypatch.setattr(materials, "KEPT", kept)
    run = ran(tmp_path, experiment)
    assert len(cuts) == len(set(cuts)) == 2 * TINY.repetitions
    assert [result.status for result in results_of(run)] == ["ok"] * cells
    del run
    assert leftovers(tmp_path) == []


def test_numbers_do_not_depend_on_where_splits_are_kept(tmp_path, monkeypatch):
    reference = numbers(ran(tmp_path / "one", tuned()))
    monkeypatch.setattr(materials, "KEPT", 0)
    assert numbers(ran(tmp_path / "two", tuned(), jobs=2)) == reference


def test_each_result_and_the_plan_are_read_once(tmp_path, monkeypatch):
    experiment = tuned(Tune(SPACES, trials=2))
    ran(tmp_path, experiment)
    read = Counter()
    original = Store._read

    def counted(self, path, *options, **named):
        read.update([Path(path)])
        return original(self, path, *options, **named)

    monkeypatch.setattr(Store, "_read", counted)
    run = prepared(tmp_path, experiment)
    assert run.pending_trials == run.pending == () and estimate(run) == (0, 0) and run.reused() == 0
    run.study()
    run.open()
    run.execute(lambda event: None)
    results = [run.store.path(cell) for cell in (*run.plan.trials, *run.plan.cells)]
    (plan,) = (tmp_path / "tiny" / "plans").iterdir()
    assert read == Counter([*results, plan])


def test_results_that_are_made_are_looked_for_only_before_and_when_their_turn_comes(tmp_path, monkeypatch):
    loaded = Counter()
    original = Store.load
    monkeypatch.setattr(Store, "load", lambda self, cell: loaded.update([cell.key]) or original(self, cell))
    run = ran(tmp_path)
    run.study()
    assert loaded == Counter({cell.key: 2 for cell in run.plan.cells})


# ---- numbers that are none ----


def test_a_metric_that_counts_nobody_stops_nothing(tmp_path):
    run = ran(tmp_path, tiny(splits=("entries[test=0.003]",)))  # one held-out row: no pair of items to compare
    results = results_of(run)
    assert [result.status for result in results] == ["ok"] * 4
    assert all(np.isnan(result.value("pairwise-error")) for result in results)
    assert all(result.counted_by("pairwise-error").users == 0 for result in results)
    assert len(shown(run)) == 2
    again = prepared(tmp_path, tiny(splits=("entries[test=0.003]",)))
    assert again.pending == ()
    assert [entry.status for entry in again.study().entries] == ["ok"] * 4
    assert all(np.isnan(entry.result.value("pairwise-error")) for entry in again.study().entries)


@pytest.mark.parametrize(
    ("model", "objective", "reason"),
    [
        ("np.full(train.n_items, np.nan)", "None", "NaN for 240 held-out pairs whose user and item it was trained on"),
        ("np.where(np.arange(train.n_items) < 3, np.nan, 1.0)", "None", "NaN for "),
        ("np.ones(train.n_items)", "lambda: float('nan')", "its objective is nan"),
        ("np.ones(train.n_items)", "lambda: np.float32('inf')", "its objective is inf"),
        ("np.ones(train.n_items)", "lambda: -np.inf", "its objective is -inf"),
    ],
)
def test_a_model_that_is_no_use_has_diverged(tmp_path, model, objective, reason):
    result = alone(tmp_path, f"yield Step(ItemScores({model}), objective={objective})")
    assert result.status == "diverged"
    assert reason in result.reason
    assert [point.step for point in result.curve] == [0, 1] and result.trace is None


@pytest.mark.parametrize(("last", "status"), [(1001, "diverged"), (999, "ok")])
def test_an_objective_that_rose_a_thousandfold_above_the_first_has_diverged(tmp_path, last, status):
    model = "ItemScores(np.ones(train.n_items))"
    lines = (f"yield Step({model}, objective=lambda: {objective})" for objective in (1, 1e9, last))
    result = alone(tmp_path, *lines)
    assert result.status == status
    assert result.reason == ("its objective rose from 1 to 1e+03" if last > 1000 else None)


def shown(run):
    """The statuses of a run's table, of which a page can be made too."""
    assert write_report(ResultsFolder(run.store.folder.parent, silent), silent).is_file()
    return [line[-1] for line in sheet(run.study()).lines]


def test_ratings_that_are_all_alike_stop_nothing(tmp_path):
    rows = "".join(f"{user},{item},3\n" for user in range(20) for item in range(15))
    (tmp_path / "alike.csv").write_text("user,item,value\n" + rows)
    alike = f"csv:{tmp_path / 'alike.csv'}"
    solvers = (with_solver(tmp_path), "sgd")
    run = ran(tmp_path, tiny(data=(alike, *TINY.data), solvers=solvers, splits=("entries[test=0.3]",)), ONCE)
    (mine, *_), others = results_of(run)[:2], results_of(run)[2:]
    assert mine.status == "ok" and np.isnan(mine.value("pairwise-error"))
    assert mine.counted_by("pairwise-error").users == 0
    assert [result.status for result in others] == ["ok"] * 2 and not np.isnan(others[0].value("pairwise-error"))
    assert len(shown(run)) == 4


def test_what_diverged_and_came_back_is_well(tmp_path):
    nan, fine = "np.full(train.n_items, np.nan)", "np.ones(train.n_items)"
    assert alone(tmp_path, f"yield Step(ItemScores({nan}))", f"yield Step(ItemScores({fine}))").status == "ok"


def test_nan_for_items_that_nobody_rated_in_training_is_no_divergence(tmp_path):
    lines = (
        "known = np.zeros(train.n_items, bool)",
        "known[train.items if isinstance(train, Ratings) else [*train.better, *train.worse]] = True",
        "yield Step(ItemScores(np.where(known, np.arange(train.n_items, dtype=float), np.nan)))",
    )
    result = alone(tmp_path, *lines, splits=("cold-items[test=0.3]",))
    assert (result.status, result.reason, result.unscored) == ("ok", None, 1.0)


def test_a_bound_and_an_objective_of_any_kind_of_number_are_kept_as_numbers(tmp_path):
    number = "lambda: np.float32(1.5)"
    line = f"yield Step(ItemScores(np.ones(train.n_items)), objective={number}, gap={number}, bound=np.float32(2))"
    result = alone(tmp_path, line, objective=True)
    point = result.curve[-1]
    assert (result.status, point.objective, point.gap, point.bound) == ("ok", 1.5, 1.5, 2.0)
    assert {type(number) for number in (point.objective, point.gap, point.bound, *point.values)} == {float}
    assert store_in(tmp_path).load(result.cell) == result


def test_an_objective_that_is_infinite_on_the_way_is_kept_as_it_is(tmp_path):
    step = "yield Step(ItemScores(np.ones(train.n_items)), objective=lambda: float({!r}))"
    result = alone(tmp_path, *(step.format(value) for value in ("inf", "nan", "1")), objective=True)
    back = store_in(tmp_path).load(result.cell)
    assert result.status == "ok" and str([point.objective for point in back.curve]) == "[None, inf, nan, 1.0]"


@pytest.mark.parametrize("text", ["\\ud800", "\\x00", "\\n\\n", "x" * 100_000])
def test_whatever_an_exception_says_is_stored(tmp_path, text):
    result = alone(tmp_path, f"raise ValueError('boom {text}')")
    assert result.status == "failed" and result.reason.startswith("ValueError: boom ")
    back = store_in(tmp_path).load(result.cell)
    assert (back.status, back.reason, back.trace) == (result.status, result.reason, result.trace)


def test_a_solver_whose_file_is_edited_meanwhile_is_said_so(tmp_path):
    selection = Selection(solvers=(with_solver(tmp_path),), repetitions=1)
    run = prepared(tmp_path, TINY, selection)
    with_solver(tmp_path, "pass")
    run.execute(lambda event: None)
    (result,) = results_of(run)
    assert result.status == "failed" and "mine.py changed while it was in use: run again" in result.reason
    run = ran(tmp_path, TINY, selection)
    assert [result.status for result in results_of(run)] == ["ok"]
    (stored,) = run.store.plans()
    assert list(stored.planned) == list(run.plan.cells)


# ---- from the command line ----


def interrupted(command, true):
    """Start a driver, interrupt it with all its processes once something is true of it, and return what it said."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True, text=True)
    deadline = time.monotonic() + 180
    while not true(process) and time.monotonic() < deadline:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=180)
    assert process.returncode == 130
    return errors


def test_ctrl_c_that_another_thread_gets_stops_the_run(tmp_path):
    """The system delivers it to any thread, mostly to the first one, which alone can take it and is then not woken."""
    begun = tmp_path / "begun"
    solver = with_solver(tmp_path, f"open({str(begun)!r}, 'w').close()", "time.sleep(20)")
    run = prepared(tmp_path, TINY, Selection(solvers=(solver,), repetitions=1))

    def interrupt():
        while not begun.exists():
            time.sleep(0.01)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    started = time.monotonic()
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run.execute(lambda event: None)
    assert time.monotonic() - started < 15 and results_of(run) == [None]


def test_ctrl_c_keeps_the_finished_cells_and_says_how_to_resume(tmp_path):
    begun, out = tmp_path / "begun", tmp_path / "out"
    solver = with_solver(tmp_path, f"open({str(begun)!r}, 'w').close()", "time.sleep(60)")
    command = [sys.executable, "-m", "rankbench", "run", tiny_toml(tmp_path), "-s", "sgd", "-s", solver, "--no-report"]
    errors = interrupted([*command, "--out", str(out)], lambda process: begun.exists())
    assert "stopped; finished cells kept: 1; resume with: rankbench run" in errors
    assert "Traceback" not in errors
    assert len(list(out.rglob("sgd-*.json"))) == 1


@pytest.mark.trust
@pytest.mark.parametrize("started", range(3))
def test_ctrl_c_before_the_first_cell_is_one_line_too(tmp_path, started):
    """With so many processes beside the driver: the tracker of resources, then the server, which is importing."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "rankbench", "run", tiny_toml(tmp_path), "--no-report", "--out", str(out)]

    def planned(process):
        return list(out.glob("*/plans/*.json")) and len(psutil.Process(process.pid).children()) >= started

    errors = interrupted([*command, "-s", with_solver(tmp_path, "time.sleep(60)")], planned)
    assert errors.count("\n") == 1 and errors.startswith("rankbench: stopped; finished cells kept: 0; resume with:")


@pytest.mark.trust
def test_a_script_that_runs_cells_is_not_imported_again_by_each(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from rankbench import experiments\n"
        "from rankbench.planning.materials import Materials\n"
        "from rankbench.planning.plan import plan\n"
        "from rankbench.records.cells import Selection\n"
        "from rankbench.execution.run import Conditions, Run\n"
        "from rankbench.records.store import Store\n"
        f"print('imported', file=open({str(tmp_path / 'log')!r}, 'a'))\n"
        f"found = experiments.load({tiny_toml(tmp_path)!r})\n"
        f"store, materials = Store(Path({str(tmp_path / 'out')!r}), print), Materials(0)\n"
        "run = Run(plan(found, Selection(), materials), store, Conditions(), materials)\n"
        "run.execute(lambda event: None)\n"
    )
    subprocess.run([sys.executable, str(script)], check=True, timeout=180)
    assert (tmp_path / "log").read_text() == "imported\n"
    assert len(list((tmp_path / "out").rglob("cells/*.json"))) == 4


# ---- two drivers on one folder ----


SLOW = "RANKBENCH_TEST_SLOW"  # set for a driver whose cells take long


def driver(folder, solver, *options, slow=False):
    """A driver that runs the tiny experiment with a solver of one's own, in a process of its own."""
    out = folder / "out"
    command = [sys.executable, "-m", "rankbench", "run", tiny_toml(folder), "-s", solver, "-r", "6", "--no-report"]
    return subprocess.Popen(
        [*command, "--out", str(out), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        env={**os.environ, SLOW: "yes" if slow else ""},
    )


def noting(folder):
    """A solver that writes down each of its trainings, and takes a while for each."""
    return with_solver(
        folder,
        f"with open({str(folder / 'log')!r}, 'a') as file:",
        "    print('trained', file=file)",
        f"time.sleep(60 if os.environ[{SLOW!r}] else 0.3)",
    )


def trainings(folder):
    """How many trainings have begun so far."""
    log = folder / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def ended(process):
    """The exit code of a driver and all that it said."""
    try:
        said, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode, said + errors


def shows_all(said):
    """Whether the one line of the table is over all six repetitions."""
    (row,) = (line for line in said.splitlines() if line.startswith("|") and ":Mine" in line)
    return row.endswith("| 6 | ok |")


def test_two_drivers_on_one_folder_run_each_cell_once_and_both_show_all(tmp_path):
    solver = noting(tmp_path)
    drivers = [driver(tmp_path, solver) for _ in range(2)]
    for code, said in [ended(process) for process in drivers]:
        assert code == 0 and shows_all(said), said
    assert trainings(tmp_path) == 6
    assert len(stamps(tmp_path)) == 6
    assert leftovers(tmp_path / "out") == []


def test_of_drivers_that_join_one_is_killed_one_leaves_and_one_stays_for_the_last_cell(tmp_path):
    solver = noting(tmp_path)
    doomed = driver(tmp_path, solver, "--join", slow=True)
    until(lambda: trainings(tmp_path) == 1)
    leaving = driver(tmp_path, solver, "--join", "--timeout", "50s")
    staying = driver(tmp_path, solver, "--join", "--wait")
    code, said = ended(leaving)
    assert code == 0 and "|" not in said, said  # no table, no scoreboard
    until(lambda: trainings(tmp_path) == 6)
    assert staying.poll() is None and doomed.poll() is None
    os.kill(doomed.pid, signal.SIGKILL)
    code, said = ended(staying)
    ended(doomed)
    assert code == 0 and "6 of 6 cells ended well" in said
    assert trainings(tmp_path) == 7
    assert len(stamps(tmp_path)) == 6


def test_drivers_that_join_begin_at_different_splits_and_keep_each_splits_cells_together(monkeypatch, tmp_path):
    cells = prepared(tmp_path, tiny(repetitions=5)).plan.cells
    orders = []
    for pid in range(40):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        orders.append(_from_own_place(cells))
        assert set(orders[-1]) == set(cells)
        places = [cell.place for cell in orders[-1]]
        assert len(list(groupby(places))) == 5
    assert {order[0].place.repetition for order in orders} == set(range(5))


def test_a_folder_with_another_experiment_of_the_same_name_is_not_joined(tmp_path):
    drivers = [driver(tmp_path, "global")]
    assert ended(drivers[0])[0] == 0
    other = tmp_path / "other"
    other.mkdir()
    arguments = ("run", tiny_toml(other, every="3"), "-s", "global", "--join", "--out", str(tmp_path / "out"))
    command = [sys.executable, "-m", "rankbench", *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert found.returncode == 2 and found.stderr.count("\n") == 1
    assert "has a run of another tiny" in found.stderr and "join it with the same file" in found.stderr


def test_results_of_another_driver_are_taken_over_as_they_come(tmp_path):
    run = prepared(tmp_path, TINY)
    ran(tmp_path)  # meanwhile
    events = []
    run.execute(events.append)
    assert [event.kind for event in events] == ["end"] * 4
    assert results_of(run) == results_of(prepared(tmp_path, TINY)) and run.pending == ()


def test_a_cell_that_another_driver_runs_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("rankbench.execution.run._WAIT", 0.01)
    run = prepared(tmp_path, TINY)
    first, *others = run.plan.cells
    run.store.open()
    events = []
    with run.store.claims() as theirs:
        assert theirs.take(first.key)

        def tell(event):
            events.append((event.kind, event.cell.key))
            if event.kind == "wait":
                assert event.holder.pid == os.getpid()
                run.store.save(made_up(first, 0.5), {})
                theirs.release(first.key)

        run.execute(tell)
    assert events[-2:] == [("wait", first.key), ("end", first.key)]
    assert [key for kind, key in events if kind == "start"] == [cell.key for cell in others]
    assert run.result(first).value("ndcg@5") == 0.5


@pytest.mark.parametrize("status", ["failed", "timeout", "memory", "diverged"])
def test_whatever_did_not_end_well_is_run_again_on_request(tmp_path, status):
    run = prepared(tmp_path, TINY, ONCE)
    run.open()
    first, *others = run.plan.cells
    run.keep(made_up(first, 0.5, status=status, reason="it did not"), {})
    for cell in others:
        run.keep(made_up(cell, 0.5), {})
    assert prepared(tmp_path, TINY, ONCE).pending == ()
    assert prepared(tmp_path, TINY, ONCE, rerun="failed").pending == (first,)


@pytest.mark.parametrize(
    ("beside", "load", "contended"),
    [(True, None, True), (True, 0.9, True), (True, 0.01, False), (False, None, False), (False, 0.9, False)],
)
def test_a_cell_beside_others_is_contended_unless_their_load_is_known_to_be_small(beside, load, contended):
    cell = plan(TINY, ONCE).cells[0]
    assert result_of(cell, replace(ended_early("failed", "boom"), load=load), MACHINE, beside).contended is contended


def test_what_somebody_made_anew_since_is_taken_even_under_force(tmp_path):
    ran(tmp_path, TINY, ONCE)
    run = prepared(tmp_path, TINY, ONCE, rerun="all")
    cell, *others = run.plan.cells
    run.store.save(made_up(cell, 0.25, finished="2026-02-03T04:05:06+00:00"), {})  # another driver, after we looked
    started = []
    run.execute(lambda event: started.append(event.cell) if event.kind == "start" else None)
    assert run.result(cell).value("ndcg@5") == 0.25
    assert started == others


def test_what_a_split_says_was_seen_is_no_candidate(tmp_path):
    experiment = tiny(
        splits=("binary[C=30,test=0.3]",),
        metrics=("precision@3[candidates=catalogue,relevant=any]",),
        solvers=("global",),
    )
    run = ran(tmp_path, experiment, ONCE)
    (cell,) = run.plan.cells
    parts = materials.Materials(0).split(cell.place)
    assert parts.seen is not None
    solver, place = cell.solver.record, cell.place
    rng = stream(0, "solver", place.data.identity, place.split.identity, "global", 0)
    *_, last = checkpoints(solver.steps(offer(solver, parts.train), rng), Budget(steps=3))
    (label,) = experiment.metrics
    found = evaluate(last.step.model, parts.test, [label], train=parts.seen)[label]
    assert run.result(cell).value(label) == found
    assert found != evaluate(last.step.model, parts.test, [label], train=parts.train)[label]


@pytest.mark.parametrize(
    ("figure", "cells"), [(Figure("speedup"), 1), (Figure("curve"), 1), (Figure("curve", x="step"), 2), (Figure(), 2)]
)
def test_cells_whose_seconds_are_drawn_run_one_at_a_time(tmp_path, figure, cells):
    run = prepared(tmp_path, tuned(figure=figure), jobs=2)
    assert most_at_a_time(run, lambda cell: cell.is_trial, apart=True) == {False: cells, True: 2}


def test_a_folder_without_locks_and_links_will_do(tmp_path, monkeypatch):
    lock = fcntl.flock

    def refuse(*arguments, **options):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    def lock_elsewhere(handle, operation):
        (refuse if os.readlink(f"/proc/self/fd/{handle}").startswith(str(tmp_path)) else lock)(handle, operation)

    monkeypatch.setattr(fcntl, "flock", lock_elsewhere)
    monkeypatch.setattr(os, "link", refuse)
    run = ran(tmp_path)
    assert [run.result(cell).status for cell in run.plan.cells] == ["ok"] * 4
    assert not list(tmp_path.rglob("*.claim")) and not list(tmp_path.rglob("*.permit"))


def test_a_time_limit_shorter_than_the_heartbeat_ends_a_cell_and_frees_it_for_others(tmp_path):
    solver = with_solver(tmp_path, f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)")
    selection = Selection(solvers=(solver,), repetitions=1)
    assert inspect.signature(Claims).parameters["lease"].default / 4 > 0.3  # the heart has not beaten yet
    first = ran(tmp_path / "out", tiny(), selection, caps=Caps(seconds=0.3))
    (cell,) = first.plan.cells
    assert first.result(cell).status == "timeout" and not list((tmp_path / "out").rglob("*.claim"))
    (tmp_path / "go").touch()
    second = ran(tmp_path / "out", tiny(), selection, rerun="failed", join=True, wait=False)
    assert second.result(cell).status == "ok"


@pytest.mark.parametrize("minutes", [-10, 10])
def test_drivers_on_nodes_whose_clocks_are_minutes_apart_share_a_plan_and_its_results(tmp_path, monkeypatch, minutes):
    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(minutes=minutes)

    with monkeypatch.context() as there:
        there.setattr("rankbench.execution.run.datetime", Clock)
        ran(tmp_path, selection=Selection(solvers=("global[lam=10]",)), join=True, wait=False)
    ran(tmp_path, selection=Selection(solvers=("sgd[rank=2]",)), join=True, wait=False)
    found = study(ResultsFolder(tmp_path, print), "tiny")
    assert sorted((entry.cell.solver.name, entry.status) for entry in found.entries) == [
        *[("global", "ok")] * 2,
        *[("sgd", "ok")] * 2,
    ]
    assert prepared(tmp_path, TINY).pending == ()
