"""Bayesian personalised ranking by the package implicit (Rendle et al. 2009)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Needs, Step
from rankbench.data.views import Ratings
from rankbench.methods import peers
from rankbench.names import Checked, checked_threads
from rankbench.names.ranges import Least, Rank, StepSize, Weight


@dataclass(frozen=True)
class ImplicitBPR(Checked):
    """`implicit.cpu.bpr.BayesianPersonalizedRanking`: positive examples above negatives drawn by their popularity.

    A step is one iteration of the package: as many draws as there are positive examples, each with a negative that is
    the item of another positive example, in single precision. Ratings of at least `least` are positive examples,
    without `least` all are. Its threads overwrite each other's vectors, so results differ from run to run with more
    than one. Users and items without a rating score NaN.
    """

    rank: Rank = 10
    lam: Weight = 0.01
    step: StepSize = 0.05
    least: Least = None
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.RACY
    version: ClassVar = 1
    title: ClassVar = "BPR of implicit"
    needs: ClassVar = Needs(("implicit.cpu.bpr",), peers.INSTALL)

    def steps(  # pragma: no cover: only with the extra peers
        self, train: Ratings, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """A model after each iteration."""
        threads = checked_threads(threads)
        package = peers.required("implicit.cpu.bpr", "ImplicitBPR")
        gave_up = peers.required("implicit.recommender_base", "ImplicitBPR").ModelFitError
        counts = peers.counts_of(train, "binary", self.least)
        if not counts.nnz:
            yield Step(peers.nothing_learned(train, self.rank))
            return
        trained = package.BayesianPersonalizedRanking(
            factors=self.rank,
            regularization=self.lam,
            learning_rate=self.step,
            iterations=1,
            num_threads=threads,
            random_state=rng,
        )
        while True:
            with peers.fitting("ImplicitBPR", gave_up):
                trained.fit(counts, show_progress=False)
            yield Step(peers.factors_of(trained.user_factors, trained.item_factors, train))
