"""Plans: the cells and their keys, and the skipped parts with reasons."""

import random
import sys
from dataclasses import fields, replace

import pytest
from helpers import TINY, absent_data, prepared, tiny, tuned, with_solver

from rankbench.core.contract import Determinism
from rankbench.core.errors import UserError
from rankbench.experiments import Budget
from rankbench.experiments.spaces import Tune
from rankbench.names import Named
from rankbench.planning.plan import plan
from rankbench.records.cells import Cell, Selection
from rankbench.records.codec import decode, encode
from rankbench.report.render.tables import sheet

IN_THE_KEY = ("base", "identity", "settings")  # of a name; a data set's and a split's settings by their identity


def keys(experiment=TINY, **selection):
    return [cell.key for cell in plan(experiment, Selection(**selection)).cells]


def test_a_cell_for_every_data_set_split_repetition_and_solver():
    cells = plan(tiny(splits=("n-per-user[n=8,least=5]", "entries")), Selection()).cells
    assert len(cells) == len({cell.key for cell in cells}) == 2 * 2 * 2
    assert {cell.solver.name for cell in cells} == {"global", "sgd"}


def test_the_same_plan_has_the_same_keys():
    assert keys() == keys()


@pytest.mark.parametrize(
    "changed",
    [
        tiny(data=("low-rank[users=21,items=30,per_user=20]",)),
        tiny(splits=("n-per-user[n=9,least=5]",)),
        tiny(solvers=("global[lam=11]", "sgd[rank=3]")),
        tiny(metrics=("pairwise-error",)),
        tiny(budget=Budget(steps=4)),
        tiny(every=2),
        tiny(objective=True),
    ],
)
def test_what_decides_the_numbers_decides_the_key(changed):
    assert not set(keys()) & set(keys(changed))


@pytest.mark.parametrize("selection", [{"seed": 1}, {"threads": 2}])
def test_seed_and_threads_are_part_of_the_key(selection):
    assert not set(keys()) & set(keys(**selection))


def test_an_axis_of_threads_is_a_cell_for_each():
    cells = plan(tiny(threads=(1, 2, 4)), Selection(threads=8)).cells
    assert [cell.threads for cell in cells] == [1, 2, 4] * 4
    assert len({cell.slot for cell in cells}) == len(cells)
    assert {cell.key for cell in cells if cell.threads == 1} == set(keys())


def test_title_and_spelling_are_no_part_of_the_key():
    spelled = tiny(title="Other", name="other", data=("low-rank[per_user=20,rank=3,items=30,users=20]",))
    assert keys() == keys(spelled)


def test_the_order_of_solvers_is_no_part_of_the_key():
    shuffled = list(TINY.solvers)
    random.Random(1).shuffle(shuffled)
    assert set(keys()) == set(keys(tiny(solvers=tuple(shuffled[::-1]))))


def test_a_raised_version_is_another_key():
    (cell, *_) = plan(TINY, Selection()).cells
    assert replace(cell, version=cell.version + 1).key != cell.key


def changed(cell, **names):
    """The cell with other values of these fields of its place."""
    return replace(cell, place=replace(cell.place, **names))


def other(named, **fields):
    """The same name with another identity."""
    return replace(named, identity=f"{named.identity}x", **fields)


def with_measure(cell, **fields):
    """The cell with its first metric changed."""
    first, *others = cell.measures
    return replace(cell, measures=(replace(first, **fields), *others))


CHANGES = {
    "data": lambda cell: changed(cell, data=other(cell.place.data)),
    "split": lambda cell: changed(cell, split=other(cell.place.split)),
    "split_hash": lambda cell: replace(cell, split_hash="0" * 64),
    "repetition": lambda cell: changed(cell, repetition=7),
    "seed": lambda cell: replace(cell, seed=7),
    "solver": lambda cell: replace(cell, solver=replace(cell.solver, base="sgd2")),
    "settings": lambda cell: replace(cell, solver=replace(cell.solver, settings=(("lam", 7.0),))),
    "version": lambda cell: replace(cell, version=7),
    "determinism": lambda cell: replace(cell, determinism=Determinism.RACY),
    "metrics": lambda cell: with_measure(cell, identity="other"),
    "metric_versions": lambda cell: with_measure(cell, version=7),
    "budget": lambda cell: replace(cell, budget=replace(cell.budget, tolerance=0.5)),
    "every": lambda cell: replace(cell, every=7),
    "objective": lambda cell: replace(cell, objective=not cell.objective),
    "threads": lambda cell: replace(cell, threads=7),
    "validation": lambda cell: changed(cell, validation=other(cell.place.split)),
}


