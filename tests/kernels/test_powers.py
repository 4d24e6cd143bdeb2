"""Powers and logarithms, several at a time: NumPy's with more digits are the same."""

import hashlib

import numpy as np
import pytest

from rankbench.kernels.shared.powers import binary_logarithms, exponentials, exponentials_of_two, logarithms, powers_to


def found(values, less=0.0, of=exponentials):
    """The powers of the kernel."""
    out = np.empty(len(values))
    of(values=np.asarray(values, float), less=less, out=out)
    return out


def binary_logs(values):
    """The logarithms of the kernel."""
    out = np.empty(len(values))
    binary_logarithms(values=np.asarray(values, float), out=out)
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


@pytest.mark.parametrize("size", [1e-9, 1.0, 30.0, 500.0])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 1001])
def test_of_powers_of_two_the_last_two_bits_may_differ(size, n):
    values = np.random.default_rng(n).uniform(-size, size, n)
    expected = np.exp2(values.astype(np.longdouble)).astype(float)
    np.testing.assert_allclose(found(values, of=exponentials_of_two), expected, rtol=3.4e-16)


def test_whole_powers_of_two_are_exact_and_those_beyond_the_limits_are_those_of_the_limits():
    values = np.arange(-500.0, 501.0)
    assert found(values, of=exponentials_of_two).tolist() == np.exp2(values).tolist()
    beyond = found([-501.0, -np.inf, 501.0, np.inf, np.nan], of=exponentials_of_two)
    np.testing.assert_array_equal(beyond, [2.0**-500, 2.0**-500, 2.0**500, 2.0**500, np.nan])
    assert found([3.0, 4.5], 3.0, of=exponentials_of_two).tolist() == found([0.0, 1.5], of=exponentials_of_two).tolist()


@pytest.mark.parametrize("most", [1e-9, 0.5, 1.0, 1e3, 1e300])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 1001])
def test_binary_logs_are_those_of_the_values(most, n):
    values = 1.0 + np.random.default_rng(n).uniform(0.0, most, n)
    expected = np.log2(values.astype(np.longdouble)).astype(float)
    np.testing.assert_allclose(binary_logs(values), expected, rtol=6.7e-16)


def test_binary_logs_of_powers_of_two_are_exact():
    values = np.arange(-1000.0, 1001.0)
    assert binary_logs(np.exp2(values)).tolist() == values.tolist()
    assert np.isnan(binary_logs([np.inf, np.nan])).all()


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 1.0, 2.0])
def test_values_to_a_power_have_fifteen_digits(power):
    values, out = 1.0 + np.random.default_rng(0).exponential(1e4, 1001), np.empty(1001)
    powers_to(values=values, power=power, out=out)
    np.testing.assert_allclose(out, values.astype(np.longdouble) ** power, rtol=2e-15 if power not in (0.0, 1.0) else 0)


def test_the_bits_are_the_same_on_every_processor():
    powers, logs = found(np.linspace(-40.0, 40.0, 10_001)), np.empty(10_001)
    logarithms(values=np.linspace(0.0, 1.0, 10_001), out=logs)
    told = hashlib.sha256(powers.tobytes() + logs.tobytes()).hexdigest()
    assert told == "d4843943693a1f1150f724fe61f7d6f7ae91bd65decd14be133cbb9db5c1be0f"
    powers = found(np.linspace(-40.0, 40.0, 10_001), of=exponentials_of_two)
    told = hashlib.sha256(powers.tobytes() + binary_logs(np.linspace(1.0, 40.0, 10_001)).tobytes()).hexdigest()
    assert told == "0328ae7beaac2d669f5ffd7a72475833f9d69ccc8f7c44882da7e7a010d9058a"
