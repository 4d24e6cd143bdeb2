"""LLMFAO: comparisons without ties, and malformed files."""

import numpy as np
import pytest
from data.sources.at_hand import needs, put, view_of

import rankbench
from rankbench.core.errors import UserError
from rankbench.data.sources import llmfao
from rankbench.data.sources.llmfao import LLMFAO

HEAD = "id,prompt,model_x,model_y,worker,winner,left,right\n"
ROWS = (
    '0,8,97,98,58,left,"A, the first",B\n0,8,97,98,7,right,"A, the first",B\n'
    "1,8,97,98,7,tie,B,C\n2,8,1,2,58,right,C,B\n"
)


@pytest.fixture
def own(folders, monkeypatch):
    """Folders of our own, and counts that fit the small files."""
    monkeypatch.setattr(llmfao, "_ROWS", 4)
    monkeypatch.setattr(llmfao, "_TIES", 1)


def told(view):
    """The comparisons by published ids."""
    columns = view.user_ids[view.users], view.item_ids[view.better], view.item_ids[view.worse]
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def test_ties_are_left_out(own):
    put("llmfao", {"llmfao.csv": HEAD + ROWS})
    assert told(view_of(LLMFAO())) == [(7, "B", "A, the first"), (58, "A, the first", "B"), (58, "B", "C")]


def test_a_leaderboard_has_its_ties(own):
    put("llmfao", {"llmfao.csv": HEAD + ROWS})
    board = rankbench.rank("llmfao")
    assert len(board.votes) == 4 and board.frame["tied"].sum() == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.replace("worker", "who") + ROWS, "has no columns worker, winner, left, right"),
        (HEAD + ROWS[: ROWS.index("2,8")], "3 comparisons with 1 ties, not 4 with 1"),
        (HEAD + "0,8\n", "line 2: 2 fields where 8 are needed"),
    ],
)
def test_what_is_wrong_is_said(own, text, message):
    put("llmfao", {"llmfao.csv": text})
    with pytest.raises(UserError, match=message):
        view_of(LLMFAO())


@needs("llmfao/llmfao.csv")
def test_the_real_comparisons(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    view = view_of(LLMFAO())
    assert (len(view), view.n_users, view.n_items) == (5_460, 124, 59)
    assert np.unique(view.item_ids).size == 59
