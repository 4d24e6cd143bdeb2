"""Continuous ratings with meaningful differences, not only a meaningful order (Cortes et al. 2007)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.core.contract import Floats
from rankbench.data.origins import Generated
from rankbench.data.synthetic.drawing import Amount, Count, Pairable, check_per_user, observed
from rankbench.data.views import Ratings
from rankbench.names import Checked


@dataclass(frozen=True)
class Magnitudes(Checked):
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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_per_user(self.per_user, self.items)

    @property
    def origin(self) -> Generated:
        """The origin: generated data of this size."""
        return Generated(f"{self.users} users, {self.items} items, {self.users * self.per_user} ratings")

    def view(self, rng: np.random.Generator) -> Ratings:
        """Ratings drawn from the model, with the item features."""
        features = rng.standard_normal((self.items, self.features)) / np.sqrt(self.features)
        slopes = rng.standard_normal((self.users, self.features))
        waves = 3.0 * rng.standard_normal((self.users, self.features))
        scores = _products(slopes, features) + self.bend * np.cos(_products(waves, features))
        users, items = observed(rng, self.users, self.items, self.per_user)
        values = scores[users, items] + self.noise * rng.standard_normal(len(users))
        return Ratings.from_triples(users, items, values, self.users, self.items, features)


def _products(left: Floats, right: Floats) -> Floats:
    """The inner products of all rows of the one with all rows of the other, column by column in their order.

    BLAS sums in an order that depends on the processor, and so do the last bits.
    """
    total = np.zeros((len(left), len(right)))
    for one, other in zip(left.T, right.T, strict=True):
        total += np.multiply.outer(one, other)
    return total
