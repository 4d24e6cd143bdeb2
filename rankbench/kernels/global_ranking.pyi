"""Loss, gradient and curvature of one score per item; indptr is int64, ids of items int32."""

from rankbench.contract import Floats, Ints

SQUARED_HINGE: int
LOGISTIC: int

def tournament(better: Ints, worse: Ints, n_items: int) -> tuple[Ints, Ints, Floats, Floats]: ...
def sweep(
    loss: int,
    indptr: Ints,
    opponents: Ints,
    wins: Floats,
    losses: Floats,
    scores: Floats,
    loss_out: Floats,
    gradient_out: Floats,
    diagonal_out: Floats,
    curvature_out: Floats,
    threads: int,
) -> None: ...
def curvature_times(
    indptr: Ints, opponents: Ints, curvature: Floats, direction: Floats, out: Floats, threads: int
) -> None: ...
