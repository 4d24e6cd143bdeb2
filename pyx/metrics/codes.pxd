# The metrics that kernels compute; their definitions stand in rankbench/metrics/records.py.

cpdef enum Code:
    PAIRWISE_ERROR
    NDCG
    NDCG_LINEAR
    PRECISION
    KENDALL
    SPEARMAN
    RECALL
    RECIPROCAL_RANK
    AVERAGE_PRECISION
    AUC
    MISRANKING
    TEST_TRAIN_ERROR
    BOTH_ERROR
    ORDERED_PAIRS
    TEST_TRAIN_PAIRS
    BOTH_PAIRS
    HINGE_RANK_1
    HINGE_RANK_2
    MAGNITUDE_1
    MAGNITUDE_2
    ONE_SIDED_1
    ONE_SIDED_2
    INSENSITIVE_1
    INSENSITIVE_2
    KNOWN  # how many there are; no metric
