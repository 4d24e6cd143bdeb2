"""Plans: which cells, under which keys, and what is left out and why."""

import json
import random
import sys
from dataclasses import asdict, replace

import pytest
from helpers import TINY, absent_data, tiny, with_solver

from rankbench.errors import UserError
from rankbench.experiments import Budget
from rankbench.harness.plan import Selection, plan


def keys(experiment=TINY, **selection):
    return [cell.key for cell in plan(experiment, Selection(**selection)).cells]


def test_a_cell_for_every_data_set_split_repetition_and_solver():
    cells = plan(tiny(splits=("n-per-user[n=8,least=5]", "entries")), Selection()).cells
    assert len(cells) == len({cell.key for cell in cells}) == 2 * 2 * 2
    assert {cell.solver for cell in cells} == {"global", "sgd"}


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
    assert len({cell.seat for cell in cells}) == len(cells)
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
    assert replace(cell, texts=("a", "b", "c")).key == cell.key


def test_a_bare_name_picks_the_experiments_own_entries():
    cells = plan(TINY, Selection(solvers=("sgd", "global[lam=2]"), repetitions=1)).cells
    assert [(cell.solver, cell.shown[2]) for cell in cells] == [("sgd", "sgd[rank=2]"), ("global", "global[lam=2]")]


def test_a_solver_that_needs_features_is_skipped_with_the_reason():
    found = plan(tiny(solvers=("sgd", "mprank")), Selection())
    assert {cell.solver for cell in found.cells} == {"sgd"}
    assert [skip.reason for skip in found.skips] == ["mprank needs item features, the data has none"]


def test_a_solver_that_needs_another_package_is_skipped_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    solvers = ("sgd[schedule=nomad]", "altsvm[schedule=partitioned]", "altsvm", "sgd")
    found = plan(tiny(solvers=solvers), Selection())
    assert [cell.shown[2] for cell in found.cells] == ["altsvm", "sgd"] * 2
    assert [skip.solver for skip in found.skips] == list(solvers[:2])
    assert {skip.remedy for skip in found.skips} == {"pip install 'rankbench[partition]'"}


def test_missing_data_is_skipped_with_the_command_that_gets_it(tmp_path):
    found = plan(tiny(data=(absent_data(tmp_path), *TINY.data)), Selection())
    assert "ask its owner" in found.skips[0].remedy
    assert len(found.cells) == 4


def test_a_metric_that_cannot_be_measured_is_an_error():
    with pytest.raises(UserError, match="'ndcg' needs held-out ratings"):
        plan(tiny(data=("btl",), splits=("entries",)), Selection())


def test_a_users_own_solver_is_named_without_its_folder(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    found = [
        plan(TINY, Selection(solvers=(with_solver(tmp_path / f) + "[mode=x]",), repetitions=1)).cells for f in "ab"
    ]
    assert [cell.key for cell in found[0]] == [cell.key for cell in found[1]]
    assert found[0][0].shown[2] == "mine.py:Mine[mode=x]"


def test_a_cell_is_plain_json():
    (cell, *_) = plan(TINY, Selection()).cells
    assert json.loads(json.dumps(asdict(cell)))["split_hash"] == cell.split_hash


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


def test_a_users_own_data_set_is_named_without_its_folder(tmp_path):
    experiment = tiny(splits=("entries[test=0.5]",), repetitions=1)
    first, second = (plan(experiment, Selection(data=(own_data(tmp_path, f),))).cells for f in "ab")
    assert [cell.key for cell in first] == [cell.key for cell in second]
    assert first[0].data == "own.py:Own[value=3]"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("self.value", "float('nan')", "ratings must be finite"),
        ("[0, 1, 2, 3]", "[0, 1, 1, 3]", "user 0 rates item 1 twice"),
        ("[0, 1, 2, 3]", "[0, 1, -2, 3]", "item id -2 is out of range"),
        ("return Ratings", "raise RuntimeError('gone')  # Ratings", "cannot be read: RuntimeError: gone"),
        ("    version: ClassVar = 1\n", "", "does not say its version"),
    ],
)
def test_a_users_own_data_set_that_is_bad_is_one_clear_error(tmp_path, old, new, message):
    assert old in SOURCE
    name = own_data(tmp_path, "a", SOURCE.replace(old, new))
    with pytest.raises(UserError, match=message):
        plan(tiny(splits=("entries",)), Selection(data=(name,)))
