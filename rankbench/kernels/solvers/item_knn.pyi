"""The most similar items of each item, by the cosine of their columns with shrinkage."""

from rankbench.core.contract import Floats, Int32s
from rankbench.kernels.shared.rows import SparseRows

def neighbours(
    *,
    users: SparseRows,
    items: SparseRows,
    norms: Floats,
    shrink: float,
    out: Int32s,
    similarities: Floats,
    threads: int,
) -> None: ...
def gram(*, users: SparseRows, items: SparseRows, out: Floats, threads: int) -> None: ...
