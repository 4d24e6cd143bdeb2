"""RobiRank's robust loss with its auxiliary variables in closed form, and stochastic descent with these fixed."""

from rankbench.contract import Floats, Int32s, Int64s

class WishRows:
    def __init__(self, *, indptr: Int64s, places: Int32s, gains: Floats, lists: Int64s, candidates: Int32s) -> None: ...

class RobustDescent:
    def __init__(
        self,
        *,
        users: Floats,
        items: Floats,
        user_shrink: Floats,
        item_shrink: Floats,
        step: float,
        decay: float,
        draws: int,
    ) -> None: ...

def closed_form(
    *, wishes: WishRows, users: Floats, items: Floats, xi: Floats, losses: Floats, threads: int
) -> None: ...
def descend(
    *, descent: RobustDescent, wishes: WishRows, weights: Floats, user_order: Int32s, updates: float, seed: int
) -> None: ...
