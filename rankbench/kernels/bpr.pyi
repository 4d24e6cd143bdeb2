"""Negatives for implicit feedback; indptr is int64, positives and out are int32."""

from rankbench.contract import Ints

def draw_negatives(indptr: Ints, positives: Ints, n_items: int, seed: int, out: Ints, threads: int) -> None: ...
