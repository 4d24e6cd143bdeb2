"""Weights between items in closed form, EASE, by the package cornac (Steck 2019)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Needs, Step
from rankbench.data.views import Ratings
from rankbench.methods import peers
from rankbench.methods.item_weights import Interactions
from rankbench.names import Checked, checked_threads
from rankbench.names.ranges import Least, Weight


@dataclass(frozen=True)
class CornacEASE(Checked):
    """`cornac.models.EASE`: the problem of `ease`, with a general inverse of the items' Gram matrix.

    `values` says whether a rating counts 1 (binary) or its value (ratings); ratings below `least` are left out. Weights
    below zero stay, as in the paper. Items without a rating score NaN.
    """

    lam: Weight = 100.0
    values: peers.Counts = "binary"
    least: Least = None
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.FIXED_THREADS
    version: ClassVar = 1
    title: ClassVar = "EASE of cornac"
    needs: ClassVar = Needs(("cornac.models",), peers.INSTALL)

    def steps(  # pragma: no cover: only with the extra peers
        self, train: Ratings, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """One model."""
        checked_threads(threads)
        package = peers.required("cornac.models", "CornacEASE")
        rated = Interactions.of(train, self.values, self.least)
        rows = rated.ratings
        if not len(rows):
            yield Step(rated.model(np.zeros((rows.n_items, rows.n_items))))
            return
        trained = package.EASE(lamb=self.lam, posB=False, verbose=False)
        with peers.fitting("CornacEASE", np.linalg.LinAlgError):
            trained.fit(peers.cornac_data(rows, rows.values))
        yield Step(rated.model(np.ascontiguousarray(trained.B, np.float64)))
