"""RankBoost with thresholds on features; starts are int64, ids and entries int32, sides int8."""

from rankbench.contract import Floats, Ints

def count_runs(
    indptr: Ints,
    items: Ints,
    pairs: Floats,
    feature_indptr: Ints,
    feature_indices: Ints,
    feature_values: Floats,
    n_features: int,
    n_entries: Ints,
    n_runs: Ints,
    threads: int,
) -> None: ...
def list_runs(
    indptr: Ints,
    items: Ints,
    pairs: Floats,
    feature_indptr: Ints,
    feature_indices: Ints,
    feature_values: Floats,
    n_features: int,
    user_entries: Ints,
    user_runs: Ints,
    entries: Ints,
    thresholds: Floats,
    run_starts: Ints,
    run_features: Ints,
    run_sides: Ints,
    threads: int,
) -> None: ...
def weigh(
    indptr: Ints,
    values: Floats,
    pairs: Floats,
    scores: Floats,
    pulls: Floats,
    totals: Floats,
    losses: Floats,
    threads: int,
) -> None: ...
def boost(
    indptr: Ints,
    values: Floats,
    pairs: Floats,
    user_chunks: Ints,
    chunk_users: Ints,
    chunk_runs: Ints,
    run_starts: Ints,
    run_features: Ints,
    run_sides: Ints,
    entries: Ints,
    thresholds: Floats,
    scores: Floats,
    pulls: Floats,
    totals: Floats,
    losses: Floats,
    features: Ints,
    cuts: Floats,
    weights: Floats,
    threads: int,
) -> None: ...
