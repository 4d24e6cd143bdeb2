"""The ridge penalty that solvers of factors share."""

import numpy as np

from rankbench.core.contract import Floats


def squared_norm(*blocks: Floats) -> float:
    """The sum of the squares of all numbers in these arrays: lam / 2 times it is the ridge penalty on factors."""
    return float(sum(np.square(block).sum() for block in blocks))
