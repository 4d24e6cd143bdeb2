"""Inner products of some rows with all columns, the scores of a block of users for the whole catalogue; or of pairs."""

from rankbench.contract import Floats, Int32s, Int64s

def products(rows: Floats, chosen: Int32s, columns: Floats, out: Floats, threads: int) -> None: ...
def sparse_pairs(
    indptr: Int64s,
    columns: Int32s,
    values: Floats,
    weights: Floats,
    offsets: Floats,
    users: Int32s,
    items: Int32s,
    out: Floats,
) -> None: ...
