"""Projections onto vectors that respect an order of ratings with a margin, for all users side by side."""

from rankbench.core.contract import Floats, Int32s, Int64s

class Levels:
    def __init__(
        self, *, indptr: Int64s, order: Int32s, depth: Int32s, block_indptr: Int64s, block_ends: Int32s, borders: Floats
    ) -> None: ...

def project(
    *, levels: Levels, x: Floats, weights: Floats, eps: float, out: Floats, threads: int, less_x: bool = False
) -> None: ...
