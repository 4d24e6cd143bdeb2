"""RobiRank's loss and descent; indptr and lists are int64, places and candidates int32."""

from rankbench.contract import Floats, Ints

def closed_form(
    indptr: Ints,
    places: Ints,
    gains: Floats,
    lists: Ints,
    candidates: Ints,
    users: Floats,
    items: Floats,
    xi: Floats,
    losses: Floats,
    threads: int,
) -> None: ...
def descend(
    user_order: Ints,
    indptr: Ints,
    places: Ints,
    weights: Floats,
    lists: Ints,
    candidates: Ints,
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
