"""SVRank over pairs: coordinate ascent on the dual of each user's problem; indptr is int64, ids are int32."""

from rankbench.contract import Floats, Ints

def pair_rounds(
    gram: Floats,
    indptr: Ints,
    items: Ints,
    values: Floats,
    users: Ints,
    C: float,
    eps: float,
    tolerance: float,
    rounds: int,
    first_dual: Ints,
    duals: Floats,
    coefficients: Floats,
    offsets: Floats,
    primal: Floats,
    gap: Floats,
    threads: int,
) -> None: ...
