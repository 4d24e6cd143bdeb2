"""CofiRank's losses of a user's scores, and the bundle method for the vector of each user."""

from enum import IntEnum

from rankbench.core.contract import Floats, Int64s
from rankbench.kernels.shared.rows import Pattern, SparseRows

class Loss(IntEnum):
    NDCG = 0
    ORDINAL = 1
    REGRESSION = 2

class Problem:
    def __init__(
        self, *, loss: Loss, rows: SparseRows, anchors: Floats, scales: Floats, weights: Floats, discounts: Floats
    ) -> None: ...

def losses(*, problem: Problem, users: Floats, factors: Floats, out: Floats, slopes: Floats, threads: int) -> None: ...
def users_half(
    *, problem: Problem, users: Floats, factors: Floats, lam: float, tolerance: float, most_planes: int, threads: int
) -> tuple[Floats, Floats]: ...
def item_slopes(
    *, raters: Pattern, places: Int64s, slopes: Floats, users: Floats, out: Floats, threads: int
) -> None: ...
def weigh(*, products: Floats, offsets: Floats, lam: float, tolerance: float, beta: Floats) -> float: ...
