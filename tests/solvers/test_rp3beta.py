"""RP3beta: the probabilities of a walk of three steps, and what popularity takes off."""

import numpy as np
import pytest
from solvers.contract import SolverContract, ratings

from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.solvers.rp3beta import RP3Beta


class TestRP3Beta(SolverContract):
    solver = RP3Beta(neighbours=10)


def rated(train: Ratings, least: float) -> np.ndarray:
    """users x items: whether the user rated the item with at least `least`."""
    out = np.zeros((train.n_users, train.n_items))
    kept = train.values >= least
    out[train.users[kept], train.items[kept]] = 1.0
    return out


def by_formula(x: np.ndarray, alpha: float, beta: float, neighbours: int) -> np.ndarray:
    """The scores of all pairs, by the definition, from dense matrices of transition probabilities."""
    of_user, of_item = (np.maximum(1, x.sum(axis=axis)) for axis in (1, 0))
    to_user = x.T / of_item[:, None] ** alpha
    to_item = x / of_user[:, None] ** alpha
    weights = to_user @ to_item / of_item**beta
    np.fill_diagonal(weights, 0)
    for row in weights:
        row[np.argsort(-np.round(row / row.max(initial=1e-300), 13), kind="stable")[neighbours:]] = 0
    return x @ weights


@pytest.mark.parametrize("neighbours", [1, 7, 1000])
@pytest.mark.parametrize(
    ("alpha", "beta", "least"), [(1.0, 0.5, None), (0.4, 0.0, 1.0), (0.0, 1.3, None), (2.0, 1.0, 1.0)]
)
def test_scores_are_those_of_the_definition(alpha, beta, least, neighbours):
    train = ratings()
    scores = fit(RP3Beta(alpha, beta, neighbours, least), train).score_all(np.arange(train.n_users), 2)
    expected = by_formula(rated(train, -np.inf if least is None else least), alpha, beta, neighbours)
    known = np.bincount(train.items, minlength=train.n_items) > 0
    np.testing.assert_allclose(scores[:, known], expected[:, known], atol=1e-12)
    assert np.isnan(scores[:, ~known]).all() and not known.all()


def test_the_walk_ends_where_its_probability_says():
    users, items = np.array([0, 0, 1, 1, 1, 2]), np.array([0, 1, 1, 2, 3, 2])
    train = Ratings.from_triples(users, items, np.ones(6), 3, 4)
    scores = fit(RP3Beta(alpha=1.0, beta=0.0), train).score_all(np.array([0]))[0]
    # From item 1 half of all steps go to user 1, and from there a third each to the items 1, 2 and 3.
    np.testing.assert_allclose(scores[2:], [1 / 6, 1 / 6], atol=1e-15)
    less = fit(RP3Beta(alpha=1.0, beta=1.0), train).score_all(np.array([0]))[0]
    assert less[3] == 2 * less[2]  # two users rated item 2, and one rated item 3
