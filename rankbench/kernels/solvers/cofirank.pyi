"""CofiRank's losses of a user's scores, and the bundle method for every user's vector."""

from rankbench.contract import Floats, Int32s, Int64s

def losses(
    loss: int,
    indptr: Int64s,
    items: Int32s,
    targets: Floats,
    anchors: Floats,
    scales: Floats,
    weights: Floats,
    discounts: Floats,
    users: Floats,
    factors: Floats,
    out: Floats,
    slopes: Floats,
    threads: int,
) -> None: ...
def users_half(
    loss: int,
    indptr: Int64s,
    items: Int32s,
    targets: Floats,
    anchors: Floats,
    scales: Floats,
    weights: Floats,
    discounts: Floats,
    users: Floats,
    factors: Floats,
    lam: float,
    tolerance: float,
    most_planes: int,
    objectives: Floats,
    gaps: Floats,
    threads: int,
) -> None: ...
def item_slopes(
    indptr: Int64s, raters: Int32s, places: Int64s, slopes: Floats, users: Floats, out: Floats, threads: int
) -> None: ...
def weigh(products: Floats, offsets: Floats, lam: float, tolerance: float, beta: Floats) -> None: ...
