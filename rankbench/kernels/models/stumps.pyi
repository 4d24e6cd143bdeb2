"""Sums of weighted thresholds on features: weight[u, t] where feature[u, t] of an item is above cut[u, t]."""

from rankbench.contract import Floats, Int32s

def score(
    values: Floats,
    features: Int32s,
    cuts: Floats,
    weights: Floats,
    offsets: Floats,
    users: Int32s,
    items: Int32s,
    out: Floats,
) -> None: ...
def score_all(
    values: Floats,
    features: Int32s,
    cuts: Floats,
    weights: Floats,
    offsets: Floats,
    users: Int32s,
    out: Floats,
    threads: int,
) -> None: ...
