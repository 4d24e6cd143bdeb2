"""Comparisons sorted into tasks; indptr is int64, all else int32."""

from rankbench.contract import Ints

def bucket(
    indptr: Ints,
    better: Ints,
    worse: Ints,
    user_group: Ints,
    item_group: Ints,
    pair_of: Ints,
    groups: int,
) -> tuple[Ints, Ints, Ints, Ints]: ...
