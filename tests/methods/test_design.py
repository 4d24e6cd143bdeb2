"""The matrix of item features that solvers of factors multiply by."""

import numpy as np
import pytest

from rankbench.features.matrix import DenseFeatures
from rankbench.methods.design import Design


def test_its_size_is_the_mean_squared_norm_of_a_row_and_that_of_the_identity_1():
    table = np.random.default_rng(0).normal(size=(7, 3))
    given, identity = Design(DenseFeatures(table), 7, 1), Design(None, 7, 1)
    assert (given.width, identity.width) == (3, 7)
    assert given.size == pytest.approx((table**2).sum() / 7) and identity.size == (np.eye(7) ** 2).sum() / 7
