"""Powers of e, four at a time: NumPy's with more digits are the same."""

import numpy as np
import pytest

from rankbench.kernels.shared.powers import exponentials


def found(values, less=0.0):
    """The powers of the kernel."""
    out = np.empty(len(values))
    exponentials(values=np.asarray(values, float), less=less, out=out)
    return out


@pytest.mark.parametrize("size", [1e-9, 1.0, 30.0, 708.0])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 1001])
def test_the_last_two_digits_of_53_bits_may_differ(size, n):
    values = np.random.default_rng(n).uniform(-size, size, n)
    np.testing.assert_allclose(found(values), np.exp(values.astype(np.longdouble)).astype(float), rtol=4.5e-16)


def test_what_is_subtracted_is_subtracted_first():
    values = np.array([100.0, 99.0, 801.0, -3.0, 100.5])
    assert found(values, 100.0).tobytes() == found(values - 100.0).tobytes()
    assert found([100.0], 100.0).tolist() == [1.0]


def test_powers_beyond_the_limits_are_those_of_the_limits():
    smallest, largest = np.exp([-708.0, 709.0])
    expected = [smallest, smallest, largest, largest, np.nan]
    np.testing.assert_allclose(found([-709.0, -np.inf, 710.0, np.inf, np.nan]), expected, rtol=1e-15)
