"""Every metric compared with other libraries, and tied scores with the mean over all orders."""

import itertools
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from rankbench import metrics
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, Ratings
from rankbench.kernels.metrics.codes import Code
from rankbench.kernels.metrics.requests import Requests
from rankbench.metrics import METRICS, RULES, evaluate, mean, metric, per_user, unusable
from rankbench.metrics.records import OF_COMPARISONS
from rankbench.models import ItemScores

patient = settings(deadline=None)  # a slow machine is no failure
many_names = settings(patient, max_examples=20)  # for each of 39 metrics

RANK_CORRELATIONS = ("kendall", "spearman")
ORDERED_ONLY = (  # a value for each user whose held-out items are not all rated alike
    *("ndcg", "ndcg@1", "ndcg@3", "ndcg@99", "ndcg-linear", "ndcg-linear@2", "precision", "precision@1"),
    *("precision@3[relevant=2]", "precision@99[relevant=3]", "pairwise-error", "pairwise-accuracy"),
)
RELEVANT_ONLY = (  # a value for each user with a relevant held-out item; auc: and another one
    *("recall", "recall@2", "recall@4[relevant=2]", "mrr", "mrr@2", "mrr@3[relevant=5]", "map", "map@1"),
    *("map@3[relevant=2]", "map[relevant=1]", "auc", "auc[relevant=2]"),
)
COSTS = (
    *("msd", "m1d", "cost-hr", "cost-hr[n=2]", "cost-mp", "cost-mp[n=2]", "cost-hmp", "cost-hmp[n=2]"),
    *("cost-svr", "cost-svr[n=2]", "cost-svr[eps=0]", "cost-svr[n=2,eps=1.5]"),
)
BY_PLACE = ORDERED_ONLY + RELEVANT_ONLY  # an expectation over tie orders
EVERY_NAME = (*BY_PLACE, *RANK_CORRELATIONS, "misranking", *COSTS)
SCALE_FREE = (*BY_PLACE, *RANK_CORRELATIONS, "misranking")
LEVELS, COARSE = st.integers(0, 5), st.integers(-3, 3)


@dataclass(frozen=True)
class Table:
    """A model that looks its scores up, users x items."""

    scores: np.ndarray

    def score(self, users, items):
        """scores[user, item]."""
        return self.scores[users, items]


def ratings(truth):
    """Every row of `truth` as a user who rated every item."""
    n_users, n_items = np.shape(truth)
    items = np.tile(np.arange(n_items), n_users)
    return Ratings(np.arange(n_users + 1) * n_items, items, np.ravel(truth).astype(float), n_items)


def measure(name, truth, scores):
    """One metric of one user."""
    (values,) = per_user(Table(np.atleast_2d(scores)), ratings(np.atleast_2d(truth)), [name]).values()
    return values[0]


def rows(smallest=2, largest=30, truths=LEVELS, scores=COARSE):
    """(truth, scores) of one user who has an order, with many ties in both."""
    pairs = st.lists(st.tuples(truths, scores), min_size=smallest, max_size=largest)
    columns = pairs.map(lambda drawn: np.array(drawn, float).T)
    return columns.filter(lambda both: len(np.unique(both[0])) > 1)


@pytest.fixture
def crowd():
    """40 users with 2 to 30 rated items each, and scores without a tie."""
    rng = np.random.default_rng(7)
    counts = rng.integers(2, 31, size=40)
    users = np.repeat(np.arange(40), counts)
    items = np.concatenate([rng.choice(50, n, replace=False) for n in counts])
    test = Ratings.from_triples(users, items, rng.integers(0, 6, len(users)).astype(float), 40, 50)
    return test, Table(rng.permutation(40 * 50).reshape(40, 50) / 2000)


def by_user(test, column):
    """{user: {item: value}} as the text-retrieval tools want it."""
    triples = zip(test.users, test.items, column, strict=True)
    grouped = itertools.groupby(triples, key=lambda row: row[0])
    return {f"u{user}": {f"i{item}": value for _, item, value in group} for user, group in grouped}


# ---- other people's code ----


@pytest.mark.slow
@patient
@given(rows(), st.integers(1, 35))
@pytest.mark.parametrize(("name", "gain"), [("ndcg", lambda y: 2**y - 1), ("ndcg-linear", lambda y: y)])
def test_ndcg_is_that_of_scikit_learn_ties_included(name, gain, columns, k):
    truth, scores = columns
    for cut, label in ((k, f"{name}@{k}"), (None, name)):
        assert measure(label, truth, scores) == pytest.approx(ndcg_score([gain(truth)], [scores], k=cut), abs=1e-12)


@patient
@given(rows(truths=st.sampled_from(np.arange(0.5, 5.5, 0.5).tolist()), scores=st.floats(-1, 1)), st.integers(1, 35))
def test_ndcg_of_half_stars_is_that_of_scikit_learn(columns, k):
    truth, scores = columns
    assert measure(f"ndcg@{k}", truth, scores) == pytest.approx(ndcg_score([2**truth - 1], [scores], k=k), abs=1e-12)


TREC_EVAL = {
    "ndcg-linear@{}": "ndcg_cut_{}",
    "precision@{}": "P_{}",
    "recall@{}": "recall_{}",
    "map@{}": "map_cut_{}",
    "map": "map",
    "mrr": "recip_rank",
}


