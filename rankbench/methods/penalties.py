"""The ridge penalty that solvers of factors share."""

import numpy as np

from rankbench.core.contract import Floats

_AT_ONCE = 1 << 15  # numbers whose squares stay in a cache


def squared_norm(*blocks: Floats) -> float:
    """The sum of the squares of all numbers in these arrays: lam / 2 times it is the ridge penalty on factors.

    That of vectors that have diverged is infinite, which whoever trains says as an error.
    """
    with np.errstate(over="ignore"):
        return float(sum(_sum_of_squares(np.ravel(block, order="K")) for block in blocks))


def _sum_of_squares(numbers: Floats) -> float:
    """np.square(numbers).sum() bit by bit, without an array as large: NumPy halves long sums at the same places."""
    n = len(numbers)
    if n <= _AT_ONCE:
        return float(np.square(numbers).sum())
    half = n // 2 - n // 2 % 8
    return _sum_of_squares(numbers[:half]) + _sum_of_squares(numbers[half:])
