"""Each loss compared with its derivatives and its dual, and the kernels' loss codes compared with the Python losses."""

from typing import get_args

import numpy as np
import pytest

from rankbench.data.views import Comparisons
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.shared.losses import Loss as Code
from rankbench.kernels.solvers import global_ranking, sgd
from rankbench.methods.entries import ComparedEntries
from rankbench.methods.factors import total_loss
from rankbench.methods.losses import BY_NAME, CODES, DUALS, LOSSES, DualLoss

MARGINS = np.array([-3.1, -0.97, -0.4, -0.03, 0.3, 0.9, 1.2, 5.0])
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
each_margin = pytest.mark.parametrize("margin", MARGINS)


def test_every_code_of_the_kernels_has_one_loss():
    assert sorted(CODES.values()) == sorted(Code)
    assert all(CODES[loss.name] is loss.code for loss in LOSSES)


@each_loss
def test_slopes_and_curvatures_are_derivatives(loss):
    ahead, behind = MARGINS + 1e-6, MARGINS - 1e-6
    np.testing.assert_allclose(loss.slope(MARGINS), (loss.value(ahead) - loss.value(behind)) / 2e-6, atol=1e-8)
    np.testing.assert_allclose(loss.curvature(MARGINS), (loss.slope(ahead) - loss.slope(behind)) / 2e-6, atol=1e-8)


@pytest.mark.parametrize("name", DUALS)
def test_a_loss_is_the_largest_value_of_its_dual(name):
    dual = DUALS[name]
    a = np.linspace(0, min(dual.upper, 10), 100_001)
    largest = [(a * (1 - margin) - dual.ridge / 2 * a**2).max() for margin in MARGINS]
    np.testing.assert_allclose(BY_NAME[name].value(MARGINS), largest, atol=1e-8)


def test_the_losses_with_a_dual_are_those_that_solvers_in_the_dual_take():
    assert set(DUALS) == set(get_args(DualLoss))


def one_user(margin: float) -> tuple[Comparisons, np.ndarray]:
    """A user who prefers item 0 to item 1, and scores with this margin."""
    return Comparisons.from_triples([0], [0], [1], n_users=1, n_items=2), np.array([margin, 0.0])


@each_loss
@each_margin
def test_kernels_of_factors_compute_the_loss_of_this_name(loss, margin):
    train, scores = one_user(margin)
    users, items = np.eye(1, 4), np.zeros((2, 4))
    items[:, 0] = scores
    found = total_loss(CODES[loss.name], train.rows, users, items, 1)
    assert found == pytest.approx(float(loss.value(margin)), rel=1e-12)


@each_loss
@each_margin
def test_kernels_of_descent_go_down_the_slope_of_this_name(loss, margin):
    train, scores = one_user(margin)
    users, items = np.eye(1, 4), np.zeros((2, 4))
    items[:, 0] = scores
    factors = DescentFactors(
        users=users,
        items=items,
        user_shrink=np.zeros(1),
        item_shrink=np.zeros(2),
        step=0.5,
        decay=0.0,
    )
    descent = sgd.Descent(factors=factors, loss=loss.code)
    sgd.serial_pass(descent=descent, comparisons=train.rows, updates=0, rng=np.random.default_rng(0))
    np.testing.assert_allclose(items[:, 0], scores - 0.5 * loss.slope(margin) * np.array([1, -1]), rtol=1e-12)


@each_loss
@each_margin
def test_kernels_of_entries_compute_the_loss_of_this_name(loss, margin):
    train, scores = one_user(margin)
    value, slopes = ComparedEntries.of(train, 1).slopes(loss.name, scores)
    assert value == pytest.approx(float(loss.value(margin)), rel=1e-12)
    np.testing.assert_allclose(slopes, loss.slope(margin) * np.array([1, -1]), rtol=1e-12)


@each_loss
@each_margin
@pytest.mark.parametrize(("won", "lost"), [(1, 0), (0, 1), (3, 2)])
def test_kernels_of_item_scores_compute_the_loss_of_this_name(loss, margin, won, lost):
    """Item 0 won against item 1 and lost to it so often: the loss and both derivatives are the sums over them."""
    outcome = np.array([0] * won + [1] * lost, np.int32)
    meets = global_ranking.Tournament(better=outcome, worse=1 - outcome, n_items=2)
    totals, curvature = np.empty((3, 2)), np.empty(2)
    global_ranking.sweep(
        loss=loss.code,
        tournament=meets,
        scores=np.array([margin, 0.0]),
        totals=totals,
        curvature=curvature,
        threads=1,
    )
    losses, gradient, diagonal = totals
    slope = won * loss.slope(margin) - lost * loss.slope(-margin)
    bend = won * loss.curvature(margin) + lost * loss.curvature(-margin)
    assert losses.sum() == pytest.approx(float(won * loss.value(margin) + lost * loss.value(-margin)), rel=1e-12)
    np.testing.assert_allclose(gradient, slope * np.array([1, -1]), rtol=1e-12)
    np.testing.assert_allclose(diagonal, bend * np.ones(2), rtol=1e-12)
    np.testing.assert_array_equal(curvature, diagonal)


@each_loss
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 63, 64, 65, 67, 130])
def test_kernels_look_at_many_margins_as_at_one(loss, n):
    """Item 0 is compared with n others: each of its margins by several kernels, which look at 64 at a time at most."""
    margins, others = np.random.default_rng(n).normal(0, 2, n), np.arange(1, n + 1)
    scores = np.concatenate([[0.0], -margins])
    train = Comparisons.from_triples(np.zeros(n, int), np.zeros(n, int), others, n_users=1, n_items=n + 1)
    value, slopes = ComparedEntries.of(train, 1).slopes(loss.name, scores)
    np.testing.assert_allclose([value, slopes[0]], [loss.value(margins).sum(), loss.slope(margins).sum()], rtol=1e-11)
    np.testing.assert_allclose(slopes[1:], -loss.slope(margins), rtol=1e-12)
    items = np.column_stack([scores, np.zeros((n + 1, 3))])
    assert total_loss(loss.code, train.rows, np.eye(1, 4), items, 1) == pytest.approx(value, rel=1e-12)

    meets = global_ranking.Tournament(better=train.better, worse=train.worse, n_items=n + 1)
    totals, curvature = np.empty((3, n + 1)), np.empty(2 * n)
    global_ranking.sweep(loss=loss.code, tournament=meets, scores=scores, totals=totals, curvature=curvature, threads=1)
    assert totals[0].sum() == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(totals[1], slopes, rtol=1e-11)
    np.testing.assert_allclose(totals[2, 1:], loss.curvature(margins), rtol=1e-12)
    np.testing.assert_array_equal(curvature, np.concatenate([totals[2, 1:], totals[2, 1:]]))
