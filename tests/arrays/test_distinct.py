"""The distinct values of an array are those of NumPy."""

import numpy as np
import pytest

from rankbench.arrays.distinct import distinct


@pytest.mark.parametrize("values", [
    np.zeros(0, np.int64), np.array([3]), np.array([2, 2, 2]), np.array([5, 1, 5, 3, 1]), np.array([1.5, -0.5, 1.5]),
    np.array(["b", "a", "b"]), np.array([[2, 1], [1, 2]], np.int32),
])  # fmt: skip
def test_distinct_values_are_those_of_numpy(values):
    found = distinct(values)
    assert found.tolist() == np.unique(values).tolist() and found.dtype == values.dtype


def test_distinct_values_of_a_long_array():
    values = np.random.default_rng(0).integers(-1000, 1000, 100_000)
    assert np.array_equal(distinct(values), np.unique(values))
