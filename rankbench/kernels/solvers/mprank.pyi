"""MPRank's closed forms, one small linear system for each user, with users in parallel."""

from rankbench.core.contract import Floats, Int32s
from rankbench.kernels.shared.rows import SparseRows

def dual(
    *, gram: Floats, ratings: SparseRows, users: Int32s, C: Floats, coefficients: Floats, offsets: Floats, threads: int
) -> int: ...
def primal(
    *, features: Floats, ratings: SparseRows, users: Int32s, C: Floats, weights: Floats, offsets: Floats, threads: int
) -> int: ...
def path(
    *, matrix: Floats, ratings: SparseRows, users: Int32s, C: Floats, errors: Floats, primal: bool, threads: int
) -> int: ...
