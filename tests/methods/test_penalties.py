"""The ridge penalty: a sum of squares."""

import warnings

import numpy as np
import pytest

from rankbench.methods.penalties import squared_norm


@pytest.mark.parametrize("n", [0, 1, 1000, 100_001])
def test_it_has_the_bits_of_numpys_sum(n):
    numbers = np.random.default_rng(0).standard_normal(n)
    assert squared_norm(numbers) == np.square(numbers).sum()
    assert squared_norm(numbers, numbers[:10]) == np.square(numbers).sum() + np.square(numbers[:10]).sum()


def test_that_of_vectors_which_have_diverged_is_infinite_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert squared_norm(np.array([1.0, 1e200])) == np.inf
