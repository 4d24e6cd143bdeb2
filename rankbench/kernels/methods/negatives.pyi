"""Negatives for implicit feedback: for every positive a random item that is not a positive of the user."""

from rankbench.core.contract import Floats, Int32s, Records
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.shared.rows import Pattern

def draw_negatives(
    *, positives: Pattern, n_items: int, seed: int, out: Int32s, threads: int, popular: bool = False
) -> None: ...
def draw_violators(
    *,
    positives: Pattern,
    factors: DescentFactors,
    wanted: Records,
    seed: int,
    out: Int32s,
    weights: Floats,
    threads: int,
) -> None: ...
