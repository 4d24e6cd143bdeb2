"""RankSVM jointly: one linear function of item features for all tasks (Herbrich et al. 1999)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from rankbench.contract import Determinism, Floats, Step
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.methods.newton import Linear, minimise
from rankbench.methods.pair_tasks import PairTasks
from rankbench.methods.tasks import check_features
from rankbench.models import ItemScores
from rankbench.names import Limits, check, checked_threads


@dataclass(frozen=True)
class RankSVMJoint:
    """One linear function of item features that all tasks share, by truncated Newton with a duality gap.

    min_w 1/2 |w|^2 + C sum over all tasks' pairs of max(0, 1 - w . (x_j - x_k))^2, item j the better one
    (Cheng et al. 2018, section 3, «jointly»). Of ratings all strict pairs count and none is listed. Every
    item has a score, and so has every user: who has no pair contributes nothing and is told the others'.
    """

    C: Annotated[float, Limits(above=0)] = 1.0
    learns_from: ClassVar = (Ratings, Comparisons)
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def __post_init__(self) -> None:
        check(self)

    def steps(self, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """Zero, then a model after each Newton step, until the gap vanishes or no step helps any more."""
        threads = checked_threads(threads)
        check_features(train.item_features)
        tasks = PairTasks.of(train, threads)
        for point in minimise(tasks, _through_items(tasks, train.item_features), self.C):
            yield point.step(ItemScores(np.asarray(train.item_features @ point.unknowns)))


def _through_items(tasks: PairTasks, features: Any) -> Linear:
    """From w to each row's score, by way of a score per item."""
    n_items, d = features.shape

    def forward(weights: Floats) -> Floats:
        """X w, by row."""
        return np.asarray(features @ weights)[tasks.items]

    def backward(slope: Floats) -> Floats:
        """Its transpose."""
        return np.asarray(features.T @ np.bincount(tasks.items, slope, n_items))

    squared = features**2

    def nearly_undo(weights: Floats) -> Callable[[Floats], Floats]:
        """Division by the diagonal."""
        diagonal = 1 + squared.T @ np.bincount(tasks.items, weights, n_items)
        return lambda x: np.asarray(x / diagonal)

    return Linear(d, forward, backward, nearly_undo)
