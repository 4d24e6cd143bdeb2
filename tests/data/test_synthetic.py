"""The generators follow their distributions, and the same seed gives the same bytes."""

import os
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter

import numpy as np
import pytest
from scipy.special import expit, ndtri
from scipy.stats import chisquare, kstest
from sklearn.linear_model import Ridge

from rankbench.arrays.npz import fingerprint
from rankbench.core.errors import UserError
from rankbench.data import DATASETS, load
from rankbench.data.synthetic import BTL, FeatureLowRank, LowRank, Magnitudes, Monotone, PartialOrders
from rankbench.data.views import Comparisons, Ratings

GENERATORS = ("btl", "feature-low-rank", "low-rank", "magnitudes", "monotone", "partial-orders")
RATED = [FeatureLowRank, LowRank, Magnitudes, Monotone]
UNLIKELY = 1e-3  # what a test by chance may fail with: seeds are fixed, so it never does later


def draw(source, seed=0):
    """The view of a source under a seed."""
    return source.view(np.random.default_rng(seed))


def hidden(users, items, rank, seed=0):
    """The low-rank scores that a generator of these sizes starts with under this seed, of unit variance."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((users, rank)) @ rng.standard_normal((rank, items)) / np.sqrt(rank)


def by_user(view):
    """The rows of each user."""
    return [slice(*view.indptr[user : user + 2]) for user in range(view.n_users)]


# ---- shapes ----


@pytest.mark.parametrize(("users", "items", "comparisons"), [(1, 2, 1), (7, 5, 30)])
@pytest.mark.parametrize(("source", "setting"), [(BTL, "comparisons"), (FeatureLowRank, "pairs")])
def test_comparisons_are_so_many_per_user(source, setting, users, items, comparisons):
    least = {"per_user": 2} if source is FeatureLowRank else {}
    view = draw(source(users=users, items=items, **{setting: comparisons}, **least))
    assert isinstance(view, Comparisons)
    assert (view.n_users, view.n_items) == (users, items)
    assert np.diff(view.indptr).tolist() == [comparisons] * users


@pytest.mark.parametrize("source", RATED)
@pytest.mark.parametrize(("users", "items", "per_user"), [(1, 2, 2), (7, 30, 11)])
def test_ratings_are_so_many_per_user(source, users, items, per_user):
    view = draw(source(users=users, items=items, per_user=per_user))
    assert isinstance(view, Ratings)
    assert (view.n_users, view.n_items) == (users, items)
    assert np.diff(view.indptr).tolist() == [per_user] * users


def test_only_what_is_made_of_features_has_them():
    assert draw(Magnitudes(items=150, features=4)).item_features.shape == (150, 4)
    assert draw(FeatureLowRank(users=3, items=90, features=7)).item_features.shape == (90, 7)
    assert draw(FeatureLowRank(users=3, items=90, features=7, pairs=5)).item_features.shape == (90, 7)
    for source in (BTL(), LowRank(), Monotone(), PartialOrders()):
        assert draw(source).item_features is None


SMALL = [
    BTL(users=7, comparisons=3),
    FeatureLowRank(users=7, items=80, per_user=5),
    FeatureLowRank(users=7, items=80, pairs=9),
    LowRank(users=7, per_user=3),
    Magnitudes(users=7, per_user=3),
    Monotone(users=7, per_user=3),
    PartialOrders(users=7, per_user=9, density=0.4),
]


@pytest.mark.parametrize("source", SMALL, ids=lambda source: type(source).__name__)
def test_the_size_in_words_is_the_size_in_rows(source):
    view, origin = draw(source), source.origin
    rows = "ratings" if isinstance(view, Ratings) else "comparisons"
    assert origin.size == f"{view.n_users} users, {view.n_items} items, {len(view)} {rows}"
    assert (origin.home, origin.missing(), origin.held()) == ("generated", None, [])


# ---- the same bytes ----


@pytest.mark.trust
@pytest.mark.parametrize("name", GENERATORS)
def test_equal_settings_and_seed_give_equal_bytes_however_they_were_written(name):
    expected = fingerprint(load(name, seed=3))
    users = DATASETS.make(name).users
    for text in (name, f" {name} ", f"{name}[users={users}]", f"{name} [users={users}]"):
        assert fingerprint(load(text, seed=3)) == expected


@pytest.mark.trust
@pytest.mark.parametrize("name", GENERATORS)
def test_another_seed_or_setting_gives_other_data(name):
    texts = [(name, 0), (name, 1), (f"{name}[users=299]", 0), (f"{name}[items=150]", 0)]
    assert len({fingerprint(load(text, seed)) for text, seed in texts}) == len(texts)


# ---- Bradley, Terry and Luce (Park) ----


def test_btl_wins_follow_the_logistic_law_of_the_hidden_scores():
    view = draw(BTL(users=50, items=30, comparisons=4000, scale=3.0))
    scores = 3.0 * hidden(50, 30, 3)
    gaps = scores[view.users, view.better] - scores[view.users, view.worse]
    # of the pairs with this gap so many must be won by the better and so many by the worse
    borders = np.quantile(np.abs(gaps), np.linspace(0, 1, 21)[1:-1])
    group = np.searchsorted(borders, np.abs(gaps))
    expected = np.bincount(group, expit(np.abs(gaps)))
    wins, all_ = np.bincount(group[gaps > 0]), np.bincount(group)
    found = np.concatenate([wins, all_ - wins])
    assert chisquare(found, np.concatenate([expected, all_ - expected]), ddof=19).pvalue > UNLIKELY


def test_btl_without_scale_tosses_a_coin():
    view = draw(BTL(users=20, items=2, comparisons=5000, scale=0.0))
    assert np.mean(view.better) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(100_000))


def test_btl_meets_every_pair_of_items_about_equally_often():
    view = draw(BTL(users=20, items=5, comparisons=5000))
    low, high = np.minimum(view.better, view.worse), np.maximum(view.better, view.worse)
    assert chisquare(np.bincount(5 * low + high, minlength=25)[[1, 2, 3, 4, 7, 8, 9, 13, 14, 19]]).pvalue > UNLIKELY


def test_btl_needs_no_memory_for_pairs_that_never_meet():
    view = draw(BTL(users=200_000, items=100_000, comparisons=1, rank=2))  # 160 GB if all scores were made
    assert len(view) == 200_000


# ---- low rank ----


@pytest.mark.parametrize("rank", [1, 3, 20])
def test_scores_have_unit_variance_whatever_their_rank(rank):
    view = draw(LowRank(users=3000, items=2000, per_user=20, rank=rank, levels=0, noise=0.0))
    assert np.std(view.values) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("levels", [2, 5, 10])
@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("source", [LowRank, lambda **settings: Monotone(spread=0, **settings)])
def test_levels_are_about_equally_frequent(source, levels, noise):
    view = draw(source(users=1000, items=500, rank=10, levels=levels, noise=noise))
    found, counts = np.unique(view.values, return_counts=True)
    assert found.tolist() == list(range(1, levels + 1))
    np.testing.assert_allclose(counts * levels / len(view), 1, atol=0.25)


@pytest.mark.parametrize("levels", [1, 2, 5, 50])
def test_a_level_is_a_monotone_function_of_the_score(levels):
    raw, seen = (draw(LowRank(users=20, levels=shown)) for shown in (0, levels))
    np.testing.assert_array_equal(raw.items, seen.items)
    assert (np.diff(seen.values[np.argsort(raw.values)]) >= 0).all()


@pytest.mark.parametrize("source", [LowRank, lambda **settings: Monotone(spread=0, curve="identity", **settings)])
def test_the_scores_without_noise_are_the_hidden_ones_and_of_their_rank(source):
    scores = draw(source(users=30, items=20, per_user=20, rank=3, levels=0, noise=0.0)).values.reshape(30, 20)
    assert np.linalg.matrix_rank(scores) == 3
    np.testing.assert_allclose(scores, hidden(30, 20, 3), atol=1e-12)


# ---- monotone curves (Gunasekar) ----


@pytest.mark.parametrize("curve", ["identity", "exp", "cube", "logistic", "mixed"])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_a_curve_keeps_every_users_order_and_ties_nothing(curve, noise):
    sizes = {"users": 60, "items": 100, "per_user": 40, "rank": 1, "noise": noise}  # rank 1 has the farthest scores
    raw, seen = draw(LowRank(levels=0, **sizes)), draw(Monotone(curve=curve, **sizes))
    np.testing.assert_array_equal(raw.items, seen.items)
    for rows in by_user(raw):
        assert (np.diff(seen.values[rows][np.argsort(raw.values[rows])]) > 0).all()


def test_curves_differ_from_user_to_user_unless_told_otherwise():
    sizes = {"users": 300, "items": 50, "per_user": 50, "rank": 1, "noise": 0.0}
    raw = draw(LowRank(levels=0, **sizes)).values.reshape(300, 50)

    def correlations(**settings):
        values = draw(Monotone(**sizes, **settings)).values.reshape(300, 50)
        return np.array([np.corrcoef(one, other)[0, 1] for one, other in zip(raw, values, strict=True)])

    assert correlations(curve="identity").min() > 1 - 1e-9  # every user's own straight line
    kinds = np.round(correlations(curve="mixed"), 9) == 1
    assert kinds.mean() == pytest.approx(1 / 4, abs=4 * np.sqrt(3 / 16 / 300))  # so many got the straight one
    bent = correlations(curve="cube")
    assert bent.max() < 1 - 1e-9


def test_the_logarithm_of_a_users_gain_spreads_as_it_says():
    sizes = {"users": 2000, "items": 5, "per_user": 2, "rank": 1, "noise": 0.0}
    raw, seen = draw(LowRank(levels=0, **sizes)), draw(Monotone(curve="identity", spread=0.7, **sizes))
    gains = np.diff(seen.values.reshape(-1, 2))[:, 0] / np.diff(raw.values.reshape(-1, 2))[:, 0]
    assert kstest(np.log(gains) / 0.7, "norm").pvalue > UNLIKELY
    offsets = seen.values.reshape(-1, 2)[:, 0] - gains * raw.values.reshape(-1, 2)[:, 0]
    assert kstest(offsets / 0.7, "norm").pvalue > UNLIKELY


def test_a_staircase_of_ones_own_uses_levels_unlike_others_and_stays_monotone():
    sizes = {"users": 200, "items": 100, "per_user": 100}
    raw, seen = draw(LowRank(levels=0, **sizes)), draw(Monotone(levels=5, **sizes))
    assert set(np.unique(seen.values)) == {1, 2, 3, 4, 5}
    for rows in by_user(raw):
        assert (np.diff(seen.values[rows][np.argsort(raw.values[rows])]) >= 0).all()
    means = seen.values.reshape(200, 100).mean(axis=1)
    same = draw(Monotone(levels=5, spread=0, **sizes)).values.reshape(200, 100).mean(axis=1)
    assert means.std() > 2 * same.std()


def test_levels_without_spread_stand_on_the_quantiles_of_the_normal_law():
    raw, seen = draw(LowRank(levels=0, noise=0.3)), draw(Monotone(levels=4, spread=0, noise=0.3))
    borders = ndtri([0.25, 0.5, 0.75]) * np.sqrt(1 + 0.3**2)
    np.testing.assert_array_equal(seen.values, 1 + (raw.values[:, None] > borders).sum(axis=1))


# ---- partial orders (Gunasekar) ----


@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_every_users_comparisons_go_in_no_circle(noise):
    view = draw(PartialOrders(users=50, items=60, per_user=30, density=0.5, noise=noise))
    for rows in by_user(view):
        graph = {}
        for better, worse in zip(view.better[rows].tolist(), view.worse[rows].tolist(), strict=True):
            graph.setdefault(worse, set()).add(better)
        try:
            assert list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            pytest.fail(str(error))


def test_without_noise_comparisons_agree_with_the_hidden_scores_and_with_noise_some_do_not():
    def agreeing(noise):
        view = draw(PartialOrders(users=80, items=50, rank=4, per_user=20, density=0.3, noise=noise))
        scores = hidden(80, 50, 4)
        return np.mean(scores[view.users, view.better] > scores[view.users, view.worse])

    assert agreeing(0.0) == 1
    assert 0.6 < agreeing(1.0) < 0.9


@pytest.mark.parametrize(("per_user", "density", "edges"), [(2, 0.1, 1), (5, 1.0, 10), (20, 0.2, 38)])
def test_the_density_is_the_share_of_pairs_compared_and_none_comes_twice(per_user, density, edges):
    view = draw(PartialOrders(users=40, items=30, per_user=per_user, density=density))
    assert np.diff(view.indptr).tolist() == [edges] * 40
    low, high = np.minimum(view.better, view.worse), np.maximum(view.better, view.worse)
    assert len(np.unique((view.users.astype(np.int64) * 30 + low) * 30 + high)) == len(view)
    for rows in by_user(view):
        assert len(np.union1d(view.better[rows], view.worse[rows])) <= per_user


@pytest.mark.trust
def test_every_pair_of_the_items_met_is_equally_likely_to_be_compared():
    view = draw(PartialOrders(users=20_000, items=4, per_user=4, density=0.34))  # 2 of 6 pairs
    low, high = np.minimum(view.better, view.worse), np.maximum(view.better, view.worse)
    counts = np.bincount(4 * low + high, minlength=16)[[1, 2, 3, 6, 7, 11]]
    assert chisquare(counts).pvalue > UNLIKELY


# ---- low rank in the features (Cheng) ----


def test_feature_scores_are_linear_in_the_features_with_weights_of_the_rank():
    view = draw(FeatureLowRank(users=30, items=60, features=12, rank=4, per_user=60))
    weights = np.linalg.lstsq(view.item_features, view.values.reshape(30, 60).T)[0]
    np.testing.assert_allclose(view.item_features @ weights, view.values.reshape(30, 60).T, atol=1e-9)
    assert np.linalg.matrix_rank(weights) == 4


def test_feature_scores_have_the_papers_variance():
    view = draw(FeatureLowRank())
    assert (view.n_users, view.n_items, view.item_features.shape[1], len(view)) == (1000, 10_000, 64, 61_000)
    assert np.var(view.values) == pytest.approx(64 * 20, rel=0.1)
    assert np.std(view.item_features) == pytest.approx(1, rel=0.01)


def test_explicit_pairs_are_decided_by_the_scores():
    sizes = {"users": 25, "items": 40, "features": 6, "rank": 2}
    scores = draw(FeatureLowRank(per_user=40, **sizes)).values.reshape(25, 40)
    view = draw(FeatureLowRank(pairs=300, per_user=2, **sizes))
    assert (scores[view.users, view.better] > scores[view.users, view.worse]).all()
    loud = draw(FeatureLowRank(pairs=300, per_user=2, noise=1.0, **sizes))
    agreeing = np.mean(scores[loud.users, loud.better] > scores[loud.users, loud.worse])
    assert 0.65 < agreeing < 0.9


def test_noise_on_feature_scores_is_a_share_of_their_spread():
    quiet, loud = (draw(FeatureLowRank(users=300, noise=noise)) for noise in (0.0, 0.5))
    assert np.std(loud.values - quiet.values) == pytest.approx(0.5 * np.sqrt(64 * 20), rel=0.03)


@pytest.mark.trust
def test_a_linear_ranker_per_task_earns_about_what_table_2_prints():
    view = draw(FeatureLowRank(users=200))
    correct, all_ = 0, 0
    for rows in by_user(view):
        order = np.random.default_rng(rows.start).permutation(61)
        features, values = view.item_features[view.items[rows]][order], view.values[rows][order]
        scores = Ridge(alpha=1.0).fit(features[:41], values[:41]).predict(features)
        one, other = np.triu_indices(61, 1)
        tested = other >= 41  # test-test and test-train pairs
        signs = np.sign(scores[one] - scores[other]) * np.sign(values[one] - values[other])
        correct, all_ = correct + (signs[tested] > 0).sum(), all_ + tested.sum()
    assert correct / all_ == pytest.approx(0.82, abs=0.03)  # RankSVM alone: 0.808 printed, 0.832 redone


# ---- magnitudes (Cortes) ----


@pytest.mark.parametrize(("bend", "linear"), [(0.0, True), (1.0, False)])
def test_without_bend_and_noise_ratings_are_linear_in_the_features(bend, linear):
    view = draw(Magnitudes(users=3, noise=0.0, bend=bend))
    for rows in by_user(view):
        features = view.item_features[view.items[rows]]
        fitted = features @ np.linalg.lstsq(features, view.values[rows])[0]
        assert np.allclose(fitted, view.values[rows], atol=1e-9) == linear


@pytest.mark.parametrize("source", [LowRank, Magnitudes])
def test_noise_is_as_loud_as_it_says(source):
    levels = {"levels": 0} if source is LowRank else {}
    quiet, loud = (draw(source(users=200, noise=noise, **levels)) for noise in (0.0, 0.7))
    assert np.std(loud.values - quiet.values) == pytest.approx(0.7, rel=0.05)


@pytest.mark.trust
def test_the_last_bits_do_not_depend_on_the_processor():
    """OpenBLAS chooses its kernels by the processor, and they sum in different orders."""
    names = ["magnitudes[features=3]", "feature-low-rank", "arena[judges=50]"]
    lines = "import sys; import rankbench; from rankbench.arrays.npz import fingerprint; "
    lines += "print([fingerprint(rankbench.load(name)) for name in sys.argv[1:]])"
    found = set()
    for kernels in ("SkylakeX", "Haswell", "Sandybridge"):
        environment = os.environ | {"OPENBLAS_CORETYPE": kernels}
        command = [sys.executable, "-c", lines, *names]
        found.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(found) == 1


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
        ("monotone[curve=cubes]", "monotone: unknown value of curve: 'cubes'; did you mean 'cube'"),
        ("monotone[per_user=201]", "per_user=201 is out of range: there are only 200 items"),
        ("monotone[spread=-1]", "monotone: spread=-1 is out of range: must be at least 0"),
        ("partial-orders[density=0]", "partial-orders: density=0 is out of range: must be at most 1 and above 0"),
        ("partial-orders[density=1.1]", "partial-orders: density=1.1 is out of range"),
        ("partial-orders[per_user=201]", "per_user=201 is out of range: there are only 200 items"),
        ("feature-low-rank[items=60]", "per_user=61 is out of range: there are only 60 items"),
        ("feature-low-rank[pairs=-1]", "feature-low-rank: pairs=-1 is out of range: must be at least 0"),
        ("feature-low-rank[rank=0]", "feature-low-rank: rank=0 is out of range: must be at least 1"),
        ("lowrank", "unknown data set 'lowrank'; did you mean 'low-rank'"),
    ],
)
def test_settings_out_of_range_are_refused(name, message):
    with pytest.raises(UserError, match=message):
        load(name)