@pytest.mark.parametrize("k", [1, 5, 10])
@pytest.mark.parametrize(("ours", "theirs"), TREC_EVAL.items())
def test_place_metrics_are_those_of_trec_eval(crowd, ours, theirs, k):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    test, model = crowd
    truth = by_user(test, test.values.astype(int).tolist())
    run = by_user(test, model.score(test.users, test.items).tolist())
    asked = theirs.format(k).replace(f"_{k}", f".{k}")
    expected = pytrec_eval.RelevanceEvaluator(truth, {asked}, relevance_level=4).evaluate(run)
    (values,) = per_user(model, test, [ours.format(k)]).values()
    assert (~np.isnan(values)).sum() > 20
    for user, found in enumerate(values):
        if not np.isnan(found) and (not ours.startswith("precision") or len(truth[f"u{user}"]) >= k):
            assert found == pytest.approx(expected[f"u{user}"][theirs.format(k)], abs=1e-6)


@patient
@given(rows(), st.data())
def test_average_precision_and_auc_are_those_of_scikit_learn(columns, data):
    truth, ties = columns
    assume(0 < (truth >= 3).sum() < len(truth))
    untied = np.array(data.draw(st.permutations(range(len(truth)))), float)
    assert measure("map[relevant=3]", truth, untied) == pytest.approx(average_precision_score(truth >= 3, untied))
    assert measure("auc[relevant=3]", truth, ties) == pytest.approx(roc_auc_score(truth >= 3, ties), abs=1e-12)


def assert_correlations_are_those_of_scipy(truth, scores):
    assert measure("kendall", truth, scores) == pytest.approx(scipy.stats.kendalltau(truth, scores)[0], abs=1e-12)
    assert measure("spearman", truth, scores) == pytest.approx(scipy.stats.spearmanr(truth, scores)[0], abs=1e-12)


@patient
@given(rows(largest=60))
def test_rank_correlations_are_those_of_scipy_ties_included(columns):
    assume(len(np.unique(columns[1])) > 1)
    assert_correlations_are_those_of_scipy(*columns)


@patient
@given(rows(largest=60))
def test_pairwise_error_and_misranking_are_those_of_a_double_loop(columns):
    truth, scores = columns
    ordered, tied = truth[:, None] > truth, scores[:, None] == scores
    below = scores[:, None] < scores
    assert measure("pairwise-error", truth, scores) == pytest.approx((below + 0.5 * tied)[ordered].mean(), abs=1e-12)
    assert measure("misranking", truth, scores) == pytest.approx((below | tied)[ordered].mean(), abs=1e-12)


