"""The strict pairs that ratings imply: how many each user has, all of them, or some of them drawn at random."""

import numpy as np

from rankbench.core.contract import Int32s, Int64s
from rankbench.kernels.shared.rows import SparseRows

def count(*, ratings: SparseRows) -> Int64s: ...
def list_pairs(
    *, ratings: SparseRows, counts: Int64s, out_indptr: Int64s, rng: np.random.Generator
) -> tuple[Int32s, Int32s]: ...
