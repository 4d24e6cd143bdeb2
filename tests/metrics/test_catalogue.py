"""Evaluation with the whole catalogue as candidates: correct values, computed in blocks with little memory."""

import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score, roc_auc_score

from rankbench.core.contract import ScoresAll
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, Ratings
from rankbench.metrics import catalogue, evaluate, metric, per_user
from rankbench.metrics.catalogue import seen_items
from rankbench.models import Factors, ItemScores

CUT = ("ndcg@3", "ndcg-linear@5", "precision@4", "recall@2", "mrr@6", "map@5")
WHOLE = ("ndcg", "ndcg-linear", "mrr", "map", "auc")
NAMES = CUT + WHOLE
LEVELS, COARSE = st.integers(1, 5), st.integers(-2, 2)


@dataclass(frozen=True)
class Table:
    """A model that looks its scores up pair by pair."""

    scores: np.ndarray

    def score(self, users, items):
        """scores[user, item]."""
        return self.scores[users, items]


@dataclass(frozen=True)
class Rows:
    """A model that looks its scores up row by row."""

    scores: np.ndarray

    def score(self, users, items):
        """Not to be asked for."""
        raise AssertionError("a model that scores all is not asked pair by pair")

    def score_all(self, users, threads):
        """scores[user]."""
        return self.scores[users]


def over_all(name):
    """The metric's name with all items as candidates."""
    return f"{name}[candidates=catalogue]"


