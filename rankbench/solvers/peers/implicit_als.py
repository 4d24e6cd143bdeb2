"""Weighted matrix factorization of positive examples by the package implicit (Hu, Koren and Volinsky 2008)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Determinism, Needs, Step
from rankbench.data.views import Ratings
from rankbench.methods import peers
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import Least, Rank, Weight


@dataclass(frozen=True)
class ImplicitALS(Checked):
    """`implicit.cpu.als.AlternatingLeastSquares`: every rating is a positive example, every other pair a weak negative.

    A step is one iteration of the package, both halves by its conjugate gradients, in single precision. A positive
    example has the weight alpha x its count: `values` says whether a rating counts 1 (binary) or its value (ratings);
    ratings below `least` are left out. Each step copies and transposes the data again, as the package does in each
    call, which costs a small part of an iteration. Users and items without a rating score NaN.
    """

    rank: Rank = 10
    lam: Weight = 0.01
    alpha: Annotated[float, Limits(low=1e-6, high=1e6)] = 1.0
    values: peers.Counts = "binary"
    least: Least = None
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.FIXED_THREADS
    version: ClassVar = 1
    title: ClassVar = "ALS of implicit"
    needs: ClassVar = Needs(("implicit.cpu.als",), peers.INSTALL)

    def steps(  # pragma: no cover: only with the extra peers
        self, train: Ratings, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """A model after each iteration."""
        threads = checked_threads(threads)
        package = peers.required("implicit.cpu.als", "ImplicitALS")
        gave_up = peers.required("implicit.recommender_base", "ImplicitALS").ModelFitError
        counts = peers.counts_of(train, self.values, self.least)
        if not counts.nnz:
            yield Step(peers.nothing_learned(train, self.rank))
            return
        with peers.fitting("ImplicitALS"):
            trained = package.AlternatingLeastSquares(
                factors=self.rank,
                regularization=self.lam,
                alpha=self.alpha,
                iterations=1,
                num_threads=threads,
                random_state=rng,
            )
        while True:
            with peers.fitting("ImplicitALS", gave_up), one_blas_thread():  # as implicit warns it has to be
                trained.fit(counts, show_progress=False)
            yield Step(peers.factors_of(trained.user_factors, trained.item_factors, train))
