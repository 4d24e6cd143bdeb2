"""Ranking metrics per user over CSR arrays; indptr is int64, codes and cuts are int32."""

from rankbench.contract import Floats, Ints

PAIRWISE_ERROR: int
NDCG: int
NDCG_LINEAR: int
PRECISION: int
KENDALL: int
SPEARMAN: int
RECALL: int
RECIPROCAL_RANK: int
AVERAGE_PRECISION: int
AUC: int
MISRANKING: int
TEST_TRAIN_ERROR: int
BOTH_ERROR: int
ORDERED_PAIRS: int
TEST_TRAIN_PAIRS: int
BOTH_PAIRS: int
HINGE_RANK_1: int
HINGE_RANK_2: int
MAGNITUDE_1: int
MAGNITUDE_2: int
ONE_SIDED_1: int
ONE_SIDED_2: int
INSENSITIVE_1: int
INSENSITIVE_2: int

def per_user(
    indptr: Ints,
    truth: Floats,
    scores: Floats,
    codes: Ints,
    cuts: Ints,
    thresholds: Floats,
    discounts: Floats,
    threads: int,
    train_indptr: Ints | None = None,
    train_truth: Floats | None = None,
    train_scores: Floats | None = None,
) -> Floats: ...
