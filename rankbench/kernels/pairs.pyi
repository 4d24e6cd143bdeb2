"""The strict pairs that ratings imply; counts and both indptr are int64, items int32."""

import numpy as np

from rankbench.contract import Floats, Ints

def count(indptr: Ints, values: Floats) -> Ints: ...
def list_pairs(
    indptr: Ints,
    items: Ints,
    values: Floats,
    counts: Ints,
    out_indptr: Ints,
    rng: np.random.Generator,
) -> tuple[Ints, Ints]: ...
