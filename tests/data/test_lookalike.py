"""Lookalikes have exactly the published sizes and about the published skew, and are labelled as generated."""

from itertools import permutations
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import chisquare, kstest, norm

from rankbench.arrays.npz import fingerprint
from rankbench.core.errors import UserError
from rankbench.data import DATASETS, load
from rankbench.data.splits import split
from rankbench.data.synthetic import lookalike, sampling
from rankbench.data.synthetic.sampling import Urn, draw_sets
from rankbench.data.synthetic.shapes import SHAPES, Name, Shape
from rankbench.metrics import evaluate
from rankbench.models import ItemScores

pytestmark = pytest.mark.slow

UNLIKELY = 1e-3  # what a test by chance may fail with: seeds are fixed, so it never does later
NOTHING = np.empty(0, np.int64)
SMALL_SETS = ("yahoo-movies", "hetrec2011-ml-2k", "book-crossing")


def sets_of(counts, weights, given=NOTHING, seed=0):
    """Every user's items, as one vector of keys user * items + item."""
    blocks = draw_sets(np.random.default_rng(seed), np.asarray(counts), Urn.of(np.asarray(weights, float)), given)
    return np.concatenate([keys + first * len(weights) for first, _, keys in blocks])


@pytest.fixture(scope="module")
def whole():
    """Some of the smaller sets in full."""
    return {name: load(f"lookalike:{name}") for name in SMALL_SETS}


# ---- the sampler ----


def test_an_urn_gives_every_item_by_its_weight():
    weights = np.array([0.0, 5.0, 1.0, 0.1, 3.0, 0.0, 2.0, 0.9])
    found = np.bincount(Urn.of(weights).draw(np.random.default_rng(0), 400_000), minlength=8)
    assert found[weights == 0].sum() == 0
    kept = weights > 0
    assert chisquare(found[kept], weights[kept] / weights.sum() * 400_000).pvalue > UNLIKELY


@pytest.mark.trust
@pytest.mark.parametrize("rounds", [0, 1, 12])
def test_sets_follow_the_law_of_taking_one_after_the_other(monkeypatch, rounds):
    monkeypatch.setattr(sampling, "ROUNDS", rounds)
    weights, users = np.array([8.0, 4.0, 2.0, 1.0, 1.0]), 60_000
    items = sets_of(np.full(users, 3), weights).reshape(users, 3) % 5
    probability = {}
    for order in permutations(range(5), 3):  # the sum over the orders in which a set can come about
        left, chance = weights.sum(), 1.0
        for item in order:
            chance *= weights[item] / left
            left -= weights[item]
        probability[frozenset(order)] = probability.get(frozenset(order), 0) + chance
    found = {key: 0 for key in probability}
    for row in items.tolist():
        found[frozenset(row)] += 1
    assert chisquare(list(found.values()), [users * chance for chance in probability.values()]).pvalue > UNLIKELY


def test_popular_items_are_in_as_many_sets_as_theory_says():
    weights = (np.arange(1, 301) + 5.0) ** -1.2
    counts = np.random.default_rng(1).integers(1, 250, 4000)
    found = np.bincount(sets_of(counts, weights) % 300)
    expected = np.zeros(300)
    for count, users in zip(*np.unique(counts, return_counts=True), strict=True):
        time = brentq(lambda t, count=count: -np.expm1(-weights * t).sum() - count, 0, 1e6)  # Rosén's approximation
        expected += users * -np.expm1(-weights * time)
    off = (found - expected) / np.sqrt(expected * (1 - expected / 4000))
    assert np.abs(off).max() < 5 and np.mean(off**2) < 1.5


