"""RankBoost with thresholds on features, users side by side: no pair is ever listed."""

from rankbench.contract import Floats, Int8s, Int32s, Int64s

def count_runs(
    indptr: Int64s,
    items: Int32s,
    pairs: Floats,
    feature_indptr: Int64s,
    feature_indices: Int32s,
    feature_values: Floats,
    n_features: int,
    n_entries: Int64s,
    n_runs: Int64s,
    threads: int,
) -> None: ...
def list_runs(
    indptr: Int64s,
    items: Int32s,
    pairs: Floats,
    feature_indptr: Int64s,
    feature_indices: Int32s,
    feature_values: Floats,
    n_features: int,
    user_entries: Int64s,
    user_runs: Int64s,
    entries: Int32s,
    thresholds: Floats,
    run_starts: Int64s,
    run_features: Int32s,
    run_sides: Int8s,
    threads: int,
) -> None: ...
def weigh(
    indptr: Int64s,
    values: Floats,
    pairs: Floats,
    scores: Floats,
    pulls: Floats,
    totals: Floats,
    losses: Floats,
    threads: int,
) -> None: ...
def boost(
    indptr: Int64s,
    values: Floats,
    pairs: Floats,
    user_chunks: Int64s,
    chunk_users: Int32s,
    chunk_runs: Int64s,
    run_starts: Int64s,
    run_features: Int32s,
    run_sides: Int8s,
    entries: Int32s,
    thresholds: Floats,
    scores: Floats,
    pulls: Floats,
    totals: Floats,
    losses: Floats,
    features: Int32s,
    cuts: Floats,
    weights: Floats,
    threads: int,
) -> None: ...
