"""The generators follow the laws they name, and the same seed gives the same bytes."""

import numpy as np
import pytest
from scipy.special import expit

from rankbench.arrays import fingerprint
from rankbench.data import load, synthetic
from rankbench.data.synthetic import BTL, LowRank, Magnitudes
from rankbench.data.views import Comparisons, Ratings
from rankbench.errors import UserError

GENERATORS = ("btl", "low-rank", "magnitudes")


def draw(source, seed=0):
    """The view of a source under a seed."""
    return source.view(np.random.default_rng(seed))


# ---- shapes ----


@pytest.mark.parametrize(("users", "items", "comparisons"), [(1, 2, 1), (7, 5, 30)])
def test_btl_has_so_many_comparisons_per_user(users, items, comparisons):
    view = draw(BTL(users=users, items=items, comparisons=comparisons))
    assert isinstance(view, Comparisons)
    assert (view.n_users, view.n_items, view.item_features) == (users, items, None)
    assert np.diff(view.indptr).tolist() == [comparisons] * users


@pytest.mark.parametrize("source", [LowRank, Magnitudes])
@pytest.mark.parametrize(("users", "items", "per_user"), [(1, 2, 2), (7, 30, 11)])
def test_ratings_are_so_many_per_user(source, users, items, per_user):
    view = draw(source(users=users, items=items, per_user=per_user))
    assert isinstance(view, Ratings)
    assert (view.n_users, view.n_items) == (users, items)
    assert np.diff(view.indptr).tolist() == [per_user] * users


def test_magnitudes_have_features_for_every_item_and_low_rank_has_none():
    assert draw(Magnitudes(items=150, features=4)).item_features.shape == (150, 4)
    assert draw(LowRank()).item_features is None


@pytest.mark.parametrize(
    "source", [BTL(users=7, comparisons=3), LowRank(users=7, per_user=3), Magnitudes(users=7, per_user=3)]
)
def test_the_size_in_words_is_the_size_in_rows(source):
    view, size = draw(source), source.provenance().size
    assert size.startswith(f"{view.n_users} users, {view.n_items} items, {len(view)} ")
    assert source.provenance().origin == "generated"
    assert source.missing() is None


# ---- the same bytes ----


@pytest.mark.parametrize("name", GENERATORS)
def test_equal_settings_and_seed_give_equal_bytes_however_they_were_written(name):
    expected = fingerprint(load(name, seed=3))
    for text in (name, f" {name} ", f"{name}[users={load(name).n_users}]", f"{name} [users={load(name).n_users}]"):
        assert fingerprint(load(text, seed=3)) == expected


@pytest.mark.parametrize("name", GENERATORS)
def test_another_seed_or_setting_gives_other_data(name):
    texts = [(name, 0), (name, 1), (f"{name}[users=299]", 0), (f"{name}[items=150]", 0)]
    assert len({fingerprint(load(text, seed)) for text, seed in texts}) == len(texts)


# ---- Bradley, Terry and Luce ----


def test_btl_wins_follow_the_logistic_law(monkeypatch):
    utilities = np.linspace(-0.5, 0.5, 11)
    monkeypatch.setattr(synthetic, "_low_rank", lambda rng, users, items, rank: np.tile(utilities, (users, 1)))
    view = draw(BTL(users=40, items=11, comparisons=5000, scale=4.0))
    steps = view.better - view.worse  # of 0.1 each
    for step in range(1, 11):
        wins, losses = (steps == step).sum(), (steps == -step).sum()
        expected, n = expit(4.0 * 0.1 * step), wins + losses
        assert abs(wins / n - expected) < 4 * np.sqrt(expected * (1 - expected) / n)


def test_btl_without_scale_tosses_a_coin():
    view = draw(BTL(users=20, items=2, comparisons=5000, scale=0.0))
    assert np.mean(view.better) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(100_000))


