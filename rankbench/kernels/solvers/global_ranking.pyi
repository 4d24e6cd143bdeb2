"""Loss, gradient and curvature of one score per item, item by item."""

from rankbench.contract import Floats, Int32s, Int64s
from rankbench.kernels.shared.losses import Loss

def tournament(better: Int32s, worse: Int32s, n_items: int) -> None: ...
def sweep(
    loss: Loss,
    indptr: Int64s,
    opponents: Int32s,
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
    indptr: Int64s, opponents: Int32s, curvature: Floats, direction: Floats, out: Floats, threads: int
) -> None: ...
