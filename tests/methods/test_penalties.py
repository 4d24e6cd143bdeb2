"""The ridge penalty: the sum of squares without an array of all squares."""

import numpy as np
import pytest

from rankbench.methods.penalties import squared_norm


@pytest.mark.parametrize("shape", [(0,), (1,), (32_768,), (32_769,), (300, 731), (65_543, 3), (1_000_003,)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_bits_are_those_of_one_sum_over_all_squares(shape, order):
    rng = np.random.default_rng(sum(shape))
    block = np.asarray(rng.standard_normal(shape) * 10 ** rng.uniform(-3, 3, shape), order=order)
    assert squared_norm(block) == np.square(block).sum()
    assert squared_norm(block, block[:5]) == np.square(block).sum() + np.square(block[:5]).sum()
