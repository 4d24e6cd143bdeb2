"""Metrics of recommended lists: coverage, exposure, novelty and similarity, against brute force over all tie orders."""

from itertools import combinations, product
from math import log2, nan

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, Ratings
from rankbench.metrics import catalogue, evaluate, metric, per_user, unusable
from rankbench.models import Factors, ItemScores

USERS, ITEMS = 3, 5


class Table:
    """A model that looks its scores up."""

    def __init__(self, scores):
        self.scores = np.asarray(scores, float)

    def score(self, users, items):
        """scores[user, item]."""
        return self.scores[users, items]


def view(rows, n_users=USERS, n_items=ITEMS, features=None):
    """Ratings of 1 for each (user, item)."""
    users, items = (np.array([row[side] for row in rows], int) for side in (0, 1))
    return Ratings.from_triples(users, items, np.ones(len(rows)), n_users, n_items, features)


def lists_of(scores, train, test, k):
    """For each user who counts, every list that an order of the ties gives; all of a user's are equally likely."""
    seen = [set(train.items[train.indptr[u] : train.indptr[u + 1]]) for u in range(train.n_users)]
    held = [set(test.items[test.indptr[u] : test.indptr[u + 1]]) for u in range(test.n_users)]
    found = {}
    for user in range(test.n_users):
        candidates = [item for item in range(test.n_items) if item not in seen[user] or item in held[user]]
        if not held[user] or not candidates:
            continue
        known = {item: -np.inf if np.isnan(scores[user, item]) else scores[user, item] for item in candidates}
        lowest = sorted(known.values(), reverse=True)[: min(k, len(known))][-1]
        above = [item for item in candidates if known[item] > lowest]
        tie = [item for item in candidates if known[item] == lowest]
        found[user] = [[*above, *chosen] for chosen in combinations(tie, min(k, len(known)) - len(above))]
    return found


def gini_of(exposures):
    """Half of the mean absolute difference, divided by the mean."""
    exposures = np.asarray(exposures, float)
    return np.abs(exposures[:, None] - exposures).mean() / (2 * exposures.mean())


def brute_force(scores, train, test, k, features):
    """Every metric, from every combination of lists."""
    lists = lists_of(scores, train, test, k)
    raters = np.bincount(train.items, minlength=train.n_items)
    information = -np.log2(np.maximum(raters, 1) / max(1, np.count_nonzero(np.diff(train.indptr))))
    cosines = cosine_similarity(features)
    novelty, similarity = np.full(test.n_users, nan), np.full(test.n_users, nan)
    for user, own in lists.items():
        novelty[user] = np.mean([np.mean(information[one]) for one in own])
        if len(own[0]) > 1:
            similarity[user] = np.mean([np.mean([cosines[i, j] for i, j in combinations(one, 2)]) for one in own])
    covered = [len(set().union(*drawn)) / test.n_items for drawn in product(*lists.values())]
    exposures = sum(
        (np.mean([np.isin(np.arange(test.n_items), one) for one in own], axis=0) for own in lists.values()),
        np.zeros(test.n_items),
    )
    return {
        f"coverage@{k}": np.mean(covered) if lists else nan,
        f"gini@{k}": gini_of(exposures) if lists else nan,
        f"novelty@{k}": novelty,
        f"intra-list-similarity@{k}": similarity,
    }


SCORES = st.lists(st.sampled_from([0.0, 1.0, 2.0, nan]), min_size=USERS * ITEMS, max_size=USERS * ITEMS)
PAIRS = st.sets(st.tuples(st.integers(0, USERS - 1), st.integers(0, ITEMS - 1)))


@settings(deadline=None)
@given(SCORES, PAIRS, PAIRS, st.integers(2, 6), st.booleans())
def test_each_is_the_expected_value_over_all_orders_of_ties(scores, trained, held_out, k, sparse):
    features = np.array([[1.0, 2.0], [0.0, 0.0], [-1.0, 1.0], [2.0, 4.0], [0.5, -3.0]])
    given_features = scipy.sparse.csr_array(features) if sparse else features
    train, test = view(sorted(trained), features=given_features), view(sorted(held_out), features=given_features)
    table = np.reshape(scores, (USERS, ITEMS))
    expected = brute_force(table, train, test, k, features)
    found = per_user(Table(table), test, list(expected), train=train)
    for name, values in expected.items():
        ours = found[name] if np.ndim(values) else evaluate(Table(table), test, [name], train=train)[name]
        np.testing.assert_allclose(ours, values, atol=1e-12)


