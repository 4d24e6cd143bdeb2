"""Records are immutable, including their contents; and their derived properties."""

from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from enum import Enum
from math import isnan
from types import MappingProxyType

import numpy as np
import pytest
from helpers import SPACES, TINY, absent_data, made_up, prepared, ran, store_in, tuned, with_solver

from rankbench import experiments
from rankbench.core.errors import UserError
from rankbench.data import DATASETS
from rankbench.experiments.spaces import Tune
from rankbench.planning.plan import plan
from rankbench.records.cells import Selection
from rankbench.records.differences import differences, distance_of_users
from rankbench.records.store import ResultsFolder
from rankbench.records.studies import Entry, Study
from rankbench.report.study import studies

PLAIN = (str, int, float, bool, type(None))


def changeable(value: object, path: str = "") -> Iterator[str]:
    """Where inside a value there is something that could be changed."""
    if isinstance(value, Enum) or type(value) in PLAIN:
        return
    if isinstance(value, tuple):
        for number, entry in enumerate(value):
            yield from changeable(entry, f"{path}[{number}]")
    elif isinstance(value, MappingProxyType):
        for key, entry in value.items():
            yield from changeable(key, f"{path} key {key!r}")
            yield from changeable(entry, f"{path}[{key!r}]")
    elif is_dataclass(value) and type(value).__dataclass_params__.frozen:
        for name, entry in vars(value).items():  # what properties have cached too
            yield from changeable(entry, f"{path}.{name}")
    else:
        yield f"{path} is a {type(value).__name__}"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Everything that a small run makes: of trials, a failure, a divergence, a skip, and what is stored of them."""
    folder = tmp_path_factory.mktemp("made")
    lines = ("if self.mode == 'b': raise ValueError('boom')", "yield Step(ItemScores(np.full(train.n_items, np.nan)))")
    own = with_solver(folder, *lines)
    space = {**SPACES, "mprank": {}, "mine.py:Mine": {"mode": ("a", "b")}}
    experiment = tuned(
        Tune(space, trials=2, metric="ndcg@5"),
        solvers=("global", "sgd[step=0.1]", own, "mprank"),
        data=(absent_data(folder), *TINY.data),
        repetitions=1,
        objective=True,
    )
    run = ran(folder, experiment)
    for cell in (*run.plan.trials, *run.plan.cells):
        cell.key, cell.slot, run.result(cell).machine.basis, run.result(cell).machine.fingerprint
    store = store_in(folder)
    return {
        "plan": run.plan,
        "results": tuple(run.result(cell) for cell in (*run.plan.trials, *run.plan.cells)),
        "study": run.study(),
        "stored plans": tuple(store.plans()),
        "stored results": tuple(store.load(cell) for cell in (*run.plan.trials, *run.plan.cells)),
        "summaries": tuple(store.summaries()),
        "studies": tuple(studies(ResultsFolder(folder, print))),
        "groups": run.study().groups,
    }


KINDS = ("plan", "results", "study", "stored plans", "stored results", "summaries", "studies", "groups")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_in_a_record_can_be_changed(made, kind):
    assert made[kind] and list(changeable(made[kind], kind)) == []


def test_the_run_above_had_everything_in_it(made):
    assert made["plan"].failures and made["plan"].cells and made["plan"].searches and made["plan"].skips
    assert {result.status for result in made["results"]} == {"ok", "failed", "diverged"}
    assert set(made) == set(KINDS) and len(made["groups"]) == 3


def test_what_could_be_changed_would_be_found():
    (cell, *_) = plan(TINY, Selection(repetitions=1)).cells
    odd = replace(made_up(cell, 0.5), imported=["scipy"], functions=({1: 2}, 3))
    assert list(changeable(odd)) == [".imported is a list", ".functions[0] is a dict"]


@pytest.mark.parametrize("name", experiments.names())
@pytest.mark.parametrize("full", [False, True])
def test_nothing_in_an_experiment_can_be_changed(name, full):
    assert list(changeable(experiments.load(name, full))) == []


def test_no_field_can_be_set(made):
    for record in (made["plan"], made["results"][0], made["study"], made["plan"].cells[0].solver):
        for field in fields(record):
            with pytest.raises(FrozenInstanceError):
                setattr(record, field.name, None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"repetitions": 0}, "repetitions=0 is out of range"),
        ({"seed": -1}, "seed=-1 is out of range"),
        ({"threads": 0}, "threads=0 is out of range"),
        ({"trials": 0}, "trials=0 is out of range"),
    ],
)
def test_a_selection_that_makes_no_sense_is_refused(settings, message):
    with pytest.raises(UserError, match=message):
        Selection(**settings)


def test_a_result_has_a_value_for_each_metric_at_each_point():
    (cell, *_) = plan(TINY, Selection(repetitions=1)).cells
    result = made_up(cell, 0.5)
    assert [result.value(measure.label) for measure in cell.measures] == [0.25, 0.5]
    assert isnan(result.value("unheard-of")) and result.counted_by("unheard-of") is None
    assert result.counted_by("ndcg@5").users == 20 and result.seconds == pytest.approx(0.3)
    with pytest.raises(ValueError, match="does not have one value for each metric"):
        replace(result, curve=(replace(result.curve[0], values=(1.0,)),))


def test_what_failed_has_nothing_measured():
    (cell, *_) = plan(TINY, Selection(repetitions=1)).cells
    found = made_up(cell, 0.5, status="failed", reason="why", curve=(), counted=())
    assert found.seconds is None and isnan(found.value("ndcg@5"))


@pytest.mark.parametrize(
    ("status", "failure", "shown"),
    [
        ("ok", "", "ok"),
        ("diverged", "", "diverged"),
        ("timeout", "", "timeout"),
        (None, "", "pending"),
        (None, "why", "failed"),
    ],
)
def test_an_entry_says_how_its_cell_ended(status, failure, shown):
    (cell, *_) = plan(TINY, Selection(repetitions=1)).cells
    result = made_up(cell, 0.5, status=status, reason=None if status == "ok" else "it did") if status else None
    entry = Entry(cell, result, failure)
    assert entry.status == shown
    assert entry.reason == (failure or ("it did" if status not in ("ok", None) else ""))
    assert entry.good is (result if shown == "ok" else None)


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [
        (("ok", "ok"), "ok"),
        (("ok", None), "pending"),
        (("diverged", None), "diverged"),
        (("timeout", "diverged"), "timeout"),
        (("timeout", "memory"), "memory"),
        (("failed", "memory"), "failed"),
    ],
)
def test_a_group_is_as_its_worst_repetition_and_counts_the_good_ones(statuses, worst):
    found = plan(TINY, Selection(solvers=("sgd",)))
    pairs = zip(found.cells, statuses, strict=True)
    results = {cell.key: made_up(cell, 0.5, status=status) for cell, status in pairs if status}
    (group,) = Study(found, results).groups
    assert group.status == worst
    assert group.values("ndcg@5") == [0.5] * statuses.count("ok") and len(group.good) == statuses.count("ok")


def test_the_name_of_a_users_own_file_seeds_no_search(made, tmp_path):
    """The same ratings in another file have the same trials, and stand in a line of their own."""
    cell, found = made["plan"].cells[0], []
    for name in ("one.csv", "other.csv"):
        (tmp_path / name).write_text("ann,heat,3\nbob,ronin,4\n")
        data = DATASETS.resolve(f"csv:{tmp_path / name}")
        found.append(replace(cell, place=replace(cell.place, data=data)))
    assert found[0].stream_line == found[1].stream_line and found[0].line != found[1].line
    assert cell.stream_line == cell.line and "low-rank" in cell.line


def test_of_curves_that_a_clock_ended_the_common_part_is_compared(tmp_path):
    (cell,) = prepared(tmp_path, TINY, Selection(solvers=("sgd",), repetitions=1)).plan.cells
    one, other = made_up(cell, 0.5, status="timeout", reason="x"), made_up(cell, 0.6, status="timeout", reason="x")
    longer = replace(other, curve=(*other.curve, *other.curve))
    assert differences(one, longer, {}, {}) == tuple(measure.label for measure in cell.measures)
    bounded = replace(one, curve=tuple(replace(point, bound=1.0) for point in one.curve))
    assert "bound" in differences(one, bounded, {}, {})


def test_users_that_only_one_of_two_results_counts_are_far_apart():
    values = np.array([0.5, np.nan])
    assert distance_of_users({"map": values}, {"map": values}) == 0.0
    assert distance_of_users({"map": values}, {"map": values[::-1].copy()}) == np.inf
