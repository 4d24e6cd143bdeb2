"""The nearest point that respects a partial order with a margin, certified by its duality gap."""

from rankbench.contract import Floats, Int32s, Int64s

def reduced(n: int, low: Int32s, high: Int32s, starts: Int64s) -> None: ...
def topological(n: int, high: Int32s, starts: Int64s) -> None: ...
def project(
    indptr: Int64s,
    edge_indptr: Int64s,
    low: Int32s,
    high: Int32s,
    x: Floats,
    weights: Floats,
    eps: float,
    duals: Floats,
    out: Floats,
    gaps: Floats,
    threads: int,
) -> None: ...
