"""RobiRank's robust loss with its auxiliary variables in closed form, and stochastic descent with these held."""

from rankbench.contract import Floats, Int32s, Int64s

def closed_form(
    indptr: Int64s,
    places: Int32s,
    gains: Floats,
    lists: Int64s,
    candidates: Int32s,
    users: Floats,
    items: Floats,
    xi: Floats,
    losses: Floats,
    threads: int,
) -> None: ...
def descend(
    user_order: Int32s,
    indptr: Int64s,
    places: Int32s,
    weights: Floats,
    lists: Int64s,
    candidates: Int32s,
    users: Floats,
    items: Floats,
    user_shrink: Floats,
    item_shrink: Floats,
    draws: int,
    step: float,
    decay: float,
    updates: float,
    seed: int,
) -> None: ...
