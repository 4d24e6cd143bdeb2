"""Results of format 2 can be read, under the keys that they were stored with."""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers import MACHINE, TINY, prepared, ran, store_in, tiny, tuned

from rankbench.arrays.npz import write_npz
from rankbench.planning.plan import plan
from rankbench.records.cells import Selection
from rankbench.records.merge import carry_out, survey
from rankbench.records.results import Counted, RankingFunction, Weight
from rankbench.records.store import ResultsFolder
from rankbench.report.render.tables import rows
from rankbench.report.study import study

KEYS = {  # of the tiny experiment's first repetition, made as format 2 made them; those of sgd's version 2
    "global": "97f5ff1e5e9ddb027d5d620fa439418ed3600051864df4846d8609381b6a0cea",
    "sgd": "86cb22356b6312e3b1ca4aab5c1b3e495b32a0d4ae320c87f303532629d8249e",
}


def written_then(cell, **changes):
    """What format 2 wrote of a result: no number of the format, metrics by name, null for NaN, pairs for weights."""
    point = {"step": 0, "seconds": 0.25, "metrics": {"pairwise-error": 0.5, "ndcg@5": None}}
    last = {"step": 3, "seconds": 1.5, "metrics": {"pairwise-error": 0.125, "ndcg@5": 0.75}}
    machine = {
        "cpu": "a processor",
        "cores": 2,
        "usable_cores": 2,
        "memory_gib": 8.0,
        "system": "Linux 6 x86_64",
        "python": "3.12.0",
        "blas": ["openblas 0.3 (Haswell)"],
        "compiler": "gcc 12",
        "openmp": 201511,
        "native": False,
        "debug": False,
        "packages": {"rankbench": "0.1.0", "numpy": "2.4.0", "scipy": "1.16.0"},
        "git": "abc123",
    }
    return {
        "key": cell.key,
        "cell": {
            "data": cell.place.data.identity,
            "split": cell.place.split.identity,
            "split_hash": cell.split_hash,
            "repetition": cell.place.repetition,
            "seed": cell.seed,
            "solver": cell.solver.name,
            "settings": dict(cell.solver.settings),
            "version": cell.version,
            "determinism": cell.determinism.value,
            "metrics": [measure.identity for measure in cell.measures],
            "metric_versions": [1, 1],
            "budget": {"steps": 3, "seconds": None, "tolerance": None},
            "every": 1,
            "objective": False,
            "threads": 1,
            "validation": "",
            "tuned": [],
            "texts": ["low-rank[users=20,items=30,per_user=20]", "n-per-user[n=8,least=5]", cell.solver.written],
        },
        "status": "ok",
        "reason": None,
        "curve": [{**point, "objective": None, "gap": 2.5}, {**last, "objective": 7.5, "bound": 3.0}],
        "metrics": last["metrics"],
        "left_out": {"pairwise-error": 0, "ndcg@5": 4},
        "unscored": 0.0,
        "seconds": 1.5,
        "wall": 2.0,
        "peak_mb": 50.0,
        "contended": False,
        "machine": machine,
        "fingerprint": "0123456789ab",
        "finished": "2025-01-02T03:04:05+00:00",
        "trace": None,
        "stopped": "budget",
        "basis": [{"positive": [["war", 2.0], ["drama", 0.5]], "negative": [["comedy", -1.0]]}],
        **changes,
    }


def stored_then(out, cells, **changes):
    """Write results of format 2 for these cells."""
    store = store_in(out)
    store.open()
    for cell in cells:
        store.path(cell).write_text(json.dumps(written_then(cell, **changes), indent=1, allow_nan=False))
        write_npz(store.path(cell).with_suffix(".npz"), {"ndcg@5": np.ones(20)})
    return store


@pytest.fixture
def cell():
    """A cell of the tiny experiment."""
    return plan(TINY, Selection(repetitions=1)).cells[1]


def test_cells_have_the_keys_and_files_that_they_had_in_format_2(tmp_path):
    now = plan(TINY, Selection(repetitions=1)).cells
    cells = [replace(cell, version=2) if cell.solver.name == "sgd" else cell for cell in now]  # sgd's version then
    assert {cell.solver.name: cell.key for cell in cells} == KEYS
    assert {store_in(tmp_path).path(cell).name for cell in cells} == {f"{n}-{key[:16]}.json" for n, key in KEYS.items()}


def test_all_that_format_2_said_of_a_result_is_there(tmp_path, cell):
    result = stored_then(tmp_path, [cell]).load(cell)
    assert (result.cell, result.status, result.reason, result.trace) == (cell, "ok", None, None)
    assert result.stopped == "budget"
    assert [(point.step, point.seconds, point.gap, point.bound) for point in result.curve] == [
        (0, 0.25, 2.5, None),
        (3, 1.5, None, 3.0),
    ]
    assert [point.objective for point in result.curve] == [None, 7.5]
    assert result.curve[0].values[0] == 0.5 and np.isnan(result.curve[0].values[1])
    assert (result.value("pairwise-error"), result.value("ndcg@5")) == (0.125, 0.75)
    assert (result.seconds, result.wall, result.peak_mb, result.unscored) == (1.5, 2.0, 50.0, 0.0)
    assert (result.contended, result.finished) == (False, "2025-01-02T03:04:05+00:00")
    assert result.functions == (RankingFunction((Weight("war", 2.0), Weight("drama", 0.5)), (Weight("comedy", -1.0),)),)


