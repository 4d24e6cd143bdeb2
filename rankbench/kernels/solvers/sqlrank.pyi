"""The loss of lists under the permutation model of Plackett and Luce, and its derivatives by the scores."""

from rankbench.core.contract import Floats, Int64s

def list_slopes(
    *, indptr: Int64s, scores: Floats, sigmoid: bool, losses: Floats, slopes: Floats, threads: int
) -> None: ...
