"""Fitted power laws and means of repetitions: known exponents, SciPy's intervals, and what has no interval."""

from math import inf, isnan, log

import numpy as np
import pytest
from scipy import stats

from rankbench.statistics.powers import Ends, exponent, exponent_above_base, mean_of, ratio_of


@pytest.mark.parametrize("power", [-1.0, 0.0, 1.0, 2.5])
def test_a_power_law_without_noise_gives_its_exponent_and_no_error(power):
    sizes = [100, 200, 400, 800]
    found = exponent(sizes, [3e-6 * size**power for size in sizes])
    assert found.value == pytest.approx(power, abs=1e-12) and found.high - found.low < 1e-9
    assert found.excludes(power + 0.01, power + 1) and not found.excludes(power - 1, power + 1)


def test_the_interval_is_that_of_a_regression_of_the_logarithms():
    rng = np.random.default_rng(0)
    sizes = np.array([1e3, 2e3, 4e3, 8e3, 1.6e4])
    costs = 1e-6 * sizes**1.3 * np.exp(0.1 * rng.standard_normal(5))
    oracle = stats.linregress(np.log(sizes), np.log(costs))
    reach = stats.t.ppf(0.975, 3) * oracle.stderr
    found = exponent(sizes, costs)
    expected = (oracle.slope, oracle.slope - reach, oracle.slope + reach)
    assert (found.value, found.low, found.high) == pytest.approx(expected, rel=1e-12)


def test_the_interval_covers_the_true_exponent_in_95_of_100_fits():
    rng = np.random.default_rng(1)
    sizes = np.array([1.0, 2, 4, 8])
    fits = [exponent(sizes, sizes**1.1 * np.exp(0.05 * rng.standard_normal(4))) for _ in range(2000)]
    missed = sum(found.excludes(1.1, 1.1) for found in fits)
    assert 60 < missed < 140


def test_two_sizes_have_an_exponent_without_an_interval_and_one_has_none():
    found = exponent([1, 2], [1.0, 4.0])
    assert found == Ends(2.0, -inf, inf) and not found.bounded and not found.excludes(7.0, 8.0)
    assert exponent([3, 3], [1.0, 2.0]) is None and exponent([], []) is None


def test_costs_of_zero_have_no_logarithm_and_are_left_out():
    assert exponent([1, 2, 4], [0.0, 1.0, 2.0]).value == pytest.approx(1.0)
    assert exponent([1, 2], [0.0, 1.0]) is None


def test_the_interval_of_a_mean_is_students():
    values = [1.0, 1.2, 0.9, 1.4]
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    found = mean_of(values)
    assert (found.value, found.low, found.high) == pytest.approx((np.mean(values), low, high))
    assert mean_of([2.0]) == Ends(2.0) and mean_of([2.0, 4.0]) == Ends(3.0) and isnan(mean_of([]).value)


def test_the_mean_of_ratios_is_the_same_whichever_way_they_are_taken():
    ratios = [1.5, 2.0, 4.0]
    found, turned = ratio_of(ratios), ratio_of([1 / one for one in ratios])
    assert found.value == pytest.approx(1 / turned.value) and found.low == pytest.approx(1 / turned.high)
    assert log(found.value) == pytest.approx(np.mean(np.log(ratios)))
    assert ratio_of([3.0]).value == pytest.approx(3.0) and not ratio_of([3.0, 4.0]).bounded


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_an_unknown_base_does_not_hide_the_exponent_of_what_grows_above_it(power):
    sizes = [100, 200, 400, 800]
    costs = [60 + 0.05 * size**power for size in sizes]
    assert exponent(sizes, costs).value < 0.99 * power
    assert exponent_above_base(sizes, costs, 0.0).value == pytest.approx(power)


def test_a_cost_that_grows_too_little_to_be_measured_has_no_exponent():
    assert exponent_above_base([1, 2, 4, 8], [60.0, 60.5, 60.2, 61.0], 2.0) is None
    assert exponent_above_base([1, 2, 4, 8], [60.0, 60.5, 64.5, 72.5], 2.0).value == pytest.approx(1.0)
    assert exponent_above_base([], [], 2.0) is None
