"""CofiRank's losses and its bundle method; indptr and places are int64, items and raters int32."""

from rankbench.contract import Floats, Ints

NDCG: int
ORDINAL: int
REGRESSION: int

def losses(
    loss: int,
    indptr: Ints,
    items: Ints,
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
    indptr: Ints,
    items: Ints,
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
    indptr: Ints, raters: Ints, places: Ints, slopes: Floats, users: Floats, out: Floats, threads: int
) -> None: ...
def weigh(products: Floats, offsets: Floats, lam: float, tolerance: float, beta: Floats) -> float: ...
