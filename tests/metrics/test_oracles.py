"""Metrics compared with plain sums over every order of the ties and over all pairs of many items."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from rankbench.data.views import Ratings
from rankbench.metrics import evaluate
from rankbench.models import ItemScores


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