@pytest.mark.trust
@settings(max_examples=60)
@given(st.data(), st.sampled_from([1, 7, 1 << 20]), st.sampled_from([0, 2, 12]))
def test_every_set_has_its_size_and_what_was_given(data, block, rounds):
    items = data.draw(st.integers(1, 12))
    weights = np.array(data.draw(st.lists(st.sampled_from([0.0, 1e-9, 1.0, 50.0]), min_size=items, max_size=items)))
    weights[data.draw(st.integers(0, items - 1))] = 1.0
    drawable = int((weights > 0).sum())
    counts = np.array(data.draw(st.lists(st.integers(1, drawable), min_size=1, max_size=9)))
    given_items = [
        data.draw(st.sets(st.sampled_from(np.flatnonzero(weights).tolist()), max_size=n)) for n in counts.tolist()
    ]
    given_keys = np.array(sorted(u * items + i for u, some in enumerate(given_items) for i in some), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "BLOCK", block)
        patch.setattr(sampling, "ROUNDS", rounds)
        keys = sets_of(counts, weights, given_keys)
    assert (np.diff(keys) > 0).all()
    assert np.bincount(keys // items, minlength=len(counts)).tolist() == counts.tolist()
    assert np.isin(given_keys, keys).all()
    assert (weights[keys % items] > 0).all()


# ---- the published sizes ----


@pytest.mark.parametrize("name", SMALL_SETS)
def test_users_items_and_ratings_are_as_many_as_published(whole, name):
    view, shape = whole[name], SHAPES[name]
    counts = np.diff(view.indptr)
    assert (view.n_users, view.n_items, len(view)) == (shape.users, shape.items, shape.ratings)
    assert len(np.unique(view.items)) == shape.rated
    assert counts.min() == shape.least and counts.max() <= shape.most


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_users_ratings_add_up_whatever_the_set(name):
    shape = SHAPES[name]
    counts = lookalike._activity(shape)
    assert (len(counts), counts.sum()) == (shape.users, shape.ratings)
    assert counts.min() >= shape.least and counts.max() <= shape.most


@settings(max_examples=150)
@given(st.sampled_from(sorted(SHAPES)), st.data())
def test_users_ratings_add_up_however_small_the_set_is_made(name, data):
    ratings = data.draw(st.integers(1, 20_000) | st.integers(1, min(SHAPES[name].ratings, 3_000_000)))
    shape = SHAPES[name].smaller(ratings)
    counts = lookalike._activity(shape)
    assert (len(counts), counts.sum(), shape.ratings) == (shape.users, ratings, ratings)
    assert counts.min() >= min(SHAPES[name].least, ratings // shape.users) and counts.max() <= shape.most


@pytest.mark.trust
@pytest.mark.parametrize("name", sorted(SHAPES))
@pytest.mark.parametrize("setting", ["ratings=4321", "share=0.00002"])
def test_a_smaller_one_is_made_to_the_last_rating(name, setting):
    text = f"lookalike:{name}[{setting}]"
    view, shape = load(text), DATASETS.make(text).shape
    assert (len(view), view.n_items) == (4321 if "ratings" in setting else shape.ratings, SHAPES[name].items)
    assert view.n_users == shape.users < SHAPES[name].users
    assert len(np.unique(view.items)) <= SHAPES[name].rated
    assert f"{view.n_users} users, {view.n_items} items, {len(view)} ratings" == DATASETS.make(text).origin.size


def test_a_smaller_one_is_as_dense_and_its_users_as_active():
    small, whole_one = SHAPES["ml-20m"].smaller(2_000_000), SHAPES["ml-20m"]
    assert small.ratings / small.users == pytest.approx(whole_one.ratings / whole_one.users, rel=1e-3)
    shares = [np.quantile(lookalike._activity(shape), [0.1, 0.5, 0.9]) for shape in (small, whole_one)]
    np.testing.assert_allclose(*shares, rtol=0.05)


def test_the_figures_are_the_published_ones():
    published = {
        "ml-10m": (69_878, 10_677, 10_000_054),
        "ml-20m": (138_493, 27_278, 20_000_263),
        "netflix": (480_189, 17_770, 100_480_507),
        "hetrec2011-ml-2k": (2_113, 10_197, 855_598),
        "yahoo-movies": (7_642, 106_954, 211_231),
        "jester": (73_421, 100, 4_136_360),
        "book-crossing": (105_278, 340_523, 1_149_739),
        "neurosynth": (1_231, 3_169, 3_901_039),
    }
    assert {name: (shape.users, shape.items, shape.ratings) for name, shape in SHAPES.items()} == published
    for name in ("ml-10m", "ml-20m", "netflix"):  # the counts of the levels bear each other out
        assert sum(SHAPES[name].levels.values()) == SHAPES[name].ratings
    assert sorted(get_args(Name)) == sorted(SHAPES)


# ---- the published skew ----


def test_users_activity_is_log_normal_above_the_least():
    shape = SHAPES["ml-10m"]
    counts = np.random.default_rng(0).permutation(lookalike._activity(shape)) + 0.5  # counts are cut to whole ones
    centre, spread = shape.activity
    floor = norm.cdf((np.log(shape.least) - centre) / spread)
    found = kstest(counts, lambda x: (norm.cdf((np.log(x) - centre) / spread) - floor) / (1 - floor))
    assert found.statistic < 0.02
    assert np.median(counts) == pytest.approx(70, abs=2)


@pytest.mark.trust
@pytest.mark.parametrize(("name", "share", "users", "most_rated"), [
    ("ml-10m", 0.03, 69_878, 34_864), ("ml-20m", 0.015, 138_493, 67_310), ("netflix", 0.003, 480_189, 232_944),
])  # fmt: skip
def test_the_most_rated_item_is_rated_by_the_published_share_of_users(name, share, users, most_rated):
    view = load(f"lookalike:{name}[share={share}]")
    assert np.bincount(view.items).max() / view.n_users == pytest.approx(most_rated / users, abs=0.04)


@pytest.mark.trust
@pytest.mark.parametrize(("name", "gini"), [("ml-10m", 0.805), ("ml-20m", 0.903)])
def test_items_share_ratings_as_unevenly_as_published(name, gini):
    view = load(f"lookalike:{name}[share=0.05]")
    counts = np.sort(np.bincount(view.items, minlength=view.n_items))[view.n_items - SHAPES[name].rated :]
    n = len(counts)
    found = ((2 * np.arange(1, n + 1) - n - 1) * counts).sum() / (n * counts.sum())
    assert found == pytest.approx(gini, abs=0.02)


def test_popularity_has_nothing_to_do_with_the_items_number():
    counts = np.bincount(load("lookalike:ml-10m[share=0.02]").items, minlength=10_677)
    assert abs(np.corrcoef(counts, np.arange(10_677))[0, 1]) < 0.04


# ---- ratings ----


@pytest.mark.parametrize("name", ["hetrec2011-ml-2k", "book-crossing"])
def test_levels_are_as_frequent_as_published(whole, name):
    found, counts = np.unique(whole[name].values, return_counts=True)
    levels = SHAPES[name].levels
    assert found.tolist() == list(levels)
    np.testing.assert_allclose(counts / counts.sum(), np.array([*levels.values()]) / sum(levels.values()), atol=0.002)


def test_continuous_ratings_have_the_measured_quantiles():
    view, quantiles = load("lookalike:jester[share=0.05]"), SHAPES["jester"].quantiles
    np.testing.assert_allclose(np.quantile(view.values, np.linspace(0, 1, 21)), quantiles, atol=0.1)
    np.testing.assert_array_equal(view.values, np.round(view.values * 20) / 20)


def test_dense_scores_of_neurosynth_hardly_tie():
    view = load("lookalike:neurosynth[ratings=31690]")
    assert (view.n_users, len(np.unique(view.values))) == (10, 31_690)


def test_scores_are_low_rank_with_the_measured_shares_of_variance():
    shape = Shape(3000, 2000, 2000, 10**6, 1, 2000, (4.0, 1.0), (1.0, 1.0))
    tastes = lookalike.Tastes.drawn(np.random.default_rng(0), shape, None)
    products = tastes.left @ tastes.right.T
    assert np.linalg.matrix_rank(products[:200]) == 5
    shares = [np.var(tastes.offsets), np.var(tastes.qualities), np.var(products)]
    np.testing.assert_allclose(shares, [0.11, 0.23, 0.10], rtol=0.1)
    users, items = np.arange(3000).repeat(20), np.tile(np.arange(20), 3000)
    scores = tastes.scores(np.random.default_rng(1), users, items)
    without = tastes.offsets[users] + tastes.qualities[items] + products[users, items]
    assert np.var(scores - without) == pytest.approx(0.56, rel=0.02)


def test_there_is_something_to_learn():
    parts = split(load("lookalike:ml-10m[share=0.01]"), "entries", test=0.2)
    means = np.bincount(parts.train.items, parts.train.values - 3.5, parts.train.n_items)
    means /= 5 + np.bincount(parts.train.items, minlength=parts.train.n_items)
    assert evaluate(ItemScores(means), parts.test, ["pairwise-error"])["pairwise-error"] < 0.4


# ---- features ----


@pytest.mark.parametrize("name", ["hetrec2011-ml-2k", "ml-20m"])
def test_features_have_the_published_dimension(name):
    shape, features = SHAPES[name], load(f"lookalike:{name}[ratings=1000,features=true]").item_features
    assert features.format == "csr" and features.shape == (shape.items, shape.features)
    assert set(features.data.tolist()) == {1.0}
    assert np.diff(features.indptr).min() >= 1
    assert features.nnz / shape.items == pytest.approx(shape.per_item, rel=0.02)
    popular = np.sort(np.bincount(features.indices, minlength=shape.features))[::-1]
    assert popular[: shape.features // 100 + 1].sum() > 10 * popular[-(shape.features // 100 + 1) :].sum()


def test_the_items_tastes_are_the_sums_of_their_features_tastes():
    shape = SHAPES["hetrec2011-ml-2k"].smaller(10_000)
    features = lookalike._features(np.random.default_rng(0), shape)
    right = lookalike.Tastes.drawn(np.random.default_rng(1), shape, features).right
    sums = right * np.sqrt(np.diff(features.indptr))[:, None]
    fitted = np.linalg.lstsq(features.toarray(), sums)[0]
    np.testing.assert_allclose(features @ fitted, sums, atol=1e-8)
    assert np.var(right) == pytest.approx(1, rel=0.2)


def test_without_being_asked_for_there_are_no_features(whole):
    assert all(view.item_features is None for view in whole.values())


# ---- names, bytes and what it says of itself ----


def test_equal_settings_and_seed_give_equal_bytes_however_they_were_written():
    texts = ("lookalike:ml-10m[ratings=5000]", " lookalike:ml-10m [ features=false , ratings=5000 ] ")
    assert len({fingerprint(load(text, seed=3)) for text in texts}) == 1
    others = [
        ("lookalike:ml-10m[ratings=5000]", 4),
        ("lookalike:ml-10m[ratings=5001]", 3),
        ("lookalike:netflix[ratings=5000]", 3),
    ]
    assert len({fingerprint(load(text, seed)) for text, seed in [(texts[0], 3), *others]}) == 4


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_it_says_what_it_is_not(name):
    origin = DATASETS.make(f"lookalike:{name}").origin
    assert origin.home == f"generated in the published shape of {name}, for speed work only"
    assert (origin.missing(), origin.licence) == (None, "none needed")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "lookalike:ml-20mm",
            "unknown data set 'lookalike:ml-20mm'; did you mean 'lookalike:ml-20m'? known: book-cros",
        ),
        ("lookalike:zzz", "unknown data set 'lookalike:zzz'; known: book-crossing, hetrec2011-ml-2k, jester, ml-10m"),
        ("lookalike", "data set 'lookalike:' needs an argument after the colon: use lookalike:NAME, with one of"),
        ("lookalike:", "use lookalike:NAME, with one of book-crossing"),
        ("lookalike:ml-20m[name=netflix]", "name is already given after the colon: leave name=netflix out"),
        ("lookalike:ml-20m[share=0]", "lookalike:ml-20m: share=0 is out of range: must be at most 1 and above 0"),
        ("lookalike:ml-20m[share=0.5,ratings=5]", "ratings=5 and share=0.5 both set the size: leave one out"),
        ("lookalike:ml-20m[ratings=0]", "lookalike:ml-20m: ratings=0 is out of range: must be at least 1"),
        ("lookalike:ml-20m[ratings=20000264]", "ratings=20000264 is out of range: ml-20m has 20000263"),
        (
            "lookalike:netflix[features=true]",
            "netflix has no published features, only ml-20m, hetrec2011-ml-2k, yahoo",
        ),
    ],
)
def test_what_cannot_be_made_is_refused(text, message):
    with pytest.raises(UserError) as error:
        load(text)
    assert message in str(error.value)
