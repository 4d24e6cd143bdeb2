"""Kernel matrices between items, and expansions over them."""

from rankbench.contract import Floats, Int32s, Int64s

def linear(features: Floats, threads: int, whole: bool = True) -> None: ...
def gaussian(products: Floats, width: float, threads: int) -> None: ...
def sparse_gaussian(
    row_starts: Int64s,
    columns: Int32s,
    row_values: Floats,
    column_starts: Int64s,
    rows: Int32s,
    column_values: Floats,
    width: float,
    threads: int,
) -> None: ...
def expand(
    gram: Floats,
    indptr: Int64s,
    items: Int32s,
    coefficients: Floats,
    offsets: Floats,
    users: Int32s,
    asked: Int32s,
    order: Int64s,
    out: Floats,
) -> None: ...
