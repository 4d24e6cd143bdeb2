"""SVRank over pairs: coordinate ascent on the dual of each user's problem, with users in parallel."""

from rankbench.core.contract import Floats, Int32s, Int64s
from rankbench.kernels.shared.rows import SparseRows

class PairProblem:
    def __init__(self, *, C: float, eps: float, tolerance: float, rounds: int) -> None: ...

class PairDuals:
    def __init__(self, *, starts: Int64s, values: Floats) -> None: ...

class Functions:
    def __init__(self, *, coefficients: Floats, offsets: Floats, primal: Floats, gap: Floats) -> None: ...

def pair_rounds(
    *,
    problem: PairProblem,
    gram: Floats,
    ratings: SparseRows,
    users: Int32s,
    duals: PairDuals,
    functions: Functions,
    threads: int,
) -> None: ...
