"""RankSVM jointly: one linear function of item features for all tasks (Herbrich et al. 1999)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Floats, Step
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.features.matrix import Features
from rankbench.features.single import SingleFeatures
from rankbench.methods.losses import CODES, CurvedLoss
from rankbench.methods.newton import Linear, minimise
from rankbench.methods.pair_tasks import PairTasks
from rankbench.methods.tasks import features_as_stored
from rankbench.models import ItemScores
from rankbench.names import AddedLater, Checked, checked_threads
from rankbench.names.ranges import Weight


@dataclass(frozen=True)
class RankSVMJoint(Checked):
    """One linear function of item features that all tasks share, by truncated Newton with a duality gap.

    min_w 1/2 |w|^2 + C sum over all tasks' pairs of L(w . (x_j - x_k)), item j the better one (Cheng et al. 2018,
    section 3, «jointly»), with the squared hinge L(m) = max(0, 1 - m)^2, or log(1 + e^-m) for `loss=logistic`: Bradley
    and Terry's model with scores that are linear in the features. Of ratings all strict pairs count; with the squared
    hinge none is listed. Every item has a score, and it is the same for every user, those without a pair included.
    """

    C: Weight = 1.0
    loss: Annotated[CurvedLoss, AddedLater()] = "squared-hinge"
    learns_from: ClassVar = (Ratings, Comparisons)
    needs_features: ClassVar = True
    takes_single: ClassVar = True  # features of 32 bits as they are
    determinism: ClassVar = Determinism.EXACT
    title: ClassVar = "RankSVM, joint"
    version: ClassVar = 3  # the line search is exact, and directions are where steps gain little

    def steps(self, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The zero model, then a model after each Newton step, until the gap vanishes or the line search fails."""
        threads = checked_threads(threads)
        features = features_as_stored(train.item_features)
        tasks = PairTasks.of(train, threads, CODES[self.loss])
        for point in minimise(tasks, _through_items(tasks, features), self.C):
            yield point.step(ItemScores(features.times(point.unknowns)))


def _through_items(tasks: PairTasks, features: Features | SingleFeatures) -> Linear:
    """The linear map from w to each row's score, by way of a score per item."""
    n_items, d = features.shape

    def forward(weights: Floats) -> Floats:
        """The score of each row under weights w."""
        return features.times(weights)[tasks.items]

    def backward(slope: Floats) -> Floats:
        """The transpose of `forward`: a gradient by w from slopes by row."""
        return features.transposed_times(np.asarray(np.bincount(tasks.items, slope, n_items), np.float64))

    squared = features.squared()

    def preconditioner(weights: Floats) -> Callable[[Floats], Floats]:
        """The preconditioner: division by the Hessian's diagonal."""
        diagonal = 1 + squared.transposed_times(np.asarray(np.bincount(tasks.items, weights, n_items), np.float64))
        return lambda x: np.asarray(x / diagonal)

    return Linear(d, forward, backward, preconditioner)
