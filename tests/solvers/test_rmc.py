"""Retargeted matrix completion against dense singular value decompositions and SciPy's isotonic regression."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from solvers.completion import dense_optimum, last, slow_projection, some_ratings
from solvers.contract import SolverContract, ratings

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.data.synthetic import LowRank, PartialOrders
from rankbench.data.views import Comparisons, Ratings
from rankbench.execution.training import fit
from rankbench.solvers.rmc import RMC

pytestmark = pytest.mark.slow

pytestmark = pytest.mark.usefixtures("as_in_the_harness")


class TestRMC(SolverContract):
    solver = RMC(lam=2.0)


class TestRMCFromComparisons(SolverContract):
    solver = RMC(lam=2.0)

    @pytest.fixture
    def train(self) -> Comparisons:
        """All pairs that the contract's ratings imply."""
        return replace(ratings().comparisons(), item_features=None)


@pytest.fixture(scope="module")
def reference() -> tuple[Ratings, float, Floats]:
    """Ratings, and the optimal value and matrix for lam = 4."""
    train = some_ratings()
    return train, *dense_optimum(train, 4.0, slow_projection(train))


def test_the_optimum_is_that_of_a_dense_reference(reference):
    train, expected, matrix = reference
    step = last(RMC(lam=4.0, tolerance=1e-8), train, threads=2)
    assert step.objective() == pytest.approx(expected, rel=1e-6)
    assert 0 <= step.gap() <= 1e-8 * expected
    found = step.model.score(train.users, train.items)
    np.testing.assert_allclose(found, matrix[train.users, train.items], atol=1e-2)


def test_a_gap_is_never_less_than_the_distance_from_the_dense_optimum(reference):
    train, expected, _ = reference
    gaps = []
    for step in islice(RMC(lam=4.0).steps(train, np.random.default_rng(0)), 40):
        assert step.objective() - expected <= step.gap() * (1 + 1e-9)
        gaps.append(step.gap() / step.objective())
    assert gaps[-1] < 1e-3 < gaps[0]


def test_the_first_step_moves(reference):
    """From z = 0 it would not: the retargeted values of X = 0 are a margin apart."""
    train, _, _ = reference
    start, first = (step.objective() for step in islice(RMC(lam=4.0).steps(train, np.random.default_rng(0)), 2))
    assert first < 0.95 * start


def test_only_the_ratio_of_penalty_and_margin_matters():
    """Proposition 1: (lam, gamma eps) gives gamma times what (lam / gamma, eps) gives."""
    train = some_ratings()
    wide, narrow = last(RMC(lam=8.0, eps=2.0), train), last(RMC(lam=4.0, eps=1.0), train)
    pairs = train.users, train.items
    np.testing.assert_allclose(wide.model.score(*pairs), 2 * narrow.model.score(*pairs), atol=1e-9)
    assert wide.objective() == pytest.approx(4 * narrow.objective())


def test_all_pairs_of_strict_ratings_are_the_same_problem_as_the_ratings():
    train = LowRank(users=30, items=25, per_user=12, levels=0).view(np.random.default_rng(1))
    by_blocks = last(RMC(lam=2.0, tolerance=1e-7), train)
    by_graphs = last(RMC(lam=2.0, tolerance=1e-7), train.comparisons())
    assert by_graphs.objective() == pytest.approx(by_blocks.objective(), rel=1e-7)
    assert by_graphs.gap() <= 1e-7 * by_graphs.objective()


def test_partial_orders_reach_a_closed_gap_the_same_on_any_number_of_threads():
    train = PartialOrders(users=60, items=40, per_user=12).view(np.random.default_rng(2))
    ends = [last(RMC(lam=3.0), train, threads) for threads in (1, 2, 3)]
    assert ends[0].gap() <= 1e-5 * ends[0].objective()
    assert len({end.model.users.tobytes() for end in ends}) == 1
    ahead = ends[0].model.score(train.users, train.better) - ends[0].model.score(train.users, train.worse)
    assert np.mean(ahead > 0) > 0.9


@pytest.mark.parametrize("continuation", [False, True])
@pytest.mark.parametrize("source", [LowRank(users=20, items=15, per_user=8), PartialOrders(30, 40, per_user=15)])
def test_a_share_of_the_largest_penalty_is_that_penalty_to_the_last_bit(source, continuation):
    view = source.view(np.random.default_rng(1))
    by_share = RMC(share=0.2, continuation=continuation)
    by_lam = RMC(lam=0.2 * by_share.completion(view, 1).largest, continuation=continuation)
    one, other = (fit(solver, view, steps=30) for solver in (by_share, by_lam))
    assert one.users.tobytes() == other.users.tobytes() and one.items.tobytes() == other.items.tobytes()


def test_a_user_with_no_order_is_free_and_scores_zero():
    users, items = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 0])
    train = Ratings.from_triples(users, items, np.array([1.0, 5.0, 3.0, 3.0, 4.0]), 3, 2)
    model = last(RMC(lam=0.1), train).model
    assert model.score(np.array([1, 1, 2]), np.array([0, 1, 0])).tolist() == [0.0, 0.0, 0.0]
    low, high = model.score(np.array([0, 0]), np.array([0, 1]))
    assert high - low > 0.5


def test_a_circle_of_comparisons_is_named_by_its_items():
    train = Comparisons.from_triples(
        np.array([4, 4, 4, 5]), np.array([30, 10, 20, 1]), np.array([10, 20, 30, 2]), 6, 40
    )
    with pytest.raises(UserError, match=r"user 4 contains a cycle: (10 < 30 < 20 < 10|30 < 20 < 10|20 < 10 < 30)"):
        fit(RMC(), train, steps=1)


def test_graphs_as_levels_are_the_ratings_by_their_longest_chains():
    better, worse = np.array([1, 2, 2, 4]), np.array([0, 1, 3, 3])
    train = Comparisons.from_triples(np.zeros(4, int), better, worse, 1, 5)
    levels = Ratings.from_triples(np.zeros(5, int), np.arange(5), np.array([0.0, 1.0, 2.0, 0.0, 1.0]), 1, 5)
    expected = last(RMC(lam=0.1), levels)
    found = last(RMC(lam=0.1, graphs="as-levels"), train)
    assert found.objective() == expected.objective()
    np.testing.assert_array_equal(found.model.items, expected.model.items)
