"""Continuous ratings with meaningful differences, not only a meaningful order (Cortes et al. 2007)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.data.synthetic.drawing import Amount, Count, Pairable, WithItemsPerUser, observed, product
from rankbench.data.views import Ratings


@dataclass(frozen=True)
class Magnitudes(WithItemsPerUser):
    """Continuous ratings that are functions of item features, for MPRank and SVRank (Cortes et al. 2007).

    y = w_u . x + bend * cos(a_u . x) + noise: linear for bend = 0, else nonlinear, so that kernels help.
    """

    users: Count = 60
    items: Pairable = 300
    features: Count = 8
    per_user: Pairable = 100
    bend: Amount = 1.0
    noise: Amount = 0.3
    title: ClassVar = "magnitudes"
    version: ClassVar[int] = 1

    def view(self, rng: np.random.Generator) -> Ratings:
        """Ratings drawn from the model, with the item features."""
        features = rng.standard_normal((self.items, self.features)) / np.sqrt(self.features)
        slopes = rng.standard_normal((self.users, self.features))
        waves = 3.0 * rng.standard_normal((self.users, self.features))
        scores = product(slopes, features) + self.bend * np.cos(product(waves, features))
        users, items = observed(rng, self.users, self.items, self.per_user)
        values = scores[users, items] + self.noise * rng.standard_normal(len(users))
        return Ratings.from_triples(users, items, values, self.users, self.items, features)
