"""The random draws that splits are made of: rows dealt out to parts, and rated items compared with unrated ones."""

import numpy as np

from rankbench.core.contract import Int8s, Int32s, Int64s
from rankbench.kernels.shared.rows import Pattern

def deal(*, indptr: Int64s, quotas: Int64s, rng: np.random.Generator) -> Int8s: ...
def against_unrated(
    *, rated: Pattern, n_items: int, out_indptr: Int64s, rng: np.random.Generator
) -> tuple[Int32s, Int32s]: ...
