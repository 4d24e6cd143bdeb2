"""Standard matrix completion against dense singular value decompositions."""

from itertools import islice

import numpy as np
import pytest
from solvers.completion import dense_optimum, last, some_ratings
from solvers.contract import SolverContract

from rankbench.data.views import Ratings
from rankbench.solvers.smc import SMC

pytestmark = pytest.mark.slow

pytestmark = pytest.mark.usefixtures("as_in_the_harness")


class TestSMC(SolverContract):
    solver = SMC(lam=2.0)


class TestCentredSMC(SolverContract):
    solver = SMC(lam=2.0, centred=True)


@pytest.mark.parametrize("centred", [False, True])
def test_the_optimum_is_that_of_a_dense_reference(centred):
    train = some_ratings()
    solver = SMC(lam=8.0, centred=centred, tolerance=1e-8)
    means = np.array([train.values[train.users == user].mean() for user in range(train.n_users)]) * centred
    targets = train.values - means[train.users]
    expected, matrix = dense_optimum(train, 8.0, lambda x: targets)
    step = last(solver, train)
    assert step.objective() == pytest.approx(expected, rel=1e-6)
    assert 0 <= step.gap() <= 1e-8 * expected
    scores = step.model.score(train.users, train.items)
    np.testing.assert_allclose(scores, (matrix + means[:, None])[train.users, train.items], atol=1e-2)


@pytest.mark.trust
def test_a_gap_is_never_less_than_the_distance_from_the_dense_optimum():
    train = some_ratings()
    expected, _ = dense_optimum(train, 8.0, lambda x: train.values)
    for step in islice(SMC(lam=8.0).steps(train, np.random.default_rng(0)), 40):
        assert step.objective() - expected <= step.gap() * (1 + 1e-9)
        assert step.gap() <= step.objective()


def test_an_item_that_nobody_rated_scores_zero_or_the_users_mean():
    train = Ratings.from_triples(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([1.0, 4.0, 5.0]), 3, 4)
    unseen = np.array([0, 1, 2]), np.array([3, 3, 3])
    assert last(SMC(lam=0.1), train).model.score(*unseen).tolist() == [0.0, 0.0, 0.0]
    assert last(SMC(lam=0.1, centred=True), train).model.score(*unseen).tolist() == [2.5, 5.0, 0.0]