@pytest.mark.parametrize("n", [5, 15, 16, 17, 33, 72, 73, 144, 145, 1000])
def test_long_users_are_sorted_and_counted_right(n):
    rng = np.random.default_rng(n)
    assert_correlations_are_those_of_scipy(rng.integers(0, 6, n), rng.integers(0, n // 2, n))


@pytest.mark.parametrize("n", [11, 12, 13, 40, 144, 145, 300])
def test_truths_of_few_levels_and_of_many_are_counted_alike(n):
    rng = np.random.default_rng(n)
    truth, scores = rng.permutation(n) / 7, rng.integers(0, n, n)
    assert_correlations_are_those_of_scipy(truth, scores)
    for k in (3, n):
        assert measure(f"ndcg-linear@{k}", truth, scores) == pytest.approx(ndcg_score([truth], [scores], k=k))


# ---- magnitudes ----

COST_OF = {  # Cortes et al. 2007, equations 6 to 9: of the differences of two scores and of two ratings
    "cost-hr": lambda h, y, n, eps: np.where(h * y >= 0, 0, np.abs(h) ** n),
    "cost-mp": lambda h, y, n, eps: np.abs(h - y) ** n,
    "cost-hmp": lambda h, y, n, eps: np.where(h * y >= 0, 0, np.abs(h - y) ** n),
    "cost-svr": lambda h, y, n, eps: np.where(np.abs(h - y) <= eps, 0, np.abs(np.abs(h - y) - eps) ** n),
}
SCALED = st.floats(-10, 10, width=32)


@pytest.mark.slow
@patient
@given(rows(largest=60, truths=SCALED, scores=SCALED | COARSE), st.sampled_from([0.0, 0.1, 1.0, 7.5]))
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("name", COST_OF)
def test_cost_functions_are_those_of_a_double_loop(name, n, columns, eps):
    truth, scores = columns
    expected = COST_OF[name](scores[:, None] - scores, truth[:, None] - truth, n, eps).mean()
    setting = f"n={n},eps={eps}" if name == "cost-svr" else f"n={n}"
    assert measure(f"{name}[{setting}]", truth, scores) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@patient
@given(rows(largest=60, truths=SCALED, scores=SCALED))
def test_mean_differences_are_the_magnitude_preserving_costs(columns):
    assert measure("msd", *columns) == measure("cost-mp[n=2]", *columns)
    assert measure("m1d", *columns) == measure("cost-mp[n=1]", *columns)
    assert measure("m1d", *columns) == pytest.approx(measure("cost-svr[eps=0]", *columns))


def test_costs_stay_exact_far_from_zero():
    truth, scores = np.array([1.0, 2, 3, 4]), 1e8 + np.array([4.0, 2, 3, 1])
    for name in COSTS:
        assert measure(name, truth, scores) == pytest.approx(measure(name, truth, scores - 1e8), rel=1e-6)


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_user_with_an_item_without_a_finite_score_has_no_cost(name, bad):
    test = ratings([[1, 2, 3], [1, 2, 3]])
    (values,) = per_user(Table(np.array([[1, bad, 2], [1, 3, 2.0]])), test, [name]).values()
    assert np.isnan(values).tolist() == [True, False]


@pytest.mark.parametrize("name", COSTS)
def test_costs_need_two_items_and_no_order_of_them(name):
    test = Ratings([0, 1, 1, 3], [0, 0, 1], [5.0, 3, 3], n_items=2)
    (values,) = per_user(ItemScores(np.array([1.0, 4.0])), test, [name]).values()
    assert np.isnan(values).tolist() == [True, True, False]
    assert values[2] == (0.0 if "-h" in name else pytest.approx(measure(name, [3, 3], [1, 4])))


# ---- ties ----


def over_all_orders(truth, scores):
    """A user for each order of the items, whose scores agree with it wherever the given ones are tied."""
    orders = np.array(list(itertools.permutations(range(len(truth)))), float)
    return ratings(np.tile(truth, (len(orders), 1))), Table(scores + orders / (2 * len(truth)))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(rows(largest=7))
@example(np.array([[0, 1, 2, 3, 4, 5, 5], [0, 0, 0, 0, 0, 0, 0]], float))
@example(np.array([[0, 4, 2, 5, 1, 3, 0], [1, 1, 1, 0, 0, 0, 2]], float))
def test_a_tie_earns_the_mean_over_all_of_its_orders(columns):
    truth, scores = columns
    test, model = over_all_orders(truth, scores)
    expected = evaluate(model, test, BY_PLACE)
    assert {name: measure(name, truth, scores) for name in BY_PLACE} == pytest.approx(
        dict(zip(BY_PLACE, expected.values(), strict=True)), abs=1e-12, nan_ok=True
    )


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(rows(largest=6))
@pytest.mark.parametrize("name", [*BY_PLACE, *RANK_CORRELATIONS])
def test_a_constant_model_earns_what_a_random_one_does(name, columns):
    truth, _ = columns
    test, model = over_all_orders(truth, np.zeros(len(truth)))
    (expected,) = evaluate(model, test, [name]).values()
    assert measure(name, truth, np.full(len(truth), 3.5)) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", RANK_CORRELATIONS)
def test_constant_scores_correlate_with_nothing(name):
    assert measure(name, [1, 2, 3, 3], np.ones(4)) == 0.0


@pytest.mark.slow
@many_names
@given(st.data(), rows(largest=20))
@pytest.mark.parametrize("name", EVERY_NAME)
def test_the_order_of_the_items_never_matters(name, data, columns):
    order = data.draw(st.permutations(range(columns.shape[1])))
    own, other = measure(name, *columns), measure(name, *columns[:, order])
    if name in ("msd", "cost-mp[n=2]"):  # a plain sum, in the order of the items
        assert own == pytest.approx(other)
    else:
        np.testing.assert_array_equal(own, other)


@pytest.mark.slow
@many_names
@given(rows(scores=st.sampled_from([np.nan, -1.0, 0.0, 1.0])))
@pytest.mark.parametrize("name", SCALE_FREE)
def test_scores_of_nan_are_one_tie_behind_all_others(name, columns):
    truth, scores = columns
    last = measure(name, truth, np.where(np.isnan(scores), -2.0, scores))
    np.testing.assert_array_equal(measure(name, truth, scores), last)


# ---- users ----


@pytest.mark.parametrize("name", (*ORDERED_ONLY, *RANK_CORRELATIONS, "misranking"))
def test_users_without_an_ordered_pair_are_left_out_of_the_mean(name):
    test = Ratings([0, 0, 1, 4, 7], [2, 0, 1, 2, 0, 1, 2], [5.0, 3, 3, 3, 1, 2, 5], n_items=3)
    model = ItemScores(np.array([3.0, 1.0, 2.0]))
    (values,) = per_user(model, test, [name]).values()
    assert np.isnan(values).tolist() == [True, True, True, False]
    assert evaluate(model, test, [name]) == {metric(name).label: values[3]}


SEVERAL = Ratings([0, 0, 1, 3, 5, 7], [0, 0, 1, 0, 1, 1, 2], [5.0, 3, 2, 5, 5, 4, 1], n_items=3)  # 5 users
SEVERAL_SCORES = ItemScores(np.array([3.0, 1.0, 2.0]))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recall@1", [np.nan, 1, np.nan, 0.5, 0]),
        ("mrr", [np.nan, 1, np.nan, 1, 0.5]),
        ("map", [np.nan, 1, np.nan, 1, 0.5]),
        ("auc", [np.nan, np.nan, np.nan, np.nan, 0]),
        ("precision@2", [np.nan, np.nan, 0, np.nan, 0.5]),
        ("precision@2[users=relevant]", [np.nan, 1, np.nan, 1, 0.5]),
        ("ndcg@1[users=relevant]", [np.nan, 1, 1, 1, 1 / 15]),
        ("recall@1[users=ordered]", [np.nan, np.nan, np.nan, np.nan, 0]),
        ("recall@1[relevant=any]", [np.nan, 1, 0.5, 0.5, 0.5]),
    ],
)
def test_each_metric_leaves_out_whom_it_says(name, expected):
    assert per_user(SEVERAL_SCORES, SEVERAL, [name])[metric(name).label] == pytest.approx(expected, nan_ok=True)


