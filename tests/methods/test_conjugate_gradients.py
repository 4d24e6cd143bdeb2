"""Conjugate gradients compared with direct solutions, and their stopping."""

import numpy as np
import pytest

from rankbench.methods.conjugate_gradients import conjugate_gradients, inner_product

RNG = np.random.default_rng(0)
ROOT = RNG.standard_normal((12, 12))
SYSTEM, RIGHT = ROOT @ ROOT.T + 0.5 * np.eye(12), RNG.standard_normal(12)


def times(x):
    """Products with the system, of a vector in two arrays."""
    product = SYSTEM @ np.concatenate([x[0], x[1].ravel()])
    return product[:4], product[4:].reshape(2, 4)


BLOCKS = RIGHT[:4], RIGHT[4:].reshape(2, 4)


@pytest.mark.parametrize("diagonal", [np.ones(12), np.diag(SYSTEM)])
def test_they_solve_a_system_whose_unknowns_are_in_two_arrays(diagonal):
    before = [block.copy() for block in BLOCKS]
    found = conjugate_gradients(
        times,
        BLOCKS,
        lambda start: 1e-24 * start,
        100,
        precondition=lambda r: (r[0] / diagonal[:4], r[1] / diagonal[4:].reshape(2, 4)),
    )
    np.testing.assert_allclose(np.concatenate([found[0], found[1].ravel()]), np.linalg.solve(SYSTEM, RIGHT), rtol=1e-8)
    for block, kept in zip(BLOCKS, before, strict=True):
        np.testing.assert_array_equal(block, kept)


def test_they_end_after_so_many_products_or_once_the_residual_is_small_enough():
    seen = []

    def counted(x):
        seen.append(x)
        return times(x)

    conjugate_gradients(counted, BLOCKS, lambda start: 0.0, 3)
    assert len(seen) == 3
    rough = conjugate_gradients(times, BLOCKS, lambda start: 0.5 * start, 100)
    residual = tuple(one - other for one, other in zip(BLOCKS, times(rough), strict=True))
    assert inner_product(residual, residual) <= 0.5 * inner_product(BLOCKS, BLOCKS)
    assert not conjugate_gradients(times, BLOCKS, lambda start: start, 100)[0].any()


def test_without_positive_curvature_the_first_direction_is_returned():
    found = conjugate_gradients(lambda x: (-x[0],), (RIGHT,), lambda start: 0.0, 5)
    np.testing.assert_array_equal(found[0], RIGHT)
