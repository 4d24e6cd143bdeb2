"""EASE: the closed form is the best of all weights with a zero diagonal."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from solvers.contract import SolverContract, ratings

from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.models import load, save
from rankbench.solvers.ease import EASE
from rankbench.solvers.item_knn import ItemKNN
from rankbench.solvers.slim import SLIM


class TestEASE(SolverContract):
    solver = EASE(lam=5.0)


class TestEASEOfCentredRatings(SolverContract):
    solver = EASE(lam=5.0, values="centred")


class TestEASEOfNeighbours(SolverContract):
    solver = EASE(lam=5.0, neighbours=4)


def known(train: Ratings, centred: bool = False) -> np.ndarray:
    """users x rated items: ones, or ratings less the user's mean."""
    out = np.zeros((train.n_users, train.n_items))
    out[train.users, train.items] = 1.0
    if centred:
        means = np.bincount(train.users, train.values, train.n_users) / np.maximum(1, np.diff(train.indptr))
        out[train.users, train.items] = train.values - means[train.users]
    return out[:, np.unique(train.items)]


@pytest.mark.parametrize("values", ["binary", "centred"])
def test_each_column_is_a_ridge_regression_on_the_other_items(values):
    train = ratings()
    weights = fit(EASE(lam=7.0, values=values), train).weights
    x = known(train, values == "centred")
    for item in (0, 5, x.shape[1] - 1):
        others = np.arange(x.shape[1]) != item
        oracle = Ridge(alpha=7.0, fit_intercept=False, solver="svd").fit(x[:, others], x[:, item])
        np.testing.assert_allclose(weights[others, item], oracle.coef_, atol=1e-10)
        assert weights[item, item] == 0


def test_it_is_the_formula_of_the_paper():
    train = ratings()
    x = known(train)
    inverse = np.linalg.inv(x.T @ x + 3.0 * np.eye(x.shape[1]))
    expected = np.eye(x.shape[1]) - inverse @ np.diag(1 / np.diag(inverse))
    model = fit(EASE(lam=3.0), train)
    np.testing.assert_allclose(model.weights, expected, atol=1e-12)
    scores = model.score_all(np.arange(train.n_users), 2)[:, np.unique(train.items)]
    np.testing.assert_allclose(scores, x @ expected, atol=1e-10)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("values", ["binary", "ratings", "centred"])
@pytest.mark.parametrize("neighbours", [1, 3, 500])
def test_each_column_is_a_ridge_regression_on_the_nearest_items(values, neighbours):
    train = ratings()
    weights = fit(EASE(lam=7.0, values=values, neighbours=neighbours), train, threads=2).weights.toarray()
    x = known(train) if values != "centred" else known(train, centred=True)
    if values == "ratings":
        x[x > 0] = train.values
    norms = np.linalg.norm(x, axis=0)
    cosines = (x.T @ x) / np.outer(norms, norms)
    np.fill_diagonal(cosines, -1.0)
    for item in range(x.shape[1]):
        order = np.argsort(-cosines[item], kind="stable")[:neighbours]
        nearest = order[cosines[item, order] > 1e-14]
        assert set(np.flatnonzero(weights[:, item])) <= set(nearest.tolist())
        if len(nearest):
            oracle = Ridge(alpha=7.0, fit_intercept=False, solver="svd").fit(x[:, nearest], x[:, item])
            np.testing.assert_allclose(weights[nearest, item], oracle.coef_, atol=1e-10)


def test_with_all_items_as_neighbours_it_is_the_closed_form():
    x = np.random.default_rng(0).random((40, 12)) < 0.7
    train = Ratings.from_triples(*np.nonzero(x), np.ones(x.sum()), 40, 12)
    whole, few = (fit(EASE(lam=3.0, neighbours=most), train).weights for most in (None, 11))
    np.testing.assert_allclose(few.toarray(), whole, atol=1e-12)


def test_items_without_a_rating_have_no_score():
    train = ratings()
    scores = fit(EASE(), train).score_all(np.array([3]))[0]
    assert np.array_equal(np.isnan(scores), np.bincount(train.items, minlength=train.n_items) == 0)


def test_a_penalty_that_rounding_swallows_is_named():
    users, items = np.divmod(np.arange(3 * 40), 40)
    train = Ratings.from_triples(users, items, np.full(120, 1e8))
    with pytest.raises(UserError, match=r"EASE: the Gram matrix of the items is singular to rounding: .*raise lam"):
        fit(EASE(lam=1e-12, values="ratings"), train)
    with pytest.raises(UserError, match=r"EASE: the Gram matrix of item 0's neighbours is singular to rounding: "):
        fit(EASE(lam=1e-12, values="ratings", neighbours=30), train)


@pytest.mark.parametrize("solver", [EASE(), ItemKNN(), SLIM()], ids=repr)
def test_without_any_rating_no_item_has_a_score_and_the_model_can_be_saved(solver, tmp_path):
    nothing = Ratings.from_triples(np.array([], int), np.array([], int), np.array([]), 2, 3)
    save(fit(solver, nothing), tmp_path / "model.npz")
    assert np.isnan(load(tmp_path / "model.npz").score_all(np.array([0, 1]))).all()
