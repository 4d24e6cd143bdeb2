"""What comparisons lose under factors; indptr is int64, better and worse are int32."""

from rankbench.contract import Floats, Ints

SQUARED_HINGE: int
HINGE: int
LOGISTIC: int

def losses(
    loss: int,
    indptr: Ints,
    better: Ints,
    worse: Ints,
    users: Floats,
    items: Floats,
    out: Floats,
    threads: int,
) -> None: ...
