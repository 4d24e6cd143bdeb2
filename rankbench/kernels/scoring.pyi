"""Inner products of some rows with all columns; chosen is int32."""

from rankbench.contract import Floats, Ints

def products(rows: Floats, chosen: Ints, columns: Floats, out: Floats, threads: int) -> None: ...
