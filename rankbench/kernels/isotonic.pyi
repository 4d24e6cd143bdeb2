"""Projections onto orders with a margin; indptr is int64, order and depth int32, empty weights are all ones."""

from rankbench.contract import Floats, Ints

def project(
    indptr: Ints,
    order: Ints,
    depth: Ints,
    x: Floats,
    weights: Floats,
    eps: float,
    out: Floats,
    threads: int,
) -> None: ...
