"""MPRank's closed forms, one small system per user, users side by side."""

from rankbench.contract import Floats, Int32s, Int64s

def dual(
    gram: Floats,
    indptr: Int64s,
    items: Int32s,
    values: Floats,
    users: Int32s,
    C: Floats,
    coefficients: Floats,
    offsets: Floats,
    threads: int,
) -> None: ...
def primal(
    features: Floats,
    indptr: Int64s,
    items: Int32s,
    values: Floats,
    users: Int32s,
    C: Floats,
    weights: Floats,
    offsets: Floats,
    threads: int,
) -> None: ...
def dual_path(
    gram: Floats, indptr: Int64s, items: Int32s, values: Floats, users: Int32s, C: Floats, errors: Floats, threads: int
) -> None: ...
def primal_path(
    features: Floats,
    indptr: Int64s,
    items: Int32s,
    values: Floats,
    users: Int32s,
    C: Floats,
    errors: Floats,
    threads: int,
) -> None: ...
