"""RP3beta: a random walk of three steps between users and items (Paudel, Christoffel, Newell, Bernstein 2017)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Model, Step
from rankbench.data.views import Ratings
from rankbench.methods.item_weights import Interactions, nearest_items, with_users
from rankbench.models import ItemWeights
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import Count, Least

Exponent = Annotated[float, Limits(low=0, high=10)]


@dataclass(frozen=True)
class RP3Beta(Checked):
    """The score of an item is how often a random walk from the user ends there, less for items that many have rated.

    The walk goes from the user to an item that the user rated, from there to a user who rated it, and from this one
    to an item. With d the numbers of ratings of a user or an item, the weight from item j to item i is
    the sum over users v who rated both of (1 / d_j)^alpha (1 / d_v)^alpha, divided by d_i^beta; each item keeps its
    `neighbours` largest weights, of equal ones those first in the catalogue, and none to itself. The score of i is the
    sum over the user's items j of these weights. With alpha = 1 the steps are probabilities; beta = 0 is the walk as it
    is (P3alpha), and a larger beta favours what few have rated. Values are ignored, except that ratings below
    `least` are left out. Items without a rating score NaN; for users without one all others tie.
    """

    alpha: Exponent = 1.0
    beta: Exponent = 0.5
    neighbours: Count = 100
    least: Least = None
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """One model."""
        threads = checked_threads(threads)
        rated = Interactions.of(train, "binary", self.least)
        rows = rated.ratings
        of_user = np.diff(rows.indptr)
        of_item = np.maximum(1, np.bincount(rows.items, minlength=rows.n_items)).astype(np.float64)
        walked = replace(rows, values=np.repeat(np.maximum(1, of_user) ** (-self.alpha / 2), of_user))
        norms = of_item**self.beta
        weights = nearest_items(walked, norms, 0.0, self.neighbours, threads)
        # The kernel divides by both norms; of the item where the step begins (a row) only d^alpha is wanted.
        weights.data *= np.repeat(of_item ** (self.beta - self.alpha), np.diff(weights.indptr))
        yield Step(rated.model(weights))

    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> ItemWeights:
        """The model of these users: their rows, and the weights as they are."""
        checked_threads(threads)
        return with_users(model, ratings, "binary", self.least)
