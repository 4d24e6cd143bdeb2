"""Alternating least squares on factors: ridge regressions row by row, and the products of the item side."""

from rankbench.core.contract import Floats
from rankbench.kernels.shared.rows import Pattern, SparseRows

def ridge(
    *,
    rows: SparseRows,
    vectors: Floats,
    penalties: Floats,
    power: float,
    out: Floats,
    threads: int,
    more: float = 0.0,
    form: Floats | None = None,
) -> int: ...
def improve_ridge(
    *,
    rows: SparseRows,
    vectors: Floats,
    penalties: Floats,
    power: float,
    iterations: int,
    out: Floats,
    threads: int,
    more: float = 0.0,
    form: Floats | None = None,
) -> int: ...
def gram_times(*, rows: Pattern, vectors: Floats, left: Floats, out: Floats, threads: int) -> None: ...
def squared_errors(*, rows: SparseRows, left: Floats, vectors: Floats, out: Floats, threads: int) -> None: ...
