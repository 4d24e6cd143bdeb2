"""SLIM: each item's weights are a nonnegative elastic net on the other items, to a duality gap."""

from itertools import islice

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet
from solvers.contract import SolverContract, ratings

from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.solvers.slim import SLIM


class TestSLIM(SolverContract):
    solver = SLIM(l1=0.5, lam=3.0)


@pytest.mark.trust
class TestSLIMOfCentredRatings(SolverContract):
    solver = SLIM(l1=0.1, lam=3.0, values="centred")


def counts(train: Ratings, values: str) -> np.ndarray:
    """users x rated items: what each rating counts."""
    out = np.zeros((train.n_users, train.n_items))
    means = np.bincount(train.users, train.values, train.n_users) / np.maximum(1, np.diff(train.indptr))
    out[train.users, train.items] = 1.0 if values == "binary" else train.values - means[train.users]
    return out[:, np.unique(train.items)]


@pytest.mark.parametrize("values", ["binary", "centred"])
@pytest.mark.parametrize(("l1", "lam"), [(0.3, 2.0), (2.0, 1e-3)])
def test_each_column_is_an_elastic_net_on_the_other_items(values, l1, lam):
    train = ratings()
    weights = fit(SLIM(l1, lam, values), train, steps=1000).weights.toarray()
    x = counts(train, values)
    for item in (0, 5, x.shape[1] - 1):
        others = np.arange(x.shape[1]) != item
        share = dict(alpha=(l1 + lam) / len(x), l1_ratio=l1 / (l1 + lam))  # scikit-learn divides the error by the rows
        oracle = ElasticNet(**share, positive=True, fit_intercept=False, tol=1e-14, max_iter=100_000)
        np.testing.assert_allclose(weights[others, item], oracle.fit(x[:, others], x[:, item]).coef_, atol=1e-7)
        assert weights[item, item] == 0


def test_the_gap_bounds_how_far_the_objective_is_above_its_minimum():
    train = ratings()
    solver = SLIM(l1=0.1, lam=0.5)
    steps = list(islice(solver.steps(train, np.random.default_rng(0)), 2000))
    lowest = steps[-1].objective()
    assert steps[-1].gap() <= 1e-12 * lowest and len(steps) < 2000
    x = counts(train, "binary")
    for step in steps[:5]:
        w = step.model.weights.toarray()
        objective = 0.5 * ((x - x @ w) ** 2).sum() + 0.25 * (w**2).sum() + 0.1 * w.sum()
        assert step.objective() == pytest.approx(objective, rel=1e-12)
        assert step.gap() >= (step.objective() - lowest) * (1 - 1e-9)
    assert steps[0].gap() < 0.5 * x.sum()  # a dual point was found for weights of zero, too


def test_the_gap_holds_where_what_is_left_points_away_from_the_item():
    values = np.array([1.0, 0.5, 0.866, 0.866, 0.5])
    train = Ratings.from_triples(np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 1, 2]), values, 2, 3)
    steps = list(islice(SLIM(l1=1e-6, lam=1e-6, values="ratings").steps(train, np.random.default_rng(0)), 2000))
    lowest = steps[-1].objective()
    for step in steps:
        assert step.gap() >= (step.objective() - lowest) * (1 - 1e-9)


def test_a_penalty_above_all_products_leaves_no_weight():
    train = ratings()
    x = counts(train, "binary")
    products = x.T @ x
    np.fill_diagonal(products, 0)
    steps = list(SLIM(l1=float(products.max())).steps(train, np.random.default_rng(0)))
    assert len(steps) == 1 and steps[0].gap() == 0 and steps[0].model.weights.nnz == 0
    assert fit(SLIM(l1=float(products.max()) - 0.5), train).weights.nnz > 0
