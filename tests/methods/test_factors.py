"""Code shared by solvers of factors, compared with NumPy on the whole matrix."""

import numpy as np
import pytest

from rankbench.data.views import Comparisons
from rankbench.methods.factors import Trained, padded, start, total_loss, whole_lanes, zero_rows
from rankbench.methods.losses import LOSSES


@pytest.mark.parametrize(("rank", "expected"), [(1, 4), (4, 4), (5, 8)])
def test_rows_are_padded_to_whole_lanes(rank, expected):
    factors = np.ones((3, rank))
    assert whole_lanes(rank) == expected and padded(factors).shape == (3, expected)
    np.testing.assert_array_equal(padded(factors)[:, :rank], factors)
    assert not padded(factors)[:, rank:].any()


@pytest.mark.parametrize("n", [0, 1, 7, 3706])
@pytest.mark.parametrize("rank", [1, 10, 64])
def test_rows_for_kernels_begin_at_a_cache_line(n, rank):
    rng, counts = np.random.default_rng(0), np.ones(n, int)
    rounded = Trained.start(start(rng, counts, rank), start(rng, counts, rank), "single")
    for rows in (zero_rows(n, rank), padded(np.ones((n, rank))), start(rng, counts, rank), rounded.users):
        assert rows.shape == (n, whole_lanes(rank, 32 // rows.itemsize)) and rows.flags.c_contiguous
        assert n == 0 or rows.ctypes.data % 64 == 0
    assert not zero_rows(n, rank).any() and zero_rows(n, rank).dtype == np.float64


def test_factors_are_copied_unless_kernels_take_them_as_they_are():
    whole = zero_rows(5, 8)
    assert padded(whole) is whole
    shifted = np.zeros(5 * 8 + 1)[1:].reshape(5, 8)
    others = (whole[:, :7], zero_rows(5, 4).view(np.float32), np.asfortranarray(whole), shifted, zero_rows(9, 8)[::2])
    for given in others:
        found = padded(given)
        assert found.ctypes.data % 64 == 0
        assert (found.dtype, found.shape, found.flags.c_contiguous) == (np.float64, (len(given), 8), True)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_losses_of_few_and_of_many_comparisons_are_those_of_numpy(loss):
    """Margins are computed four at a time, and in blocks: users have parts of these, whole ones, and several."""
    rng, counts = np.random.default_rng(0), np.array([0, 1, 3, 4, 5, 63, 64, 65, 200])
    owners, pairs = np.repeat(np.arange(len(counts)), counts), rng.integers(0, 30, (counts.sum(), 2))
    better, worse = pairs[:, 0], (pairs[:, 1] + (pairs[:, 0] == pairs[:, 1])) % 30
    users, items = rng.standard_normal((len(counts), 5)), rng.standard_normal((30, 5))
    view = Comparisons.from_triples(owners, better, worse, len(counts), 30)
    margins = (users[owners] * (items[better] - items[worse])).sum(axis=1)
    found = total_loss(loss.code, view.rows, padded(users), padded(items), 2)
    assert found == pytest.approx(loss.value(margins).sum(), rel=1e-12)
