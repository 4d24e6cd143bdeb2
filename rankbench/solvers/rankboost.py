"""RankBoost with thresholds on item features, one ranking per user (Freund et al. 2003; Cortes et al. 2007)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Annotated, ClassVar, Literal, TypeVar

import numpy as np
import scipy.sparse

from rankbench.arrays.npz import sealed
from rankbench.core.contract import Determinism, Floats, Int32s, Ints, Step
from rankbench.data.views import Ratings
from rankbench.features.matrix import Matrix, features_of
from rankbench.kernels.data import pairs as pairs_kernel
from rankbench.kernels.metrics import evaluation as metrics_kernel
from rankbench.kernels.metrics.codes import Code
from rankbench.kernels.shared.rows import SparseRows
from rankbench.kernels.solvers import rankboost as kernel
from rankbench.metrics.evaluation import mean
from rankbench.metrics.rows import KernelRow, requested
from rankbench.models import Stumps
from rankbench.models.asking import sparse_rows
from rankbench.names import AddedLater, Checked, Limits, checked_threads

_WORTH_A_THREAD = 1 << 17  # entries per round that justify one more thread
_ROOM = 16  # rounds that the arrays have capacity for at first
_ERRORS = {
    "half": requested([KernelRow(Code.PAIRWISE_ERROR)], 0),
    "wrong": requested([KernelRow(Code.MISRANKING)], 0),
}

Array = TypeVar("Array", Int32s, Floats)
Thresholds = tuple[Int32s, Floats, Floats]  # a round's feature, cut and weight of each user


@dataclass(frozen=True)
class RankBoost(Checked):
    """A weighted sum of thresholds on item features per user, built by boosting: one more in every round.

    min over h of the mean of exp(h(x_i) - h(x_k)) over the pairs y_i < y_k, by coordinate descent: with pairs
    weighted by that exponential, D, a round takes the threshold f(x) = [x_feature > cut] of largest |r|, r =
    sum_ik D(i, k) (f(x_k) - f(x_i)), and gives it the weight alpha = 1/2 ln((1 + r) / (1 - r)), r kept half a
    pair away from 1, where alpha is infinite. A user whose first threshold orders every pair correctly stops:
    every further round would choose the same threshold again. Cuts lie midway between neighbouring values of
    the user's items. As D factors into e^{h_i} and e^{-h_k}, a round costs O(ratings x features), and less if
    many values are equal, as when features are ratings by other users with missing values filled in. The objective,
    the sum of the users' mean losses, falls in every round.

    `rounds=validated` chooses the number of rounds by a validation set, a share of each user's ratings: it also boosts
    on the remaining ratings, finds the number of rounds with the least pairwise error on the validation set (mean over
    users, one number for all users, as in the paper), and keeps this number of the thresholds learnt on all ratings.
    A pair of equal scores counts as one half there or, with `ties=wrong`, as wrong: the paper's misranking (eq. 32).
    Users with fewer than two ratings score NaN. Users with equal ratings, or with items of equal features, score 0.
    """

    rounds: Literal["all", "validated"] = "all"
    held_out: Annotated[float, Limits(above=0, below=1)] = 0.25
    ties: Annotated[Literal["half", "wrong"], AddedLater()] = "half"
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 2

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The model without thresholds, then a model after each round, until no threshold helps any user."""
        threads = checked_threads(threads)
        learners = np.flatnonzero(pairs_kernel.count(ratings=train.rows))
        own, rows = _of_users(train, learners), (len(learners) + (np.diff(train.indptr) < 2)).astype(np.int32)
        rows[learners] = np.arange(len(learners))
        validated = self.rounds == "validated"
        best = _best_rounds(*_hold_back(own, self.held_out, rng), self.ties, threads) if validated else count()
        made = _Rounds.none(len(learners))
        losses = np.ones(len(learners))  # with all scores equal
        objectives = [losses.sum()]

        def step(rounds: int) -> Step:
            """The step with the model of this number of rounds."""
            return Step(made.model(train.item_features, rows, rounds), lambda: float(objectives[rounds]))

        yield step(next(best))
        for number, thresholds in enumerate(_boost(own, losses, threads)):
            made = made.with_round(number, thresholds)
            objectives.append(losses.sum())
            yield step(next(best))


