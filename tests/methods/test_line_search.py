"""The backtracking line search satisfies Armijo's inequality."""

import pytest

from rankbench.methods.line_search import SUFFICIENT_DECREASE, halved, sufficient


def test_lengths_are_halved():
    assert list(halved(4)) == [1.0, 0.5, 0.25, 0.125]
    assert list(halved(2, first=3.0)) == [3.0, 1.5]


@pytest.mark.parametrize(
    ("value", "expected"), [(1.0, False), (1.0 - 0.9e-4, False), (1.0 - 1.1e-4, True), (float("nan"), False)]
)
def test_a_decrease_is_sufficient_from_a_share_of_what_the_slope_promises(value, expected):
    assert sufficient(value, 1.0, 0.5, -2.0) is expected
    assert sufficient(value - 1.0, 0.0, 0.5, -2.0) is expected


def test_backtracking_finds_the_longest_step_that_decreases_a_parabola_sufficiently():
    found = next(length for length in halved(30, 10.0) if sufficient((length - 1.0) ** 2, 1.0, length, -2.0))
    assert found == 1.25 and 2 * found > 2 * (1 - SUFFICIENT_DECREASE)
