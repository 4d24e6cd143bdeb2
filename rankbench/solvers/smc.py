"""Standard matrix completion: the nuclear norm fitted to the ratings themselves (Candes and Plan 2010)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankbench.contract import Determinism, Floats, Step
from rankbench.data.views import Ratings
from rankbench.methods.completion import Completion, Descent, LowRankMatrix, ObservedEntries, Pull
from rankbench.models import Factors
from rankbench.names import Limits, check, checked_threads


@dataclass(frozen=True, eq=False)
class RatingsTarget:
    """The half squared distance from given values, a set of one point."""

    values: Floats

    def pull(self, x: Floats) -> Floats:
        """values - x."""
        return self.values - x

    def measure(self, x: Floats) -> Pull:
        """The same; <w, v> is least at the only point there is."""
        way = self.values - x
        return Pull(way, float(way @ way) / 2, float(way @ self.values))


@dataclass(frozen=True)
class SMC:
    """What retargeted completion is compared with: min over X of lam |X|_* + 1/2 |X at the ratings - ratings|^2.

    Gunasekar et al. (2016, section 6) take the ratings as they are. Less each user's mean (`centred`) they
    are much easier to complete, since a user's level is then no longer paid for by the nuclear norm; the
    mean is put back into the scores. A descent ends at a duality gap of `tolerance` of the objective.
    Where nothing was observed of a user or an item, the optimum is X = 0 and the score 0 or the mean.
    """

    lam: Annotated[float, Limits(above=0)] = 16.0
    centred: bool = False
    rank: Annotated[int, Limits(low=1)] | None = None  # a bound that saves memory; the gap tells if it binds
    tolerance: Annotated[float, Limits(low=0)] = 1e-5
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def __post_init__(self) -> None:
        check(self)

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """Zeros, then a model after each step until the gap is closed."""
        threads = checked_threads(threads)
        completion, means = self.completion(train, threads)
        yield self._step(completion, self.lam, means, Descent.zero(completion.observed))
        if len(train):
            for point in completion.descent(self.lam, rng):
                yield self._step(completion, self.lam, means, point)

    def completion(self, train: Ratings, threads: int) -> tuple[Completion, Floats]:
        """The problem, and what is to be added to each user's scores."""
        counts = np.diff(train.indptr)
        means = np.bincount(train.users, train.values, train.n_users) / np.maximum(counts, 1) * self.centred
        observed = ObservedEntries.of(train.indptr, train.items, train.n_items, threads)
        target = RatingsTarget(train.values - means[train.users])
        return Completion(observed, target, self.rank, self.tolerance), means

    def _step(self, completion: Completion, lam: float, means: Floats, point: Descent) -> Step:
        def objective() -> float:
            return completion.objective(lam, point)

        def gap() -> float:
            """The certificate of this point."""
            return completion.gap(lam, point)

        return Step(_raised(point.matrix, means) if self.centred else point.matrix.factors(), objective, gap)


def _raised(matrix: LowRankMatrix, means: Floats) -> Factors:
    """The model that scores by the matrix and each user's mean."""
    plain = matrix.factors()
    return Factors(np.column_stack([plain.users, means]), np.column_stack([plain.items, np.ones(len(plain.items))]))