@dataclass(frozen=True)
class _Rounds:
    """The thresholds of all rounds so far, users x rounds, in arrays with capacity for more.

    The last two rows have no thresholds: one for users with no order to learn, who score zero, and one for
    users with fewer than two ratings, who score NaN.
    """

    features: Int32s
    cuts: Floats
    weights: Floats

    @classmethod
    def none(cls, n_users: int) -> "_Rounds":
        """The arrays before the first round."""
        shape = n_users + 2, _ROOM
        return cls(np.zeros(shape, np.int32), np.zeros(shape), np.zeros(shape))

    def with_round(self, number: int, thresholds: Thresholds) -> "_Rounds":
        """The thresholds with one more round; if the arrays are full, they are replaced by arrays twice as large."""
        wider = self
        if number == self.features.shape[1]:
            wider = _Rounds(_twice(self.features), _twice(self.cuts), _twice(self.weights))
        wider.features[:-2, number], wider.cuts[:-2, number], wider.weights[:-2, number] = thresholds
        return wider

    def model(self, item_features: Matrix | None, rows: Int32s, rounds: int) -> Stumps:
        """The model of the first rounds; `rows` holds each user's row."""
        kept, offsets = slice(rounds), np.zeros(len(self.features))
        offsets[-1] = np.nan
        return Stumps(item_features, rows, self.features[:, kept], self.cuts[:, kept], self.weights[:, kept], offsets)


def _twice(column: Array) -> Array:
    """The array with its number of columns doubled; the new columns are zero."""
    return np.hstack([column, np.zeros_like(column)])


def _of_users(train: Ratings, users: Ints) -> Ratings:
    """The ratings of these users only, renumbered from 0."""
    counts = np.diff(train.indptr)[users]
    chosen = np.zeros(train.n_users, bool)
    chosen[users] = True
    kept = np.repeat(chosen, np.diff(train.indptr))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return Ratings(indptr, sealed(train.items[kept]), sealed(train.values[kept]), train.n_items, train.item_features)


def _boost(train: Ratings, losses: Floats, threads: int) -> Iterator[Thresholds]:
    """The thresholds of each round, until none helps any user; `losses` is updated in place."""
    order = np.lexsort((train.values, train.users))
    ratings = SparseRows(indptr=train.indptr, columns=train.items[order], values=train.values[order])
    pairs = pairs_kernel.count(ratings=train.rows).astype(np.float64)
    totals = np.zeros(train.n_users)
    boosting = kernel.Boosting(ratings=ratings, pairs=pairs, totals=totals, losses=losses)
    table = scipy.sparse.csr_array(train.item_features)
    searched = {"features": sparse_rows(table), "n_features": table.shape[1]}
    runs = kernel.RunList(ratings=ratings, pairs=pairs, **searched, threads=threads)
    kernel.weigh(boosting=boosting, threads=threads)
    awake = max(1, min(threads, len(runs) // _WORTH_A_THREAD))  # the bits are the same for any number
    for number in count():
        features, (cuts, weights) = np.zeros(train.n_users, np.int32), np.zeros((2, train.n_users))
        kernel.boost(boosting=boosting, runs=runs, features=features, cuts=cuts, weights=weights, threads=awake)
        if not weights.any():
            return
        yield features, cuts, weights
        if number == 0:  # a weight this large means that the threshold orders all pairs correctly, or all wrongly
            totals[np.abs(weights) > np.arctanh(1 - 0.75 / np.maximum(pairs, 1))] = 0.0


def _hold_back(train: Ratings, share: float, rng: np.random.Generator) -> tuple[Ratings, Ratings]:
    """A random split into training and held-out ratings: each user holds out this share, rounded down."""
    order = np.lexsort((rng.random(len(train)), train.users))
    position = np.arange(len(train)) - np.repeat(train.indptr[:-1], np.diff(train.indptr))
    held = np.zeros(len(train), bool)
    held[order] = position < np.repeat((share * np.diff(train.indptr)).astype(np.int64), np.diff(train.indptr))
    return train.where(~held), train.where(held)


def _best_rounds(train: Ratings, held: Ratings, ties: str, threads: int) -> Iterator[int]:
    """The best number of rounds so far, after every round; the latest if no held-out pair exists."""
    users, scores = held.users, np.zeros(len(held))
    least = _error(held, scores, ties, threads)
    if np.isnan(least):
        yield from count()
    best = 0
    yield best
    for made, (features, cuts, weights) in enumerate(_boost(train, np.zeros(train.n_users), threads), start=1):
        values = features_of(held.item_features).at(held.items, features[users])
        scores += np.where(values > cuts[users], weights[users], 0.0)
        if (error := _error(held, scores, ties, threads)) < least:
            least, best = error, made
        yield best
    while True:
        yield best


def _error(held: Ratings, scores: Floats, ties: str, threads: int) -> float:
    """The pairwise error on held-out ratings, a tie counting one half or as wrong, mean over users."""
    rated = metrics_kernel.RatedScores(indptr=held.indptr, truth=held.values, scores=scores)
    return mean(metrics_kernel.per_user(test=rated, requests=_ERRORS[ties], threads=threads)[0])
