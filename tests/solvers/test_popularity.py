"""Popularity: the number of raters of each item."""

import numpy as np
from solvers.contract import SolverContract

from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.solvers.popularity import Popularity


class TestPopularity(SolverContract):
    solver = Popularity()


def test_an_items_score_is_the_number_of_its_raters_whatever_they_gave():
    users, items, values = [0, 0, 1, 1, 2], [0, 1, 1, 3, 1], [5.0, 1.0, 1.0, 5.0, 2.0]
    train = Ratings.from_triples(np.array(users), np.array(items), np.array(values), 3, 4)
    for user in range(3):
        scores = fit(Popularity(), train).score(np.full(4, user), np.arange(4))
        assert np.array_equal(scores, [1, 3, np.nan, 1], equal_nan=True)
