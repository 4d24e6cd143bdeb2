"""RankSVM separately: a linear function of item features for every task by itself (Herbrich et al. 1999)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Floats, Model, Step
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.methods.folding import with_features
from rankbench.methods.losses import CODES, CurvedLoss
from rankbench.methods.newton import CONVERGED, gap_of
from rankbench.methods.pair_tasks import PairTasks, TaskFeatures
from rankbench.methods.penalties import squared_norm
from rankbench.methods.tasks import checked_features
from rankbench.models import UserWeights
from rankbench.names import AddedLater, Checked, checked_threads
from rankbench.names.ranges import Weight


@dataclass(frozen=True)
class RankSVMSeparate(Checked):
    """A linear function of item features per task, learned from that task alone, with a duality gap.

    min_w_i 1/2 |w_i|^2 + C sum over task i's pairs of L(w_i . (x_j - x_k)), item j the better one (Cheng et al. 2018,
    section 3, «separately»), for every i by truncated Newton, tasks side by side. L is the squared hinge
    max(0, 1 - m)^2, or log(1 + e^-m) for `loss=logistic`. Of ratings all strict pairs count; with the squared hinge
    none is listed. A task without a pair contributes nothing and has w = 0: all items score zero.
    """

    C: Weight = 1.0
    loss: Annotated[CurvedLoss, AddedLater()] = "squared-hinge"
    learns_from: ClassVar = (Ratings, Comparisons)
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    title: ClassVar = "RankSVM, separate"
    version: ClassVar = 4  # the line search is exact

    def steps(self, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The zero model, then a model after each Newton step of all tasks, until every task has converged."""
        threads = checked_threads(threads)
        tasks = PairTasks.of(train, threads, CODES[self.loss])
        features = TaskFeatures(tasks, checked_features(train.item_features))
        weights = np.zeros((tasks.n_tasks, features.d))
        done = np.zeros(tasks.n_tasks, np.int32)
        while True:
            yield self._step(features, weights)
            if done.all():
                return
            features.newton(self.C, CONVERGED, weights, done)

    def fold_in(self, model: Model, view: View, threads: int = 1) -> Model:
        """The model of these users, who are trained alone as all users are."""
        *_, step = self.steps(with_features(model, view), np.random.default_rng(0), threads)
        return step.model

    def _step(self, features: TaskFeatures, weights: Floats) -> Step:
        tasks = features.tasks

        def objective() -> float:
            return float(0.5 * squared_norm(weights) + self.C * tasks.at(features.scores(weights)).loss)

        def gap() -> float:
            """The sum of the gaps of all tasks."""
            pairs = tasks.at(features.scores(weights))
            return gap_of(weights.ravel(), -self.C * features.sums(pairs.slope).ravel(), pairs, self.C)

        return Step(UserWeights(features.features.matrix, weights, np.zeros(len(weights))), objective, gap)
