"""Negatives for implicit feedback: for every positive a random item that is not a positive of the user."""

from rankbench.core.contract import Int32s
from rankbench.kernels.shared.rows import Pattern

def draw_negatives(*, positives: Pattern, n_items: int, seed: int, out: Int32s, threads: int) -> None: ...