def test_its_machine_is_the_same_but_for_what_nobody_noted(tmp_path, cell):
    found = stored_then(tmp_path, [cell]).load(cell).machine
    assert found.kernels == "" and found.git == "abc123" and found.level == "baseline"
    assert found.fingerprint == MACHINE.fingerprint and found.basis != MACHINE.basis


def test_what_format_2_did_not_know_is_unknown(tmp_path, cell):
    result = stored_then(tmp_path, [cell]).load(cell)
    assert (result.load, result.prepare, result.imported) == (None, None, ())
    assert not result.disturbed and result.counted_by("ndcg@5") in (None, Counted(16, 4))


def test_a_failure_of_format_2_is_one_still(tmp_path, cell):
    nothing = {"curve": [], "metrics": {}, "left_out": {}, **dict.fromkeys(("unscored", "seconds", "peak_mb", "basis"))}
    told = {"status": "timeout", "reason": "took longer than 1 s", "trace": "Traceback", "stopped": None}
    result = stored_then(tmp_path, [cell], **nothing, **told).load(cell)
    assert (result.status, result.reason, result.trace) == ("timeout", "took longer than 1 s", "Traceback")
    assert result.curve == result.functions == () and result.seconds is None and np.isnan(result.value("ndcg@5"))


def test_nothing_of_format_2_is_run_again_and_all_of_it_is_shown(tmp_path):
    stored_then(tmp_path, plan(TINY, Selection()).cells)
    started = []
    run = ran(tmp_path, tell=started.append)
    assert started == [] and run.reused() == 4  # of kernels that nobody noted
    assert prepared(tmp_path, TINY, strict=True).pending == run.plan.cells
    found = study(ResultsFolder(tmp_path, print), "tiny")
    assert {row.measured for row in rows(found) if row.metric == "ndcg@5"} == {0.75}
    assert len(list(run.store.summaries())) == 4 and run.store.set_aside() == []


def test_results_of_format_2_are_merged_with_the_cells_of_the_plan(tmp_path):
    cells = plan(TINY, Selection()).cells
    stored_then(tmp_path / "old", cells)
    prepared(tmp_path / "old", TINY).open()
    target, source = ResultsFolder(tmp_path / "all", print), ResultsFolder(tmp_path / "old", print)
    (merge,) = survey(target, [("old", source)], print)
    carry_out(target, merge, print)
    assert merge.count("new") == 4
    assert {prepared(tmp_path / "all", TINY).result(cell).value("ndcg@5") for cell in cells} == {0.75}


def test_trials_of_format_2_decide_still(tmp_path):
    made = plan(tuned(), Selection(repetitions=1))
    store = store_in(tmp_path)
    store.open()
    for number, trial in enumerate(made.trials):
        curve = [{"step": 3, "seconds": 1.0, "metrics": {"ndcg@5": 0.5 + number % 3 / 10}}]
        store.path(trial).write_text(json.dumps(written_then(trial, curve=curve)))
    run = prepared(tmp_path, tuned(), Selection(repetitions=1))
    assert run.pending_trials == () and [cell.solver.settings for cell in run.plan.cells] == [
        search.trials[2].solver.settings for search in made.searches
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"curve": [{"step": 0, "seconds": 1.0, "metrics": {}}]}, "not a result of format 2"),
        ({"curve": [{"seconds": 1.0, "metrics": {"pairwise-error": 1.0, "ndcg@5": 1.0}}]}, "not a result of format 2"),
        ({"curve": None}, "not a result of format 2"),
        ({"curve": ["x"]}, "not a result of format 2"),
        ({"machine": None}, "not a result of format 2"),
        ({"machine": {"cpu": "x", "packages": {}}}, "Machine has no"),
        ({"machine": []}, "not a result of format 2"),
        ({"basis": [{"positive": []}]}, "not a result of format 2"),
        ({"basis": [{"positive": [["war"]], "negative": []}]}, "not a result of format 2"),
        ({"status": "fine"}, "'fine' is none of ok"),
        ({"wall": None}, "expected a number, not None"),
    ],
)
def test_what_is_no_result_of_format_2_is_set_aside_in_one_line(tmp_path, cell, changes, reason):
    stored_then(tmp_path, [cell], **changes)
    warnings = []
    store = ResultsFolder(tmp_path, warnings.append).store("tiny")
    assert store.load(cell) is None
    (warning,) = warnings
    assert reason in warning and "\n" not in warning and warning.endswith(".json.broken")


def test_results_of_another_experiment_have_other_keys(tmp_path):
    stored_then(tmp_path, plan(TINY, Selection()).cells)
    assert len(prepared(tmp_path, tiny(every=2)).pending) == 4
