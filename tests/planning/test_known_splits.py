"""Splits that are remembered beside the results: a stored run resumes without its data, and nothing stale is used."""

import os
from dataclasses import replace

import numpy as np
import pytest
from helpers import prepared, ran, store_in, tiny, tuned

from rankbench.core.errors import UserError
from rankbench.data.splits import SPLITS, Split, cut
from rankbench.data.synthetic import LowRank
from rankbench.data.views import mismatch, offer
from rankbench.metrics import metric, unusable
from rankbench.planning import known_splits
from rankbench.planning.known_splits import FILE, KnownSplit, KnownSplits, Shape
from rankbench.planning.materials import Materials
from rankbench.solvers import SOLVERS


@pytest.fixture
def loads(monkeypatch):
    """The data sets that are made, by name."""
    made = []
    whole = Materials.view

    def counted(self, named, repetition=0):
        made.append(named.name)
        return whole(self, named, repetition)

    monkeypatch.setattr(Materials, "view", counted)
    return made


@pytest.mark.parametrize("experiment", [tiny(), tuned()], ids=["plain", "tuned"])
def test_a_run_that_is_stored_resumes_without_making_its_data(tmp_path, loads, experiment):
    first = ran(tmp_path, experiment)
    assert loads
    loads.clear()
    again = prepared(tmp_path, experiment)
    assert again.to_run == () and again.plan.cells == first.plan.cells and loads == []


def test_a_cell_that_has_to_run_is_trained_on_the_same_split(tmp_path, loads):
    first = ran(tmp_path)
    cell = first.plan.cells[-1]
    store_in(tmp_path).path(cell).unlink()
    loads.clear()
    again = ran(tmp_path)
    assert set(loads) == {"low-rank"}
    assert again.result(cell).split == first.result(cell).split == cell.split_hash


def test_a_split_that_is_cut_otherwise_than_remembered_is_refused(tmp_path):
    run = ran(tmp_path)
    file = store_in(tmp_path).folder / FILE
    file.write_text(file.read_text().replace(run.plan.cells[0].split_hash, "0" * 64))
    with pytest.raises(UserError, match=rf"repetition 0, is another split than .*{FILE} says; delete this file"):
        ran(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", '{"splits": {"a": {"hash": 1}}}', "\udcff"])
def test_a_file_that_cannot_be_read_is_written_anew(tmp_path, loads, content):
    ran(tmp_path)
    file = store_in(tmp_path).folder / FILE
    honest = file.read_bytes()
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    loads.clear()
    assert ran(tmp_path).to_run == () and loads
    assert file.read_bytes() == honest


def test_other_code_other_seeds_and_other_places_are_not_what_was_remembered(tmp_path, monkeypatch):
    place = ran(tmp_path).plan.cells[0].place
    file = store_in(tmp_path).folder / FILE
    assert KnownSplits(0, file).get(place)
    assert KnownSplits(1, file).get(place) is None
    assert KnownSplits(0, file).get(replace(place, repetition=7)) is None
    assert KnownSplits(0, file).get(replace(place, split=SPLITS.resolve("entries[test=0.3]"))) is None
    monkeypatch.setattr(known_splits, "_code", lambda: "changed")
    assert KnownSplits(0, file).get(place) is None


def test_a_file_that_was_changed_is_noticed_by_its_size_or_its_date(tmp_path):
    file = tmp_path / "ratings.csv"
    file.write_text("1,2,3\n")
    before = known_splits._stamp(file)
    os.utime(file, ns=(0, 0))
    later = known_splits._stamp(file)
    file.write_text("1,2,34\n")
    os.utime(file, ns=(0, 0))
    assert len({before, later, known_splits._stamp(file)}) == 3


def test_files_and_code_of_users_are_not_remembered(tmp_path, loads):
    file = tmp_path / "mine.csv"
    file.write_text("user,item,rating\n" + "".join(f"{u},{i},{1 + (u + i) % 5}\n" for u in range(9) for i in range(9)))
    experiment = tiny(data=(f"csv:{file}",), splits=("entries[test=0.3]",), repetitions=1)
    ran(tmp_path / "out", experiment)
    assert not (store_in(tmp_path / "out").folder / FILE).exists()
    loads.clear()
    assert prepared(tmp_path / "out", experiment).to_run == () and loads


@pytest.mark.parametrize("comparisons", [False, True])
@pytest.mark.parametrize("features", [False, True])
def test_planning_decides_by_the_shape_as_it_would_by_the_split(features, comparisons):
    view = LowRank(users=9, items=30, per_user=20).view(np.random.default_rng(0))
    view = replace(view, item_features=np.ones((30, 3)) if features else None)
    split = cut(view, SPLITS.resolve("entries[test=0.3]"), 0, 0)
    if comparisons:
        split = Split(split.train.comparisons(), split.test.comparisons(), seen=split.train)
    known = KnownSplit.of(split)
    assert known.hash == split.hash
    for name in SOLVERS.entries:
        solver = SOLVERS.make(name)
        assert mismatch(solver, known.example.train_for(solver)) == mismatch(solver, split.train_for(solver))
        if mismatch(solver, split.train) is None:
            assert type(offer(solver, known.example.train)) is type(offer(solver, split.train))
    for name in ("ndcg@10", "ndcg-linear@5", "pairwise-error", "comparison-error", "log-loss", "precision@5"):
        record = metric(name)
        assert unusable(record, known.example.test) == unusable(record, split.test)


@pytest.mark.parametrize("values", [[-1.0, 3.0], [0.0, 2000.0], [1.0, 5.0]])
def test_ratings_without_gains_are_refused_by_their_shape(values):
    view = LowRank(users=2, items=4, per_user=2).view(np.random.default_rng(0))
    view = replace(view, values=np.array(values * 2))
    for name in ("ndcg", "ndcg-linear"):
        assert unusable(metric(name), Shape.of(view).example) == unusable(metric(name), view)
