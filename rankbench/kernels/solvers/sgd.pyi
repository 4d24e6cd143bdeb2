"""Pairwise stochastic gradient descent on factors, one pass at a time, user by user."""

import numpy as np

from rankbench.core.contract import Floats, Int32s, Int64s
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.methods.rotation import TaskRows
from rankbench.kernels.shared.losses import Loss
from rankbench.kernels.shared.rows import ComparisonRows

class Descent:
    def __init__(self, *, factors: DescentFactors, loss: Loss) -> None: ...

def serial_pass(*, descent: Descent, comparisons: ComparisonRows, updates: float, rng: np.random.Generator) -> None: ...
def rounds_pass(
    *, descent: Descent, rows: TaskRows, round_starts: Int64s, tasks: Int32s, updates: Floats, seed: int, threads: int
) -> None: ...
def hogwild_pass(
    *, descent: Descent, comparisons: ComparisonRows, user_order: Int32s, updates: Floats, seed: int, threads: int
) -> None: ...
