"""Products of factors of low rank, against NumPy on the whole matrix."""

import numpy as np
import pytest

from rankbench.methods.low_rank import ProductSVD


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("rank", [2, 5, 7])
def test_a_product_is_decomposed_from_its_factors(rank, whole):
    rng = np.random.default_rng(rank)
    left, right = rng.standard_normal((5, rank)), rng.standard_normal((9, rank))
    product = ProductSVD.of(left, right, whole)
    count = len(product.values)
    vectors = product.left[:, :count], product.right[:, :count]
    np.testing.assert_allclose((vectors[0] * product.values) @ vectors[1].T, left @ right.T, atol=1e-12)
    np.testing.assert_allclose(product.values, np.linalg.svd(left @ right.T, compute_uv=False)[:count], rtol=1e-10)
    for side in vectors:
        np.testing.assert_allclose(side.T @ side, np.eye(count), atol=1e-12)
