"""Projections onto orders with a margin, many users at once: PAV after a sort inside blocks of equals."""

from rankbench.contract import Floats, Int32s, Int64s

def project(
    indptr: Int64s, order: Int32s, depth: Int32s, x: Floats, weights: Floats, eps: float, out: Floats, threads: int
) -> None: ...
