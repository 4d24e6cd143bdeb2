"""RankSVMs with the squared hinge: products of tasks with item features, and Newton steps task by task."""

from rankbench.core.contract import Floats, Int32s
from rankbench.kernels.methods.all_pairs import TaskPairs
from rankbench.kernels.shared.rows import Pattern, SparseRows

class ItemFeatures:
    def __init__(self, *, d: int, dense: Floats | None = None, sparse: SparseRows | None = None) -> None: ...

def scores(*, features: ItemFeatures, rows: Pattern, weights: Floats, out: Floats, threads: int) -> None: ...
def sums(*, features: ItemFeatures, rows: Pattern, slope: Floats, out: Floats, threads: int) -> None: ...
def newton(
    *, tasks: TaskPairs, features: ItemFeatures, C: float, tolerance: float, weights: Floats, done: Int32s, threads: int
) -> None: ...
