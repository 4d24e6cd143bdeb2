"""The draws behind the splits: rows dealt out to parts, and rated items set against unrated ones."""

import numpy as np

from rankbench.contract import Int32s, Int64s

def deal(indptr: Int64s, quotas: Int64s, rng: np.random.Generator) -> None: ...
def against_unrated(
    indptr: Int64s, items: Int32s, n_items: int, out_indptr: Int64s, rng: np.random.Generator
) -> None: ...
