"""Each loss compared with its derivatives, and the kernels' loss codes compared with the Python losses."""

import numpy as np
import pytest

from rankbench.data.views import Comparisons
from rankbench.kernels.solvers import global_ranking
from rankbench.methods.entries import ComparedEntries
from rankbench.methods.factors import total_loss
from rankbench.methods.losses import LOSSES, OF_ENTRIES, OF_FACTORS, OF_ITEMS

MARGINS = np.array([-3.1, -0.4, 0.3, 0.9, 1.2, 5.0])
NAMED = {loss.name: loss for loss in LOSSES}


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_slopes_and_curvatures_are_derivatives(loss):
    ahead, behind = MARGINS + 1e-6, MARGINS - 1e-6
    np.testing.assert_allclose(loss.slope(MARGINS), (loss.value(ahead) - loss.value(behind)) / 2e-6, atol=1e-8)
    np.testing.assert_allclose(loss.curvature(MARGINS), (loss.slope(ahead) - loss.slope(behind)) / 2e-6, atol=1e-8)


def one_user(margin: float) -> tuple[Comparisons, np.ndarray]:
    """A user who prefers item 0 to item 1, and scores with this margin."""
    return Comparisons.from_triples([0], [0], [1], n_users=1, n_items=2), np.array([margin, 0.0])


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("name", OF_FACTORS)
def test_kernels_of_factors_compute_the_loss_of_this_name(name, margin):
    train, scores = one_user(margin)
    rows = train.indptr, train.better, train.worse
    found = total_loss(OF_FACTORS[name], rows, np.ones((1, 1)), scores[:, None].copy(), 1)
    assert found == pytest.approx(float(NAMED[name].value(margin)), rel=1e-12)


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("name", OF_ENTRIES)
def test_kernels_of_entries_compute_the_loss_of_this_name(name, margin):
    train, scores = one_user(margin)
    value, slopes = ComparedEntries.of(train, 1).slopes(name, scores)
    assert value == pytest.approx(float(NAMED[name].value(margin)), rel=1e-12)
    np.testing.assert_allclose(slopes, NAMED[name].slope(margin) * np.array([1, -1]), rtol=1e-12)


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("name", OF_ITEMS)
def test_kernels_of_item_scores_compute_the_loss_of_this_name(name, margin):
    train, scores = one_user(margin)
    rows = global_ranking.tournament(train.better, train.worse, 2)
    losses, gradient, diagonal = np.zeros((3, 2))
    global_ranking.sweep(OF_ITEMS[name], *rows, scores, losses, gradient, diagonal, np.empty(len(rows[1])), 1)
    assert losses.sum() == pytest.approx(float(NAMED[name].value(margin)), rel=1e-12)
    np.testing.assert_allclose(gradient, NAMED[name].slope(margin) * np.array([1, -1]), rtol=1e-12)
    np.testing.assert_allclose(diagonal, NAMED[name].curvature(margin) * np.ones(2), rtol=1e-12)
