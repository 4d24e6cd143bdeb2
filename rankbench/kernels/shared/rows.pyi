"""Rows of sparse matrices, and comparisons by user, as kernels take them."""

from rankbench.core.contract import Floats, Int32s, Int64s

class Pattern:
    def __init__(self, *, indptr: Int64s, columns: Int32s) -> None: ...

class SparseRows:
    def __init__(self, *, indptr: Int64s, columns: Int32s, values: Floats) -> None: ...

class ComparisonRows:
    def __init__(self, *, indptr: Int64s, better: Int32s, worse: Int32s) -> None: ...
