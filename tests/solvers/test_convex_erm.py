"""Convex risk minimisation compared with a dense NumPy solver, and its certificate."""

from itertools import islice

import numpy as np
import pytest
from solvers.contract import SolverContract

from rankbench.core.contract import Floats, Step
from rankbench.data.synthetic import BTL
from rankbench.data.views import Comparisons
from rankbench.solvers.convex_erm import ConvexERM

pytestmark = pytest.mark.slow

LOSSES = {
    "logistic": lambda margins: np.logaddexp(0, -margins),
    "squared-hinge": lambda margins: np.maximum(0, 1 - margins) ** 2,
    "smooth-hinge": lambda margins: np.where(margins < 0, 0.5 - margins, np.maximum(0, 1 - margins) ** 2 / 2),
}
each_loss = pytest.mark.parametrize("loss", list(LOSSES))

pytestmark = pytest.mark.usefixtures("as_in_the_harness")


class TestConvexERM(SolverContract):
    solver = ConvexERM(lam=2.0, corrections=3)


@pytest.mark.trust
class TestConvexERMWithSquaredHinge(SolverContract):
    solver = ConvexERM(lam=0.5, loss="squared-hinge")


class TestConvexERMByProjectionsAlone(SolverContract):
    solver = ConvexERM(loss="smooth-hinge", corrections=0)


@pytest.fixture
def train() -> Comparisons:
    """Few enough for cones: 7 users, 6 items, an eighth user and a seventh item without a comparison."""
    view = BTL(users=7, items=6, comparisons=9, rank=2).view(np.random.default_rng(1))
    return Comparisons(np.append(view.indptr, view.indptr[-1]), view.better, view.worse, 7)


def last(solver: ConvexERM, train: Comparisons, steps: int = 300) -> Step:
    *_, step = islice(solver.steps(train, np.random.default_rng(0)), steps)
    return step


def matrix_of(step: Step) -> Floats:
    return np.nan_to_num(step.model.users) @ np.nan_to_num(step.model.items).T


def risk(scores: Floats, train: Comparisons, loss: str) -> float:
    return float(LOSSES[loss](scores[train.users, train.better] - scores[train.users, train.worse]).sum())


def radius_of(train: Comparisons, lam: float) -> float:
    return float(np.sqrt(lam * len(np.unique(train.users)) * len(np.unique([train.better, train.worse]))))


# another method's optimum


