"""Gradient-boosted trees on item features with LambdaRank, by the package LightGBM (Ke et al. 2017, Burges 2010)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Needs, Step
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.methods import peers
from rankbench.methods.factors import seed_of
from rankbench.methods.tasks import checked_features, ordered
from rankbench.models import ItemScores
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import StepSize

_MOST = 10_000  # rows of one query that LightGBM takes


@dataclass(frozen=True)
class LightGBMRanker(Checked):
    """LightGBM's `lambdarank` with each user as a query: one order for all users, a function of item features alone.

    Users do not enter as features, so this is the rival of `ranksvm-joint` and `global`, and not of personal solvers;
    it ranks unseen items. Labels are the ranks of the ratings among the distinct ones, cut into 31 levels if there are
    more, with the gain 2^level - 1. A step is one tree of at most `leaves` leaves, each with at least `rows` ratings,
    times `step`. The rows of features are copied once for each rating.
    """

    step: StepSize = 0.1
    leaves: Annotated[int, Limits(low=2, high=100_000)] = 31
    rows: Annotated[int, Limits(low=1, high=1_000_000)] = 20
    lam: Annotated[float, Limits(low=0, high=1e12)] = 0.0
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.FIXED_THREADS
    version: ClassVar = 1
    title: ClassVar = "LambdaRank of LightGBM"
    needs: ClassVar = Needs(("lightgbm",), peers.INSTALL)

    def steps(  # pragma: no cover: only with the extra peers
        self, train: Ratings, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """A model after each tree, from none on."""
        threads = checked_threads(threads)
        package = peers.required("lightgbm", "LightGBMRanker")
        features, kept = checked_features(train.item_features), ordered(train)
        scores = np.zeros(train.n_items)
        yield Step(ItemScores(scores))
        if not len(kept):
            return
        sizes = np.diff(kept.indptr)
        if (most := int(sizes.max())) > _MOST:
            problem = (
                f"user {int(sizes.argmax())} has {most} training ratings: LightGBM takes at most {_MOST} of a user"
            )
            raise UserError(problem, subject="LightGBMRanker", remedy="take a split with fewer, such as n-per-user")
        settings = {
            "objective": "lambdarank",
            "learning_rate": self.step,
            "num_leaves": self.leaves,
            "min_data_in_leaf": self.rows,
            "lambda_l2": self.lam,
            "num_threads": threads,
            "seed": seed_of(rng) % 2**31,
            "deterministic": True,
            "force_row_wise": True,
            "feature_pre_filter": False,
            "verbosity": -1,
        }
        data = package.Dataset(
            peers.table_of(features.rows(kept.items)),
            peers.levels_of(kept.values),
            group=sizes[sizes > 0],
            params=settings,
        )
        catalogue = peers.table_of(features)
        trained, done = package.Booster(settings, data), 0
        while True:
            trained.update()
            grown = trained.predict(
                catalogue, start_iteration=done, num_iteration=1, raw_score=True, num_threads=threads
            )
            scores, done = scores + grown, done + 1
            yield Step(ItemScores(scores))