def test_all_users_are_those_with_a_training_or_a_held_out_rating():
    train = Ratings([0, 0, 0, 0, 0, 0], np.zeros(0, int), np.zeros(0), n_items=3)
    seen_by_the_first = Ratings([0, 1, 1, 1, 1, 1], [0], [4.0], n_items=3)
    names = ["recall@1[users=all]", "precision@2[users=all]", "ndcg@1[users=all]"]
    values = per_user(SEVERAL_SCORES, SEVERAL, names, train=train)
    assert values[names[0]] == pytest.approx([np.nan, 1, 0, 0.5, 0], nan_ok=True)
    assert values[names[1]] == pytest.approx([np.nan, 1, 0, 1, 0.5], nan_ok=True)
    assert values[names[2]] == pytest.approx([np.nan, 1, 1, 1, 1 / 15], nan_ok=True)
    assert per_user(SEVERAL_SCORES, SEVERAL, names[:1], train=seen_by_the_first)[names[0]][0] == 0
    assert evaluate(SEVERAL_SCORES, SEVERAL, names[:1], train=seen_by_the_first) == {names[0]: 1.5 / 5}


def test_the_mean_of_nobody_is_nan():
    assert np.isnan(mean(np.full(3, np.nan)))
    assert mean(np.array([np.nan, 1.0, 2.0])) == 1.5


@pytest.mark.parametrize("name", EVERY_NAME)
def test_threads_change_no_bit(name):
    rng = np.random.default_rng(0)
    test = ratings(rng.integers(0, 5, (500, 20)))
    model = Table(rng.integers(0, 9, (500, 20)) / 3)
    one, two, three = (next(iter(per_user(model, test, [name], threads).values())).tobytes() for threads in (1, 2, 3))
    assert one == two == three


def test_many_metrics_at_once_are_those_one_by_one(crowd):
    test, model = crowd
    together = per_user(model, test, EVERY_NAME)
    assert list(together) == [metric(name).label for name in EVERY_NAME]
    for name in EVERY_NAME:
        (alone,) = per_user(model, test, [name]).values()
        assert together[metric(name).label].tobytes() == alone.tobytes()


@pytest.mark.slow
@many_names
@given(rows(scores=st.floats(-1, 1)))
@pytest.mark.parametrize("name", EVERY_NAME)
def test_values_stay_within_the_limits_and_the_truth_reaches_the_better_one(name, columns):
    low, high = metric(name).limits
    found, best = measure(name, *columns), measure(name, columns[0], columns[0])
    assert np.isnan(found) or low <= found <= high + 1e-12
    assert np.isnan(found) == np.isnan(best)
    if not name.startswith(("precision", "recall", "map@")):  # those depend on how many are relevant
        assert np.isnan(best) or best == pytest.approx(high if metric(name).better == "higher" else low)


