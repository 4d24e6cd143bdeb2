"""Solvers, splits and metrics as scikit-learn takes them: recommenders of pairs, and RankSVM with queries."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import rankbench
from rankbench.core.errors import UserError
from rankbench.data.splits import split
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.metrics import evaluate
from rankbench.sklearn import ProtocolSplit, RankSVM, Recommender, scorer
from rankbench.solvers import SOLVERS
from rankbench.solvers.ranksvm_joint import RankSVMJoint


@pytest.fixture(scope="module")
def ratings() -> tuple[np.ndarray, np.ndarray, Ratings]:
    """Pairs of ids, a rating for each, in an order of chance, and the same as rankbench has them."""
    view = rankbench.load("low-rank[users=30,items=40,per_user=20]")
    order = np.random.default_rng(0).permutation(len(view))
    pairs = np.column_stack([view.users, view.items])[order] + 100
    return pairs, view.values[order], view


TWO = "X has two columns, of users and of items, and the check gives others"
EXPECTED = dict.fromkeys(
    [
        "check_dict_unchanged", "check_dont_overwrite_parameters", "check_dtype_object", "check_estimators_dtypes",
        "check_estimators_nan_inf", "check_estimators_pickle", "check_f_contiguous_array_estimator",
        "check_fit2d_1feature", "check_fit2d_1sample", "check_fit2d_predict1d", "check_fit_score_takes_y",
        "check_methods_sample_order_invariance", "check_methods_subset_invariance", "check_n_features_in",
        "check_n_features_in_after_fitting", "check_pipeline_consistency", "check_positive_only_tag_during_fit",
    ],
    TWO,
) | {"check_no_attributes_set_in_init": "settings, which are parameters, are kept together"}  # fmt: skip


@parametrize_with_checks(
    [RankSVM(C=10.0), Recommender("mf", steps=2, random_state=0)],
    expected_failed_checks=lambda estimator: EXPECTED if isinstance(estimator, Recommender) else {},
)
def test_scikit_learn_takes_it_for_an_estimator(estimator, check):
    check(estimator)


def test_what_scikit_learn_does_not_take_is_what_is_named():
    found = check_estimator(Recommender("mf", steps=2, random_state=0), on_fail=None, on_skip=None)
    assert {one["check_name"] for one in found if one["status"] == "failed"} == set(EXPECTED)


@pytest.mark.parametrize("name", [name for name in SOLVERS.names() if "-" not in name])
def test_a_solver_is_a_parameter_that_clone_takes(name):
    solver = SOLVERS.make(name)
    assert clone(solver) is solver
    assert SOLVERS.find(name)(**solver.get_params()) == solver
    assert pickle.loads(pickle.dumps(solver)) == solver


def test_a_recommender_scores_as_its_solver_does(ratings):
    pairs, y, view = ratings
    made = Recommender("mf", rank=3, lam=2.0, steps=4, random_state=7).fit(pairs, y)
    seed = int(np.random.RandomState(7).randint(2**31 - 1))
    model = fit(SOLVERS.make("mf[rank=3,lam=2]"), view, steps=4, seed=seed)
    np.testing.assert_array_equal(made.predict(pairs), model.score(pairs[:, 0] - 100, pairs[:, 1] - 100))
    assert np.isnan(made.predict([[100, 5000], [3, 100]])).all()
    assert made.score(pairs, y) == pytest.approx(evaluate(model, view, ["pairwise-accuracy"])["pairwise-accuracy"])


def test_ids_may_be_texts_in_a_frame(ratings):
    pairs, y, _ = ratings
    frame = pd.DataFrame({"user": [f"u{one}" for one in pairs[:, 0]], "item": [f"i{one}" for one in pairs[:, 1]]})
    texts, numbers = (Recommender("mf", rank=2, random_state=0).fit(one, y) for one in (frame, pairs))
    np.testing.assert_array_equal(texts.predict(frame), numbers.predict(pairs))


def test_its_parameters_are_those_of_its_solver():
    made = Recommender("sgd", rank=3)
    assert made.get_params()["rank"] == 3 and "loss" in made.get_params()
    assert clone(made).get_params() == made.get_params()
    assert made.set_params(lam=9.0, steps=3).get_params()["lam"] == 9 and made.steps == 3
    assert made.set_params(solver="mf").get_params()["rank"] == SOLVERS.make("mf").rank


def test_wrong_settings_are_named_and_change_nothing(ratings):
    pairs, y, _ = ratings
    made = Recommender("sgd", rank=3)
    with pytest.raises(UserError, match="unknown setting of sgd: 'lamb'; did you mean 'lam'"):
        made.set_params(steps=3, lamb=1)
    assert made.get_params() == Recommender("sgd", rank=3).get_params()
    with pytest.raises(UserError, match="unknown setting of mf: 'curvature'"):
        Recommender("mf", curvature=1).fit(pairs, y)
    with pytest.raises(UserError, match="rank=0 is out of range"):
        made.set_params(rank=0).fit(pairs, y)
    with pytest.raises(UserError, match="unknown solver 'sgdd'; did you mean 'sgd'"):
        made.set_params(solver="sgdd").fit(pairs, y)
    with pytest.raises(UserError, match=r"the solver 'mf\[rank=3\]' has settings in its name; pass settings as param"):
        Recommender("mf[rank=3]").fit(pairs, y)


def test_a_fit_that_fails_leaves_the_recommender_as_it_was(ratings):
    pairs, y, _ = ratings
    made = Recommender("mf", rank=0)
    with pytest.raises(UserError, match="rank=0 is out of range"):
        made.fit(pairs, y)
    for ask in (lambda: made.predict(pairs), lambda: made.score(pairs, y)):
        with pytest.raises(NotFittedError):
            ask()
    made = Recommender("mf", rank=2, random_state=0).fit(pairs, y)
    before = made.predict(pairs)
    with pytest.raises(UserError, match="rank=0 is out of range"):
        made.set_params(rank=0).fit(pairs[:9] + 1, y[:9])
    np.testing.assert_array_equal(made.predict(pairs), before)


def test_wrong_ids_are_named(ratings):
    pairs, y, _ = ratings
    with pytest.raises(UserError, match="ids of users contain NaN or None; leave these rows out"):
        Recommender().fit([[np.nan, 1], [2, 3]], [1, 2])
    with pytest.raises(UserError, match="ids of items are int and str; give numbers, or texts"):
        Recommender().fit(pd.DataFrame({"user": [1, 2], "item": ["a", 3]}), [1, 2])
    with pytest.raises(UserError, match="user 1 rates item 2 twice; keep one of the two rows"):
        Recommender().fit([[1, 2], [1, 3], [1, 2]], [1, 2, 3])
    with pytest.raises(UserError, match="user u0 rates item i27 twice"):
        Recommender().fit([["u0", "i27"], ["a", "i1"], ["u0", "i27"]], [1, 2, 3])
    made = Recommender(random_state=0).fit(pairs, y)
    with pytest.raises(UserError, match="ids of users are like '100', and those trained on are like 100"):
        made.predict([["100", "101"]])
    with pytest.raises(UserError, match="none of these pairs is of a user and an item that were trained on"):
        made.score([[5000, 100], [5001, 100]], [1, 2])
    mixed = pd.DataFrame({"user": [1, 2.5], "item": ["a", "b"]}, dtype=object)
    assert np.isfinite(Recommender(random_state=0).fit(mixed, [1, 2]).predict(mixed)).all()


def test_a_search_with_splits_and_metrics_is_what_rankbench_measures(ratings):
    pairs, y, view = ratings
    search = GridSearchCV(
        Recommender("mf", steps=3, random_state=1),
        {"rank": [1, 3]},
        cv=ProtocolSplit(repetitions=2),
        scoring=scorer("ndcg@10"),
    ).fit(pairs, y)
    seed = int(np.random.RandomState(1).randint(2**31 - 1))
    for place, rank in enumerate((1, 3)):
        for repetition in range(2):
            parts = split(view, "per-user[test=0.2]", repetition=repetition)
            model = fit(SOLVERS.make(f"mf[rank={rank}]"), parts.train, steps=3, seed=seed)
            expected = evaluate(model, parts.test, ["ndcg@10"])["ndcg@10"]
            assert search.cv_results_[f"split{repetition}_test_score"][place] == pytest.approx(expected, abs=1e-12)
    means = search.cv_results_["mean_test_score"]
    assert search.best_params_ == {"rank": (1, 3)[int(np.argmax(means))]} and means[0] != means[1]


@pytest.mark.parametrize(
    "within",
    [
        lambda one: one,
        make_pipeline,
        lambda one: make_pipeline(FunctionTransformer(lambda pairs: pairs + 1), make_pipeline("passthrough", one)),
        lambda one: GridSearchCV(one, {"rank": [2]}, cv=ProtocolSplit(), scoring=scorer("ndcg@5")),
        lambda one: make_pipeline(GridSearchCV(one, {"rank": [2]}, cv=ProtocolSplit(), scoring=scorer("ndcg@5"))),
    ],
)
def test_a_metric_measures_recommenders_in_pipelines_and_searches(ratings, within):
    pairs, y, view = ratings
    name = "recall@5[candidates=catalogue]"
    one = Recommender("mf", rank=2, steps=3, random_state=1)
    measured = cross_val_score(within(one), pairs, y, cv=ProtocolSplit(repetitions=1), scoring=scorer(name))
    parts = split(view, "per-user[test=0.2]")
    model = fit(SOLVERS.make("mf[rank=2]"), parts.train, steps=3, seed=int(np.random.RandomState(1).randint(2**31 - 1)))
    expected = evaluate(model, parts.test, [name], train=parts.train)[name]
    assert measured.tolist() == [pytest.approx(expected, abs=1e-12)] and expected > 0


def test_a_metric_measures_nothing_but_recommenders(ratings):
    pairs, y, _ = ratings
    with pytest.raises(UserError, match="scorer measures a Recommender, not a RankSVM"):
        scorer("ndcg@5")(RankSVM().fit(pairs, y), pairs, y)


@pytest.mark.parametrize("dtype", [object, np.uint64, "Int64"])
def test_large_numbers_are_ids_of_their_own(ratings, dtype):
    pairs, y, _ = ratings
    expected = Recommender(random_state=0).fit(pairs, y).predict(pairs)
    large = pd.DataFrame(pairs + np.int64(2**62))
    made = Recommender(random_state=0).fit(large.astype(dtype), y)
    np.testing.assert_array_equal(made.predict(large.astype(dtype)), expected)
    np.testing.assert_array_equal(made.predict(large), expected)


def test_of_an_error_less_is_better(ratings):
    pairs, y, _ = ratings
    found = cross_val_score(Recommender(random_state=0), pairs, y, cv=ProtocolSplit(), scoring=scorer("pairwise-error"))
    assert len(found) == 3 and (found < 0).all() and (found > -0.5).all()


def test_rows_of_a_split_are_those_of_x(ratings):
    pairs, y, _ = ratings
    for train, test in ProtocolSplit("n-per-user[n=10]", repetitions=2, seed=3).split(pairs, y):
        assert not set(train) & set(test) and len(train) == 10 * 30
        assert (np.bincount(pairs[train, 0] - 100) == 10).all()
    with pytest.raises(UserError, match="draws comparisons, which are no rows of X"):
        next(ProtocolSplit("binary[C=5]").split(pairs, np.ones(len(y))))


def test_wrong_pairs_are_named(ratings):
    pairs, y, _ = ratings
    with pytest.raises(UserError, match=r"X has the shape \(600, 3\); give two columns"):
        Recommender().fit(np.column_stack([pairs, y]), y)
    with pytest.raises(UserError, match="X has no rows"):
        Recommender().fit(pd.DataFrame(pairs[:0]), y[:0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Recommender().fit(pairs, y[1:])


def test_queries_are_users_of_the_joint_ranksvm():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(60, 4)), rng.permutation(np.repeat([3, 5, 9], 20))
    y = X @ np.array([1.0, -2.0, 0.0, 0.5]) + 50.0 * qid
    made = RankSVM(C=0.1).fit(X, y, qid=qid)
    view = Ratings.from_triples(np.searchsorted([3, 5, 9], qid), np.arange(60), y, item_features=X)
    model = fit(RankSVMJoint(C=0.1), view, steps=100)
    np.testing.assert_array_equal(made.predict(X), model.score(np.zeros(60, int), np.arange(60)))
    weights = made.predict(np.eye(4))
    assert weights[1] < weights[2] < weights[3] < weights[0]
    alone = RankSVM(C=0.1).fit(X, y).predict(np.eye(4))
    assert not np.allclose(alone, weights)  # without queries the levels of the queries are taken for preferences
