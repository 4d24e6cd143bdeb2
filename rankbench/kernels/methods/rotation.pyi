"""Comparisons sorted into tasks; a task has the comparisons of a few users between a few items."""

from rankbench.core.contract import Floats, Int32s, Int64s
from rankbench.kernels.shared.rows import ComparisonRows

class TaskRows:
    def __init__(
        self, *, starts: Int64s, users: Int32s, better: Int32s, worse: Int32s, weights: Floats | None = None
    ) -> None: ...

def bucket(
    *,
    comparisons: ComparisonRows,
    user_group: Int32s,
    item_group: Int32s,
    pair_of: Int32s,
    groups: int,
    weights: Floats | None = None,
    room: Int32s | None = None,
) -> tuple[Int64s, Int32s, Int32s, Int32s, Floats | None]: ...
