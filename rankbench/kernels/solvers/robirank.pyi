"""RobiRank's robust loss with its auxiliary variables in closed form, and stochastic descent with these fixed."""

from rankbench.core.contract import Floats, Int32s, Int64s
from rankbench.kernels.methods.pairwise import DescentFactors

class WishRows:
    def __init__(self, *, indptr: Int64s, places: Int32s, gains: Floats, lists: Int64s, candidates: Int32s) -> None: ...

def closed_form(
    *, wishes: WishRows, users: Floats, items: Floats, xi: Floats, losses: Floats, threads: int
) -> None: ...
def descend(
    *,
    factors: DescentFactors,
    wishes: WishRows,
    weights: Floats,
    user_order: Int32s,
    draws: int,
    updates: float,
    seed: int,
) -> None: ...