def test_worked_by_hand():
    train = view([(0, 0), (1, 0), (1, 1), (2, 1)])
    test = view([(0, 1), (1, 2)])
    model = ItemScores(np.array([5.0, 4.0, 3.0, 2.0, 1.0]))
    found = evaluate(model, test, ["coverage@2", "gini@2", "novelty@2"], train=train)
    # User 0 gets items 1 and 2, user 1 items 2 and 3; items 2 and 3 have no rater and count as having one of three.
    assert found["coverage@2"] == pytest.approx(3 / 5)
    assert found["gini@2"] == pytest.approx((-4 * 0 - 2 * 0 + 0 * 1 + 2 * 1 + 4 * 2) / (5 * 4))
    assert found["novelty@2"] == pytest.approx(((log2(3 / 2) + log2(3)) / 2 + log2(3)) / 2)


def test_a_model_of_one_score_shows_all_items_alike():
    test = view([(user, 0) for user in range(40)], 40, 8)
    found = evaluate(ItemScores(np.zeros(8)), test, ["coverage@2", "gini@2"], train=view([], 40, 8))
    assert found["coverage@2"] == pytest.approx(1 - (6 / 8) ** 40)
    assert found["gini@2"] == pytest.approx(0, abs=1e-12)
    one_for_all = evaluate(ItemScores(np.arange(8.0)), test, ["coverage@2", "gini@2"], train=view([], 40, 8))
    assert one_for_all == {"coverage@2": pytest.approx(2 / 8), "gini@2": pytest.approx(6 / 8)}


def test_blocks_and_threads_change_no_bit(monkeypatch):
    rng = np.random.default_rng(0)
    rows = [(user, item) for user in range(50) for item in rng.choice(30, 6, replace=False)]
    features = rng.standard_normal((30, 4))
    train, test = view(rows[::2], 50, 30, features), view(rows[1::2], 50, 30, features)
    model = Factors(rng.standard_normal((50, 2)).round(1), rng.standard_normal((30, 2)).round(1))
    names = ["coverage@3", "gini@3", "novelty@3", "intra-list-similarity@3", "ndcg@3[candidates=catalogue]"]
    whole = per_user(model, test, names, 1, train)
    monkeypatch.setattr(catalogue, "_BLOCK", 100)
    for threads in (1, 2, 3):
        for name, values in per_user(model, test, names, threads, train).items():
            assert values.tobytes() == whole[name].tobytes(), name


def test_comparisons_in_training_count_as_seen():
    train = Comparisons([0, 1, 1, 1], [0], [1], n_items=5)
    model = ItemScores(np.array([5.0, 4.0, 3.0, 2.0, 1.0]))
    assert evaluate(model, view([(0, 4)]), ["coverage@2", "novelty@2"], train=train) == {
        "coverage@2": 2 / 5,
        "novelty@2": 0.0,  # one user has training rows, and an item without any counts as that user's
    }


def test_without_a_cut_off_the_list_has_ten_items_and_the_label_says_so():
    assert metric("coverage").label == "coverage@10"
    assert metric("gini@3").label == "gini@3"
    assert "the 10 items with the highest scores" in metric("coverage").formula
    assert "bits" in metric("novelty").formula and "-log2" in metric("novelty").formula


@pytest.mark.parametrize(
    ("name", "test", "message"),
    [
        ("intra-list-similarity@5", view([(0, 1)]), "needs item features, the data has none"),
        (
            "intra-list-similarity@1",
            view([(0, 1)], features=np.eye(5)),
            r"needs lists of two items or more \(use intra-list-similarity@2\)",
        ),
        ("coverage@5", Comparisons([0, 1], [0], [1], n_items=5), "'coverage' needs held-out ratings"),
    ],
)
def test_what_it_cannot_be_measured_on_is_said(name, test, message):
    with pytest.raises(UserError, match=message):
        evaluate(ItemScores(np.zeros(5)), test, [name], train=view([]))
    assert unusable(metric(name), test)


def test_it_needs_the_training_part():
    with pytest.raises(UserError, match="'gini@10' needs the training part"):
        evaluate(ItemScores(np.zeros(5)), view([(0, 1)]), ["gini"])
