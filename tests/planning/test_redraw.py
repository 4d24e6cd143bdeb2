"""What a repetition draws anew: all by default, and with fewer sources the others are those of the first repetition."""

from dataclasses import replace

import pytest
from helpers import SPACES, TINY, prepared, ran, store_in, tiny, tuned

from rankbench.core.errors import UserError
from rankbench.execution.worker import rng_of
from rankbench.experiments.spaces import Tune
from rankbench.planning.materials import Materials
from rankbench.planning.plan import plan
from rankbench.records.cells import SOURCES, Selection, redraws
from rankbench.records.codec import Unreadable, encode, parsed
from rankbench.records.plan_files import file_of, plan_of
from rankbench.report.study import study
from rankbench.verification.plans import planned_again

START = Selection(redraw=("start",))


def of_repetition(found, number):
    """The cells of a repetition."""
    return [cell for cell in found if cell.place.repetition == number]


def drawn(cell):
    """The first numbers that a cell's solver draws."""
    return rng_of(cell).random(3).tolist()


@pytest.mark.parametrize("experiment", [TINY, tuned()])
@pytest.mark.parametrize("sources", [("splits",), ("search",), ("start",), ("search", "start")])
def test_the_first_repetition_is_the_same_whatever_is_redrawn(experiment, sources):
    usual, made = (plan(experiment, Selection(redraw=each)) for each in (SOURCES, sources))
    assert of_repetition(made.trials, 0) == of_repetition(usual.trials, 0)
    assert of_repetition(made.planned, 0) == of_repetition(usual.planned, 0)
    assert not {cell.key for cell in of_repetition(usual.planned, 1)} & {cell.key for cell in made.planned}


def test_the_search_is_no_matter_of_solvers_that_are_not_tuned():
    usual, made = plan(TINY, Selection()), plan(TINY, Selection(redraw=("splits", "start")))
    assert made.planned == usual.planned and made.held == () == usual.held


def test_with_starts_alone_the_rows_are_the_same_and_the_random_numbers_are_not():
    made = plan(TINY, START)
    first, second = (of_repetition(made.cells, number) for number in (0, 1))
    assert [cell.split_hash for cell in first] == [cell.split_hash for cell in second]
    assert all(drawn(one) != drawn(other) for one, other in zip(first, second, strict=True))
    assert made.held == ("splits",)
    materials = Materials(0)
    assert materials.split(second[0].place).hash == second[0].split_hash


def test_with_splits_alone_the_random_numbers_are_the_same_and_the_rows_are_not():
    made = plan(TINY, Selection(redraw=("splits",)))
    first, second = (of_repetition(made.cells, number) for number in (0, 1))
    assert all(one.split_hash != other.split_hash for one, other in zip(first, second, strict=True))
    assert list(map(drawn, first)) == list(map(drawn, second))


def test_a_search_redraws_its_rows_its_candidates_and_the_starts_of_its_trials():
    held, alone = (plan(tuned(), Selection(redraw=each)) for each in (("splits", "start"), ("search",)))
    first, second = (of_repetition(held.trials, number) for number in (0, 1))
    assert [cell.solver for cell in first] == [cell.solver for cell in second]
    assert list(map(drawn, first)) == list(map(drawn, second))
    assert {cell.split_hash for cell in first}.isdisjoint(cell.split_hash for cell in second)  # of other training rows
    first, second = (of_repetition(alone.trials, number) for number in (0, 1))
    assert not {cell.solver for cell in first} & {cell.solver for cell in second}
    assert all(drawn(one) != drawn(other) for one, other in zip(first, second, strict=True))
    assert {cell.split_hash for cell in first}.isdisjoint(cell.split_hash for cell in second)
    assert len({cell.split_hash for cell in alone.planned}) == 1


def test_a_held_start_is_that_of_the_chosen_model_and_not_of_the_trials():
    one, other = (plan(tuned(), Selection(redraw=each)) for each in (("search",), ("search", "start")))
    assert [cell.key for cell in one.trials] == [cell.key for cell in other.trials]
    assert {cell.key for cell in one.planned} != {cell.key for cell in other.planned}


def test_a_shared_search_is_that_of_the_first_repetition():
    shared = Tune(SPACES, trials=3, per="split")
    made = plan(tuned(shared), Selection(redraw=("start",)))
    assert made.trials == plan(tuned(shared), Selection()).trials


def test_sources_are_named_in_any_order_and_a_wrong_one_says_which_there_are():
    assert redraws("start, splits") == ("splits", "start") == redraws(["start", "splits"])
    with pytest.raises(UserError, match="'starts'; did you mean 'start'"):
        redraws("starts")
    with pytest.raises(UserError, match="search"):
        redraws("")


def test_a_plan_that_holds_something_is_stored_in_a_file_of_its_own_and_read_again(tmp_path):
    usual, made = (replace(plan(tuned(), each), searches=()) for each in (Selection(), Selection(redraw=("start",))))
    store = store_in(tmp_path)
    store.open()
    for one in (usual, made):
        store.write_plan(one)
        assert plan_of(parsed(encode(file_of(one)))) == one
    assert {path.name for path in store.folder.glob("plans/*")} == {"quick-0.json", "quick-0-held-splits-search.json"}
    content = parsed(encode(file_of(made)))
    rows = content["cells"]["cells"]
    content["cells"]["cells"] = (*rows[:-1], (*rows[-1][:-1], ("nothing",)))
    with pytest.raises(Unreadable, match="nothing"):
        plan_of(content)


@pytest.mark.slow
def test_a_run_of_starts_alone_reuses_the_first_repetition_and_the_usual_run_stays_the_one_shown(tmp_path):
    usual = ran(tmp_path, TINY)
    run = prepared(tmp_path, TINY, START)
    assert [cell.place.repetition for cell in run.pending] == [1, 1]
    again = ran(tmp_path, TINY, START)
    folder = store_in(tmp_path).folder
    results = [result.model for result in again.study().results]
    assert len(set(results)) == 3  # of the global ranking, which draws nothing, and of two starts of sgd
    from rankbench.records.store import ResultsFolder

    found = study(ResultsFolder(folder.parent, pytest.fail), TINY.name)
    assert found.plan.planned == usual.plan.planned
    assert any("redrawing search and start alone" in note for note in found.notes)
    assert planned_again(again.study(), Materials(0)).findings == ()
    assert planned_again(again.study(), Materials(0)).left_out[:0] == ()


def test_a_tiny_experiment_without_repetitions_holds_nothing():
    assert plan(tiny(repetitions=1), START).held == ()
