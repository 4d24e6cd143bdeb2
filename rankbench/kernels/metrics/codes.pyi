"""The codes of the metrics that kernels compute."""

from enum import IntEnum

class Code(IntEnum):
    PAIRWISE_ERROR = 0
    NDCG = 1
    NDCG_LINEAR = 2
    PRECISION = 3
    KENDALL = 4
    SPEARMAN = 5
    RECALL = 6
    RECIPROCAL_RANK = 7
    AVERAGE_PRECISION = 8
    AUC = 9
    MISRANKING = 10
    TEST_TRAIN_ERROR = 11
    BOTH_ERROR = 12
    ORDERED_PAIRS = 13
    TEST_TRAIN_PAIRS = 14
    BOTH_PAIRS = 15
    HINGE_RANK_1 = 16
    HINGE_RANK_2 = 17
    MAGNITUDE_1 = 18
    MAGNITUDE_2 = 19
    ONE_SIDED_1 = 20
    ONE_SIDED_2 = 21
    INSENSITIVE_1 = 22
    INSENSITIVE_2 = 23
    KNOWN = 24
