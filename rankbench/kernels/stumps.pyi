"""Sums of weighted thresholds on features; ids and features are int32."""

from rankbench.contract import Floats, Ints

def score(
    values: Floats,
    features: Ints,
    cuts: Floats,
    weights: Floats,
    offsets: Floats,
    users: Ints,
    items: Ints,
    out: Floats,
) -> None: ...
def score_all(
    values: Floats,
    features: Ints,
    cuts: Floats,
    weights: Floats,
    offsets: Floats,
    users: Ints,
    out: Floats,
    threads: int,
) -> None: ...
