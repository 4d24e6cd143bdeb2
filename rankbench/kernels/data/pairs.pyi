"""The strict pairs that ratings imply: how many there are, all of them, or some drawn at random."""

import numpy as np

from rankbench.contract import Floats, Int32s, Int64s

def count(indptr: Int64s, values: Floats) -> None: ...
def list_pairs(
    indptr: Int64s, items: Int32s, values: Floats, counts: Int64s, out_indptr: Int64s, rng: np.random.Generator
) -> None: ...