def two_parts(shares, seed=0, held_out=0.3, rated=0.5):
    """Training and held-out ratings of users x items, half of all rated."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random(shares) < rated)
    values, test = rng.integers(1, 6, len(users)).astype(float), rng.random(len(users)) < held_out
    return tuple(Ratings.from_triples(users[p], items[p], values[p], *shares) for p in (~test, test))


def one_user(truth, seen, scores):
    """A user: NaN truths are not held out, seen ones were trained on, where not held out."""
    items, held_out = np.arange(len(truth)), ~np.isnan(truth)
    test = Ratings([0, held_out.sum()], items[held_out], truth[held_out], len(truth))
    train = Ratings([0, seen.sum()], items[seen], np.ones(seen.sum()), len(truth))
    return Table(np.atleast_2d(scores)), test, train


@st.composite
def users(draw):
    """Truths (NaN: not held out), who was seen, and scores with many ties and some NaN."""
    columns = st.tuples(LEVELS | st.none(), st.booleans(), COARSE | st.none())
    drawn = draw(st.lists(columns, min_size=7, max_size=25).filter(lambda rows: any(row[0] for row in rows)))
    truth, seen, scores = zip(*drawn, strict=True)
    return np.array(truth, float), np.array(seen), np.array(scores, float)


@settings(deadline=None)
@given(users())
def test_it_is_as_if_the_user_had_rated_all_candidates(user):
    truth, seen, scores = user
    model, test, train = one_user(truth, seen, scores)
    candidates = ~seen | ~np.isnan(truth)
    everything = np.nan_to_num(truth)[candidates]
    rated = Ratings([0, len(everything)], np.arange(len(everything)), everything, len(everything))
    expected = per_user(Table(scores[None, candidates]), rated, [f"{name}[users=relevant]" for name in NAMES[:-1]])
    expected |= per_user(Table(scores[None, candidates]), rated, ["auc"])
    found = per_user(model, test, [over_all(name) for name in NAMES], train=train)
    short = min(metric("precision@4").k, len(everything)) / metric("precision@4").k
    for name, own, other in zip(NAMES, found.values(), expected.values(), strict=True):
        scale = short if name.startswith("precision") else 1.0
        np.testing.assert_allclose(own, other * scale, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("held_out", [1, 8, 9, 40])
def test_of_many_items_and_scores_each_is_counted_once(held_out):
    """Few scores of held-out items are compared with all others, many are searched, and both give the same places."""
    rng = np.random.default_rng(held_out)
    scores = np.round(rng.standard_normal(2500), 1 if held_out == 8 else 9)
    scores[rng.random(2500) < 0.1], scores[rng.random(2500) < 0.1] = np.nan, -np.inf
    truth = np.full(2500, np.nan)
    chosen = rng.choice(2500, held_out, replace=False)
    truth[chosen], scores[chosen[0]] = 5.0, np.nan
    _, test, train = one_user(truth, np.zeros(2500, bool), scores)
    found = per_user(Rows(scores[None]), test, [over_all("auc"), over_all("ndcg")], train=train)
    known = np.nan_to_num(scores, nan=-np.inf, neginf=-np.inf)
    assert found[over_all("auc")][0] == pytest.approx(roc_auc_score(truth == 5, np.maximum(known, -99)), abs=1e-12)
    assert found[over_all("ndcg")][0] == pytest.approx(
        ndcg_score([(truth == 5).astype(float)], [np.maximum(known, -99)]), abs=1e-12
    )


def test_it_is_that_of_scikit_learn():
    train, test = two_parts((30, 40))
    scores = np.random.default_rng(1).integers(0, 9, (30, 40)).astype(float)
    found = per_user(Table(scores), test, [over_all("ndcg@7"), over_all("auc")], train=train)
    for user, (ndcg, auc) in enumerate(zip(*found.values(), strict=True)):
        truth = np.zeros(40)
        truth[test.items[test.users == user]] = test.values[test.users == user]
        free = ~np.isin(np.arange(40), train.items[train.users == user])
        assert ndcg == pytest.approx(ndcg_score([2 ** truth[free] - 1], [scores[user, free]], k=7))
        relevant = truth[free] >= 4
        assert auc == pytest.approx(roc_auc_score(relevant, scores[user, free])) if relevant.any() else np.isnan(auc)


def test_precision_divides_by_k_however_few_the_candidates():
    test = Ratings([0, 1], [0], [5.0], n_items=3)
    train = Ratings([0, 1], [1], [5.0], n_items=3)
    found = evaluate(
        ItemScores(np.array([3.0, 2, 1])), test, [over_all("precision@10"), "precision@10[users=relevant]"], train=train
    )
    assert list(found.values()) == [0.1, 1.0]


def test_what_is_held_out_stays_a_candidate_though_it_was_seen():
    test, train = Ratings([0, 1], [0], [5.0], n_items=3), Ratings([0, 2], [0, 1], [5.0, 1.0], n_items=3)
    values = evaluate(ItemScores(np.array([2.0, 3, 1])), test, [over_all("mrr"), over_all("auc")], train=train)
    assert list(values.values()) == [1.0, 1.0]


def test_of_training_comparisons_both_items_were_seen():
    train = Comparisons([0, 3, 3, 4], [0, 0, 4, 1], [4, 2, 2, 3], n_items=5)
    indptr, items = seen_items(train)
    assert (indptr.tolist(), items.tolist()) == ([0, 3, 3, 5], [0, 2, 4, 1, 3])
    test = Ratings([0, 1, 2, 3], [1, 1, 0], [5.0, 5, 5], n_items=5)
    (values,) = per_user(ItemScores(np.array([9.0, 1, 8, 0, 7])), test, [over_all("mrr")], train=train).values()
    assert values.tolist() == [1.0, 1 / 4, 1.0]


def test_users_without_a_relevant_item_are_left_out_or_count_nothing():
    test = Ratings([0, 1, 2, 2, 2], [0, 0], [5.0, 3.0], n_items=3)
    train = Ratings([0, 0, 1, 2, 2], [1, 1], [1.0, 1.0], n_items=3)
    names = ["precision@1[candidates=catalogue]", "precision@1[candidates=catalogue,users=all]"]
    values = per_user(ItemScores(np.array([3.0, 2, 1])), test, names, train=train)
    assert values[names[0]] == pytest.approx([1, np.nan, np.nan, np.nan], nan_ok=True)
    assert values[names[1]] == pytest.approx([1, 0, 0, np.nan], nan_ok=True)
    any_held_out = "precision@1[candidates=catalogue,relevant=any]"
    found = per_user(ItemScores(np.array([3.0, 2, 1])), test, [any_held_out], train=train)
    assert found[any_held_out] == pytest.approx([1, 1, np.nan, np.nan], nan_ok=True)


# ---- blocks, threads, memory ----


@pytest.fixture(scope="module")
def large():
    """60 users, 3000 items, of which the seen ones score high and many scores are tied."""
    train, test = two_parts((60, 3000), rated=0.05)
    scores = np.round(np.random.default_rng(2).standard_normal((60, 3000)), 2)
    scores[train.users, train.items] += 3
    return scores, train, test


@pytest.mark.parametrize("name", NAMES)
def test_what_is_passed_over_for_a_cut_changes_nothing(large, name):
    scores, train, test = large
    alone, together = (
        per_user(Rows(scores), test, names, train=train)[over_all(name)]
        for names in ([over_all(name)], [over_all(other) for other in NAMES])
    )
    assert alone.tobytes() == together.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_neither_threads_nor_blocks_change_a_bit(monkeypatch, large, name):
    scores, train, test = large
    results = set()
    for block, threads in ((1 << 20, 1), (1 << 20, 2), (7000, 3), (1, 1)):
        monkeypatch.setattr(catalogue, "_BLOCK", block)
        results.add(per_user(Rows(scores), test, [over_all(name)], threads, train)[over_all(name)].tobytes())
    assert len(results) == 1


def test_a_model_that_scores_pairs_only_gives_the_same_bits(large):
    scores, train, test = large
    assert isinstance(Rows(scores), ScoresAll) and not isinstance(Table(scores), ScoresAll)
    by_row, by_pair = (per_user(model(scores), test, [over_all("map")], train=train) for model in (Rows, Table))
    assert by_row[over_all("map")].tobytes() == by_pair[over_all("map")].tobytes()


def test_equal_items_tie_wherever_they_stand():
    rng = np.random.default_rng(0)
    model = Factors(rng.standard_normal((30, 37)), np.tile(rng.standard_normal(37), (501, 1)))
    test = Ratings(np.arange(31), rng.integers(0, 501, 30), np.full(30, 5.0), n_items=501)
    train = Ratings(np.zeros(31, int), [], [], n_items=501)
    found = evaluate(model, test, [over_all("auc"), over_all("precision@10")], train=train)
    assert list(found.values()) == [0.5, pytest.approx(1 / 501)]


def test_all_scores_at_once_are_never_in_memory():
    rng = np.random.default_rng(0)
    n_users, n_items = 3000, 20_000  # 480 MB of scores
    test = Ratings(np.arange(n_users + 1), rng.integers(0, n_items, n_users), np.full(n_users, 5.0), n_items)
    train = Ratings(np.zeros(n_users + 1, int), [], [], n_items)
    model = Factors(rng.standard_normal((n_users, 2)), rng.standard_normal((n_items, 2)))
    by_pair = Table(np.broadcast_to(rng.random(n_items), (n_users, n_items)))
    for scores, held_out in ((model, test), (by_pair, test.take(np.arange(300)))):  # pair by pair takes longer
        tracemalloc.start()
        evaluate(scores, held_out, [over_all("ndcg@10"), over_all("auc")], 2, train)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 80e6


@dataclass(frozen=True)
class Misshapen:
    """A model that gives back one array, whatever is asked."""

    scores: np.ndarray

    def score(self, users, items):
        """The array."""
        return self.scores

    def score_all(self, users, threads):
        """The array."""
        return self.scores


@pytest.mark.parametrize("shape", [(3,), (2, 4), (1, 3), (3, 3)])
def test_a_model_that_scores_another_number_of_items_is_refused(shape):
    train, test = two_parts((2, 3), rated=1.0, held_out=0.6)
    assert np.diff(test.indptr).all()
    with pytest.raises(UserError, match=r"Misshapen gave scores of shape .* for 2 users and 3 items"):
        evaluate(Misshapen(np.zeros(shape)), test, [over_all("mrr")], train=train)


def test_nobody_and_nothing_is_measured_too():
    nobody = Ratings([0], [], [], n_items=3)
    assert np.isnan(evaluate(ItemScores(np.zeros(3)), nobody, [over_all("mrr")], train=nobody)[over_all("mrr")])
    nothing = Ratings([0, 0], [], [], n_items=0)
    assert np.isnan(evaluate(ItemScores(np.zeros(0)), nothing, [over_all("mrr")], train=nothing)[over_all("mrr")])
