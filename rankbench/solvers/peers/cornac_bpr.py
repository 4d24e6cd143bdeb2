"""Bayesian personalised ranking by the package cornac (Rendle et al. 2009)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Needs, Step
from rankbench.data.views import Ratings
from rankbench.methods import peers
from rankbench.methods.factors import seed_of
from rankbench.names import Checked, checked_threads
from rankbench.names.ranges import Least, Rank, StepSize, Weight


@dataclass(frozen=True)
class CornacBPR(Checked):
    """`cornac.models.BPR`: positive examples above negatives drawn uniformly from the catalogue, with item biases.

    A step is one pass of the package: as many draws as there are positive examples, with learning rate `step`, in
    single precision. Ratings of at least `least` are positive examples, without `least` all are. Its threads overwrite
    each other's vectors, so results differ from run to run with more than one. Users and items without a rating score
    NaN.
    """

    rank: Rank = 10
    lam: Weight = 0.01
    step: StepSize = 0.05
    least: Least = None
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.RACY
    version: ClassVar = 1
    title: ClassVar = "BPR of cornac"
    needs: ClassVar = Needs(("cornac.models",), peers.INSTALL)

    def steps(  # pragma: no cover: only with the extra peers
        self, train: Ratings, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """A model after each pass."""
        threads = checked_threads(threads)
        package = peers.required("cornac.models", "CornacBPR")
        kept = train.at_least(self.least)
        if not len(kept):
            yield Step(peers.nothing_learned(train, self.rank))
            return
        data = peers.cornac_data(kept, np.ones(len(kept)))
        trained = package.BPR(
            k=self.rank, max_iter=1, learning_rate=self.step, lambda_reg=self.lam, seed=seed_of(rng) % 2**31
        )
        yield from peers.cornac_passes(trained, "CornacBPR", data, train, threads)
