"""The metrics compared with plain sums over every order of the ties, and with other libraries."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, Ratings
from rankbench.metrics import evaluate, per_user
from rankbench.models import Factors, ItemScores


def orders(scores):
    """Every best-first order that the scores allow."""
    allowed = [
        order for order in permutations(range(len(scores))) if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    assert allowed
    return allowed


def expected(scores, value):
    """The mean of a value over these orders."""
    return float(np.mean([value(order) for order in orders(scores)]))


def reciprocal(order, relevant, k):
    positions = [position for position, item in enumerate(order[:k], start=1) if relevant[item]]
    return 1 / positions[0] if positions else 0.0


def average_precision(order, relevant, k):
    hits, total = 0, 0.0
    for position, item in enumerate(order[:k], start=1):
        hits += relevant[item]
        total += relevant[item] * hits / position
    return total / sum(relevant)


def dcg(order, gains, k):
    return sum(gains[item] / np.log2(1 + position) for position, item in enumerate(order[:k], start=1))


def one_user(values, n_items=None):
    n = len(values)
    return Ratings.from_triples(np.zeros(n, int), np.arange(n), np.array(values, float), 1, n_items or n)


CASES = st.integers(2, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 2), min_size=n, max_size=n), st.lists(st.integers(1, 5), min_size=n, max_size=n)
    )
)


@settings(max_examples=60)
@given(CASES, st.integers(1, 6))
def test_places_are_expected_values_over_the_orders_of_a_tie(case, k):
    scores, values = np.array(case[0], float), np.array(case[1], float)
    relevant = values >= 4
    names = [f"recall@{k}", f"mrr@{k}", f"map@{k}", "mrr", "map", "auc"]
    found = evaluate(ItemScores(scores), one_user(values), names)
    if not relevant.any():
        assert all(np.isnan(value) for value in found.values())
        return
    by_hand = {
        f"recall@{k}": lambda order: sum(relevant[item] for item in order[:k]) / relevant.sum(),
        f"mrr@{k}": lambda order: reciprocal(order, relevant, k),
        f"map@{k}": lambda order: average_precision(order, relevant, k),
        "mrr": lambda order: reciprocal(order, relevant, len(order)),
        "map": lambda order: average_precision(order, relevant, len(order)),
    }
    for name, value in by_hand.items():
        assert found[name] == pytest.approx(expected(scores, value), abs=1e-12), name
    if not relevant.all():
        assert found["auc"] == pytest.approx(roc_auc_score(relevant, scores), abs=1e-12)


def test_without_ties_average_precision_is_scikit_learns():
    rng = np.random.default_rng(0)
    scores, values = rng.standard_normal(200), rng.integers(1, 6, 200)
    found = evaluate(ItemScores(scores), one_user(values), ["map"])["map"]
    assert found == pytest.approx(average_precision_score(values >= 4, scores))


@settings(max_examples=60)
@given(CASES)
def test_magnitudes_and_costs_are_the_sums_over_all_pairs(case):
    h, y = np.array(case[0], float) * 0.7, np.array(case[1], float)
    dh, dy = h[None, :] - h[:, None], y[None, :] - y[:, None]
    wrong, gap = dh * dy < 0, np.abs(dh - dy)
    by_hand = {
        "msd": (gap**2).mean(),
        "m1d": gap.mean(),
        "cost-mp": gap.mean(),
        "cost-mp[n=2]": (gap**2).mean(),
        "cost-hr": (np.abs(dh) * wrong).mean(),
        "cost-hr[n=2]": (dh**2 * wrong).mean(),
        "cost-hmp": (gap * wrong).mean(),
        "cost-hmp[n=2]": (gap**2 * wrong).mean(),
        "cost-svr": np.maximum(gap - 0.1, 0).mean(),
        "cost-svr[n=2,eps=0.5]": (np.maximum(gap - 0.5, 0) ** 2).mean(),
    }
    found = evaluate(ItemScores(h), one_user(y), list(by_hand))
    for (name, value), other in zip(by_hand.items(), found.values(), strict=True):
        assert other == pytest.approx(value, abs=1e-9), name
    better = dy > 0
    misranked = evaluate(ItemScores(h), one_user(y), ["misranking"])["misranking"]
    if better.any():
        assert misranked == pytest.approx((dh <= 0)[better].mean())
    else:
        assert np.isnan(misranked)


def test_magnitudes_of_many_items_are_the_sums_over_all_pairs():
    rng = np.random.default_rng(2)
    h, y = rng.standard_normal(300), rng.integers(1, 6, 300).astype(float)
    dh, dy = h[None, :] - h[:, None], y[None, :] - y[:, None]
    wrong = dh * dy < 0
    found = evaluate(ItemScores(h), one_user(y), ["m1d", "cost-hr", "cost-hmp[n=2]", "cost-svr"])
    by_hand = [
        np.abs(dh - dy).mean(),
        (np.abs(dh) * wrong).mean(),
        ((dh - dy) ** 2 * wrong).mean(),
        np.maximum(np.abs(dh - dy) - 0.1, 0).mean(),
    ]
    np.testing.assert_allclose(list(found.values()), by_hand, rtol=1e-10)


@pytest.fixture(scope="module")
def problem():
    """Forty users over sixty items, a third of the ratings held out; scores with ties and some NaN."""
    rng = np.random.default_rng(1)
    users, items = np.nonzero(rng.random((40, 60)) < 0.4)
    values, held_out = rng.integers(1, 6, len(users)).astype(float), rng.random(len(users)) < 0.35
    train, test = (
        Ratings.from_triples(users[part], items[part], values[part], 40, 60) for part in (~held_out, held_out)
    )
    u, v = np.round(2 * rng.standard_normal((40, 2))), np.round(rng.standard_normal((60, 2)))
    v[5] = np.nan
    return Factors(u, v), train, test


def dense(problem):
    """Scores and both parts as matrices; NaN scores lowest of all."""
    model, train, test = problem
    scores = model.users @ model.items.T
    scores = np.where(np.isnan(scores), -np.inf, scores)
    held, seen = np.full((40, 60), np.nan), np.full((40, 60), np.nan)
    held[test.users, test.items] = test.values
    seen[train.users, train.items] = train.values
    return scores, held, seen


def rank_groups(scores, relevant, k):
    """Expected hits in the first k positions, group of ties by group."""
    hits, position = 0.0, 0
    for level in np.unique(scores)[::-1]:
        group = scores == level
        hits += relevant[group].sum() * np.clip(k - position, 0, group.sum()) / group.sum()
        position += group.sum()
    return hits


@pytest.mark.parametrize("k", [1, 3, 10, 100])
def test_the_whole_catalogue_is_all_that_was_not_rated_before(problem, k):
    model, train, test = problem
    scores, held, seen = dense(problem)
    names = [f"precision@{k}[candidates=catalogue]", f"recall@{k}[candidates=catalogue]", "auc[candidates=catalogue]"]
    found = per_user(model, test, names, train=train)
    for user in range(40):
        free = np.isnan(seen[user])
        relevant = (held[user] >= 4)[free]
        results = [found[name][user] for name in found]
        if not relevant.any():
            assert np.isnan(results).all()
            continue
        hits = rank_groups(scores[user][free], relevant, k)
        auc = roc_auc_score(relevant, np.maximum(scores[user][free], -1e9))
        np.testing.assert_allclose(results, [hits / k, hits / relevant.sum(), auc], rtol=1e-9)


def test_precision_over_all_users_counts_the_others_zero(problem):
    model, train, test = problem
    name = "precision@5[candidates=catalogue]"
    some, every = (per_user(model, test, [text], train=train) for text in (name, name.replace("]", ",users=all]")))
    (some,), (every,) = some.values(), every.values()
    np.testing.assert_allclose(every, np.nan_to_num(some))


@pytest.mark.parametrize("kind", ["test", "test-train", "both"])
def test_pairs_are_counted_within_and_across_the_parts(problem, kind):
    model, train, test = problem
    scores, held, seen = dense(problem)
    wrong, pairs = np.zeros(40), np.zeros(40)
    for user in range(40):
        for i in np.flatnonzero(~np.isnan(held[user])):
            others = {"test": [held], "test-train": [seen], "both": [held, seen]}[kind]
            for other in others:
                share = 0.5 if other is held else 1.0  # a held-out pair is met from both ends
                for j in np.flatnonzero(~np.isnan(other[user])):
                    if held[user, i] != other[user, j]:
                        right = (scores[user, i] - scores[user, j] if scores[user, i] != scores[user, j] else 0.0) * (
                            held[user, i] - other[user, j]
                        )
                        wrong[user] += share * (1.0 if right < 0 else 0.5 if right == 0 else 0.0)
                        pairs[user] += share
    counted = pairs > 0
    by_user = np.divide(wrong, pairs, out=np.full(40, np.nan), where=counted)
    found = evaluate(model, test, [f"pairwise-error[pairs={kind}]", f"pairwise-accuracy[pairs={kind}]"], train=train)
    over_pairs = evaluate(model, test, [f"pairwise-error[pairs={kind},average=pairs]"], train=train)
    np.testing.assert_allclose(list(found.values()), [np.nanmean(by_user), 1 - np.nanmean(by_user)])
    assert next(iter(over_pairs.values())) == pytest.approx(wrong.sum() / pairs.sum())


def test_comparison_error_is_over_all_comparisons_alike():
    test = Comparisons.from_triples([0, 1, 1, 1], [0, 1, 2, 0], [1, 0, 0, 2], 2, 3)
    model = ItemScores(np.array([1.0, 1.0, 3.0]))
    assert evaluate(model, test, ["comparison-error"])["comparison-error"] == pytest.approx((0.5 + 0.5 + 0 + 1) / 4)
    assert evaluate(model, test, ["pairwise-error"])["pairwise-error"] == pytest.approx((0.5 + 0.5) / 2)


EVERYTHING = [
    "ndcg@5",
    "ndcg-linear@3",
    "precision@5",
    "recall@5",
    "mrr",
    "map",
    "auc",
    "kendall",
    "spearman",
    "misranking",
    "pairwise-error[pairs=both]",
    "ndcg@10[candidates=catalogue]",
    "map[candidates=catalogue]",
    "mrr@7[candidates=catalogue,users=all]",
]


def test_the_bits_do_not_depend_on_the_number_of_threads(problem):
    model, train, test = problem
    results = [per_user(model, test, EVERYTHING, threads, train) for threads in (1, 2, 3)]
    for name in results[0]:
        assert results[0][name].tobytes() == results[1][name].tobytes() == results[2][name].tobytes(), name


def test_a_request_of_one_gives_the_bits_of_a_request_of_all(problem):
    model, train, test = problem
    together = per_user(model, test, EVERYTHING, train=train)
    for name, label in zip(EVERYTHING, together, strict=True):
        (alone,) = per_user(model, test, [name], train=train).values()
        assert alone.tobytes() == together[label].tobytes(), name


def test_what_needs_the_training_part_says_so(problem):
    model, _, test = problem
    for name in ("pairwise-error[pairs=both]", "precision@5[candidates=catalogue]"):
        with pytest.raises(UserError, match="train"):
            evaluate(model, test, [name])


@pytest.mark.parametrize(
    "name", ["kendall[n=2]", "msd[pairs=both]", "ndcg@5[relevant=4]", "cost-hr[n=3]", "auc[candidates=some]"]
)
def test_a_setting_that_a_metric_does_not_take_is_an_error(problem, name):
    model, train, test = problem
    with pytest.raises(UserError):
        evaluate(model, test, [name], train=train)
