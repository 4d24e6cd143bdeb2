"""RankSVMs with the squared hinge: pair losses of all tasks with their state kept, and Newton steps task by task."""

from rankbench.contract import Floats, Int32s, Int64s

def scores_dense(
    indptr: Int64s, items: Int32s, features: Floats, weights: Floats, out: Floats, threads: int
) -> None: ...
def scores_sparse(
    indptr: Int64s,
    items: Int32s,
    values: Floats,
    feature_indptr: Int32s,
    columns: Int32s,
    weights: Floats,
    out: Floats,
    threads: int,
) -> None: ...
def sums_dense(indptr: Int64s, items: Int32s, features: Floats, slope: Floats, out: Floats, threads: int) -> None: ...
def sums_sparse(
    indptr: Int64s,
    items: Int32s,
    values: Floats,
    feature_indptr: Int32s,
    columns: Int32s,
    slope: Floats,
    out: Floats,
    threads: int,
) -> None: ...
def newton_dense(
    indptr: Int64s,
    level: Int32s,
    levels: Int32s,
    pair_indptr: Int64s,
    better: Int32s,
    worse: Int32s,
    items: Int32s,
    features: Floats,
    C: float,
    tolerance: float,
    weights: Floats,
    done: Int32s,
    threads: int,
) -> None: ...
def newton_sparse(
    indptr: Int64s,
    level: Int32s,
    levels: Int32s,
    pair_indptr: Int64s,
    better: Int32s,
    worse: Int32s,
    items: Int32s,
    values: Floats,
    feature_indptr: Int32s,
    columns: Int32s,
    C: float,
    tolerance: float,
    weights: Floats,
    done: Int32s,
    threads: int,
) -> None: ...
