"""Metrics of places with the whole catalogue as candidates, from the scores of a block of users."""

from rankbench.contract import Floats, Int32s, Int64s

def per_user(
    scores: Floats,
    users: Int32s,
    indptr: Int64s,
    items: Int32s,
    truth: Floats,
    seen_indptr: Int64s,
    seen_items: Int32s,
    codes: Int32s,
    cuts: Int32s,
    thresholds: Floats,
    discounts: Floats,
    out: Floats,
    threads: int,
) -> None: ...
