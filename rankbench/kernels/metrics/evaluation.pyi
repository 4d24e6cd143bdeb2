"""Ranking metrics of each user whose candidates are the user's own held-out items, with users side by side."""

from rankbench.core.contract import Floats, Int64s
from rankbench.kernels.metrics.requests import Requests

class RatedScores:
    def __init__(self, *, indptr: Int64s, truth: Floats, scores: Floats) -> None: ...

def per_user(*, test: RatedScores, requests: Requests, threads: int, train: RatedScores | None = None) -> Floats: ...
