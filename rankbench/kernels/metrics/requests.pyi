"""The metrics that a kernel is asked for, as one argument."""

from rankbench.core.contract import Floats, Int32s

class Requests:
    def __init__(self, *, codes: Int32s, cuts: Int32s, thresholds: Floats, discounts: Floats) -> None: ...
