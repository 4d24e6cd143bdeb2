"""Powers of e and logarithms, several at a time: NumPy's with more digits are the same."""

import hashlib

import numpy as np
import pytest

from rankbench.kernels.shared.powers import exponentials, logarithms


def found(values, less=0.0):
    """The powers of the kernel."""
    out = np.empty(len(values))
    exponentials(values=np.asarray(values, float), less=less, out=out)
    return out


@pytest.mark.parametrize("size", [1e-9, 1.0, 30.0, 708.0])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 1001])
def test_the_last_of_53_bits_may_differ(size, n):
    values = np.random.default_rng(n).uniform(-size, size, n)
    np.testing.assert_allclose(found(values), np.exp(values.astype(np.longdouble)).astype(float), rtol=2.3e-16)


def test_what_is_subtracted_is_subtracted_first():
    values = np.array([100.0, 99.0, 801.0, -3.0, 100.5])
    assert found(values, 100.0).tobytes() == found(values - 100.0).tobytes()
    assert found([100.0], 100.0).tolist() == [1.0]


def test_powers_beyond_the_limits_are_those_of_the_limits():
    smallest, largest = np.exp([-708.0, 709.0])
    expected = [smallest, smallest, largest, largest, np.nan]
    np.testing.assert_allclose(found([-709.0, -np.inf, 710.0, np.inf, np.nan]), expected, rtol=1e-15)


@pytest.mark.parametrize("most", [1e-9, 0.4, 0.42, 1.0])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 1001])
def test_logsare_those_of_one_plus_the_values(most, n):
    values, out = np.random.default_rng(n).uniform(0.0, most, n), np.empty(n)
    logarithms(values=values, out=out)
    np.testing.assert_allclose(out, np.log1p(values.astype(np.longdouble)).astype(float), rtol=4.4e-16)


def test_logsof_the_ends_are_exact():
    out = np.empty(4)
    logarithms(values=np.array([0.0, 5e-324, 1.0, np.nan]), out=out)
    assert out[:3].tolist() == [0.0, 5e-324, np.log(2.0)]
    assert np.isnan(out[3])


def test_the_bits_are_the_same_on_every_processor():
    powers, logs = found(np.linspace(-40.0, 40.0, 10_001)), np.empty(10_001)
    logarithms(values=np.linspace(0.0, 1.0, 10_001), out=logs)
    told = hashlib.sha256(powers.tobytes() + logs.tobytes()).hexdigest()
    assert told == "d4843943693a1f1150f724fe61f7d6f7ae91bd65decd14be133cbb9db5c1be0f"
