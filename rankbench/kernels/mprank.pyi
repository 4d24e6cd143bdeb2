"""MPRank's closed forms, one small system per user; indptr is int64, items and users are int32."""

from rankbench.contract import Floats, Ints

def dual(
    gram: Floats,
    indptr: Ints,
    items: Ints,
    values: Floats,
    users: Ints,
    C: float,
    coefficients: Floats,
    offsets: Floats,
    threads: int,
) -> int: ...
def primal(
    features: Floats,
    indptr: Ints,
    items: Ints,
    values: Floats,
    users: Ints,
    C: float,
    weights: Floats,
    offsets: Floats,
    threads: int,
) -> int: ...
