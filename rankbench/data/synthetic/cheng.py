"""Tasks that share a few basic ranking functions of the items' features (Cheng et al. 2018)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankbench.core.contract import Floats
from rankbench.data.synthetic.drawing import (
    Amount,
    Count,
    Pairable,
    WithItemsPerUser,
    inner,
    observed,
    product,
    random_pairs,
)
from rankbench.data.views import Comparisons, Ratings
from rankbench.names import Limits


@dataclass(frozen=True)
class FeatureLowRank(WithItemsPerUser):
    """Scores of low rank in the items' features (Cheng et al. 2018, section 6, Tables 2 and 3).

    r_ui = x_i^T U v_u with standard normal X (items x features), U (features x rank), V (users x rank);
    the sizes are the paper's. Each task observes the scores of `per_user` random items, and all their pairs are
    used: the paper's "800 pairs for each user" give its Table 2 if they are nearly all the pairs among 41 items
    (41 * 40 / 2 = 820), with 20 more items to test on. With `pairs` above zero, each task instead has that many
    comparisons of independently drawn pairs, which is the literal reading of the paper.

    The paper adds no noise. The standard deviation of the noise is `noise` times that of the scores,
    sqrt(features * rank); it is added to every rating, and to every difference that decides a comparison.
    """

    users: Count = 1000
    items: Pairable = 10_000
    features: Count = 64
    rank: Count = 20
    per_user: Pairable = 61
    pairs: Annotated[int, Limits(low=0)] = 0
    noise: Amount = 0.0
    title: ClassVar = "low rank in features"
    version: ClassVar[int] = 1

    def view(self, rng: np.random.Generator) -> Ratings | Comparisons:
        """Ratings or comparisons drawn from the model, with the item features."""
        basis = rng.standard_normal((self.features, self.rank))
        weights = product(rng.standard_normal((self.users, self.rank)), basis)  # W^T, a row per task
        features = rng.standard_normal((self.items, self.features))
        if self.pairs:
            return self._comparisons(rng, weights, features)
        users, items = observed(rng, self.users, self.items, self.per_user)
        values = inner(weights, features, users, items) + self._disturbance(rng, len(users))
        return Ratings.from_triples(users, items, values, self.users, self.items, features)

    def _rows(self) -> str:
        return f"{self.users * self.pairs} comparisons" if self.pairs else super()._rows()

    def _comparisons(self, rng: np.random.Generator, weights: Floats, features: Floats) -> Comparisons:
        users, one, other = random_pairs(rng, self.users, self.items, self.pairs)
        gaps = inner(weights, features, users, one) - inner(weights, features, users, other)
        wins = gaps + self._disturbance(rng, len(users)) > 0
        better, worse = np.where(wins, one, other), np.where(wins, other, one)
        return Comparisons.from_triples(users, better, worse, self.users, self.items, features)

    def _disturbance(self, rng: np.random.Generator, size: int) -> Floats:
        spread = self.noise * np.sqrt(self.features * self.rank)
        return np.asarray(spread * rng.standard_normal(size))
