"""The draws behind the splits; indptr and quotas are int64, items int32, labels int8."""

import numpy as np

from rankbench.contract import Ints

def deal(indptr: Ints, quotas: Ints, rng: np.random.Generator) -> Ints: ...
def against_unrated(
    indptr: Ints,
    items: Ints,
    n_items: int,
    out_indptr: Ints,
    rng: np.random.Generator,
) -> tuple[Ints, Ints]: ...
