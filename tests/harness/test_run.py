"""Runs: isolation, limits, resume, failures, and equal results however they were run."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import TINY, tiny, tiny_toml, with_solver

from rankbench.errors import UserError
from rankbench.harness.isolation import Caps
from rankbench.harness.plan import Materials, Selection, plan
from rankbench.harness.run import Conditions, estimate, pending, run
from rankbench.harness.store import Result, Store


def ran(tmp_path, experiment=TINY, selection=None, **conditions):
    """Run an experiment; the results in the order of the plan."""
    made = plan(experiment, selection or Selection())
    run(made, Conditions(tmp_path, **conditions), lambda event: None)
    store = Store(tmp_path, experiment.name)
    return [store.load(cell) for cell in made.cells]


def alone(tmp_path, *lines, caps=None, **changes):
    """The one result of a user's solver that goes on with these lines."""
    selection = Selection(solvers=(with_solver(tmp_path, *lines),), repetitions=1)
    (result,) = ran(tmp_path, tiny(**changes), selection, caps=caps or Caps())
    return result


def numbers(results: list[Result]):
    """All that must not depend on when and where a cell ran."""
    return [(r.key, r.status, r.metrics, [(p["step"], p["metrics"]) for p in r.curve]) for r in results]


def test_every_cell_ends_well_and_says_what_it_measured(tmp_path):
    results = ran(tmp_path)
    assert [result.status for result in results] == ["ok"] * 4
    first = results[0]
    assert set(first.metrics) == {"pairwise-error", "ndcg@5"}
    assert first.seconds > 0 and first.peak_mb > 10 and first.fingerprint and first.machine["cpu"]
    assert [point["step"] for point in results[1].curve] == [0, 1, 2, 3]


def test_the_same_seed_gives_the_same_numbers_alone_side_by_side_and_in_parts(tmp_path):
    reference = numbers(ran(tmp_path / "one"))
    assert numbers(ran(tmp_path / "two", jobs=2)) == reference
    ran(tmp_path / "three", selection=Selection(solvers=("sgd",)))
    assert numbers(ran(tmp_path / "three")) == reference
    assert numbers(ran(tmp_path / "four", selection=Selection(seed=1))) != reference


def test_threads_change_no_metric(tmp_path):
    one, three = (ran(tmp_path / str(n), selection=Selection(threads=n)) for n in (1, 3))
    assert [result.metrics for result in one] == [result.metrics for result in three]


def test_each_users_value_is_kept_and_averages_to_the_metric(tmp_path):
    result = ran(tmp_path)[0]
    store = Store(tmp_path, "tiny")
    values = store.per_user(plan(TINY, Selection()).cells[0])["ndcg@5"]
    assert np.nanmean(values) == result.metrics["ndcg@5"]
    assert int(np.isnan(values).sum()) == result.left_out["ndcg@5"]


