"""What comparisons lose under factors, user by user; the losses themselves stand in shared/losses.pxd."""

from rankbench.contract import Floats
from rankbench.kernels.shared.losses import Loss
from rankbench.kernels.shared.rows import ComparisonRows

def losses(
    *, loss: Loss, comparisons: ComparisonRows, users: Floats, items: Floats, out: Floats, threads: int
) -> None: ...
