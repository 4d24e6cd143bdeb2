"""Votes as a data set: the comparisons that are no ties, judges as users, rankings that stay together."""

import numpy as np
import pandas
import pytest

import rankbench
from rankbench.core.errors import UserError
from rankbench.leaderboards.sources import own_votes
from rankbench.leaderboards.sources.reading import votes_of

ROWS = "judge,left,right,winner,question,n\n7,a,b,left,q1,1\n10,b,c,right,q1,2\n7,c,a,tie,q2,1\n7,c,a,left,q2,0\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(ROWS)
    return path


def told(view):
    """The comparisons as texts."""
    return [
        (view.user_ids[user], view.item_ids[better], view.item_ids[worse])
        for user, better, worse in zip(view.users, view.better, view.worse, strict=True)
    ]


def test_a_table_gives_the_comparisons_that_are_no_ties(table):
    view = rankbench.load(f"votes:{table}")
    assert told(view) == [(7, "a", "b"), (7, "c", "a"), (10, "c", "b")]
    assert (view.n_users, view.n_items, view.groups) == (2, 3, None)


def test_a_comparison_that_counts_n_times_is_there_n_times(table):
    assert told(rankbench.load(f"votes:{table}[count=n]")) == [(7, "a", "b"), (10, "c", "b"), (10, "c", "b")]


def test_rows_of_one_question_stay_together(table):
    view = rankbench.load(f"votes:{table}[together=question]")
    assert view.groups.tolist() == [0, 1, 0]


def test_rankings_give_pairs_that_stay_together(tmp_path):
    path = tmp_path / "orders.csv"
    path.write_text("voter,ranking\nx,a > b = c\ny,c > a\nx,b > a\n")
    view = rankbench.load(f"votes:{path}")
    assert told(view) == [("x", "a", "b"), ("x", "a", "c"), ("x", "b", "a"), ("y", "c", "a")]
    assert view.groups.tolist() == [0, 0, 2, 1]
    assert rankbench.rank(f"votes:{path}").votes.outcome.tolist().count(2) == 1  # the tie is a vote, and no comparison


@pytest.mark.parametrize("prefix", ["preflib", "votes"])
def test_files_of_preflib_have_a_judge_for_each_ranking(tmp_path, prefix):
    path = tmp_path / "00001-1.toc"
    path.write_text("# ALTERNATIVE NAME 1: p\n# ALTERNATIVE NAME 2: q\n# ALTERNATIVE NAME 3: r\n2: 1,{2,3}\n1: 3,1\n")
    view = rankbench.load(f"{prefix}:{path}")
    assert (view.n_users, len(view)) == (3, 5)
    assert view.user_ids.tolist() == view.groups[view.indptr[:-1]].tolist() == [0, 1, 2]
    assert told(view)[-1] == (2, "r", "p")


def test_without_a_judge_all_are_one_users(tmp_path):
    path = tmp_path / "duels.json"
    pandas.DataFrame({"winner": [3, 11], "loser": [11, 2]}).to_json(path, orient="records")
    view = rankbench.load(f"votes:{path}")
    assert (view.n_users, view.user_ids, view.item_ids.tolist()) == (1, None, [2, 3, 11])
    assert view.better.tolist() == [1, 2]


def test_ids_with_leading_zeros_are_texts(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("winner,loser\n01,2\n2,10\n")
    assert rankbench.load(f"votes:{path}").item_ids.tolist() == ["01", "10", "2"]


def test_columns_may_be_named_and_items_may_have_features(tmp_path):
    path, features = tmp_path / "v.csv", tmp_path / "f.npz"
    path.write_text("who,good,bad\n1,x,y\n1,y,z\n")
    np.savez(features, ids=np.array(["z", "y", "x"]), features=np.arange(6.0).reshape(3, 2))
    view = rankbench.load(f"votes:{path}[winner=good,loser=bad,judge=who,features={features}]")
    np.testing.assert_array_equal(view.item_features, [[4, 5], [2, 3], [0, 1]])


@pytest.mark.parametrize(
    ("text", "settings", "problem"),
    [
        ("left,right,winner\na,b,tie\n", "", "nothing but ties"),
        ("winner,loser,weight\na,b,0.5\n", "", "has weights"),
        ("winner,loser\na,b\n", "[judge=who]", "no column 'who'"),
        ("winner,loser\na,a\n", "", "compared with itself"),
        ("judge,ranking\n1,a > b\n", "[together=judge]", "no categories"),
        ("judge,item,rank\n", "", "has no rows"),
    ],
)
def test_what_gives_no_comparisons_is_said(tmp_path, text, settings, problem):
    path = tmp_path / "v.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=problem):
        rankbench.load(f"votes:{path}{settings}")


def test_counts_of_more_comparisons_than_a_run_can_hold_are_refused(table, monkeypatch):
    monkeypatch.setattr(own_votes, "_MOST", 2)
    with pytest.raises(UserError, match="counts over 2 comparisons"):
        rankbench.load(f"votes:{table}[count=n]")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no file .*nothing\.csv"):
        rankbench.load(f"votes:{tmp_path}/nothing.csv")


def test_an_arena_has_the_same_comparisons_as_votes():
    name = "arena[items=6,judges=9,comparisons=300]"
    view, votes = rankbench.load(name), votes_of(name)
    won = votes.outcome == 0
    better, worse = np.where(won, votes.left, votes.right), np.where(won, votes.right, votes.left)
    kept = votes.outcome != 2
    found = sorted(zip(votes.judges.names[votes.judges.codes[kept]], better[kept], worse[kept], strict=True))
    expected = zip(view.users, view.better, view.worse, strict=True)
    assert found == sorted((f"judge {user}", better, worse) for user, better, worse in expected)
