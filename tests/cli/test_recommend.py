"""`rankbench recommend` on the command line: CSV with the data's own ids, for some users or for all."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import csv_rows

import rankbench
from rankbench.data.views import Ratings
from rankbench.fitted import Fitted, Seen
from rankbench.models import Factors

SCORES = np.array([[3.0, 2, 1], [1, 2, 3]])
SEEN = Seen(np.array([0, 1, 1]), np.array([0], np.int32), 3)
USERS, ITEMS = np.array(["alice", "bob"]), np.array([10, 20, 30])


@pytest.fixture
def recommend(cli, here):
    """Runs the command in a folder with the file of a model; returns what it says."""
    rankbench.save(Fitted(Factors(SCORES, np.eye(3)), USERS, ITEMS, SEEN), "m.npz")
    return lambda *words, code=0: cli("recommend", *words, code=code)


LEFT_OUT = "m.npz: trained on 1 pairs of a user and an item, which are left out (--seen recommends them too)\n"


def rows(text):
    """The rows of a CSV with a header."""
    return [tuple(row.values()) for row in csv_rows(text)]


def test_recommendations_are_printed_as_csv(recommend):
    assert recommend("m.npz", "--user", "alice", "-k", 1) == ("user,place,item,score\nalice,1,20,2.0\n", LEFT_OUT)
    assert recommend("m.npz", "--user", "alice", "--seen").err == ""
    assert rows(recommend("m.npz", "--user", "alice", "--seen").out) == [
        ("alice", "1", "10", "3.0"), ("alice", "2", "20", "2.0"), ("alice", "3", "30", "1.0")
    ]  # fmt: skip
    assert rows(recommend("m.npz", "--item", 10, "--item", 30).out) == [
        ("alice", "1", "30", "1.0"), ("bob", "1", "30", "3.0"), ("bob", "2", "10", "1.0")
    ]  # fmt: skip


def test_all_users_go_to_a_new_file(recommend, tmp_path):
    assert recommend("m.npz", "-k", 2, "--to", "all.csv").out == "all.csv: 4 recommendations\n"
    assert [row[:3] for row in rows((tmp_path / "all.csv").read_text())] == [
        ("alice", "1", "20"), ("alice", "2", "30"), ("bob", "1", "30"), ("bob", "2", "20")
    ]  # fmt: skip
    before = (tmp_path / "all.csv").read_text()
    said = recommend("m.npz", "--to", "all.csv", code=2).err
    assert "all.csv exists already: choose another file with --to" in said
    assert (tmp_path / "all.csv").read_text() == before
    assert "cannot write nowhere/all.csv: No such file" in recommend("m.npz", "--to", "nowhere/all.csv", code=2).err


def test_parquet_has_the_rows_of_csv_whatever_the_blocks(recommend, tmp_path, monkeypatch):
    recommend("m.npz", "-k", 2, "--to", "all.csv")
    expected = pd.read_csv(tmp_path / "all.csv")
    assert recommend("m.npz", "-k", 2, "--to", "all.parquet").out == "all.parquet: 4 recommendations\n"
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "all.parquet"), expected, check_dtype=False)
    monkeypatch.setattr("rankbench.fitted.model._BLOCK", 1)  # each user alone
    recommend("m.npz", "-k", 2, "--to", "blocks.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "blocks.parquet"), expected, check_dtype=False)
    said = recommend("m.npz", "--item", 10, "--user", "alice", "--to", "none.parquet").out
    assert said == "none.parquet: 0 recommendations\n"
    assert list(pd.read_parquet(tmp_path / "none.parquet")) == ["user", "place", "item", "score"]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = recommend("m.npz", "--to", "more.parquet", code=2).err
    assert 'writing Parquet needs pyarrow; pip install "rankbench[parquet]"' in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("m.npz", "--user", "alic"), "user id 'alic' is unknown; did you mean 'alice'?"),
        (("m.npz", "--item", "ten"), "item id 'ten' is unknown: the ids are whole numbers"),
        (("m.npz", "-k", 0), "k=0 is not valid; give a whole number of at least 1"),
        (("gone.npz",), "cannot read the model gone.npz: No such file or directory"),
    ],
)
def test_wrong_use_is_answered_in_one_line(recommend, words, message):
    assert recommend(*words, code=2) == ("", f"rankbench: {message}\n")


def test_users_of_another_table_get_what_they_did_not_rate(recommend, tmp_path):
    table = Ratings.from_triples([0, 0, 1, 1], [0, 1, 1, 2], [5.0, 1, 4, 2], 2, 3, user_ids=USERS, item_ids=ITEMS)
    model = rankbench.fit("mf[rank=2]", table, steps=4)
    rankbench.save(model, "mf.npz")
    (tmp_path / "new.csv").write_text("user,item,rating\nzoe,10,2\nzoe,30,5\nyan,20,3\n")
    said, errors = recommend("mf.npz", "--ratings", "new.csv")
    assert errors == ""
    expected = model.fold_in({10: 2.0, 30: 5.0}).recommend()["score"].tolist()
    assert sorted(row[:3] for row in rows(said)) == [("yan", "1", "10"), ("yan", "2", "30"), ("zoe", "1", "20")]
    assert [float(row[3]) for row in rows(said) if row[0] == "zoe"] == expected
    of_zoe = rows(recommend("mf.npz", "--ratings", "new.csv", "--user", "zoe").out)
    assert of_zoe == [row for row in rows(said) if row[0] == "zoe"]
    assert "the solver of this model is unknown" in recommend("m.npz", "--ratings", "new.csv", code=2).err


def test_users_without_a_score_are_told(recommend):
    known = np.where([[True], [False], [False], [False], [False]], np.ones((5, 3)), np.nan)
    users = np.array(["ann", "bob", "cat", "dan", "eve"])
    everything = Seen(np.array([0, 3, 3, 3, 3, 6]), np.array([0, 1, 2, 0, 1, 2], np.int32), 3)
    rankbench.save(Fitted(Factors(known, np.eye(3)), users, ITEMS, everything), "some.npz")
    told = "some.npz: {} without a recommendation, as the model has no score for them (NaN): {}\n"
    said = recommend("some.npz", "-k", 2, "--to", "some.csv").err
    assert said.startswith(told.format("3 of 5 users", "bob, cat, dan"))
    assert recommend("some.npz", "-k", 2, "--seen").err == told.format("4 of 5 users", "bob, cat, dan, ...")
    assert recommend("some.npz", "--user", "bob", "--user", "ann", "--seen").err == told.format("1 of 2 users", "bob")
    assert "NaN" not in recommend("some.npz", "--user", "eve").err  # who has everything


def test_python_warns_of_users_without_a_score():
    model = Fitted(Factors(np.array([[1.0, 2, 3], [np.nan] * 3]), np.eye(3)), USERS, ITEMS, SEEN)
    with pytest.warns(UserWarning, match="1 of 2 users without a recommendation.*: bob") as warned:
        assert set(model.recommend()["user"]) == {"alice"}
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(model.recommend("alice")) == 2
