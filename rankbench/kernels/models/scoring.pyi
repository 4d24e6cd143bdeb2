"""Inner products: of some rows with all columns, as scores of a block of users for the whole catalogue; or of pairs."""

from rankbench.core.contract import Floats, Int32s
from rankbench.kernels.shared.rows import SparseRows

def products(*, rows: Floats, chosen: Int32s, columns: Floats, out: Floats, threads: int) -> None: ...
def pairs(*, rows: Floats, chosen: Int32s, columns: Floats, asked: Int32s, out: Floats) -> None: ...
def sparse_pairs(
    *, features: SparseRows, weights: Floats, offsets: Floats, users: Int32s, items: Int32s, out: Floats
) -> None: ...
