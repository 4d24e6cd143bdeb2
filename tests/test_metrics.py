"""Every metric against somebody else's code, every tie against all of its orders."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score, roc_auc_score

from rankbench.data.views import Comparisons, Ratings
from rankbench.errors import UserError
from rankbench.metrics import METRICS, RULES, evaluate, mean, metric, per_user, unusable
from rankbench.models import ItemScores

patient = settings(deadline=None)  # a slow machine is no failure

RANK_CORRELATIONS = ("kendall", "spearman")
EVERY_NAME = (
    *("ndcg", "ndcg@1", "ndcg@3", "ndcg@99", "ndcg-linear", "ndcg-linear@2", "precision", "precision@1"),
    *("precision@3[relevant=2]", "precision@99[relevant=3]", "pairwise-error", *RANK_CORRELATIONS),
)
BY_PLACE = tuple(name for name in EVERY_NAME if name not in RANK_CORRELATIONS)  # an expectation over tie orders
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


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize(
    ("ours", "theirs"), [("ndcg", "ndcg_burges"), ("ndcg-linear", "ndcg"), ("precision", "precision")]
)
def test_place_metrics_are_those_of_ranx(monkeypatch, crowd, ours, theirs, k):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # compiling takes longer than all tests of this file
    ranx = pytest.importorskip("ranx")
    test, model = crowd
    ours, theirs = f"{ours}@{k}", f"{theirs}@{k}" + ("-l4" if ours == "precision" else "")
    truth = by_user(test, test.values.astype(int))
    run = ranx.Run(by_user(test, model.score(test.users, test.items)))
    ranx.evaluate(ranx.Qrels(truth), run, theirs)
    for user, found in enumerate(per_user(model, test, [ours])[ours]):
        if not np.isnan(found) and (theirs[0] == "n" or len(truth[f"u{user}"]) >= k):
            assert found == pytest.approx(run.scores[theirs][f"u{user}"], abs=1e-12)


@pytest.mark.parametrize("k", [1, 5, 10])
def test_linear_ndcg_and_precision_are_those_of_trec_eval(crowd, k):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    test, model = crowd
    truth = by_user(test, test.values.astype(int).tolist())
    run = by_user(test, model.score(test.users, test.items).tolist())
    theirs = pytrec_eval.RelevanceEvaluator(truth, {f"ndcg_cut.{k}", f"P.{k}"}, relevance_level=4).evaluate(run)
    ours = per_user(model, test, [f"ndcg-linear@{k}", f"precision@{k}"])
    for user, (gain, hits) in enumerate(zip(*ours.values(), strict=True)):
        if not np.isnan(gain):
            assert gain == pytest.approx(theirs[f"u{user}"][f"ndcg_cut_{k}"], abs=1e-6)
            if len(truth[f"u{user}"]) >= k:
                assert hits == pytest.approx(theirs[f"u{user}"][f"P_{k}"], abs=1e-12)


@patient
@given(rows(largest=60))
def test_rank_correlations_are_those_of_scipy_ties_included(columns):
    truth, scores = columns
    assume(len(np.unique(scores)) > 1)
    assert measure("kendall", truth, scores) == pytest.approx(scipy.stats.kendalltau(truth, scores)[0], abs=1e-12)
    assert measure("spearman", truth, scores) == pytest.approx(scipy.stats.spearmanr(truth, scores)[0], abs=1e-12)


@patient
@given(rows(largest=60))
def test_pairwise_error_is_that_of_a_double_loop(columns):
    truth, scores = columns
    ordered = truth[:, None] > truth
    wrong = (scores[:, None] < scores) + 0.5 * (scores[:, None] == scores)
    assert measure("pairwise-error", truth, scores) == pytest.approx(wrong[ordered].mean(), abs=1e-12)


@patient
@given(rows(truths=st.integers(0, 1)))
def test_pairwise_error_of_a_binary_truth_is_what_the_area_under_the_curve_lacks(columns):
    assert measure("pairwise-error", *columns) == pytest.approx(1 - roc_auc_score(*columns), abs=1e-12)


@pytest.mark.parametrize("n", [15, 16, 17, 33, 1000])
def test_long_users_are_sorted_and_counted_right(n):
    rng = np.random.default_rng(n)
    truth, scores = rng.integers(0, 6, n), rng.integers(0, n // 2, n)
    assert measure("kendall", truth, scores) == pytest.approx(scipy.stats.kendalltau(truth, scores)[0], abs=1e-12)
    assert measure("spearman", truth, scores) == pytest.approx(scipy.stats.spearmanr(truth, scores)[0], abs=1e-12)


# ---- ties ----


def over_all_orders(truth, scores):
    """A user for each order of the items, whose scores agree with it wherever the given ones are tied."""
    orders = np.array(list(itertools.permutations(range(len(truth)))), float)
    return ratings(np.tile(truth, (len(orders), 1))), Table(scores + orders / (2 * len(truth)))


@settings(max_examples=25, deadline=None)
@given(rows(largest=7))
@example(np.array([[0, 1, 2, 3, 4, 5, 5], [0, 0, 0, 0, 0, 0, 0]], float))
@example(np.array([[0, 4, 2, 5, 1, 3, 0], [1, 1, 1, 0, 0, 0, 2]], float))
def test_a_tie_earns_the_mean_over_all_of_its_orders(columns):
    truth, scores = columns
    test, model = over_all_orders(truth, scores)
    expected = evaluate(model, test, BY_PLACE)
    assert {name: measure(name, truth, scores) for name in BY_PLACE} == pytest.approx(
        dict(zip(BY_PLACE, expected.values(), strict=True)), abs=1e-12
    )


@settings(max_examples=25, deadline=None)
@given(rows(largest=6))
@pytest.mark.parametrize("name", EVERY_NAME)
def test_a_constant_model_earns_what_a_random_one_does(name, columns):
    truth, _ = columns
    test, model = over_all_orders(truth, np.zeros(len(truth)))
    (expected,) = evaluate(model, test, [name]).values()
    assert measure(name, truth, np.full(len(truth), 3.5)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", RANK_CORRELATIONS)
def test_constant_scores_correlate_with_nothing(name):
    assert measure(name, [1, 2, 3, 3], np.ones(4)) == 0.0


@patient
@given(st.data(), rows(largest=20))
@pytest.mark.parametrize("name", EVERY_NAME)
def test_the_order_of_the_items_never_matters(name, data, columns):
    order = data.draw(st.permutations(range(columns.shape[1])))
    assert measure(name, *columns) == measure(name, *columns[:, order])


@patient
@given(rows(scores=st.sampled_from([np.nan, -1.0, 0.0, 1.0])))
@pytest.mark.parametrize("name", EVERY_NAME)
def test_scores_of_nan_are_one_tie_behind_all_others(name, columns):
    truth, scores = columns
    assert measure(name, truth, scores) == measure(name, truth, np.where(np.isnan(scores), -2.0, scores))


# ---- users ----


@pytest.mark.parametrize("name", EVERY_NAME)
def test_users_without_an_ordered_pair_are_left_out_of_the_mean(name):
    test = Ratings([0, 0, 1, 4, 7], [2, 0, 1, 2, 0, 1, 2], [5.0, 3, 3, 3, 1, 2, 5], n_items=3)
    model = ItemScores(np.array([3.0, 1.0, 2.0]))
    (values,) = per_user(model, test, [name]).values()
    assert np.isnan(values).tolist() == [True, True, True, False]
    assert evaluate(model, test, [name]) == {metric(name).label: values[3]}


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


@patient
@given(rows(scores=st.floats(-1, 1)))
@pytest.mark.parametrize("name", EVERY_NAME)
def test_values_stay_within_the_limits_and_the_truth_reaches_the_better_one(name, columns):
    low, high = metric(name).limits
    best = measure(name, columns[0], columns[0])
    assert low <= measure(name, *columns) <= high + 1e-12
    if not name.startswith("precision"):
        assert best == pytest.approx(high if metric(name).better == "higher" else low)


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


@pytest.mark.parametrize("name", [name for name in EVERY_NAME if name != "pairwise-error"])
def test_other_metrics_need_held_out_ratings(name):
    test = Comparisons([0, 1], [0], [1], n_items=2)
    with pytest.raises(UserError, match="needs held-out ratings, the data holds comparisons"):
        evaluate(ItemScores(np.zeros(2)), test, [name])
    assert unusable(metric(name), Ratings([0, 2], [0, 1], [1.0, 2.0], n_items=2)) is None


@pytest.mark.parametrize("name", ["ndcg@3", "ndcg-linear"])
def test_ndcg_refuses_negative_ratings_whose_gains_would_leave_its_limits(name):
    test = Ratings([0, 2], [0, 1], [-1.0, 2.0], n_items=2)
    with pytest.raises(UserError, match="needs ratings of at least 0, the data goes down to -1"):
        evaluate(ItemScores(np.zeros(2)), test, [name])


def test_pairwise_error_is_usable_on_either_view():
    views = (Ratings([0, 1], [0], [-1.0], n_items=2), Comparisons([0, 1], [0], [1], n_items=2))
    assert [unusable(METRICS["pairwise-error"], view) for view in views] == [None, None]


# ---- names ----


@patient
@given(st.sampled_from(sorted(METRICS)), st.none() | st.integers(1, 10**6), st.none() | st.floats(allow_nan=False))
def test_a_label_names_the_metric_that_it_came_from(name, k, relevant):
    record = METRICS[name]
    text = name + (f"@{k}" if k and record.cuts else "")
    text += f"[relevant={relevant!r}]" if relevant is not None and "relevant" in record.takes else ""
    parsed = metric(text)
    assert metric(parsed.label) == parsed
    assert parsed.name == name
    assert parsed.k == (k if record.cuts else None)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("ndcg@10", "ndcg@10"),
        (" ndcg ", "ndcg"),
        ("precision@5", "precision@5"),
        ("precision@5[relevant=4]", "precision@5"),
        ("precision[relevant=3.5]", "precision[relevant=3.5]"),
        ("precision@5[relevant=0]", "precision@5[relevant=0]"),
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
        ("", "cannot read ''"),
    ],
)
def test_a_bad_name_says_what_is_wrong_with_it(text, message):
    with pytest.raises(UserError, match=message):
        metric(text)


def test_each_metric_is_listed_under_its_own_name_and_code():
    assert all(name == record.name and record.formula for name, record in METRICS.items())
    labels = [record.label for record in METRICS.values()]
    assert labels == list(METRICS)  # with nothing set, the name says it all


@pytest.mark.parametrize(
    "promise", ["expected value over all orders", "behind all others", "left out", "Mean over users"]
)
def test_the_rules_are_spelt_out_for_every_table(promise):
    assert promise in RULES
