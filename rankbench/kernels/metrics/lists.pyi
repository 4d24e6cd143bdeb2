"""The items that a model may put on the first k places of each user's list, from the scores of a block of users."""

from rankbench.core.contract import Floats, Int32s, Int64s
from rankbench.kernels.shared.rows import Pattern

class Candidates:
    def __init__(self, *, seen: Pattern, held_out: Pattern) -> None: ...

def ends(*, scores: Floats, users: Int32s, candidates: Candidates, k: int, threads: int) -> tuple[Floats, Int64s]: ...
def members(
    *,
    scores: Floats,
    users: Int32s,
    candidates: Candidates,
    lowest: Floats,
    indptr: Int64s,
    items: Int32s,
    threads: int,
) -> None: ...
