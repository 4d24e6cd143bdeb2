"""Products with the entries of a sparse users x items matrix, and losses of comparisons by the scores of entries."""

from rankbench.core.contract import Floats, Int32s, Int64s
from rankbench.kernels.shared.losses import Loss
from rankbench.kernels.shared.rows import ComparisonRows, Pattern, SparseRows

class Derivatives:
    def __init__(self, *, losses: Floats, users: Floats, items: Floats, slopes: Floats) -> None: ...

def gather(*, comparisons: ComparisonRows, n_items: int) -> tuple[Int64s, Int32s, Int32s, Int32s]: ...
def slopes(
    *,
    loss: Loss,
    entries: Pattern,
    comparisons: ComparisonRows,
    scores: Floats,
    loss_out: Floats,
    slope_out: Floats,
    threads: int,
) -> None: ...
def gradients(
    *,
    loss: Loss,
    entries: Pattern,
    comparisons: ComparisonRows,
    users: Floats,
    items: Floats,
    out: Derivatives,
    threads: int,
) -> None: ...
def arrange(*, values: Floats, places: Int32s, out: Floats, threads: int) -> None: ...
def times(*, matrix: SparseRows, dense: Floats, out: Floats, threads: int) -> None: ...
def inner_products(*, entries: Pattern, left: Floats, right: Floats, out: Floats, threads: int) -> None: ...
