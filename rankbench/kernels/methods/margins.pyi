"""The sum of each user's losses of comparisons under factors; shared/losses.pxd has the losses."""

from rankbench.core.contract import Floats
from rankbench.kernels.shared.losses import Loss
from rankbench.kernels.shared.rows import ComparisonRows

def losses(
    *, loss: Loss, comparisons: ComparisonRows, users: Floats, items: Floats, out: Floats, threads: int
) -> None: ...
