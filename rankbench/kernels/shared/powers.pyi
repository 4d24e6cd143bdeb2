"""Powers of e as kernels compute them, four at a time; powers.pxd has the series."""

from rankbench.core.contract import Floats

def exponentials(*, values: Floats, less: float, out: Floats) -> None: ...
