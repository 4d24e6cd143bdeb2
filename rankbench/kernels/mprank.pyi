"""MPRank's closed forms, one small system per user; indptr is int64, items and users are int32, C is by user."""

from rankbench.contract import Floats, Ints

def dual(
    gram: Floats,
    indptr: Ints,
    items: Ints,
    values: Floats,
    users: Ints,
    C: Floats,
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
    C: Floats,
    weights: Floats,
    offsets: Floats,
    threads: int,
) -> int: ...
def dual_path(
    gram: Floats,
    indptr: Ints,
    items: Ints,
    values: Floats,
    users: Ints,
    C: Floats,
    errors: Floats,
    threads: int,
) -> int: ...
def primal_path(
    features: Floats,
    indptr: Ints,
    items: Ints,
    values: Floats,
    users: Ints,
    C: Floats,
    errors: Floats,
    threads: int,
) -> int: ...
