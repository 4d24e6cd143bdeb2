"""Standard matrix completion: least squares on the ratings with a nuclear-norm penalty (Candes and Plan 2010)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np

from rankbench.core.contract import Determinism, Floats, Model, Step
from rankbench.data.views import Ratings
from rankbench.methods.completion import Completion, Descent, LowRankMatrix, Pull
from rankbench.methods.entries import Entries
from rankbench.methods.folding import penalised, ridge, with_vectors
from rankbench.methods.warm_starts import factors_of
from rankbench.models import Factors
from rankbench.names import AddedLater, Checked, checked_threads
from rankbench.names.ranges import Rank, Share, Tolerance, Weight


@dataclass(frozen=True, eq=False)
class RatingsTarget:
    """The loss of completion by least squares: half the squared distance from the ratings."""

    values: Floats

    def pull(self, x: Floats) -> Floats:
        """The residual, values - x."""
        return self.values - x

    def measure(self, x: Floats) -> Pull:
        """The same with its loss; the set has one point, the values, at which <w, v> is least."""
        way = self.values - x
        return Pull(way, float(way @ way) / 2, float(way @ self.values))


@dataclass(frozen=True)
class SMC(Checked):
    """Standard matrix completion, min over X of lam |X|_* + 1/2 |X at the ratings - ratings|^2.

    Gunasekar et al. (2016, section 6) compare retargeted completion with it and take the ratings as they are.
    Less each user's mean (`centred`) they are much easier to complete, since the nuclear norm then does not
    penalise a user's mean, which is added to the scores again. A descent ends at a duality gap of `tolerance` of
    the objective. For users and items without a rating, the optimum is X = 0 and the score 0 or the mean.

    `share` sets lam as a share of the largest useful penalty, which is the smallest one at which X = 0 is optimal;
    `lam` then counts for nothing. One grid of shares serves data of any size. With `continuation` a descent from
    X = 0 first takes a few steps at larger penalties, so that it reaches the same optimum in less time if lam is small.
    """

    lam: Weight = 16.0
    centred: bool = False
    rank: Rank | None = None  # at most this, to save memory; if too low, the gap stays large
    tolerance: Tolerance = 1e-5
    share: Annotated[Share | None, AddedLater()] = None
    continuation: Annotated[bool, AddedLater()] = False
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    path: ClassVar = MappingProxyType({"lam": "falls", "share": "falls"})
    version: ClassVar = 4  # a descent on few items ends as soon as it has converged

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """X = 0, then a model after each step until the gap is at most the tolerance."""
        threads = checked_threads(threads)
        completion, means = self.completion(train, threads)
        lam = completion.penalty(self.lam, self.share)
        for point in completion.points(lam, rng, continued=self.continuation):
            yield completion.step(lam, point, self._model(completion.model(lam, point), means))

    def steps_from(self, model: Model, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """This model of the same data, found at another penalty, then a model after each step, as in `steps`."""
        threads = checked_threads(threads)
        completion, means = self.completion(train, threads)
        lam = completion.penalty(self.lam, self.share)
        found = factors_of(model, completion.observed.shape, "SMC")
        columns = slice(-1 if self.centred else None)  # the last column holds the users' means
        matrix = LowRankMatrix.product(found.users[:, columns], found.items[:, columns])
        for point in completion.points(lam, rng, Descent.at(matrix, completion.observed)):
            yield completion.step(lam, point, self._model(completion.model(lam, point), means))

    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> Factors:
        """The model of these users, each with the least squares that the nuclear norm leaves to them at the optimum."""
        (known, penalties), threads = penalised(model), checked_threads(threads)
        columns = slice(-1 if self.centred else None)
        plain = Factors(known.users[:, columns], known.items[:, columns])
        rated, vectors = with_vectors(plain, ratings, threads, zeros=False)
        means = self.means(rated)
        rated = replace(rated, values=rated.values - means[rated.users])
        users = ridge(rated, vectors, penalties[columns], threads, "SMC")
        return Factors(np.column_stack([users, means]) if self.centred else users, known.items, penalties)

    def means(self, train: Ratings) -> Floats:
        """What is added to each user's scores: with `centred` the mean of their ratings, else 0."""
        counts = np.diff(train.indptr)
        found: Floats = np.bincount(train.users, train.values, train.n_users) / np.maximum(counts, 1) * self.centred
        return found

    def completion(self, train: Ratings, threads: int) -> tuple[Completion, Floats]:
        """The completion problem, and the mean to be added to each user's scores."""
        means = self.means(train)
        observed = Entries.of(train.indptr, train.items, train.n_items, threads)
        target = RatingsTarget(train.values - means[train.users])
        return Completion(observed, target, self.rank, self.tolerance), means

    def _model(self, plain: Factors, means: Floats) -> Factors:
        """The model that scores by these factors, with `centred` plus each user's mean."""
        if not self.centred:
            return plain
        users, items = np.column_stack([plain.users, means]), np.column_stack([plain.items, np.ones(len(plain.items))])
        return Factors(users, items, None if plain.penalties is None else np.append(plain.penalties, 0.0))
