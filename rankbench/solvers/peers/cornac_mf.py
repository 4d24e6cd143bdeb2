"""Matrix factorization with biases, by stochastic gradient descent of the package cornac (Koren et al. 2009)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Needs, Step
from rankbench.data.views import Ratings
from rankbench.methods import peers
from rankbench.methods.factors import seed_of
from rankbench.names import Checked, checked_threads
from rankbench.names.ranges import Rank, StepSize, Weight


@dataclass(frozen=True)
class CornacMF(Checked):
    """`cornac.models.MF`: ratings fitted by a mean, biases of users and items, and products of their vectors.

    A step is one pass of the package over the ratings in the order of users, with learning rate `step`, in single
    precision. Its threads overwrite each other's vectors, so results differ from run to run with more than one. Users
    and items without a rating score NaN.
    """

    rank: Rank = 10
    lam: Weight = 0.02
    step: StepSize = 0.01
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.RACY
    version: ClassVar = 1
    title: ClassVar = "MF of cornac"
    needs: ClassVar = Needs(("cornac.models", "cornac.models.mf.backend_cpu"), peers.INSTALL)

    def steps(  # pragma: no cover: only with the extra peers
        self, train: Ratings, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """A model after each pass."""
        threads = checked_threads(threads)
        package = peers.required("cornac.models", "CornacMF")
        if not len(train):
            yield Step(peers.nothing_learned(train, self.rank))
            return
        data = peers.cornac_data(train, train.values)
        trained = package.MF(
            k=self.rank, max_iter=1, learning_rate=self.step, lambda_reg=self.lam, seed=seed_of(rng) % 2**31
        )
        yield from peers.cornac_passes(trained, "CornacMF", data, train, threads)