def test_what_is_there_is_not_run_again(tmp_path):
    made = plan(TINY, Selection())
    store = Store(tmp_path, "tiny")
    ran(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json") if path.parent.name == "cells"}
    assert pending(made, store, Conditions(tmp_path)) == ()
    ran(tmp_path)
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert pending(made, store, Conditions(tmp_path, force=True)) == made.cells


def test_a_timed_run_replaces_contended_results(tmp_path):
    assert all(result.contended for result in ran(tmp_path, jobs=2))
    assert not any(result.contended for result in ran(tmp_path))


def test_a_failed_cell_stops_nobody_and_is_retried_on_request(tmp_path):
    made = plan(TINY, Selection(solvers=(with_solver(tmp_path, "raise ValueError('boom')"), "sgd"), repetitions=1))
    run(made, Conditions(tmp_path), lambda event: None)
    store = Store(tmp_path, "tiny")
    failed, good = (store.load(cell) for cell in made.cells)
    assert (failed.status, failed.reason, good.status) == ("failed", "ValueError: boom", "ok")
    assert "boom" in failed.trace
    assert pending(made, store, Conditions(tmp_path)) == ()
    assert pending(made, store, Conditions(tmp_path, retry_failed=True)) == made.cells[:1]


@pytest.mark.parametrize(
    ("line", "status", "reason"),
    [
        ("os._exit(3)", "failed", "exit code 3"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "failed", "exit code -11"),
        ("raise MemoryError", "memory", "out of memory"),
        ("yield Step(ItemScores(np.zeros(2)))", "failed", "IndexError"),
    ],
)
def test_however_a_process_dies_the_cell_says_so(tmp_path, line, status, reason):
    result = alone(tmp_path, line)
    assert result.status == status
    assert reason in result.reason


def test_too_long_is_a_timeout_and_keeps_the_curve_so_far(tmp_path):
    result = alone(tmp_path, "time.sleep(60)", caps=Caps(seconds=1.5))
    assert (result.status, result.reason) == ("timeout", "took longer than 1.5 s")
    assert [point["step"] for point in result.curve] == [0]


def test_too_much_memory_is_said_so(tmp_path):
    lines = ("kept = []", "while True:", "    kept.append(np.ones(1_000_000))", "    time.sleep(0.005)")
    result = alone(tmp_path, *lines, caps=Caps(seconds=60, memory=300 * 2**20))
    assert (result.status, result.reason) == ("memory", "took more than 300 MiB")


def test_the_clock_stands_still_while_a_model_is_scored(tmp_path):
    lines = (
        "class Slow:",
        "    def score(self, users, items):",
        "        time.sleep(0.4)",
        "        return np.zeros(len(users))",
        "yield Step(Slow())",
    )
    result = alone(tmp_path, *lines)
    assert result.seconds < 0.2
    assert result.wall > 0.4


def test_the_last_model_before_the_end_is_always_scored(tmp_path):
    lines = ("for _ in range(4):", "    yield Step(ItemScores(np.ones(train.n_items)))")
    result = alone(tmp_path, *lines, every=3, budget=TINY.budget.__class__(steps=100))
    assert [point["step"] for point in result.curve] == [0, 3, 4]
    assert result.stopped == "solver"


def test_a_cells_process_has_one_blas_thread(tmp_path):
    lines = (
        "from threadpoolctl import threadpool_info",
        "import scipy.linalg",
        "most = max(p['num_threads'] for p in threadpool_info() if p['user_api'] == 'blas')",
        "raise ValueError(f'blas threads {most}')",
    )
    assert alone(tmp_path, *lines).reason == "ValueError: blas threads 1"


def test_a_result_cut_short_is_set_aside_and_made_anew(tmp_path):
    ran(tmp_path)
    path = next((tmp_path / "tiny" / "cells").glob("sgd-*.json"))
    path.write_text(path.read_text()[:200])
    assert [result.status for result in ran(tmp_path)] == ["ok"] * 4
    assert path.with_suffix(".json.broken").exists()


def test_a_full_disk_is_one_line_and_what_was_finished_stays(tmp_path, monkeypatch):
    made = plan(TINY, Selection())
    saved = Store.save

    def save(self, cell, result, per_user):
        if cell == made.cells[2]:
            raise OSError(28, "No space left on device")
        saved(self, cell, result, per_user)

    monkeypatch.setattr(Store, "save", save)
    with pytest.raises(UserError, match=r"No space left on device; .* are kept"):
        run(made, Conditions(tmp_path), lambda event: None)
    monkeypatch.undo()
    assert pending(made, Store(tmp_path, "tiny"), Conditions(tmp_path)) == made.cells[2:]


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write to .* choose another folder with --out"):
        run(plan(TINY, Selection()), Conditions(tmp_path / "file" / "out"), lambda event: None)


def test_nothing_is_left_behind(tmp_path):
    ran(tmp_path)
    assert not list(tmp_path.rglob(".work-*")) and not list(tmp_path.rglob("*.partial"))


def test_an_estimate_comes_from_what_is_stored(tmp_path):
    made = plan(TINY, Selection())
    store = Store(tmp_path, "tiny")
    assert estimate(made, made.cells, store) == (0, 4)
    results = ran(tmp_path)
    seconds, unknown = estimate(made, made.cells, store)
    assert unknown == 0
    assert 0 < seconds < 4 * max(result.wall for result in results)


def test_a_split_is_made_once_for_the_solvers_that_share_it(tmp_path, monkeypatch):
    made, calls = plan(TINY, Selection()), []
    original = Materials.split
    monkeypatch.setattr(Materials, "split", lambda self, *place: calls.append(place) or original(self, *place))
    run(made, Conditions(tmp_path), lambda event: None)
    assert len(calls) == TINY.repetitions


def test_ctrl_c_keeps_the_finished_cells_and_says_how_to_resume(tmp_path):
    solver = with_solver(tmp_path, "time.sleep(60)")
    command = [sys.executable, "-m", "rankbench", "run", tiny_toml(tmp_path), "-s", "sgd", "-s", solver, "--no-report"]
    out = tmp_path / "out"
    process = subprocess.Popen([*command, "--out", str(out)], stderr=subprocess.PIPE, start_new_session=True, text=True)
    deadline = time.monotonic() + 60
    while not list(out.rglob("sgd-*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "stopped; finished cells kept: 1; resume with: rankbench run" in errors
    assert "Traceback" not in errors
    assert len(list(out.rglob("sgd-*.json"))) == 1


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.25])
def test_ctrl_c_before_the_first_cell_is_one_line_too(tmp_path, delay):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "rankbench", "run", tiny_toml(tmp_path), "--no-report", "--out", str(out)]
    process = subprocess.Popen(
        [*command, "-s", with_solver(tmp_path, "time.sleep(60)")],
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(out.rglob("plan.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(delay)  # by now the process that cells are forked from is importing
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.count("\n") == 1 and errors.startswith("rankbench: stopped; finished cells kept: 0; resume with:")


def test_the_plan_records_what_the_report_needs(tmp_path):
    ran(tmp_path, selection=Selection(solvers=("sgd",)))
    ran(tmp_path, selection=Selection(solvers=("global",)))
    record = json.loads(Path(tmp_path, "tiny", "plan.json").read_text())
    assert len(record["cells"]) == 4
    ran(tmp_path, tiny(title="Another definition"), Selection(solvers=("sgd",)))
    assert len(json.loads(Path(tmp_path, "tiny", "plan.json").read_text())["cells"]) == 2


def test_a_script_that_runs_cells_is_not_imported_again_by_each(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from rankbench import experiments\n"
        "from rankbench.harness.plan import Selection, plan\n"
        "from rankbench.harness.run import Conditions, run\n"
        f"print('imported', file=open({str(tmp_path / 'log')!r}, 'a'))\n"
        f"found = experiments.load({tiny_toml(tmp_path)!r})\n"
        f"run(plan(found, Selection()), Conditions(Path({str(tmp_path / 'out')!r})), lambda event: None)\n"
    )
    subprocess.run([sys.executable, str(script)], check=True, timeout=60)
    assert (tmp_path / "log").read_text() == "imported\n"
    assert len(list((tmp_path / "out").rglob("cells/*.json"))) == 4
