"""Factors of users and items by weighted approximate-rank pairwise loss, by the package LightFM (Kula 2015)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rankbench.core.contract import Determinism, Needs, Step
from rankbench.data.views import Ratings
from rankbench.methods import peers
from rankbench.methods.factors import seed_of
from rankbench.names import Checked, checked_threads
from rankbench.names.ranges import Least, Rank, StepSize, Weight

_INSTALL = "pip install lightfm-next"  # LightFM itself does not build with a recent Python; compiled when installed


@dataclass(frozen=True)
class LightFM(Checked):
    """`lightfm.LightFM` without features: positive examples above negatives drawn from the catalogue, with biases.

    With the loss `warp` it draws negatives until one scores too high (Weston et al. 2011), with `bpr` it draws one. A
    step is one epoch of the package with Adagrad and learning rate `step`, in single precision. Ratings of at least
    `least` are positive examples, without `least` all are. Its threads overwrite each other's vectors, so results
    differ from run to run with more than one. Users and items without a rating score NaN.
    """

    rank: Rank = 10
    lam: Weight = 1e-6
    step: StepSize = 0.05
    loss: Literal["warp", "bpr"] = "warp"
    least: Least = None
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.RACY
    version: ClassVar = 1
    title: ClassVar = "LightFM"
    needs: ClassVar = Needs(("lightfm",), _INSTALL)

    def steps(  # pragma: no cover: only with the extra peers
        self, train: Ratings, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """A model after each epoch."""
        threads = checked_threads(threads)
        package = peers.required("lightfm", "LightFM", _INSTALL)
        positives = peers.counts_of(train, "binary", self.least).tocoo()
        if not positives.nnz:
            yield Step(peers.nothing_learned(train, self.rank))
            return
        trained = package.LightFM(
            no_components=self.rank,
            loss=self.loss,
            learning_rate=self.step,
            user_alpha=self.lam,
            item_alpha=self.lam,
            random_state=seed_of(rng) % 2**31,
        )
        while True:
            with peers.fitting("LightFM", ValueError):
                trained.fit_partial(positives, epochs=1, num_threads=threads)
            users = np.column_stack([trained.user_embeddings, np.ones(train.n_users)])
            items = np.column_stack([trained.item_embeddings, trained.item_biases])
            yield Step(peers.factors_of(users, items, train))
