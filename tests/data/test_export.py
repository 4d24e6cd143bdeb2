"""An exported split is the same split when it is read back, and its files say how it was made."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from data.splits.small import patient
from hypothesis import given, settings
from hypothesis import strategies as st

import rankbench
from rankbench.arrays.npz import LARGEST, read_npz, write_npz
from rankbench.core.errors import UserError
from rankbench.data.export import export, read_back
from rankbench.data.splits import Split, split
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Comparisons, Ratings

PROTOCOLS = (
    "n-per-user[n=5]",
    "binary[C=7]",
    "half-per-user[reviewers=9,least=9,references=4]",
    "leave-reviewer-out[least=9]",
    "comparisons[n=10]",
    "given-folds",
)
ORIGIN = {"data": "some[levels=5]", "split": "some-split[n=5]", "seed": 3, "repetition": 1}


@pytest.fixture(scope="module")
def data():
    """60 users with 20 ratings of 100 items each, with ids as a publication may have them."""
    view = LowRank(users=60, items=100, per_user=20).view(np.random.default_rng(0))
    folds = np.random.default_rng(1).integers(1, 6, len(view))
    return replace(
        view, folds=folds, user_ids=np.arange(60) * 7 + 1, item_ids=np.array([f"{i:03}X" for i in range(100)])
    )


def written(parts, folder):
    """The folder of a split written out."""
    export(parts, folder, **ORIGIN)
    return folder


# ---- round trips ----


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("ids", ["published", "none"])
@pytest.mark.parametrize("features", [None, np.arange(300.0).reshape(100, 3), scipy.sparse.eye_array(100)])
def test_what_is_read_back_has_the_hash_of_what_was_written(tmp_path, data, protocol, ids, features):
    view = replace(data, item_features=features) if ids == "published" else replace(data, user_ids=None, item_ids=None)
    parts = split(view, protocol, seed=3, repetition=1)
    again = read_back(written(parts, tmp_path / "out"))
    assert again.hash == parts.hash
    assert {name: type(part) for name, part in again.parts.items()} == {
        name: type(part) for name, part in parts.parts.items()
    }


NASTY = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5).map(lambda text: text.rstrip("\0"))


@pytest.mark.slow
@settings(patient, max_examples=40)
@given(
    st.lists(NASTY, min_size=4, max_size=4, unique=True),
    st.lists(st.floats(-LARGEST, LARGEST), min_size=4, max_size=4),
)
def test_any_text_is_an_id_and_any_number_a_rating(tmp_path_factory, names, values):
    view = Ratings([0, 2, 4], [0, 1, 2, 3], values, 4, user_ids=np.array(names[:2]), item_ids=np.array(names))
    parts = Split(view, view.take(np.array([1])))
    folder = tmp_path_factory.mktemp("any") / "out"
    assert read_back(written(parts, folder)).hash == parts.hash


@pytest.mark.parametrize("ids", [np.array([2**63, 2**64 - 1], np.uint64), np.array([-5, 3]), np.array(["NA", "007"])])
def test_ids_keep_their_type(tmp_path, ids):
    part = Ratings([0, 2, 3], [0, 1, 0], [1.0, 2.0, 3.0], 2, user_ids=ids, item_ids=ids)
    again = read_back(written(Split(part, part), tmp_path / "out"))
    assert again.train.user_ids.dtype == ids.dtype and again.train.item_ids.tolist() == ids.tolist()
    assert again.hash == Split(part, part).hash


def test_repeated_comparisons_stay_repeated(tmp_path):
    part = Comparisons([0, 3], [1, 1, 1], [0, 0, 2], 3)
    again = read_back(written(Split(part, part), tmp_path / "out"))
    assert again.train.worse.tolist() == [0, 0, 2]


# ---- the files ----


def test_the_files_say_what_went_where_in_the_ids_of_the_publication(tmp_path, data):
    parts = split(data, "binary[C=7]")
    folder = written(parts, tmp_path / "deep" / "out")
    assert {path.name for path in folder.iterdir()} == {
        "train.csv", "test.csv", "seen.csv", "common.npz", "split.json"
    }  # fmt: skip
    tables = {name: list(csv.reader((folder / f"{name}.csv").open(newline=""))) for name in ("train", "test", "seen")}
    assert tables["train"][0] == ["user", "better", "worse"]
    assert tables["test"][0] == tables["seen"][0] == ["user", "item", "rating"]
    for name, part in (("test", parts.test), ("seen", parts.seen)):
        rows = zip(part.users * 7 + 1, part.items, part.values, strict=True)
        assert tables[name][1:] == [[str(user), f"{item:03}X", str(value)] for user, item, value in rows]
    rows = zip(parts.train.users * 7 + 1, parts.train.better, parts.train.worse, strict=True)
    assert tables["train"][1:] == [[str(user), f"{one:03}X", f"{other:03}X"] for user, one, other in rows]


def test_split_json_says_where_the_split_came_from_and_how_large_it_is(tmp_path, data):
    parts = split(data, "n-per-user[n=5]")
    record = export(parts, tmp_path / "out", **ORIGIN)
    assert record == json.loads((tmp_path / "out" / "split.json").read_text())
    assert record == ORIGIN | {
        "hash": parts.hash,
        "users": 60,
        "items": 100,
        "parts": {"train": {"rows": 300, "users": 60}, "test": {"rows": 900, "users": 60}},
        "rankbench": rankbench.__version__,
        "format": 1,
    }


def test_without_ids_the_rows_hold_numbers_from_zero(tmp_path):
    part = Ratings([0, 1, 2], [1, 0], [0.1, 3.0], 2)
    assert (
        written(Split(part, part), tmp_path / "out") / "test.csv"
    ).read_text() == "user,item,rating\n0,1,0.1\n1,0,3.0\n"


# ---- what goes wrong ----

PART = Ratings([0, 1, 2], [1, 0], [0.5, 3.0], 2, user_ids=np.array([5, 6]))


def test_an_empty_folder_is_filled_and_any_other_is_left_as_it_is(tmp_path):
    (tmp_path / "empty").mkdir()
    assert read_back(written(Split(PART, PART), tmp_path / "empty")).hash == Split(PART, PART).hash
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    for taken in (tmp_path / "full", tmp_path / "full" / "thesis.tex"):
        with pytest.raises(UserError, match=r"exists already: choose another folder with --to, or remove it first"):
            written(Split(PART, PART), taken)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.tex"]


def test_a_failure_half_way_leaves_nothing_behind(tmp_path, monkeypatch):
    def full_disk(path, arrays):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rankbench.data.export.write_npz", full_disk)
    with pytest.raises(UserError, match=r"cannot write .*out: No space left on device; choose another folder"):
        written(Split(PART, PART), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write .*: Not a directory; choose another folder with --to"):
        written(Split(PART, PART), tmp_path / "file" / "out")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (replace(PART, user_ids=np.array([7, 7])), "user id 7 belongs to 2 users: give each user a unique id"),
        (replace(PART, item_ids=np.array(["a", "a"])), "item id a belongs to 2 items"),
    ],
)
def test_ids_that_stand_for_two_things_are_an_error(tmp_path, part, message):
    with pytest.raises(UserError, match=message):
        written(Split(part, part), tmp_path / "out")


def test_parts_over_different_worlds_are_an_error(tmp_path):
    for other in (replace(PART, n_items=3), replace(PART, item_features=np.eye(2)), replace(PART, user_ids=None)):
        with pytest.raises(UserError, match="the parts of this split differ in their users, items or features"):
            written(Split(PART, other), tmp_path / "out")


def edit(folder, name, old, new):
    """Replace something in one of the files."""
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("test.csv", "5,1,0.5", "5,1,0.6", "was changed, its hash differs: export it again"),
        ("test.csv", "5,1,0.5", "4,1,0.5", "cannot be read: user id 4 is unknown; export it again"),
        ("test.csv", "5,1,0.5", "5,2,0.5", "cannot be read: item id 2 is out of range"),
        ("test.csv", "5,1,0.5", "5,1,much", "cannot be read: could not convert"),
        ("test.csv", "user,item", "who,item", "cannot be read: 'user'"),
        ("split.json", '"format": 1', '"format": 9', "cannot be read: its format is 9, not 1; export it again"),
        ("split.json", '"test": {', '"tast": {', "holds no complete split: tast.csv: No such file"),
        ("split.json", "{", "", "cannot be read: "),
    ],
)
def test_files_that_were_changed_are_an_error_that_says_so(tmp_path, name, old, new, message):
    folder = written(Split(PART, PART), tmp_path / "out")
    edit(folder, name, old, new)
    with pytest.raises(UserError) as caught:
        read_back(folder)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["split.json", "train.csv", "common.npz"])
def test_a_file_that_is_missing_is_named(tmp_path, name):
    folder = written(Split(PART, PART), tmp_path / "out")
    (folder / name).unlink()
    with pytest.raises(UserError, match=rf"holds no complete split: {name}: No such file"):
        read_back(folder)


def test_other_features_than_those_written_are_noticed(tmp_path):
    part = replace(PART, item_features=np.eye(2))
    folder = written(Split(part, part), tmp_path / "out")
    arrays = read_npz(folder / "common.npz")
    write_npz(folder / "common.npz", arrays | {"item_features": 2 * np.eye(2)})
    with pytest.raises(UserError, match="was changed, its hash differs"):
        read_back(folder)
