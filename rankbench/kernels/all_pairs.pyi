"""The squared hinge over pairs of scores, task by task; all indptr are int64, ids, places and levels int32."""

from rankbench.contract import Floats, Ints

def rank_values(indptr: Ints, values: Floats, threads: int) -> tuple[Ints, Ints]: ...
def place_pairs(indptr: Ints, better: Ints, worse: Ints, n_items: int) -> tuple[Ints, Ints, Ints, Ints]: ...
def evaluate_all(
    indptr: Ints,
    level: Ints,
    levels: Ints,
    pair_indptr: Ints,
    better: Ints,
    worse: Ints,
    scores: Floats,
    windows: Ints,
    degree: Floats,
    slope: Floats,
    losses: Floats,
    threads: int,
) -> None: ...
def curve_all(
    indptr: Ints,
    level: Ints,
    levels: Ints,
    pair_indptr: Ints,
    better: Ints,
    worse: Ints,
    scores: Floats,
    windows: Ints,
    degree: Floats,
    direction: Floats,
    out: Floats,
    threads: int,
) -> None: ...
