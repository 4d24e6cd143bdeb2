"""The vectors of users whom a model was not trained on, each at the minimum of their own objective."""

from rankbench.core.contract import Floats
from rankbench.kernels.methods.all_pairs import TaskPairs
from rankbench.kernels.shared.losses import Loss
from rankbench.kernels.shared.rows import Pattern

def pairs(
    *, tasks: TaskPairs, items: Floats, offsets: Floats, weight: float, lam: float, users: Floats, threads: int
) -> None: ...
def rivals(
    *, positives: Pattern, items: Floats, offsets: Floats, loss: Loss, lam: float, users: Floats, threads: int
) -> None: ...
def choices(*, positives: Pattern, items: Floats, offsets: Floats, lam: float, users: Floats, threads: int) -> None: ...
