"""Metrics with the whole catalogue as candidates; indptr is int64, users, items, codes and cuts are int32."""

from rankbench.contract import Floats, Ints

def per_user(
    scores: Floats,
    users: Ints,
    indptr: Ints,
    items: Ints,
    truth: Floats,
    seen_indptr: Ints,
    seen_items: Ints,
    codes: Ints,
    cuts: Ints,
    thresholds: Floats,
    discounts: Floats,
    out: Floats,
    threads: int,
) -> None: ...
