"""Why an item is recommended: the parts of a score add up to it, and are those that the model adds."""

import numpy as np
import pytest

import rankbench
from rankbench import Factors, ItemScores, ItemWeights, Stumps, UserError, UserWeights
from rankbench.fitted import Fitted, explanations

RATINGS = "low-rank[users=30,items=25,per_user=12]"
FEATURES = "feature-low-rank[users=20,items=40,features=6,rank=2,per_user=15]"
SOLVERS = {
    "item-knn[neighbours=5]": RATINGS,
    "ease[lam=20]": RATINGS,
    "slim[l1=0.1]": RATINGS,
    "rp3beta": RATINGS,
    "mf[rank=3]": RATINGS,
    "mf[rank=3,biases=1]": RATINGS,
    "bpr[rank=3]": RATINGS,
    "altsvm[rank=3]": RATINGS,
    "sgd[rank=2]": RATINGS,
    "global": RATINGS,
    "popularity": RATINGS,
}


def trained(solver, data):
    found = rankbench.load(data)
    return rankbench.fit(solver, found.ratings if hasattr(found, "ratings") else found)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_parts_add_up_to_the_score(solver):
    model = trained(solver, SOLVERS[solver])
    for user in (0, 7, 29):
        for item in model.recommend(user, k=4).item:
            rows = model.why(user, item, k=3)
            score = model.score_ids(user, item)[0]
            assert rows.contribution.sum() == pytest.approx(score, rel=1e-9, abs=1e-9)
            named = rows[rows.because.str.startswith("item ")]
            assert len(named) <= 3 and (named.contribution > 0).all() and named.contribution.is_monotonic_decreasing
            seen = model.seen.of_user(user)
            assert {int(text.split()[1]) for text in named.because} <= set(seen.tolist())


def test_weights_between_items_are_the_models_own():
    weights = np.array([[0.0, 2.0, 1.0], [0.5, 0.0, 3.0], [0.0, 0.0, 0.0]])
    model = ItemWeights(np.array([0, 2]), np.array([0, 1], np.int32), np.array([1.0, 4.0]), weights,
                        np.array([0, 1, 2], np.int32), np.array([0.0, 0.0, 7.0]))  # fmt: skip
    parts = explanations.explaining(model, 0, np.array([0, 1]))(2)
    assert parts.values.tolist() == [1.0, 12.0] and parts.numbers.tolist() == [0, 1]
    assert parts.others == {explanations.EVERYONE: 7.0}


@pytest.mark.parametrize("solver", ["ease[lam=1]", "item-knn", "slim[l1=0.01,lam=1]", "rp3beta"])
def test_items_that_nobody_rated_are_no_reasons(solver):
    train = rankbench.Ratings.from_triples([0, 0, 1, 1, 2, 2], [2, 3, 2, 4, 3, 4], [1.0, 2, 3, 4, 5, 6], 3, 5)
    rows = rankbench.fit(solver, train).why(0, 4)
    assert "item 2" in set(rows.because) <= {"item 2", "item 3"}


def test_a_user_whose_vector_is_a_sum_of_own_items_leaves_no_rest():
    rng = np.random.default_rng(0)
    items = rng.normal(size=(10, 4))
    shares = np.array([2.0, -1.0])
    model = Factors(np.stack([shares @ items[[3, 5]], rng.normal(size=4)]), items)
    parts = explanations.explaining(model, 0, np.array([3, 5]))(7)
    assert parts.values == pytest.approx(shares * (items[[3, 5]] @ items[7]), abs=1e-12)
    assert parts.others[explanations.REST] == pytest.approx(0, abs=1e-12)
    nothing = explanations.explaining(model, 1, np.zeros(0, np.int64))(7)
    assert nothing.others[explanations.REST] == pytest.approx(model.users[1] @ items[7], abs=1e-12)


def test_exact_half_steps_leave_no_rest():
    model = trained("mf[rank=3]", RATINGS)
    rows = model.why(0, model.recommend(0, k=1).item[0])
    rest = rows[rows.because == explanations.REST].contribution.sum()
    assert abs(rest) < 1e-8 * abs(rows.contribution).sum()


def test_a_bias_is_a_part_of_its_own():
    model = trained("mf[rank=3,biases=1]", RATINGS)
    rows = model.why(0, model.recommend(0, k=1).item[0]).because.tolist()
    assert explanations.EVERYONE in rows and explanations.USER in rows


def test_linear_functions_have_a_part_for_each_feature():
    features, weights = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]]), np.array([[5.0, -1.0, 2.0]])
    found = Fitted(UserWeights(features, weights, np.array([0.5]))).why(0, 0, k=1)
    assert found.because.tolist() == ["feature 0", explanations.USER, "all other features"]
    assert found.contribution.tolist() == [5.0, 0.5, 4.0]
    stumps = Stumps(features, np.array([0], np.int32), np.array([[0, 2]], np.int32), np.array([[0.5, 1.5]]),
                    np.array([[3.0, 1.0]]), np.array([0.25]))  # fmt: skip
    model = Fitted(stumps)
    assert model.why(0, 0).contribution.tolist() == [3.0, 1.0, 0.25]
    assert model.why(0, 0).contribution.sum() == model.score_ids(0, 0)[0]


@pytest.mark.parametrize("solver", ["frsvm[rank=2]", "ranksvm-separate", "rankboost"])
def test_parts_of_features_add_up(solver):
    found = rankbench.load(FEATURES)
    model = rankbench.fit(solver, found)
    rows = model.why(3, 5, k=4)
    assert rows.contribution.sum() == pytest.approx(model.score_ids(3, 5)[0], rel=1e-9, abs=1e-9)
    assert rows.because.str.startswith("feature ").any()


def test_what_has_no_parts_or_no_score_is_named():
    with pytest.raises(UserError, match="do not fall into parts"):
        trained("random", RATINGS).why(0, 1)
    with pytest.raises(UserError, match="no score for this user"):
        Fitted(ItemScores(np.array([1.0, np.nan]))).why(0, 1)
    with pytest.raises(UserError, match="k=0"):
        trained("popularity", RATINGS).why(0, 1, k=0)
