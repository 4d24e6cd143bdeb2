"""Factorization RankSVM: what both of its steps need of all tasks, and the whole of a step over the tasks."""

from rankbench.contract import Floats, Int32s, Int64s

def score(indptr: Int64s, items: Int32s, users: Floats, factors: Floats, out: Floats, threads: int) -> None: ...
def block_starts(indptr: Int64s, items: Int32s, width: int, out: Int32s) -> None: ...
def scatter(
    indptr: Int64s, items: Int32s, starts: Int32s, width: int, weights: Floats, users: Floats, out: Floats, threads: int
) -> None: ...
def users_step(
    indptr: Int64s,
    level: Int32s,
    levels: Int32s,
    pair_indptr: Int64s,
    better: Int32s,
    worse: Int32s,
    items: Int32s,
    factors: Floats,
    users: Floats,
    C: float,
    newton: int,
    cg: int,
    forcing: float,
    threads: int,
) -> None: ...
def sparse_times(indptr: Int64s, indices: Int32s, data: Floats, matrix: Floats, out: Floats, threads: int) -> None: ...
def dense_times(features: Floats, matrix: Floats, out: Floats, threads: int) -> None: ...
def transposed_times(features: Floats, matrix: Floats, out: Floats, threads: int) -> None: ...
