"""Chances of comparisons: bins against counting by hand, the slope against SciPy, and what calibrating changes."""

from dataclasses import astuple

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit

import rankbench
from rankbench.core.errors import UserError
from rankbench.data.synthetic import BTL
from rankbench.data.views import Comparisons
from rankbench.metrics.reliability import bins_of, gaps_of, slope_of
from rankbench.models import ItemScores


def compared(users=40, each=60, scale=3.0, seed=0) -> Comparisons:
    return BTL(users=users, items=30, rank=2, comparisons=each, scale=scale).view(np.random.default_rng(seed))


@pytest.fixture(scope="module")
def split():
    return rankbench.split(compared(users=100, each=120), "per-user")


@pytest.fixture(scope="module")
def model(split):
    return rankbench.fit("altsvm[lam=5,rank=2]", split)


def test_bins_count_what_the_item_with_the_higher_score_won():
    pairs = Comparisons([0, 3, 5], [0, 0, 1, 1, 2], [1, 2, 3, 0, 3], n_items=4)
    gaps = np.array([0.1, -0.1, 3.0, 0.0, np.nan])
    first, last = bins_of(gaps, pairs.users, 2, 5)
    assert astuple(first)[:3] == (0.5, 0.6, 3)
    assert first.chance == pytest.approx((2 * expit(0.1) + 0.5) / 3)
    assert first.share == pytest.approx((1 + 0 + 0.5) / 3)
    assert (last.comparisons, last.low, last.share) == (1, 0.9, 1.0)


def test_every_comparison_with_scores_is_in_one_bin(model, split):
    gaps = gaps_of(model, split.test)
    for count in (1, 7, 10):
        bins = list(bins_of(gaps, split.test.users, split.test.n_users, count))
        assert sum(one.comparisons for one in bins) == len(split.test)
        assert all(one.low <= one.chance <= one.high and one.share_low <= one.share <= one.share_high for one in bins)


def test_a_chance_of_one_is_in_the_last_bin():
    (only,) = bins_of(np.array([800.0, -800.0]), np.array([0, 1], np.int32), 2, 10)
    assert (only.low, only.high, only.chance, only.share) == (0.95, 1.0, 1.0, 0.5)


def test_the_slope_is_that_of_the_highest_likelihood():
    rng = np.random.default_rng(1)
    for scale in (1e-6, 0.3, 1.0, 4.0, 1e6):
        true = rng.normal(0, 2, 5_000)
        gaps = np.where(rng.random(5_000) < expit(true), true, -true)
        found = minimize_scalar(lambda a, g=gaps: np.logaddexp(0, -a * g).sum(), bracket=(0.5, 1), tol=1e-12)
        assert slope_of(scale * gaps) * scale == pytest.approx(found.x, rel=1e-6)


@pytest.mark.parametrize(
    ("gaps", "problem"),
    [
        ([1.0, 2.0, 0.5], "agree with all"),
        ([0.0, 1.0, 2.0], "agree with all"),
        ([0.0, 0.0, np.nan], "alike"),
        ([np.nan], "alike"),
        ([1.0, -2.0], "do not agree"),
    ],
)
def test_gaps_that_give_no_slope(gaps, problem):
    with pytest.raises(UserError, match=problem):
        slope_of(np.array(gaps))


def test_calibrating_changes_chances_and_no_order(model, split, tmp_path):
    half = rankbench.split(split.test, "per-user[test=0.5]")
    found = model.calibrated(half.train)
    before, after = (rankbench.evaluate(one, half, ["pairwise-error", "log-loss", "brier"]) for one in (model, found))
    assert after["pairwise-error"] == before["pairwise-error"]
    assert after["log-loss"] < before["log-loss"]
    assert after["brier"] < before["brier"]
    assert rankbench.reliability(found, half).error < rankbench.reliability(model, half).error / 2
    rankbench.save(found, tmp_path / "m.npz")
    again = rankbench.load(str(tmp_path / "m.npz"))
    users, items, others = [3, 4], [0, 1], [7, 5]
    np.testing.assert_array_equal(again.chances(users, items, others), found.chances(users, items, others))
    margins = found.score_ids(users, items) - found.score_ids(users, others)
    np.testing.assert_allclose(found.chances(users, items, others), expit(margins), rtol=1e-14)
    np.testing.assert_allclose(found.score_all(np.array([3], np.int32))[0, 7], found.score_ids(3, 7)[0], rtol=1e-14)