def by_dense_projections(train: Comparisons, lam: float, loss: str, iterations: int = 4000) -> float:
    """The optimum by accelerated projected gradients on the whole matrix, each with a whole decomposition."""
    radius, curvature = radius_of(train, lam), {"logistic": 0.25, "squared-hinge": 2.0, "smooth-hinge": 1.0}[loss]
    u, b, w = train.users, train.better, train.worse
    times = np.zeros((train.n_users, train.n_items))
    np.add.at(times, (u, b), 1)
    np.add.at(times, (u, w), 1)
    step = 1 / (2 * curvature * times.max())
    here = there = np.zeros_like(times)
    momentum = 1.0
    for _ in range(iterations):
        margins, gradient = there[u, b] - there[u, w], np.zeros_like(times)
        slopes = (LOSSES[loss](margins + 1e-6) - LOSSES[loss](margins - 1e-6)) / 2e-6
        np.add.at(gradient, (u, b), slopes)
        np.add.at(gradient, (u, w), -slopes)
        left, sizes, right = np.linalg.svd(there - step * gradient, full_matrices=False)
        if sizes.sum() > radius:
            cuts = (np.cumsum(sizes) - radius) / np.arange(1, len(sizes) + 1)
            sizes = np.maximum(0, sizes - cuts.max())
        moved, following = left * sizes @ right, (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        if ((there - moved) * (moved - here)).sum() > 0:  # it turned back: start the momentum anew
            momentum = following = 1.0
        there = moved + (momentum - 1) / following * (moved - here)
        here, momentum = moved, following
    return risk(here, train, loss)


@each_loss
@pytest.mark.parametrize("lam", [0.05, 6.0])
def test_the_objective_is_that_of_a_dense_solver(loss, lam):
    train = BTL(users=16, items=12, comparisons=20).view(np.random.default_rng(2))
    expected = by_dense_projections(train, lam, loss)
    assert last(ConvexERM(lam, loss), train).objective() == pytest.approx(expected, rel=1e-6)


# the certificate


@each_loss
@pytest.mark.parametrize("corrections", [0, 7])
def test_objective_gap_and_radius_are_those_of_the_whole_matrix(train, loss, corrections):
    lam = 1.5
    for step in islice(ConvexERM(lam, loss, corrections).steps(train, np.random.default_rng(0)), 8):
        scores = matrix_of(step)
        assert step.objective() == pytest.approx(risk(scores, train, loss), rel=1e-10)
        gradient, nudge = np.zeros_like(scores), 1e-6
        for index in np.ndindex(scores.shape):
            ahead, behind = scores.copy(), scores.copy()
            ahead[index], behind[index] = scores[index] + nudge, scores[index] - nudge
            gradient[index] = (risk(ahead, train, loss) - risk(behind, train, loss)) / (2 * nudge)
        expected = (gradient * scores).sum() + radius_of(train, lam) * np.linalg.norm(gradient, 2)
        assert step.gap() == pytest.approx(expected, rel=1e-4, abs=1e-4)
        assert np.linalg.norm(scores, "nuc") <= radius_of(train, lam) * (1 + 1e-9)


@pytest.mark.trust
@each_loss
@pytest.mark.parametrize("lam", [0.1, 3.0])
def test_the_gap_closes_on_more_users_and_items_than_lanczos_is_spared(loss, lam):
    train = BTL(users=90, items=60, comparisons=60).view(np.random.default_rng(3))
    step = last(ConvexERM(lam, loss), train)
    assert 0 <= step.gap() <= 1e-6 * step.objective()


@pytest.mark.parametrize("items", [50, 41, 40, 12, 2])
def test_the_largest_singular_value_is_that_of_numpy(items):
    train = BTL(users=60, items=items, comparisons=30).view(np.random.default_rng(4))
    start = next(ConvexERM(1.0).steps(train, np.random.default_rng(0)))
    gradient = np.zeros((60, items))  # at X = 0 every slope is -1/2
    np.add.at(gradient, (train.users, train.better), -0.5)
    np.add.at(gradient, (train.users, train.worse), 0.5)
    assert start.gap() == pytest.approx(radius_of(train, 1.0) * np.linalg.norm(gradient, 2), rel=1e-9)


def test_a_radius_that_binds_nobody_leaves_no_loss_where_tastes_agree_with_themselves():
    train = Comparisons.from_triples([0, 0, 1, 2], [0, 1, 2, 0], [1, 2, 0, 2])
    step = last(ConvexERM(1e4, "squared-hinge"), train)
    assert step.objective() == pytest.approx(0, abs=1e-10)
    assert np.linalg.norm(matrix_of(step), "nuc") < radius_of(train, 1e4) / 2


def test_steps_on_factors_get_further_than_as_many_projections():
    train = BTL(users=60, items=40, comparisons=40).view(np.random.default_rng(5))
    with_factors, alone = (last(ConvexERM(30.0, corrections=c), train, 12).objective() for c in (10, 0))
    assert with_factors < alone


def test_idle_users_and_items_change_nothing_and_have_no_score(train):
    fewer = Comparisons(train.indptr[:-1], train.better, train.worse, train.n_items - 1)
    assert last(ConvexERM(1.0), fewer).objective() == pytest.approx(last(ConvexERM(1.0), train).objective(), rel=1e-9)
    scores = last(ConvexERM(1.0), train).model.score([0, 7, 0], [0, 0, 6])
    np.testing.assert_array_equal(np.isnan(scores), [False, True, True])
