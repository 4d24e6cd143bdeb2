"""The scores of LLMFAO's 59 models that evalica's own tests expect (evalica, Apache 2.0), by seven methods."""

import os
from pathlib import Path

import numpy as np
import pandas
import pytest

import rankbench
from rankbench.leaderboards.fits import classical

FOLDER = Path(os.environ.get("RANKBENCH_DATA", "nowhere")) / "llmfao"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs LLMFAO in RANKBENCH_DATA")


@pytest.fixture(scope="module")
def golden():
    return pandas.read_csv(FOLDER / "llmfao-golden.csv").pivot(index="item", columns="algorithm", values="score")


def scores(model, **how):
    board = rankbench.rank(FOLDER / "llmfao.csv", model=model, intervals="none", **how)
    return board.frame.set_index("item")["score"]


@pytest.mark.parametrize(
    ("model", "name"), [("counting", "counting"), ("win-rate", "average_win_rate"), ("pagerank", "pagerank")]
)
def test_scores_of_tables_are_equal(golden, model, name):
    assert scores(model)[golden.index].to_numpy() == pytest.approx(golden[name].to_numpy(), rel=1e-10)


@pytest.mark.parametrize(("model", "name"), [("bradley-terry", "bradley_terry"), ("davidson", "newman")])
def test_scores_of_likelihoods_are_the_logarithms_up_to_a_constant(golden, model, name):
    theirs = np.log(golden[name])
    assert scores(model)[golden.index].to_numpy() == pytest.approx((theirs - theirs.mean()).to_numpy(), abs=1e-8)


def test_elos_ratings_are_equal_with_their_step(golden):
    votes = rankbench.rank(FOLDER / "llmfao.csv", model="elo").votes
    theirs = golden["elo"][votes.items].to_numpy()
    assert classical.elo(votes, k=4.0) == pytest.approx(theirs, abs=1e-9)


def test_the_eigenvector_is_theirs_of_the_table_turned_round(golden):
    board = rankbench.rank(FOLDER / "llmfao.csv", model="eigen", intervals="none")
    theirs = golden["eigen"][board.votes.items].to_numpy()
    assert classical.eigen(board.estimated.wins.T) == pytest.approx(theirs, abs=1e-9)
    best = golden["bradley_terry"].idxmax()
    assert golden["eigen"].rank()[best] < 20, "there a high number is a bad one"
    assert golden["eigen"].corr(golden["bradley_terry"], "spearman") < -0.7
    assert board.frame.set_index("item")["score"].corr(golden["counting"], "spearman") > 0.7