def test_reasons_of_a_calibrated_model_add_up_to_its_scores(model, split):
    found = model.calibrated(split.test)
    item = found.rank(5)["item"][0]
    assert found.why(5, item, k=3)["contribution"].sum() == pytest.approx(found.score_ids(5, item)[0], rel=1e-9)


def test_users_who_come_later_have_the_slope_of_the_model():
    rng = np.random.default_rng(3)
    view = rankbench.Ratings.from_triples(
        np.repeat(np.arange(30), 8), np.tile(np.arange(8), 30), rng.normal(size=240), 30, 8, rng.normal(size=(8, 3))
    )
    split = rankbench.split(view.comparisons(), "per-user")
    model = rankbench.fit("frsvm[rank=2,loss=logistic]", split, steps=5).calibrated(split.train)
    assert model.slope != 1
    assert model.fold_in(split.test).slope == model.slope
    assert model.with_items(rng.normal(size=(2, 3))).slope == model.slope


def test_a_file_with_a_slope_that_is_no_scale_is_refused(model, tmp_path):
    rankbench.save(model, tmp_path / "m.npz")
    arrays = dict(np.load(tmp_path / "m.npz"))
    for slope in (0.0, -1.0, np.nan, np.inf):
        np.savez(tmp_path / "bad.npz", **arrays, slope=slope)
        with pytest.raises(UserError, match="slope"):
            rankbench.load(str(tmp_path / "bad.npz"))


@pytest.mark.slow
def test_the_diagram_and_the_table_are_written(model, split, tmp_path):
    found = rankbench.reliability(model, split, bins=4)
    for name in ("r.csv", "r.png", "r.svg"):
        found.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    assert (tmp_path / "r.csv").read_text().splitlines()[0] == ",".join(found.frame.columns)
    assert "log loss" in repr(found)
    assert repr(found).count("won") == len(found.bins)
    with pytest.raises(UserError, match="another ending"):
        found.save(tmp_path / "r.xlsx")


def test_comparisons_without_a_score_are_left_out_and_counted():
    pairs = Comparisons([0, 3], [0, 0, 1], [1, 2, 2], n_items=3)
    found = rankbench.reliability(ItemScores(np.array([1.0, 0.0, np.nan])), pairs)
    assert (found.left_out, len(found.bins)) == (2, 1)
    assert "2 comparisons of an item without a score are left out" in repr(found)
    with pytest.raises(UserError, match="none of these"):
        rankbench.reliability(ItemScores(np.full(3, np.nan)), pairs)


@pytest.mark.parametrize(("arguments", "problem"), [({"bins": 0}, "bins=0"), ({"bins": 1.5}, r"bins=1\.5")])
def test_bins_are_counted_in_whole_numbers(arguments, problem, model, split):
    with pytest.raises(UserError, match=problem):
        rankbench.reliability(model, split, **arguments)


def test_chances_are_of_comparisons(model):
    ratings = rankbench.load("low-rank[users=9,items=9,per_user=5]")
    for call in (lambda: rankbench.reliability(model, ratings), lambda: model.calibrated(ratings)):
        with pytest.raises(UserError, match="Comparisons"):
            call()


@pytest.mark.trust
def test_the_intervals_of_a_bin_hold_what_is_true():
    """Judges' shares differ: in 93 to 97 % of 1,000 draws a bin's interval holds the mean over all judges."""
    rng, held = np.random.default_rng(5), 0
    for _ in range(1_000):
        skill = expit(rng.normal(1.0, 0.5, 60))
        users = np.repeat(np.arange(60, dtype=np.int32), rng.integers(5, 40, 60))
        won = rng.random(len(users)) < skill[users]
        (found,) = bins_of(np.where(won, 1.0, -1.0), users, 60, 1)
        held += found.share_low <= 0.7206 <= found.share_high  # the mean of expit(normal(1, 1/2))
    assert 0.93 <= held / 1_000 <= 0.97, held
