"""The squared hinge over all pairs of each task's ratings, in near-linear time, or over listed pairs."""

from rankbench.contract import Floats, Int32s, Int64s

def rank_values(indptr: Int64s, values: Floats, threads: int) -> None: ...
def place_pairs(indptr: Int64s, better: Int32s, worse: Int32s, n_items: int) -> None: ...
def evaluate_all(
    indptr: Int64s,
    level: Int32s,
    levels: Int32s,
    pair_indptr: Int64s,
    better: Int32s,
    worse: Int32s,
    scores: Floats,
    windows: Int32s,
    degree: Floats,
    slope: Floats,
    losses: Floats,
    threads: int,
) -> None: ...
def curve_all(
    indptr: Int64s,
    level: Int32s,
    levels: Int32s,
    pair_indptr: Int64s,
    better: Int32s,
    worse: Int32s,
    scores: Floats,
    windows: Int32s,
    degree: Floats,
    direction: Floats,
    out: Floats,
    threads: int,
) -> None: ...
