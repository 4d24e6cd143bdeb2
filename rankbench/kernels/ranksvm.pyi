"""Pair losses with their state kept, products with features, and Newton steps of single tasks."""

from rankbench.contract import Floats, Ints

def scores_dense(indptr: Ints, items: Ints, features: Floats, weights: Floats, out: Floats, threads: int) -> None: ...
def scores_sparse(
    indptr: Ints,
    items: Ints,
    values: Floats,
    feature_indptr: Ints,
    columns: Ints,
    weights: Floats,
    out: Floats,
    threads: int,
) -> None: ...
def sums_dense(indptr: Ints, items: Ints, features: Floats, slope: Floats, out: Floats, threads: int) -> None: ...
def sums_sparse(
    indptr: Ints,
    items: Ints,
    values: Floats,
    feature_indptr: Ints,
    columns: Ints,
    slope: Floats,
    out: Floats,
    threads: int,
) -> None: ...
def newton_dense(
    indptr: Ints,
    level: Ints,
    levels: Ints,
    pair_indptr: Ints,
    better: Ints,
    worse: Ints,
    items: Ints,
    features: Floats,
    C: float,
    tolerance: float,
    weights: Floats,
    done: Ints,
    threads: int,
) -> None: ...
def newton_sparse(
    indptr: Ints,
    level: Ints,
    levels: Ints,
    pair_indptr: Ints,
    better: Ints,
    worse: Ints,
    items: Ints,
    values: Floats,
    feature_indptr: Ints,
    columns: Ints,
    C: float,
    tolerance: float,
    weights: Floats,
    done: Ints,
    threads: int,
) -> None: ...
