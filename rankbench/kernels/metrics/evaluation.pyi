"""Ranking metrics per user over CSR arrays, candidates the user's own held-out items, users side by side."""

from rankbench.contract import Floats, Int32s, Int64s

def per_user(
    indptr: Int64s,
    truth: Floats,
    scores: Floats,
    codes: Int32s,
    cuts: Int32s,
    thresholds: Floats,
    discounts: Floats,
    threads: int,
    train_indptr: Int64s | None = None,
    train_truth: Floats | None = None,
    train_scores: Floats | None = None,
) -> None: ...
