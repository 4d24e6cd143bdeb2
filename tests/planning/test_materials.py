"""Materials: data sets and splits are made once, and temporary files are removed."""

from dataclasses import replace
from itertools import combinations
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from helpers import TINY

from rankbench.arrays.array_files import read_arrays
from rankbench.core.errors import UserError
from rankbench.data import DATASETS, load
from rankbench.data.splits import SPLITS, VALIDATIONS, cut
from rankbench.planning import materials
from rankbench.planning.materials import Materials, packed, read_split, size_of
from rankbench.records.cells import Place

DATA = TINY.data[0]
FIRST = Place(DATASETS.resolve(DATA), SPLITS.resolve(TINY.splits[0]), 0)
SECOND = replace(FIRST, repetition=1)
OTHERWISE = replace(FIRST, split=SPLITS.resolve("entries[test=0.3]"))
INNER = replace(FIRST, validation=SPLITS.resolve("entries[test=0.2]"))


@pytest.fixture
def cuts(monkeypatch):
    """The split and the repetition of each cut, as they are made."""
    calls = []

    def counted(view, named, seed, repetition, data=None):
        calls.append((named.name, repetition))
        return cut(view, named, seed, repetition, data)

    monkeypatch.setattr(materials, "cut", counted)
    return calls


@pytest.fixture
def scratch(tmp_path):
    """Makes folders, and says which it has made."""
    made = []

    def make():
        made.append(TemporaryDirectory(dir=tmp_path))
        return made[-1]

    make.made = made
    return make


def same(one, other):
    """Whether two splits hold the same, to the last byte."""
    first, second = packed(one), packed(other)
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("kept", [materials.KEPT, 0])
def test_a_split_is_cut_once_and_comes_back_the_same(monkeypatch, tmp_path, cuts, scratch, kept):
    monkeypatch.setattr(materials, "KEPT", kept)
    found = Materials(0, scratch)
    first, second, inner = (found.split(place) for place in (FIRST, SECOND, INNER))
    assert cuts == [("n-per-user", 0), ("n-per-user", 1), ("entries", 0)]
    for place, split in ((FIRST, first), (SECOND, second), (INNER, inner)):
        again = found.split(place)
        assert same(again, split) and again.hash == split.hash == Materials(0).split(place).hash
    assert len(cuts) == 3 + 4  # those of fresh materials: the inner one needs its outer
    assert len(scratch.made) == (kept == 0) and bool(list(tmp_path.rglob("*.arrays"))) == (kept == 0)


def test_what_is_too_much_for_memory_goes_to_files_and_leaves_them_when_dropped(monkeypatch, tmp_path, cuts, scratch):
    monkeypatch.setattr(materials, "KEPT", size_of(Materials(0).split(FIRST)))
    cuts.clear()
    found = Materials(0, scratch)
    for place in (FIRST, SECOND, INNER):
        found.split(place)
    assert len(list(tmp_path.rglob("*.arrays"))) == 2
    found.drop([SECOND, SECOND])
    assert len(list(tmp_path.rglob("*.arrays"))) == 1
    found.keep_only([INNER])
    assert len(list(tmp_path.rglob("*.arrays"))) == 1
    assert len(cuts) == 3 and found.split(INNER) is not None and len(cuts) == 3
    found.split(FIRST)  # there is room for it again
    assert len(cuts) == 4 and len(list(tmp_path.rglob("*.arrays"))) == 1
    found.keep_only([])
    assert list(tmp_path.rglob("*.arrays")) == []
    del found, scratch.made[:]
    assert list(tmp_path.iterdir()) == []


def test_equal_splits_have_files_of_their_own(monkeypatch, tmp_path, scratch):
    monkeypatch.setattr(materials, "KEPT", 0)
    first, second, third = (replace(FIRST, repetition=number, held=("splits",)) for number in range(3))
    found = Materials(0, scratch)
    assert found.split(first).hash == found.split(second).hash
    found.drop([first])
    assert found.split(third).hash == found.split(second).hash
    found.drop([third])
    assert len(found.split(second).train) > 0


def test_without_a_scratch_folder_what_is_too_much_is_cut_again(monkeypatch, cuts):
    monkeypatch.setattr(materials, "KEPT", 0)
    found = Materials(0)
    assert same(found.split(FIRST), found.split(FIRST)) and len(cuts) == 2


@pytest.mark.parametrize("kept", [materials.KEPT, 0])
@pytest.mark.parametrize("place", [FIRST, INNER])
def test_a_split_is_written_as_the_file_that_cells_read(monkeypatch, tmp_path, cuts, scratch, kept, place):
    monkeypatch.setattr(materials, "KEPT", kept)
    found, path = Materials(0, scratch), tmp_path / "split.arrays"
    expected = found.split(place)
    before = len(cuts)
    found.write(place, path)
    back = read_split(path)
    assert same(back, expected) and back.hash == expected.hash and len(cuts) == before
    assert set(read_arrays(path)) == set(packed(expected))
    assert same(found.split(place), expected) and len(cuts) > before  # it was ours no more


