"""Factorization RankSVM; every indptr is int64, ids, places and levels are int32."""

from rankbench.contract import Floats, Ints

def score(indptr: Ints, items: Ints, users: Floats, factors: Floats, out: Floats, threads: int) -> None: ...
def block_starts(indptr: Ints, items: Ints, width: int, out: Ints) -> None: ...
def scatter(
    indptr: Ints, items: Ints, starts: Ints, width: int, weights: Floats, users: Floats, out: Floats, threads: int
) -> None: ...
def users_step(
    indptr: Ints,
    level: Ints,
    levels: Ints,
    pair_indptr: Ints,
    better: Ints,
    worse: Ints,
    items: Ints,
    factors: Floats,
    users: Floats,
    C: float,
    newton: int,
    cg: int,
    forcing: float,
    threads: int,
) -> None: ...
def sparse_times(indptr: Ints, indices: Ints, data: Floats, matrix: Floats, out: Floats, threads: int) -> None: ...
def dense_times(features: Floats, matrix: Floats, out: Floats, threads: int) -> None: ...
def transposed_times(features: Floats, matrix: Floats, out: Floats, threads: int) -> None: ...
