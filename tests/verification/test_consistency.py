"""What contradicts itself in a single stored result is named."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import prepared, ran, tiny

from rankbench.records.archive import METADATA
from rankbench.records.cells import Selection
from rankbench.records.plans import Failure
from rankbench.records.store import values_of
from rankbench.verification import files, plans
from rankbench.verification.consistency import contradictions


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A result and its values for each user."""
    run = ran(tmp_path_factory.mktemp("stored"), selection=Selection(solvers=("sgd",), repetitions=1))
    (cell,) = run.plan.cells
    return run.result(cell), values_of(run.store.cells, cell)


def later(result, **changes):
    """The result with other steps or seconds at its last point."""
    return replace(result, curve=(*result.curve[:-1], replace(result.curve[-1], **changes)))


def test_an_honest_result_contradicts_nothing(stored):
    assert list(contradictions(*stored)) == []


CHANGES = {
    "it was trained on another split than its cell says": lambda result: replace(result, split="0" * 16),
    "its curve is not evaluated at every": lambda result: replace(
        result, curve=(replace(result.curve[0], step=7), *result.curve[1:])
    ),
    "the seconds of its curve do not rise": lambda result: later(result, seconds=-1.0),
    "its curve ends at step 1000": lambda result: later(result, step=1000),
    "it ended as ok, and has no curve": lambda result: replace(result, curve=()),
    "its values for users do not have the digest": lambda result: replace(result, values="0" * 64),
    "it does not count the users of each metric": lambda result: replace(result, counted=()),
    "it ended as failed, and has values for users": lambda result: replace(result, status="failed", reason="x"),
}


@pytest.mark.parametrize("said", CHANGES)
def test_what_was_changed_in_a_result_is_named(stored, said):
    result, arrays = stored
    assert any(line.startswith(said) for line in list(contradictions(CHANGES[said](result), arrays)))


def test_values_of_other_metrics_and_of_other_users_are_named(stored):
    result, arrays = stored
    label = result.cell.measures[0].label
    fewer = {**arrays, label: np.where(np.arange(len(arrays[label])) == 0, np.nan, arrays[label])}
    for changed, said in (
        ({**arrays, "mine": np.zeros(3)}, "it has values for users of mine, which it does not measure"),
        ({name: one for name, one in arrays.items() if name != label}, f"it has no values for users of {label}"),
        (fewer, f"it does not count the users of {label} as they are"),
    ):
        assert said in list(contradictions(result, changed))


def test_metrics_cells_and_failures_that_an_experiment_does_not_make_are_named(tmp_path):
    plan = prepared(tmp_path, tiny(), Selection(solvers=("sgd",))).plan
    cell = plan.cells[0]
    assert [one.seen for one in plans._of_measures(replace(plan, measures=plan.measures[:1]), [plan])] == [
        "its metrics are not those of its experiment"
    ]
    (found,) = plans._of_cells([replace(cell, tuned=("rank",))], {cell.key: cell})
    assert "is described otherwise than its experiment does: tuned" in found.seen
    (found,) = plans._of_failures(replace(plan, failures=(Failure(cell, "no trial ended well"),)), [plan])
    assert "is said to have failed in its trials, which do not say so" in found.seen


def test_an_archive_whose_page_cannot_be_made_and_one_of_another_version_are_named(tmp_path, monkeypatch):
    run = ran(tmp_path / "out", selection=Selection(solvers=("sgd",), repetitions=1))
    asked = (tmp_path / "out", run.store, run.plan, run.study())
    (tmp_path / "out" / METADATA).write_text("{}")
    monkeypatch.setattr(files.rankbench, "__version__", "0.0.1")
    seen = [one.seen for one in files.of_archive(*asked)]
    assert any(line.startswith("it was made by rankbench ") and line.endswith("this is 0.0.1") for line in seen)

    def fail(*asked):
        raise ZeroDivisionError("nothing to divide by")

    monkeypatch.setattr(files, "files_of", fail)
    (found,) = files.of_archive(*asked)
    assert found.seen.startswith("its page and its tables cannot be made again: ZeroDivisionError")
