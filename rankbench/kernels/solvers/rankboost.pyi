"""RankBoost with thresholds on features, with users in parallel and without a list of pairs."""

from rankbench.core.contract import Floats, Int32s
from rankbench.kernels.shared.rows import SparseRows

class RunList:
    def __init__(
        self, *, ratings: SparseRows, pairs: Floats, features: SparseRows, n_features: int, threads: int
    ) -> None: ...
    def __len__(self) -> int: ...

class Boosting:
    def __init__(self, *, ratings: SparseRows, pairs: Floats, totals: Floats, losses: Floats) -> None: ...

def weigh(*, boosting: Boosting, threads: int) -> None: ...
def boost(
    *, boosting: Boosting, runs: RunList, features: Int32s, cuts: Floats, weights: Floats, threads: int
) -> None: ...
