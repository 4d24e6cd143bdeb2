"""Benchmarks of each split on scaled-down ratings in the shape of MovieLens 20M (144 per user, long tails)."""

import numpy as np

from rankbench.data.splits import Split, split
from rankbench.data.views import Ratings

PER_USER, USERS_PER_ITEM = 144, 5  # MovieLens 20M: 20,000,263 ratings, 138,493 users, 27,278 items


class Splits:
    """One cut of each kind of split; ten times as many rows should take ten times as long."""

    params = (
        (
            "given-folds",
            "n-per-user[n=50]",
            "items-per-task",
            "per-user",
            "leave-one-out[n=10]",
            "half-per-user[references=100]",
            "entries",
            "cold-items",
            "binary[C=100]",
            "comparisons[n=100]",
        ),
        (100_000, 1_000_000),
    )
    param_names = ("split", "ratings")

    def setup(self, protocol: str, ratings: int) -> None:
        """Make the data, and the parts of one split to hash."""
        self.view = long_tailed(ratings)
        self.parts: Split = split(self.view, protocol)

    def time_cut(self, protocol: str, ratings: int) -> None:
        """The time from the view to the parts."""
        split(self.view, protocol)

    def time_hash(self, protocol: str, ratings: int) -> None:
        """The time of the SHA-256 of the parts."""
        _ = self.parts.hash

    def peakmem_cut(self, protocol: str, ratings: int) -> None:
        """The largest resident size of the process, including the view."""
        split(self.view, protocol)


def long_tailed(rows: int) -> Ratings:
    """About `rows` ratings in half stars with five folds; users have at least twenty ratings, a few have many."""
    rng = np.random.default_rng(0)
    users = rows // PER_USER
    items = max(users // USERS_PER_ITEM, 300)
    weights = rng.lognormal(0.0, 1.2, users)
    counts = np.minimum(20 + (weights / weights.sum() * (rows - 20 * users)).astype(np.int64), items // 2)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    places = np.arange(indptr[-1]) - np.repeat(indptr[:-1], counts)
    width = items / np.repeat(
        counts, counts
    )  # each rating's item is drawn from its own interval, at least two items wide
    drawn = np.floor(places * width + rng.random(len(places)) * (width - 1)).astype(np.int64)
    values = rng.integers(1, 11, len(places)) / 2
    return Ratings(indptr, drawn, values, items, folds=rng.integers(1, 6, len(places)))
