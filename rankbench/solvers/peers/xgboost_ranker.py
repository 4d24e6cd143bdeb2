"""Gradient-boosted trees on item features with a pairwise loss, by the package XGBoost (Chen and Guestrin 2016)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.core.contract import Determinism, Needs, Step
from rankbench.data.views import Ratings
from rankbench.methods import peers
from rankbench.methods.factors import seed_of
from rankbench.methods.tasks import checked_features, ordered
from rankbench.models import ItemScores
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import StepSize


@dataclass(frozen=True)
class XGBoostRanker(Checked):
    """XGBoost's `rank:pairwise` or `rank:ndcg`, each user a query: one order for all users, from item features alone.

    Users do not enter as features, so this is the rival of `ranksvm-joint` and `global`, and not of personal solvers;
    it ranks unseen items. Labels are the ranks of the ratings among the distinct ones, cut into 31 levels if there are
    more. A step is one tree of at most `depth` levels, times `step`. The rows of features are copied once for each
    rating.
    """

    loss: Literal["pairwise", "ndcg"] = "pairwise"
    step: StepSize = 0.3
    depth: Annotated[int, Limits(low=1, high=30)] = 6
    lam: Annotated[float, Limits(low=0, high=1e12)] = 1.0
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.FIXED_THREADS
    version: ClassVar = 1
    title: ClassVar = "ranker of XGBoost"
    needs: ClassVar = Needs(("xgboost",), peers.INSTALL)

    def steps(  # pragma: no cover: only with the extra peers
        self, train: Ratings, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """A model after each tree, from none on."""
        threads = checked_threads(threads)
        package = peers.required("xgboost", "XGBoostRanker")
        features, kept = checked_features(train.item_features), ordered(train)
        scores = np.zeros(train.n_items)
        yield Step(ItemScores(scores))
        if not len(kept):
            return
        settings = {
            "objective": f"rank:{self.loss}",
            "eta": self.step,
            "max_depth": self.depth,
            "lambda": self.lam,
            "nthread": threads,
            "seed": seed_of(rng) % 2**31,
            "tree_method": "hist",
            "verbosity": 0,
        }
        data = package.DMatrix(
            peers.table_of(features.rows(kept.items)), peers.levels_of(kept.values), qid=kept.users, nthread=threads
        )
        catalogue = package.DMatrix(peers.table_of(features), nthread=threads)
        trained, done = package.Booster(settings, [data]), 0
        while True:
            trained.update(data, done)
            grown = trained.predict(catalogue, output_margin=True, iteration_range=(done, done + 1))
            scores, done = scores + grown.astype(np.float64), done + 1
            yield Step(ItemScores(scores))
