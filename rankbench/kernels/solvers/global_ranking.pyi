"""Loss, gradient and curvature of a global ranking, a model with one score per item."""

from rankbench.core.contract import Floats, Int32s, Int64s
from rankbench.kernels.shared.losses import Loss

class Tournament:
    def __init__(self, *, better: Int32s, worse: Int32s, n_items: int) -> None: ...
    def arrays(self) -> tuple[Int64s, Int32s, Floats, Floats]: ...

def sweep(
    *, loss: Loss, tournament: Tournament, scores: Floats, totals: Floats, curvature: Floats, threads: int
) -> None: ...
def curvature_times(
    *, tournament: Tournament, curvature: Floats, direction: Floats, out: Floats, threads: int
) -> None: ...
