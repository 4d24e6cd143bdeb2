"""Metrics of places with all items of the catalogue as candidates, from the scores of a block of users."""

from rankbench.core.contract import Floats, Int32s
from rankbench.kernels.metrics.requests import Requests
from rankbench.kernels.shared.rows import Pattern, SparseRows

def per_user(
    *, scores: Floats, users: Int32s, held_out: SparseRows, seen: Pattern, requests: Requests, out: Floats, threads: int
) -> None: ...
