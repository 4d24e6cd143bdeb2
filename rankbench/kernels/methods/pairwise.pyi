"""The factors of users and items that pairwise gradient descent changes in place."""

from rankbench.contract import Floats

class DescentFactors:
    def __init__(
        self, *, users: Floats, items: Floats, user_shrink: Floats, item_shrink: Floats, step: float, decay: float
    ) -> None: ...
