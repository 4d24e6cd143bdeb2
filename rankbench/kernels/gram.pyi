"""Kernel matrices between items, and expansions over them; indptr is int64, ids are int32."""

from rankbench.contract import Floats, Ints

def linear(features: Floats, threads: int, whole: bool = True) -> Floats: ...
def gaussian(products: Floats, width: float, threads: int) -> None: ...
def sparse_gaussian(
    row_starts: Ints,
    columns: Ints,
    row_values: Floats,
    column_starts: Ints,
    rows: Ints,
    column_values: Floats,
    width: float,
    threads: int,
) -> Floats: ...
def expand(
    gram: Floats,
    indptr: Ints,
    items: Ints,
    coefficients: Floats,
    offsets: Floats,
    users: Ints,
    asked: Ints,
    order: Ints,
    out: Floats,
) -> None: ...