def test_a_split_that_nobody_asked_for_is_cut_when_it_is_written(tmp_path, cuts):
    Materials(0).write(FIRST, tmp_path / "split.arrays")
    assert read_split(tmp_path / "split.arrays").hash == Materials(0).split(FIRST).hash and len(cuts) == 2


def test_a_damaged_file_of_a_split_is_one_line(tmp_path):
    path = tmp_path / "split.arrays"
    Materials(0).write(FIRST, path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match=r"split\.arrays is damaged"):
        read_split(path)


def test_data_is_loaded_once_for_all_that_needs_it_in_a_row(monkeypatch):
    calls = []
    monkeypatch.setattr("rankbench.data.load", lambda named, *rest: calls.append(named.written) or load(named, *rest))
    found = Materials(0)
    spelled = DATASETS.resolve("low-rank[per_user=20,items=30,users=20]")
    assert found.view(FIRST.data) is found.view(spelled)
    for place in (FIRST, OTHERWISE, INNER):
        found.split(place)
    assert calls == [DATA]
    other = DATASETS.resolve("low-rank[users=21,items=30,per_user=20]")
    found.view(other)
    found.view(FIRST.data)
    assert calls == [DATA, other.written, DATA]


def test_a_validation_part_stays_the_one_that_stored_trials_were_measured_on():
    assert Materials(0).split(INNER).hash.startswith("25c7d1a4a64eec34")


def test_another_seed_cuts_other_rows():
    assert Materials(0).split(FIRST).hash != Materials(1).split(FIRST).hash
    assert Materials(0).split(INNER).hash != Materials(1).split(INNER).hash


def test_generated_data_is_drawn_anew_for_each_repetition_and_the_first_is_as_ever():
    found = Materials(0)
    first, second = (found.view(FIRST.data, repetition) for repetition in (0, 1))
    assert (first.values != second.values).any() and (first.values == load(DATA).values).all()
    assert (second.values == load(DATA, 0, 1).values).all()


def test_a_file_is_read_once_for_all_repetitions(tmp_path):
    (tmp_path / "r.csv").write_text("".join(f"u{i},i{j},{(i * j) % 5}\n" for i in range(9) for j in range(9)))
    named, found = DATASETS.resolve(f"csv:{tmp_path / 'r.csv'}"), Materials(0)
    assert found.view(named, 0) is found.view(named, 1)


@pytest.mark.parametrize("kept", [materials.KEPT, 0])
def test_trials_are_measured_on_the_splits_own_validation_part(monkeypatch, scratch, kept):
    monkeypatch.setattr(materials, "KEPT", kept)
    whole = replace(FIRST, split=SPLITS.resolve("entries[test=0.1,validation=0.2,train=0.5]"))
    found = Materials(0, scratch)
    outer, inner = found.split(whole), found.split(replace(whole, validation=VALIDATIONS.resolve("own")))
    assert inner.train.values.tobytes() == outer.train.values.tobytes()
    assert len(inner.test) == round(0.2 * len(found.view(FIRST.data)))
    taken = [set(zip(part.users, part.items, strict=True)) for part in (outer.train, outer.test, inner.test)]
    assert not any(one & other for one, other in combinations(taken, 2))
    assert outer.hash == replace(outer, validation=None).hash


def test_a_split_without_a_validation_part_has_none_of_its_own():
    with pytest.raises(UserError, match="has no validation part"):
        Materials(0).split(replace(FIRST, validation=VALIDATIONS.resolve("own")))
    with pytest.raises(UserError, match="is for tuning only"):
        Materials(0).split(replace(FIRST, split=VALIDATIONS.resolve("own")))


def test_with_again_the_validation_part_is_cut_from_the_training_part_as_the_test_part_was():
    place = replace(FIRST, split=SPLITS.resolve("entries[test=0.3]"))
    outer, inner = (Materials(0).split(replace(place, validation=by)) for by in (None, VALIDATIONS.resolve("again")))
    assert len(inner.test) == round(0.3 * len(outer.train))
    assert len(inner.train) + len(inner.test) == len(outer.train)


def test_with_again_a_split_of_drawn_comparisons_holds_out_training_ratings():
    place = replace(FIRST, split=SPLITS.resolve("binary[C=5]"))
    outer, inner = (Materials(0).split(replace(place, validation=by)) for by in (None, VALIDATIONS.resolve("again")))
    pairs = {
        name: set(zip(part.users.tolist(), part.items.tolist(), strict=True))
        for name, part in {"outer": outer.seen, "test": inner.test, "seen": inner.seen}.items()
    }
    assert pairs["test"] and pairs["test"] | pairs["seen"] == pairs["outer"] and not pairs["test"] & pairs["seen"]
    assert np.diff(inner.train.indptr).max() == 5


def test_again_is_for_tuning_only():
    with pytest.raises(UserError, match='is for tuning only, as in `validation = "again"`'):
        Materials(0).split(replace(FIRST, split=VALIDATIONS.resolve("again")))
