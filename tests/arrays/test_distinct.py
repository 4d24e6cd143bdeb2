"""The distinct values of an array are those of NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rankbench.arrays.distinct import distinct


@pytest.mark.parametrize("values", [
    np.zeros(0, np.int64), np.array([3]), np.array([2, 2, 2]), np.array([5, 1, 5, 3, 1]), np.array([1.5, -0.5, 1.5]),
    np.array(["b", "a", "b"]), np.array([[2, 1], [1, 2]], np.int32),
])  # fmt: skip
def test_distinct_values_are_those_of_numpy(values):
    found = distinct(values)
    assert found.tolist() == np.unique(values).tolist() and found.dtype == values.dtype


@given(
    arrays(
        st.sampled_from([np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64]),
        st.integers(0, 30),
        elements=st.integers(0, 100),
    ),
    st.booleans(),
)
def test_distinct_whole_numbers_of_any_type_may_lie_anywhere(values, at_the_end):
    ends = np.iinfo(values.dtype)
    moved = ends.max - values if at_the_end else values + np.array(ends.min, values.dtype)
    found = distinct(moved)
    assert found.tolist() == np.unique(moved).tolist() and found.dtype == values.dtype


def test_distinct_whole_numbers_may_be_as_far_apart_as_can_be():
    ends = np.iinfo(np.int64)
    assert distinct(np.array([ends.max, 0, ends.min, ends.max])).tolist() == [ends.min, 0, ends.max]
    assert distinct(np.array([127, -128, 127] * 20, np.int8)).tolist() == [-128, 127]


def test_distinct_values_of_a_long_array():
    values = np.random.default_rng(0).integers(-1000, 1000, 100_000)
    assert np.array_equal(distinct(values), np.unique(values))
