"""Passes of coordinate descent on sparse, nonnegative weights between items, with a duality gap for each item."""

from rankbench.core.contract import Floats

def sweep(*, gram: Floats, weights: Floats, slopes: Floats, l1: float, lam: float, threads: int) -> None: ...
def measure(
    *, gram: Floats, weights: Floats, slopes: Floats, l1: float, lam: float, out: Floats, threads: int
) -> None: ...
