"""Losses of comparisons over their distinct (user, item) pairs; indptr are int64, ids and places int32."""

from rankbench.contract import Floats, Ints

SQUARED_HINGE: int
LOGISTIC: int
SMOOTH_HINGE: int

def gather(indptr: Ints, better: Ints, worse: Ints, n_items: int) -> tuple[Ints, Ints, Ints, Ints]: ...
def slopes(
    loss: int,
    comparisons: Ints,
    better: Ints,
    worse: Ints,
    indptr: Ints,
    scores: Floats,
    loss_out: Floats,
    slope_out: Floats,
    threads: int,
) -> None: ...
def products(indptr: Ints, items: Ints, users: Floats, item_rows: Floats, out: Floats, threads: int) -> None: ...
def sums(indptr: Ints, columns: Ints, weights: Floats, rows: Floats, out: Floats, threads: int) -> None: ...
