"""Loss, gradient, curvature and duality gap of one score per item; indptr is int64, opponents int32."""

from rankbench.contract import Floats, Ints

SQUARED_HINGE: int
LOGISTIC: int

def sweep(
    loss: int,
    indptr: Ints,
    opponents: Ints,
    wins: Floats,
    losses: Floats,
    scores: Floats,
    loss_out: Floats,
    dual_out: Floats,
    gradient_out: Floats,
    curvature_out: Floats,
    threads: int,
) -> None: ...
def curvature_times(
    indptr: Ints, opponents: Ints, curvature: Floats, direction: Floats, out: Floats, threads: int
) -> None: ...