def test_btl_meets_every_pair_of_items_about_equally_often():
    view = draw(BTL(users=20, items=5, comparisons=5000))
    low, high = np.minimum(view.better, view.worse), np.maximum(view.better, view.worse)
    counts = np.bincount(5 * low + high, minlength=25)[[1, 2, 3, 4, 7, 8, 9, 13, 14, 19]]
    np.testing.assert_allclose(counts / len(view), 0.1, atol=4 * np.sqrt(0.09 / len(view)))


@pytest.mark.parametrize("rank", [1, 3, 20])
def test_scores_have_unit_variance_whatever_their_rank(rank):
    view = draw(LowRank(users=3000, items=2000, per_user=20, rank=rank, levels=0, noise=0.0))
    assert np.std(view.values) == pytest.approx(1, abs=0.1)


# ---- low rank ----


@pytest.mark.parametrize("levels", [2, 5, 10])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_levels_are_about_equally_frequent(levels, noise):
    view = draw(LowRank(users=1000, items=500, rank=10, levels=levels, noise=noise))
    found, counts = np.unique(view.values, return_counts=True)
    assert found.tolist() == list(range(1, levels + 1))
    np.testing.assert_allclose(counts * levels / len(view), 1, atol=0.25)


@pytest.mark.parametrize("levels", [1, 2, 5, 50])
def test_a_level_is_a_monotone_function_of_the_score(levels):
    raw, seen = (draw(LowRank(users=20, levels=shown)) for shown in (0, levels))
    np.testing.assert_array_equal(raw.items, seen.items)
    assert (np.diff(seen.values[np.argsort(raw.values)]) >= 0).all()


def test_the_scores_without_noise_have_the_rank_they_say():
    view = draw(LowRank(users=30, items=20, per_user=20, rank=3, levels=0, noise=0.0))
    assert np.linalg.matrix_rank(view.values.reshape(30, 20)) == 3


# ---- magnitudes ----


@pytest.mark.parametrize(("bend", "linear"), [(0.0, True), (1.0, False)])
def test_without_bend_and_noise_ratings_are_linear_in_the_features(bend, linear):
    view = draw(Magnitudes(users=3, noise=0.0, bend=bend))
    for user in range(3):
        rows = slice(view.indptr[user], view.indptr[user + 1])
        features = view.item_features[view.items[rows]]
        fitted = features @ np.linalg.lstsq(features, view.values[rows])[0]
        assert np.allclose(fitted, view.values[rows], atol=1e-9) == linear


def test_noise_is_as_loud_as_it_says():
    quiet, loud = (draw(Magnitudes(users=200, noise=noise)) for noise in (0.0, 0.7))
    assert np.std(loud.values - quiet.values) == pytest.approx(0.7, rel=0.05)


# ---- settings ----


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("btl[users=0]", "btl: users=0 is out of range: must be at least 1"),
        ("btl[items=1]", "btl: items=1 is out of range: must be at least 2"),
        ("btl[scale=-1]", "btl: scale=-1 is out of range: must be at least 0"),
        ("btl[rank=1.5]", "btl: rank=1.5 is not of type int"),
        ("low-rank[per_user=201]", "per_user=201 is out of range: there are only 200 items"),
        ("low-rank[per_user=1]", "low-rank: per_user=1 is out of range: must be at least 2"),
        ("low-rank[levels=-1]", "low-rank: levels=-1 is out of range: must be at least 0"),
        ("low-rank[noise=nan]", "low-rank: noise=nan is out of range: must be at least 0"),
        ("magnitudes[features=0]", "magnitudes: features=0 is out of range: must be at least 1"),
        ("magnitudes[per_user=301]", "per_user=301 is out of range: there are only 300 items"),
        ("magnitudes[bends=1]", "unknown setting of magnitudes: 'bends'; did you mean 'bend'"),
        ("lowrank", "unknown data set 'lowrank'; did you mean 'low-rank'"),
    ],
)
def test_settings_out_of_range_are_refused(name, message):
    with pytest.raises(UserError, match=message):
        load(name)
