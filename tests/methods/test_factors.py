"""Code shared by solvers of factors, compared with NumPy on the whole matrix."""

import numpy as np
import pytest

from rankbench.methods.factors import Trained, padded, start, whole_lanes, zero_rows


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
