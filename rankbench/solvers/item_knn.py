"""Nearest neighbours between items (Sarwar et al. 2001; for top-n lists Deshpande and Karypis 2004)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Model, Step
from rankbench.data.views import Ratings
from rankbench.methods.item_weights import Interactions, Values, nearest_items, with_users
from rankbench.models import ItemWeights
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import Count, Least


@dataclass(frozen=True)
class ItemKNN(Checked):
    """The score of an item is the sum of its similarities to the user's items, over the item's nearest neighbours.

    The similarity of items i and j is x_i . x_j / (|x_i| |x_j| + shrink), x_i the column of item i with an entry for
    each user who rated it: the cosine, less sure the fewer users two items share. The neighbours of i are the
    `neighbours` items of the highest similarity above 0, of equal ones those first in the catalogue; the score of i
    for user u is the sum over those that u rated of the similarity times x_uj. `values` says what a rating counts as
    x_uj: 1 (binary), its value (ratings), or its value less the user's mean (centred), which alone tells a liked item
    from a disliked one where both are rated. Ratings below `least` are left out. A user's own items are scored too,
    without their similarity to themselves. Items without a rating score NaN; for users without one all others tie.
    """

    neighbours: Count = 100
    shrink: Annotated[float, Limits(low=0, high=1e12)] = 10.0
    values: Values = "binary"
    least: Least = None
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1
    title: ClassVar = "item kNN"

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """One model."""
        threads = checked_threads(threads)
        rated = Interactions.of(train, self.values, self.least)
        weights = nearest_items(rated.ratings, rated.norms(), self.shrink, self.neighbours, threads)
        yield Step(rated.model(weights.T.tocsr()))  # a row: the user's item, a column: the scored

    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> ItemWeights:
        """The model of these users: their rows, and the weights as they are."""
        checked_threads(threads)
        return with_users(model, ratings, self.values, self.least)
