"""Ranking metrics per user over CSR arrays; indptr is int64, codes and cuts are int32."""

from rankbench.contract import Floats, Ints

PAIRWISE_ERROR: int
NDCG: int
NDCG_LINEAR: int
PRECISION: int
KENDALL: int
SPEARMAN: int

def per_user(
    indptr: Ints,
    truth: Floats,
    scores: Floats,
    codes: Ints,
    cuts: Ints,
    relevant: Floats,
    discounts: Floats,
    threads: int,
) -> Floats: ...
