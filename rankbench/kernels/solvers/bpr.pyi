"""Negatives for implicit feedback: for every positive an item that its user has not, all equally likely."""

from rankbench.contract import Int32s
from rankbench.kernels.shared.rows import Pattern

def draw_negatives(*, positives: Pattern, n_items: int, seed: int, out: Int32s, threads: int) -> None: ...
