"""The sum of max(|r_j - r_i| - eps, 0) over all pairs of m residuals, rounded at its kink, without a list of pairs."""

from rankbench.core.contract import Floats, Int32s

def measure(
    *, r: Floats, eps: float, mu: float, order: Int32s, bounds: Int32s, gradient: Floats
) -> tuple[float, float, float]: ...
def near_laplacian_times(*, order: Int32s, bounds: Int32s, x: Floats) -> Floats: ...
