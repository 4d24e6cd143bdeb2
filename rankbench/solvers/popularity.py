"""Popularity: items in the order of how many users rated them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Step
from rankbench.data.views import Ratings
from rankbench.models import ItemScores
from rankbench.names import Checked, checked_threads


@dataclass(frozen=True)
class Popularity(Checked):
    """The number of users who rated an item is its score, the same for every user; the value of a rating is ignored.

    It has nothing to tune, and shows what a solver for positive examples owes to the popularity of items alone. Items
    without a rating score NaN.
    """

    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """One model."""
        checked_threads(threads)
        raters = np.bincount(train.items, minlength=train.n_items)
        yield Step(ItemScores(np.where(raters > 0, raters.astype(np.float64), np.nan)))