def test_a_cut_beyond_the_items_divides_by_the_items():
    assert measure("precision@10", [5, 4, 1], [1, 2, 3]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", ["ndcg@3000000000", "precision@99999999999999999999"])
def test_a_cut_beyond_all_integers_is_no_cut(name):
    assert measure(name, [5, 4, 1], [1, 3, 2]) == measure(name.partition("@")[0], [5, 4, 1], [1, 3, 2])


@dataclass(frozen=True)
class Constant:
    """A model that gives back one array, whatever is asked."""

    scores: np.ndarray

    def score(self, users, items):
        """The array."""
        return self.scores


@pytest.mark.parametrize("shape", [(0,), (2,), (4,), (3, 1)])
def test_a_model_that_scores_another_number_of_pairs_is_refused(shape):
    with pytest.raises(UserError, match=r"Constant gave scores of shape .* for 3 pairs"):
        evaluate(Constant(np.zeros(shape)), ratings([[1, 2, 3]]), ["ndcg"])
    with pytest.raises(UserError, match="for 3 pairs"):
        evaluate(Constant(np.zeros(shape)), Comparisons([0, 3], [0, 0, 1], [1, 2, 2], 3), ["pairwise-error"])


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_scores_of_any_number_type_will_do(dtype):
    expected = measure("ndcg", [1, 2, 3], [3, 1, 2])
    assert evaluate(Constant(np.array([3, 1, 2], dtype)), ratings([[1, 2, 3]]), ["ndcg"]) == {"ndcg": expected}


# ---- pairs with training items, and averages over pairs ----


@st.composite
def two_parts(draw):
    """Held-out and training (truth, scores) of one user, many tied; either may be empty."""
    several = st.lists(st.tuples(LEVELS, COARSE | st.just(np.nan)), max_size=20)
    return tuple(np.array(draw(several), float).reshape(-1, 2).T for _ in range(2))


def loop_over_pairs(some, others):
    """Ordered pairs of one item of each part, and how many are scored wrongly, by a double loop."""
    (truth, scores), (other_truth, other_scores) = some, others
    ordered, wrong = 0, 0.0
    for y, h in zip(truth, np.nan_to_num(scores, nan=-9), strict=True):
        for other_y, other_h in zip(other_truth, np.nan_to_num(other_scores, nan=-9), strict=True):
            if y != other_y:
                ordered += 1
                wrong += 0.5 if h == other_h else float((h > other_h) != (y > other_y))
    return ordered, wrong


@patient
@given(two_parts())
def test_pairs_with_training_items_are_those_of_a_double_loop(parts):
    test, train = (Ratings([0, part.shape[1]], np.arange(part.shape[1]) + first, part[0], n_items=40)
                   for part, first in zip(parts, (0, 20), strict=True))  # fmt: skip
    scores = np.zeros(40)
    scores[test.items], scores[train.items] = parts[0][1], parts[1][1]
    across, within = loop_over_pairs(*parts), loop_over_pairs(parts[0], parts[0])
    expected = {
        "pairwise-error": within,
        "pairwise-error[pairs=test-train]": across,
        "pairwise-error[pairs=both]": (across[0] + within[0] / 2, across[1] + within[1] / 2),
    }
    for name, (ordered, wrong) in expected.items():
        accuracy = name.replace("error", "accuracy")
        found = per_user(ItemScores(scores), test, [name, accuracy], train=train)
        share = wrong / ordered if ordered else np.nan
        assert found[name][0] == pytest.approx(share, abs=1e-12, nan_ok=True)
        assert found[accuracy][0] == pytest.approx(1 - share, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("pairs", ["test", "test-train", "both"])
def test_pairs_of_many_users_with_training_items_do_not_depend_on_the_others(crowd, pairs):
    test, model = crowd
    rng = np.random.default_rng(3)
    train = test.take(np.flatnonzero(rng.random(len(test)) < 0.4))
    name = f"pairwise-error[pairs={pairs}]" if pairs != "test" else "pairwise-error"
    together = per_user(model, test, [name], threads=2, train=train)[name]
    for user in range(test.n_users):
        rows = [np.flatnonzero(part.users == user) for part in (test, train)]
        alone = per_user(model, test.take(rows[0]), [name], train=train.take(rows[1]))[name]
        np.testing.assert_array_equal(alone[user], together[user])


@pytest.mark.parametrize("name", ["pairwise-error", "pairwise-accuracy"])
@pytest.mark.parametrize("pairs", ["test", "test-train", "both"])
def test_the_average_over_pairs_is_the_share_of_all_pairs(crowd, name, pairs):
    test, model = crowd
    train = test.take(np.arange(0, len(test), 3))
    ordered = wrong = 0
    for user in range(test.n_users):
        own, other = ([part.values[part.users == user], model.scores[user, part.items[part.users == user]]]
                      for part in (test, train))  # fmt: skip
        within, across = loop_over_pairs(own, own), loop_over_pairs(own, other)
        for share, counts in ((0.5 * (pairs != "test-train"), within), (float(pairs != "test"), across)):
            ordered, wrong = ordered + share * counts[0], wrong + share * counts[1]
    expected = wrong / ordered if name == "pairwise-error" else 1 - wrong / ordered
    text = f"{name}[pairs={pairs},average=pairs]"
    (by_pairs,) = evaluate(model, test, [text], train=train).values()
    assert by_pairs == pytest.approx(expected, rel=1e-12)
    (by_users,) = evaluate(model, test, [f"{name}[pairs={pairs}]"], train=train).values()
    assert by_users != pytest.approx(by_pairs, rel=1e-6)


@pytest.mark.parametrize("average", ["users", "pairs"])
def test_training_pairs_are_measured_as_held_out_pairs_are(crowd, average):
    whole, model = crowd
    rows = np.random.default_rng(3).random(len(whole)) < 0.4
    test, train = (whole.take(np.flatnonzero(chosen)) for chosen in (rows, ~rows))
    names = [f"pairwise-accuracy[pairs={pairs},average={average}]" for pairs in ("train", "both", "test")]
    fitted, *others = metrics.measure(model, test, names, train=train).values.values()
    (expected,) = metrics.measure(model, train, names[2:]).values.values()
    np.testing.assert_array_equal(fitted, expected)
    for found, alone in zip(others, metrics.measure(model, test, names[1:], train=train).values.values(), strict=True):
        np.testing.assert_array_equal(found, alone)


def test_training_pairs_may_be_comparisons_and_are_told_with_their_numbers(crowd):
    whole, model = crowd
    train, test = whole.comparisons(), whole.take(np.arange(0, len(whole), 3))
    (found,) = metrics.measure(model, test, ["comparison-error[pairs=train]"], train=train).pairs.values()
    np.testing.assert_array_equal(found, np.diff(train.indptr))
    of_ratings = evaluate(model, test, ["comparison-error[pairs=train]"], train=whole)
    assert evaluate(model, test, ["comparison-error[pairs=train]"], train=train) == pytest.approx(of_ratings)
    assert evaluate(model, train, ["comparison-error[pairs=train]"], train=train) == pytest.approx(of_ratings)


def test_the_comparison_error_is_the_share_of_all_comparisons(crowd):
    test, model = crowd
    comparisons = test.comparisons(20, np.random.default_rng(0))
    scores = [model.score(comparisons.users, items) for items in (comparisons.better, comparisons.worse)]
    (found,) = evaluate(model, comparisons, ["comparison-error"]).values()
    assert found == pytest.approx((scores[0] < scores[1]).mean(), rel=1e-12)
    assert evaluate(model, test, ["comparison-error"]) == {
        "comparison-error": pytest.approx(evaluate(model, test.comparisons(), ["comparison-error"])["comparison-error"])
    }
    names = ["pairwise-error[average=pairs]", "comparison-error[average=users]", "pairwise-error"]
    again = evaluate(model, comparisons, names)
    assert again[names[0]] == found and again[names[1]] == again[names[2]] != found


def test_nobody_has_no_average_over_pairs():
    test = Ratings([0, 2, 2], [0, 1], [3.0, 3.0], n_items=2)
    values = per_user(ItemScores(np.ones(2)), test, ["comparison-error"])["comparison-error"]
    assert np.isnan(values).all()


# ---- held-out comparisons ----


def test_held_out_comparisons_count_a_tie_half_and_leave_out_users_without_any():
    test = Comparisons([0, 4, 4, 5], [0, 0, 1, 2, 3], [1, 2, 2, 0, 0], n_items=4)
    model = ItemScores(np.array([1.0, 2.0, 1.0, np.nan]))
    values = per_user(model, test, ["pairwise-error"])["pairwise-error"]
    assert values[[0, 2]].tolist() == [(1 + 0.5 + 0 + 0.5) / 4, 1.0]
    assert np.isnan(values[1])
    assert evaluate(model, test, ["pairwise-error"]) == {"pairwise-error": 0.75}


def test_all_comparisons_of_held_out_ratings_give_the_error_of_the_ratings(crowd):
    test, model = crowd
    by_ratings = per_user(model, test, ["pairwise-error"])["pairwise-error"]
    by_pairs = per_user(model, test.comparisons(), ["pairwise-error"])["pairwise-error"]
    np.testing.assert_allclose(by_pairs, by_ratings, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in EVERY_NAME if not name.startswith("pairwise")])
def test_other_metrics_need_held_out_ratings(name):
    test = Comparisons([0, 1], [0], [1], n_items=2)
    with pytest.raises(UserError, match="needs held-out ratings, the data holds comparisons"):
        evaluate(ItemScores(np.zeros(2)), test, [name])
    assert unusable(metric(name), Ratings([0, 2], [0, 1], [1.0, 2.0], n_items=2)) is None


@pytest.mark.parametrize("name", ["ndcg@3", "ndcg-linear"])
def test_ndcg_refuses_negative_ratings_whose_gains_would_leave_its_limits(name):
    test = Ratings([0, 2], [0, 1], [-1.0, 2.0], n_items=2)
    with pytest.raises(UserError, match="needs ratings of at least 0, the lowest rating is -1"):
        evaluate(ItemScores(np.zeros(2)), test, [name])


def test_a_gain_that_overflows_is_refused_and_a_metric_that_suits_is_named():
    test = Ratings([0, 2], [0, 1], [1.0, 1500.0], n_items=2)
    with pytest.raises(UserError, match=r"metric 'ndcg' has the gain .* for a rating of 1500 \(use ndcg-linear\)"):
        evaluate(ItemScores(np.arange(2.0)), test, ["ndcg@3"])
    assert evaluate(ItemScores(np.arange(2.0)), test, ["ndcg-linear@3"]) == {"ndcg-linear@3": 1.0}
    below = Ratings([0, 2], [0, 1], [1.0, 999.0], n_items=2)
    assert evaluate(ItemScores(np.arange(2.0)), below, ["ndcg"]) == {"ndcg": 1.0}


def test_pairwise_error_is_usable_on_either_view():
    views = (Ratings([0, 1], [0], [-1.0], n_items=2), Comparisons([0, 1], [0], [1], n_items=2))
    assert [unusable(METRICS["pairwise-error"], view) for view in views] == [None, None]


def test_the_log_loss_is_the_likelihood_of_held_out_comparisons():
    compared = Comparisons([0, 2, 3, 3, 4], [0, 1, 2, 0], [1, 2, 0, 3], n_items=4)
    scores = np.array([1.0, -0.5, 900.0, np.nan])
    found = per_user(ItemScores(scores), compared, ["log-loss", "brier", "pairwise-error"])
    expected = [(-np.log(expit(1.5)) - logsigmoid(-900.5)) / 2, 0.0, np.nan, np.nan]
    np.testing.assert_allclose(found["log-loss"], expected, rtol=1e-12)
    np.testing.assert_allclose(found["brier"], [(expit(-1.5) ** 2 + 1) / 2, 0.0, np.nan, np.nan], rtol=1e-12)
    np.testing.assert_allclose(found["pairwise-error"], [0.5, 0.0, np.nan, 0.0])


def logsigmoid(margin):
    return -np.logaddexp(0, -margin)


@pytest.mark.parametrize("name", ["log-loss", "brier"])
def test_losses_of_chances_need_comparisons(name):
    assert unusable(METRICS[name], Comparisons([0, 1], [0], [1], n_items=2)) is None
    assert "needs held-out comparisons, the data holds ratings" in unusable(METRICS[name], ratings([[1, 2]]))


@pytest.mark.parametrize(
    "name",
    [
        "pairwise-error[pairs=test-train]",
        "pairwise-error[pairs=train]",
        "ndcg@3[candidates=catalogue]",
        "mrr[users=all]",
        "auc[candidates=catalogue]",
    ],
)
def test_what_looks_at_the_training_part_says_so_where_it_is_missing(name):
    with pytest.raises(UserError, match=r"needs the training part: pass train=split\.train"):
        evaluate(ItemScores(np.zeros(3)), ratings([[1, 2, 3]]), [name])
    other = Ratings([0, 1, 1], [0], [1.0], n_items=3)
    with pytest.raises(UserError, match="has 2 users and 3 items, the held-out part 1 users and 3 items"):
        evaluate(ItemScores(np.zeros(3)), ratings([[1, 2, 3]]), [name], train=other)


@pytest.mark.parametrize("pairs", ["test-train", "both"])
def test_pairs_with_training_items_need_ratings_on_both_sides(pairs):
    record, compared = metric(f"pairwise-error[pairs={pairs}]"), Comparisons([0, 1], [0], [1], n_items=3)
    assert "needs held-out ratings, the data holds comparisons" in unusable(record, compared)
    assert "needs training ratings, the data holds comparisons" in unusable(record, ratings([[1, 2, 3]]), compared)
    assert unusable(record, ratings([[1, 2, 3]]), ratings([[1, 2, 3]])) is None
    assert unusable(metric("ndcg[candidates=catalogue]"), ratings([[1, 2, 3]]), compared) is None


COSTS = ["cost-hr", "cost-mp[n=2]", "cost-hmp", "cost-svr[eps=0.5]"]


@pytest.mark.parametrize("name", COSTS)
def test_a_cost_on_the_training_part_is_that_of_the_part_and_the_gap_is_the_difference(name):
    rng = np.random.default_rng(3)
    whole, model = ratings(rng.integers(1, 6, (30, 20))), Table(rng.standard_normal((30, 20)))
    held = rng.random(600) < 0.4
    test, train = (whole.take(np.flatnonzero(rows)) for rows in (held, ~held))
    by_part = {
        part: f"{name[:-1]},part={part}]" if "[" in name else f"{name}[part={part}]" for part in ("train", "gap")
    }
    values = per_user(model, test, [name, *by_part.values()], train=train)
    (on_train,) = per_user(model, train, [name]).values()
    held_out, found, gap = (values[metric(text).label] for text in (name, by_part["train"], by_part["gap"]))
    np.testing.assert_array_equal(found, on_train)
    np.testing.assert_array_equal(gap, held_out - on_train)
    assert gap.min() < 0 < gap.max()


def test_a_user_without_a_cost_in_either_part_has_no_gap():
    test = Ratings([0, 1, 3, 5], [0, 0, 1, 0, 1], np.arange(5.0), n_items=4)
    train = Ratings([0, 2, 3, 5], [2, 3, 2, 2, 3], np.arange(5.0), n_items=4)
    (gap,) = per_user(ItemScores(np.arange(4.0)), test, ["cost-mp[part=gap]"], train=train).values()
    assert np.isnan(gap).tolist() == [True, True, False]


def test_a_gap_needs_training_ratings():
    record, compared = metric("cost-mp[part=gap]"), Comparisons([0, 1], [0], [1], n_items=3)
    assert "needs training ratings, the data holds comparisons" in unusable(record, ratings([[1, 2, 3]]), compared)
    with pytest.raises(UserError, match=r"needs the training part: pass train=split\.train"):
        evaluate(ItemScores(np.zeros(3)), ratings([[1, 2, 3]]), ["cost-mp[part=gap]"])


# ---- names ----


VALUES = {
    "candidates": st.sampled_from(["rated", "catalogue"]),
    "relevant": st.just("any") | st.floats(allow_nan=False).map(repr),
    "users": st.sampled_from(["ordered", "relevant", "all"]),
    "pairs": st.sampled_from(["test", "test-train", "both", "train"]),
    "average": st.sampled_from(["users", "pairs"]),
    "n": st.sampled_from(["1", "2"]),
    "eps": st.floats(0, 100).map(repr),
    "part": st.sampled_from(["test", "train", "gap"]),
}


@patient
@given(st.sampled_from(sorted(METRICS)), st.none() | st.integers(1, 10**6), st.data())
def test_a_label_names_the_metric_that_it_came_from(name, k, data):
    record = METRICS[name]
    drawn = data.draw(st.fixed_dictionaries({}, optional={setting: VALUES[setting] for setting in record.takes}))
    text = name + (f"@{k}" if k and record.cuts else "")
    text += "[" + ",".join(f"{key}={value}" for key, value in drawn.items()) + "]"
    parsed = metric(text)
    assert metric(parsed.label) == parsed
    assert parsed.name == name
    assert parsed.k == ((k or record.k) if record.cuts else None)
    assert "{" not in parsed.formula


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("ndcg@10", "ndcg@10"),
        (" ndcg ", "ndcg"),
        ("precision@5", "precision@5"),
        ("precision@5[relevant=4]", "precision@5"),
        ("precision[relevant=3.5]", "precision[relevant=3.5]"),
        ("precision@5[relevant=0]", "precision@5[relevant=0]"),
        ("precision@5[relevant=-inf]", "precision@5[relevant=any]"),
        ("recall[relevant=any, users=relevant]", "recall[relevant=any]"),
        ("precision@5[users=ordered]", "precision@5"),
        ("precision@5[users=relevant]", "precision@5[users=relevant]"),
        ("precision@5[users=relevant,candidates=catalogue]", "precision@5[candidates=catalogue]"),
        ("precision@5[users=all,candidates=catalogue]", "precision@5[candidates=catalogue,users=all]"),
        ("ndcg@5[candidates=rated]", "ndcg@5"),
        ("pairwise-error[average=pairs,pairs=both]", "pairwise-error[pairs=both,average=pairs]"),
        ("comparison-error[average=pairs]", "comparison-error"),
        ("comparison-error[average=users]", "comparison-error[average=users]"),
        ("cost-svr[n=1,eps=0.10]", "cost-svr"),
        ("cost-svr[eps=0.2,n=2]", "cost-svr[n=2,eps=0.2]"),
    ],
)
def test_a_label_is_the_shortest_name(text, label):
    assert metric(text).label == label


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndgc", "unknown metric 'ndgc'; did you mean 'ndcg'"),
        ("pairwise-errors", "did you mean 'pairwise-error'"),
        ("nothing-like-it", r"known: auc, .*\(rankbench list metrics\)"),
        ("ndcg@0", "'ndcg@0' must be a whole number of at least 1"),
        ("ndcg@-1", "'ndcg@-1' must be a whole number of at least 1"),
        ("ndcg@x", "'ndcg@x' must be a whole number of at least 1"),
        ("ndcg@", "did you mean 'ndcg'"),
        ("@3", "unknown metric '@3'"),
        ("kendall@3", "'kendall' takes no cut-off"),
        ("pairwise-error@10", "'pairwise-error' takes no cut-off"),
        ("ndcg[relevant=3]", "unknown setting of ndcg: 'relevant'; known: candidates, users"),
        ("kendall[relevant=3]", "kendall"),
        ("precision@5[relevent=3]", "did you mean 'relevant'"),
        ("precision@5[relevant=high]", "relevant=high is not of type float"),
        ("msd[pairs=both]", "'msd' takes no settings"),
        ("cost-hr[n=3]", "n=3 is out of range"),
        ("auc[candidates=some]", "unknown value of candidates: 'some'"),
        ("", "cannot read ''"),
    ],
)
def test_a_bad_name_says_what_is_wrong_with_it(text, message):
    with pytest.raises(UserError, match=message):
        metric(text)