def test_every_part_of_a_cells_content_is_changed_below():
    (cell, *_) = plan(TINY, Selection()).cells
    assert {*CHANGES, "format"} == cell.content.keys()


@pytest.mark.parametrize("part", [*CHANGES, "format"])
def test_each_part_of_a_cells_content_decides_its_key(part, monkeypatch):
    (cell, *_) = plan(TINY, Selection()).cells
    before, key = cell.content, cell.key
    if part == "format":
        monkeypatch.setattr("rankbench.records.cells.KEY_FORMAT", 99)
        another = replace(cell)
    else:
        another = CHANGES[part](cell)
    assert [name for name, value in another.content.items() if value != before[name]] == [part]
    assert another.key != key


@pytest.mark.parametrize("field", [field.name for field in fields(Named) if field.name not in IN_THE_KEY])
@pytest.mark.parametrize("part", ["data", "split", "solver"])
def test_how_a_name_was_written_is_no_part_of_the_key(part, field):
    (cell, *_) = plan(TINY, Selection()).cells
    named = cell.solver if part == "solver" else getattr(cell.place, part)
    spelled = replace(named, **{field: (("other", "1"),) if field == "given" else "other"})
    same = replace(cell, solver=spelled) if part == "solver" else changed(cell, **{part: spelled})
    assert same.key == cell.key


def test_what_was_tuned_and_how_a_metric_is_written_are_no_part_of_the_key():
    (cell, *_) = plan(TINY, Selection()).cells
    assert replace(cell, tuned=("lam",)).key == cell.key
    assert with_measure(cell, label="other", formula="other", source=cell.solver).key == cell.key


def test_a_bare_name_picks_the_experiments_own_entries():
    cells = plan(TINY, Selection(solvers=("sgd", "global[lam=2]"), repetitions=1)).cells
    assert [(cell.solver.name, cell.solver_text) for cell in cells] == [
        ("sgd", "sgd[rank=2]"),
        ("global", "global[lam=2]"),
    ]


def test_a_solver_that_needs_features_is_skipped_with_the_reason():
    found = plan(tiny(solvers=("sgd", "mprank")), Selection())
    assert {cell.solver.name for cell in found.cells} == {"sgd"}
    assert not any(skip.failed for skip in found.skips)
    assert [skip.reason for skip in found.skips] == ["mprank needs item features, the data has none"]


def test_a_solver_that_needs_another_package_is_skipped_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    solvers = ("sgd[schedule=nomad]", "altsvm[schedule=partitioned]", "altsvm", "sgd")
    found = plan(tiny(solvers=solvers), Selection())
    assert [cell.solver_text for cell in found.cells] == ["altsvm", "sgd"] * 2
    assert [skip.solver.written for skip in found.skips] == list(solvers[:2])
    assert {skip.remedy for skip in found.skips} == {"pip install 'rankbench[partition]'"}


def test_missing_data_is_skipped_with_the_command_that_gets_it(tmp_path):
    found = plan(tiny(data=(absent_data(tmp_path), *TINY.data)), Selection())
    assert "ask its owner" in found.skips[0].remedy
    assert len(found.cells) == 4


def test_a_file_that_somebody_named_and_that_is_not_there_is_a_mistake(tmp_path):
    found = plan(tiny(data=(f"csv:{tmp_path / 'gone.csv'}", *TINY.data)), Selection())
    (skip,) = found.skips
    assert skip.failed and "gone.csv" in skip.reason and skip.remedy == "" and len(found.cells) == 4
    assert not plan(tiny(data=(absent_data(tmp_path), *TINY.data)), Selection()).skips[0].failed


def test_a_metric_that_nothing_can_give_is_an_error():
    with pytest.raises(UserError, match="'ndcg' needs held-out ratings"):
        plan(tiny(data=("btl",), splits=("entries",)), Selection())


def test_a_metric_that_one_data_set_cannot_give_leaves_the_others_running():
    found = plan(tiny(data=("btl", *TINY.data), splits=("entries",)), Selection())
    assert {cell.place.data.written for cell in found.cells} == set(TINY.data) and len(found.cells) == 4
    (skip,) = found.skips
    assert skip.failed and skip.solver is None and skip.data.written == "btl"
    assert "'ndcg' needs held-out ratings" in skip.reason


