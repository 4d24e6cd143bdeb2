"""Noisy comparisons from a Bradley-Terry-Luce model over low-rank scores (Park et al. 2015)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from rankbench.data.origins import Generated
from rankbench.data.synthetic.drawing import Amount, Count, Pairable, factors, inner, random_pairs
from rankbench.data.views import Comparisons
from rankbench.names import Checked


@dataclass(frozen=True)
class BTL(Checked):
    """Bradley-Terry-Luce comparisons over low-rank scores (Park et al. 2015).

    X = scale * U V^T / sqrt(rank) with standard normal U, V; each user compares `comparisons` random pairs
    of items and prefers j to k with probability 1 / (1 + exp(X_k - X_j)). A larger scale means less noise; with
    scale=0 every comparison is a coin toss.
    """

    users: Count = 300
    items: Pairable = 200
    rank: Count = 3
    comparisons: Count = 100
    scale: Amount = 5.0
    title: ClassVar = "Bradley-Terry-Luce"
    version: ClassVar[int] = 1

    @property
    def origin(self) -> Generated:
        """The origin: generated data of this size."""
        return Generated(f"{self.users} users, {self.items} items, {self.users * self.comparisons} comparisons")

    def view(self, rng: np.random.Generator) -> Comparisons:
        """Comparisons drawn from the model."""
        tastes, traits = factors(rng, self.users, self.items, self.rank)
        users, one, other = random_pairs(rng, self.users, self.items, self.comparisons)
        gaps = inner(tastes, traits, users, one) - inner(tastes, traits, users, other)
        wins = rng.random(len(users)) < expit(self.scale * gaps / np.sqrt(self.rank))
        better, worse = np.where(wins, one, other), np.where(wins, other, one)
        return Comparisons.from_triples(users, better, worse, self.users, self.items)
