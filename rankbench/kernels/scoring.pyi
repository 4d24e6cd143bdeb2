"""Inner products of some rows with all columns; chosen is int32."""

from rankbench.contract import Floats, Ints

def products(rows: Floats, chosen: Ints, columns: Floats, out: Floats, threads: int) -> None: ...
def sparse_pairs(
    indptr: Ints,
    columns: Ints,
    values: Floats,
    weights: Floats,
    offsets: Floats,
    users: Ints,
    items: Ints,
    out: Floats,
) -> None: ...
