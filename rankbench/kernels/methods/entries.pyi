"""Losses of comparisons over the distinct (user, item) pairs that they name, and products with those pairs."""

from rankbench.contract import Floats, Int32s, Int64s
from rankbench.kernels.shared.losses import Loss

def gather(indptr: Int64s, better: Int32s, worse: Int32s, n_items: int) -> None: ...
def slopes(
    loss: Loss,
    comparisons: Int64s,
    better: Int32s,
    worse: Int32s,
    indptr: Int64s,
    scores: Floats,
    loss_out: Floats,
    slope_out: Floats,
    threads: int,
) -> None: ...
def products(indptr: Int64s, items: Int32s, users: Floats, item_rows: Floats, out: Floats, threads: int) -> None: ...
def sums(indptr: Int64s, columns: Int32s, weights: Floats, rows: Floats, out: Floats, threads: int) -> None: ...