def test_each_metric_is_listed_under_its_own_name_and_code():
    assert all(name == record.name and record.formula for name, record in METRICS.items())
    shared = Counter(record.code for record in METRICS.values())
    assert {code: count for code, count in shared.items() if count > 1} == {
        Code.PAIRWISE_ERROR: 3,  # its complement, and comparisons
        Code.MAGNITUDE_1: 2,  # M1D is a cost function
        OF_COMPARISONS: 2,  # no kernel computes them
    }
    assert {name for name in METRICS if metric(name).takes} == {name for name in METRICS if METRICS[name].choices}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ndcg@10", ["2^rating - 1", "1/log2(1 + rank)", "min(10, candidates)", "all rated alike"]),
        ("ndcg-linear", ["gain the rating itself", "all ranks"]),
        (
            "precision@5[candidates=catalogue,users=all]",
            ["first 5 ranks", "rating >= 4", "count 0", "no training rating"],
        ),
        ("recall@5[relevant=any]", ["any held-out item", "min(5, candidates)", "without a relevant held-out item"]),
        ("recall@5[users=ordered]", ["all rated alike, and users without a relevant held-out item"]),
        ("mrr@7", ["0 beyond rank 7"]),
        ("pairwise-error[pairs=test-train,average=pairs]", ["a held-out and a training item", "weighted by its pairs"]),
        ("cost-svr[n=2,eps=0.25]", ["- 0.25, 0)^2", "scale of the scores", "n^2 ordered pairs", "i = j included"]),
        ("pairwise-accuracy[pairs=train]", ["pairs of training items", "right order"]),
        ("misranking", ["a tie is wrong"]),
    ],
)
def test_a_formula_says_all_that_is_set(name, words):
    assert [word for word in words if word not in metric(name).formula] == []


@pytest.mark.parametrize(
    "promise", ["expected value over all orders", "behind all others", "left out", "Mean over users"]
)
def test_the_rules_are_spelt_out_for_every_table(promise):
    assert promise in RULES


@pytest.mark.parametrize("code", [-1, int(Code.KNOWN), 25, 99])
def test_a_code_that_no_metric_has_is_refused(code):
    arrays = {"cuts": np.zeros(1, np.int32), "thresholds": np.zeros(1), "discounts": np.ones(1)}
    with pytest.raises(ValueError, match=f"no metric has the code {code}: they are 0 to {int(Code.KNOWN) - 1}"):
        Requests(codes=np.array([code], np.int32), **arrays)
