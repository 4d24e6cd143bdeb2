"""SLIM: sparse linear weights between items, by a nonnegative elastic net (Ning and Karypis 2011)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from rankbench.core.contract import Determinism, Model, Step
from rankbench.data.views import Ratings
from rankbench.kernels.solvers import slim as kernel
from rankbench.methods.item_weights import Interactions, Values, with_users
from rankbench.methods.newton import CONVERGED
from rankbench.models import ItemWeights
from rankbench.names import Checked, checked_threads
from rankbench.names.ranges import Least, Weight


@dataclass(frozen=True)
class SLIM(Checked):
    """Sparse weights of at least 0 between items that reconstruct each user's row from the user's other items.

    min over W >= 0 with diag W = 0 of 1/2 |X - X W|^2 + lam/2 |W|^2 + l1 sum W. The weights to one item are an
    elastic net of their own; a step is a pass of coordinate descent over all weights, with the items' Gram matrix in
    memory, and the duality gap is summed over the items. `values` says what a rating counts in X: 1 (binary), its value
    (ratings), or its value less the user's mean (centred). Ratings below `least` are left out. Items without a rating
    score NaN; for users without one all others tie.
    """

    l1: Weight = 1.0
    lam: Weight = 100.0
    values: Values = "binary"
    least: Least = None
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 2  # gaps where the error points away from the item

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """Weights of zero, then a model after each pass, until the gap vanishes."""
        threads = checked_threads(threads)
        rated = Interactions.of(train, self.values, self.least)
        gram = rated.gram(threads)
        weights, slopes = np.zeros_like(gram), gram.copy()  # a row: the scored item
        state: dict[str, Any] = {"gram": gram, "weights": weights, "slopes": slopes, "l1": self.l1, "lam": self.lam}
        measured = np.empty((len(gram), 2))
        while True:
            kernel.measure(out=measured, **state, threads=threads)
            objective, gap = measured.sum(axis=0).tolist()
            model = rated.model(scipy.sparse.csr_array(weights).T.tocsr())
            yield Step(model, partial(float, objective), partial(float, gap))
            if gap <= CONVERGED * objective:
                return
            kernel.sweep(**state, threads=threads)

    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> ItemWeights:
        """The model of these users: their rows, and the weights as they are."""
        checked_threads(threads)
        return with_users(model, ratings, self.values, self.least)
