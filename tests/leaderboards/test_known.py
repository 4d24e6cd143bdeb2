"""Votes of data sets by name."""

import numpy as np
import pytest

import rankbench
from rankbench.core.errors import UserError
from rankbench.leaderboards.sources.reading import votes_of


def test_comparisons_are_votes_of_their_users():
    view = rankbench.load("btl[users=30,items=8,comparisons=20,rank=1]")
    votes = votes_of("btl[users=30,items=8,comparisons=20,rank=1]")
    assert len(votes) == len(view) == 600 and len(votes.judges.names) == 30
    assert (votes.left == view.better).all() and (votes.right == view.worse).all() and (votes.outcome == 0).all()


def test_ratings_are_rankings_with_ties():
    name = "low-rank[users=12,items=9,per_user=5]"
    view, votes = rankbench.load(name), votes_of(name)
    assert len(votes) == 12 * 10 and len(votes.judges.names) == 12
    table = np.full((12, 9), np.nan)
    table[view.users, view.items] = view.values
    for judge, a, b, outcome in zip(votes.judges.codes, votes.left, votes.right, votes.outcome, strict=True):
        user = int(votes.judges.names[judge])
        assert np.sign(table[user, a] - table[user, b]) == (1 if outcome == 0 else 0)


def test_a_file_goes_before_a_name(here):
    (here / "btl").write_text("winner,loser\na,b\n")
    assert votes_of("btl").items.tolist() == ["a", "b"]


def test_settings_of_a_data_set_are_checked():
    with pytest.raises(UserError, match="userz"):
        votes_of("btl[userz=3]")
