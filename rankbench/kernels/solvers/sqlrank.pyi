"""The loss of lists under the permutation model of Plackett and Luce, and its derivatives by the scores."""

from rankbench.core.contract import Floats, Int32s, Int64s

def list_slopes(
    *, indptr: Int64s, scores: Floats, sigmoid: bool, losses: Floats, slopes: Floats, threads: int
) -> None: ...
def order_ties(*, groups: Int64s, keys: Floats, out: Int64s, threads: int) -> None: ...
def means_to_the_end(
    *, places: Int32s, length: int, weights: Floats, shares: Floats, vectors: Floats, out: Floats
) -> None: ...
