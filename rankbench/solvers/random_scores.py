"""Random scores: the floor that every solver has to be above."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Step
from rankbench.data.views import Comparisons, Ratings
from rankbench.methods.factors import seed_of
from rankbench.models import HashedScores
from rankbench.names import Checked, checked_threads


@dataclass(frozen=True)
class Random(Checked):
    """Every pair of user and item gets a random score from 0 to 1, drawn independently of all others.

    It learns nothing: its values are what a metric gives for no knowledge at all, on this data and with this split.
    """

    learns_from: ClassVar = (Ratings, Comparisons)
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def steps(self, train: Ratings | Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """One model."""
        checked_threads(threads)
        yield Step(HashedScores(seed_of(rng), train.n_users, train.n_items))
