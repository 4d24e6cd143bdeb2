"""The factors of users and items that pairwise gradient descent changes in place."""

from rankbench.core.contract import Float32s, Floats

class DescentFactors:
    def __init__(
        self,
        *,
        users: Floats | Float32s,
        items: Floats | Float32s,
        user_shrink: Floats,
        item_shrink: Floats,
        step: float,
        decay: float,
        held: int = -1,
    ) -> None: ...
