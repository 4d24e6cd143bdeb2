"""Weights of EASE to each item from a few other items alone: a ridge regression for each item."""

from rankbench.core.contract import Floats
from rankbench.kernels.shared.rows import SparseRows

def restricted(*, gram: SparseRows, neighbours: SparseRows, lam: float, out: Floats, threads: int) -> int: ...
