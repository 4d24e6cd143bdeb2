"""Code shared by solvers of factors, compared with NumPy on the whole matrix."""

import numpy as np
import pytest

from rankbench.methods.factors import padded, whole_lanes


@pytest.mark.parametrize(("rank", "expected"), [(1, 4), (4, 4), (5, 8)])
def test_rows_are_padded_to_whole_lanes(rank, expected):
    factors = np.ones((3, rank))
    assert whole_lanes(rank) == expected and padded(factors).shape == (3, expected)
    np.testing.assert_array_equal(padded(factors)[:, :rank], factors)
    assert not padded(factors)[:, rank:].any()
