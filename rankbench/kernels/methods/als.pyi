"""Alternating least squares on factors: ridge regressions row by row, and the products of the item side."""

from rankbench.contract import Floats, Int32s, Int64s

def ridge(
    indptr: Int64s, columns: Int32s, values: Floats, vectors: Floats, lam: float, out: Floats, threads: int
) -> None: ...
def weighted_sums(
    indptr: Int64s, columns: Int32s, weights: Floats, vectors: Floats, out: Floats, threads: int
) -> None: ...
def gram_times(indptr: Int64s, columns: Int32s, vectors: Floats, left: Floats, out: Floats, threads: int) -> None: ...
def squared_errors(
    indptr: Int64s, columns: Int32s, values: Floats, rows: Floats, vectors: Floats, out: Floats, threads: int
) -> None: ...
