"""Multi-task RankSVM: a shared linear function of item features and a deviation per task (Evgeniou and Pontil 2004)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.contract import Determinism, Floats, Step
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.methods.newton import Linear, minimise
from rankbench.methods.pair_tasks import PairTasks, TaskFeatures
from rankbench.methods.tasks import checked_features
from rankbench.models import UserWeights
from rankbench.names import check, checked_threads
from rankbench.names.ranges import Weight


@dataclass(frozen=True)
class RankSVMVar:
    """A linear function w + v_i per task, shared part and deviation, by truncated Newton with a duality gap.

    min over w, v of shared/2 |w|^2 + private/2 sum_i |v_i|^2 + C sum over all tasks' pairs of
    max(0, 1 - (w + v_i) . (x_j - x_k))^2 (Cheng et al. 2018, «var»). Only shared/C and private/C matter: a
    large `private` approaches RankSVM jointly, a large `shared` separately. Of ratings all strict pairs count
    and none is listed. A user without a pair contributes nothing and has v = 0: the shared part scores.
    """

    C: Weight = 1.0
    shared: Weight = 1.0
    private: Weight = 1.0
    learns_from: ClassVar = (Ratings, Comparisons)
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    title: ClassVar = "RankSVM, variances"
    version: ClassVar = 1

    def __post_init__(self) -> None:
        check(self)

    def steps(self, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The zero model, then a model after each Newton step, until the gap vanishes or the line search fails."""
        threads = checked_threads(threads)
        given = checked_features(train.item_features)
        tasks = PairTasks.of(train, threads)
        features, squared = TaskFeatures(tasks, given), TaskFeatures(tasks, given.squared())
        for point in minimise(tasks, self._scaled(features, squared), self.C):
            weights = self._weights(point.unknowns, features.d)
            yield point.step(UserWeights(given.matrix, weights, np.zeros(len(weights))))

    def _scaled(self, features: TaskFeatures, squared: TaskFeatures) -> Linear:
        """The linear map of the unknowns sqrt(shared) w and sqrt(private) v_i: they make the penalty 1/2 |x|^2."""

        def forward(unknowns: Floats) -> Floats:
            """The score (w + v_i) . x of each row."""
            return features.scores(self._weights(unknowns, features.d))

        def backward(slope: Floats) -> Floats:
            """The transpose of `forward`: a gradient by the unknowns from slopes by row."""
            sums = features.sums(slope)
            return np.concatenate([sums.sum(axis=0) / np.sqrt(self.shared), sums.ravel() / np.sqrt(self.private)])

        def preconditioner(weights: Floats) -> Callable[[Floats], Floats]:
            """The inverse of the Hessian without products of different features: one system per feature."""
            return _arrows(squared.sums(weights), self.shared, self.private)

        return Linear((features.tasks.n_tasks + 1) * features.d, forward, backward, preconditioner)

    def _weights(self, unknowns: Floats, d: int) -> Floats:
        """The weights w + v_i, a row per task."""
        own = unknowns[d:].reshape(-1, d) / np.sqrt(self.private)
        return np.asarray(unknowns[:d] / np.sqrt(self.shared) + own)


def _arrows(curvature: Floats, shared: float, private: float) -> Callable[[Floats], Floats]:
    """The solution of I + [h/shared summed, h/sqrt(shared private); its transpose, h/private] for each feature.

    `curvature` holds h, tasks x features. Each matrix has the shape of an arrow: it is diagonal except for
    the shared unknown's row and column, and eliminating the other unknowns leaves one equation.
    """
    coupling, own = curvature / np.sqrt(shared * private), 1 + curvature / private
    pivot = 1 + (curvature / (shared * own)).sum(axis=0)  # h/shared - coupling^2/own, summed

    def solve(right: Floats) -> Floats:
        """The solution, the shared unknowns first."""
        d = curvature.shape[1]
        first, others = right.ravel()[:d], right.ravel()[d:].reshape(-1, d)
        middle = (first - (coupling / own * others).sum(axis=0)) / pivot
        return np.concatenate([middle, ((others - coupling * middle) / own).ravel()])

    return solve
