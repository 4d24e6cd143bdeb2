"""SVRank over pairs: coordinate ascent on the dual of each user's problem, users side by side."""

from rankbench.contract import Floats, Int32s, Int64s

def pair_rounds(
    gram: Floats,
    indptr: Int64s,
    items: Int32s,
    values: Floats,
    users: Int32s,
    C: float,
    eps: float,
    tolerance: float,
    rounds: int,
    first_dual: Int64s,
    duals: Floats,
    coefficients: Floats,
    offsets: Floats,
    primal: Floats,
    gap: Floats,
    threads: int,
) -> None: ...
