"""The loss over all pairs of residuals, rounded at its kink, without a list of pairs; order and bounds are int32."""

from rankbench.contract import Floats, Ints

def measure(
    r: Floats, eps: float, mu: float, order: Ints, bounds: Ints, gradient: Floats
) -> tuple[float, float, float]: ...
def near_laplacian_times(order: Ints, bounds: Ints, x: Floats) -> Floats: ...