def test_a_split_that_cannot_be_cut_leaves_the_others_running():
    found = plan(tiny(splits=("n-per-user[n=50]", *TINY.splits)), Selection())
    assert {cell.place.split.written for cell in found.cells} == set(TINY.splits) and len(found.cells) == 4
    (skip,) = found.skips
    assert skip.failed and skip.split.written == "n-per-user[n=50]" and "n-per-user" in skip.reason


def test_if_every_part_is_broken_it_is_an_error_that_says_the_first():
    with pytest.raises(UserError, match="the split n-per-user"):
        plan(tiny(splits=("n-per-user[n=50]", "n-per-user[n=60]")), Selection())


def test_a_validation_that_one_part_does_not_suit_leaves_the_others_running():
    tune = Tune({"sgd": {"rank": (2, 3)}}, metric="ndcg@5", validation="n-per-user[n=8,least=2]")
    experiment = tuned(tune, solvers=("sgd",), splits=("n-per-user[n=8,least=5]", "entries[test=0.2]"), repetitions=1)
    found = plan(experiment, Selection())
    assert [search.cell.place.split.written for search in found.searches] == ["entries[test=0.2]"]
    (skip,) = found.skips
    assert skip.failed and "the training part of n-per-user" in skip.reason


def test_a_users_own_solver_that_was_edited_is_another(tmp_path):
    selection = Selection(solvers=(with_solver(tmp_path),), repetitions=1)
    (before,) = plan(TINY, selection).cells
    with_solver(tmp_path, "# no other code, but other content")
    (after,) = plan(TINY, selection).cells
    assert after.key != before.key and after.solver.identity != before.solver.identity
    assert after.slot == before.slot and after.edition != before.edition
    assert after.solver.written == before.solver.written and after.stream_name == before.stream_name == "mine.py:Mine"


def test_a_cell_can_be_stored_and_read_again():
    for cell in (*plan(TINY, Selection()).cells, *plan(tuned(), Selection(repetitions=1)).trials):
        back = decode(Cell, encode(cell))
        assert back == cell and back.key == cell.key and back.slot == cell.slot


SOURCE = """
from dataclasses import dataclass
from typing import ClassVar
from rankbench import Generated, Ratings

@dataclass(frozen=True)
class Own:
    value: float = 3.0
    version: ClassVar = 1
    origin = Generated("two users")
    def view(self, rng):
        return Ratings.from_triples([0, 0, 0, 0], [0, 1, 2, 3], [1.0, 2.0, self.value, 4.0])
"""


def own_data(tmp_path, folder, text=SOURCE):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "own.py").write_text(text)
    return str(tmp_path / folder / "own.py") + ":Own"


def test_a_users_own_data_set_that_was_edited_is_another(tmp_path):
    experiment = tiny(splits=("entries[test=0.5]",), repetitions=1)
    names = own_data(tmp_path, "a"), own_data(tmp_path, "b", SOURCE.replace("4.0", "5.0"))
    first, second = (plan(experiment, Selection(data=(name,))).cells for name in names)
    assert not {cell.key for cell in first} & {cell.key for cell in second}
    assert not {cell.slot for cell in first} & {cell.slot for cell in second}
    found = prepared(tmp_path / "out", experiment, Selection(data=names, solvers=("sgd",))).study()
    assert [group.data.written for group in found.groups] == list(names)
    assert len({line[0] for line in sheet(found).lines}) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("self.value", "float('nan')", "ratings must be finite"),
        ("[0, 1, 2, 3]", "[0, 1, 1, 3]", "user 0 rates item 1 twice"),
        ("[0, 1, 2, 3]", "[0, 1, -2, 3]", "item id -2 is out of range"),
        ("return Ratings", "raise RuntimeError('gone')  # Ratings", "cannot be read: RuntimeError: gone"),
        ("    version: ClassVar = 1\n", "", "has no version"),
    ],
)
def test_a_users_own_data_set_that_is_bad_is_one_clear_error(tmp_path, old, new, message):
    assert old in SOURCE
    name = own_data(tmp_path, "a", SOURCE.replace(old, new))
    with pytest.raises(UserError, match=message):
        plan(tiny(splits=("entries",)), Selection(data=(name,)))
