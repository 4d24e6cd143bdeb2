"""The squared hinge over all pairs of each task's ratings, in near-linear time, or a loss over listed pairs."""

from rankbench.core.contract import Floats, Int32s, Int64s
from rankbench.kernels.shared.losses import Loss
from rankbench.kernels.shared.rows import ComparisonRows, Pattern, SparseRows

class TaskPairs:
    def __init__(
        self,
        *,
        rows: Pattern,
        level: Int32s | None = None,
        levels: Int32s | None = None,
        listed: ComparisonRows | None = None,
        loss: Loss = ...,
    ) -> None: ...

def rank_values(*, ratings: SparseRows, threads: int) -> tuple[Int32s, Int32s]: ...
def place_pairs(*, comparisons: ComparisonRows, n_items: int) -> tuple[Int64s, Int32s, Int32s, Int32s]: ...
def evaluate_all(
    *, tasks: TaskPairs, scores: Floats, windows: Int32s, degree: Floats, slope: Floats, losses: Floats, threads: int
) -> None: ...
def curve_all(
    *, tasks: TaskPairs, scores: Floats, windows: Int32s, degree: Floats, direction: Floats, out: Floats, threads: int
) -> None: ...
