"""Projections onto partial orders; both indptr and starts are int64, edges int32, empty weights are all ones."""

from rankbench.contract import Floats, Ints

def reduced(n: int, low: Ints, high: Ints, starts: Ints) -> Ints: ...
def topological(n: int, high: Ints, starts: Ints) -> Ints: ...
def project(
    indptr: Ints,
    edge_indptr: Ints,
    low: Ints,
    high: Ints,
    x: Floats,
    weights: Floats,
    eps: float,
    duals: Floats,
    out: Floats,
    gaps: Floats,
    threads: int,
) -> None: ...
