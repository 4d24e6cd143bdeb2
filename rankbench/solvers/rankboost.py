"""RankBoost with thresholds on item features, one ranking per user (Freund et al. 2003; Cortes et al. 2007)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Annotated, ClassVar, Literal

import numpy as np
import scipy.sparse

from rankbench.arrays import sealed
from rankbench.contract import Determinism, Floats, Ints, Step
from rankbench.data.views import Ratings
from rankbench.feature_matrix import Matrix, features_of
from rankbench.kernels.data import pairs as pairs_kernel
from rankbench.kernels.metrics import evaluation as metrics_kernel
from rankbench.kernels.metrics.codes import Code
from rankbench.kernels.solvers import rankboost as kernel
from rankbench.metrics.evaluation import mean
from rankbench.metrics.rows import KernelRow, requested
from rankbench.models import Stumps
from rankbench.names import Limits, check, checked_threads

_CHUNK = 1 << 15  # entries in a unit of work of a thread
_WORTH_A_THREAD = 1 << 17  # entries per round that are worth another thread
_ROOM = 16  # rounds that the arrays have capacity for at first
_PAIRWISE_ERROR = requested([KernelRow(Code.PAIRWISE_ERROR)], 0)

Thresholds = tuple[Ints, Floats, Floats]  # of one round: each user's feature, cut and weight


@dataclass(frozen=True)
class RankBoost:
    """A weighted sum of thresholds on item features per user, built by boosting: one more in every round.

    min over h of the mean of exp(h(x_i) - h(x_k)) over the pairs y_i < y_k, by coordinate descent: with pairs
    weighted by that exponential, D, a round takes the threshold f(x) = [x_feature > cut] of largest |r|, r =
    sum_ik D(i, k) (f(x_k) - f(x_i)), and gives it the weight alpha = 1/2 ln((1 + r) / (1 - r)), r kept half a
    pair away from 1, where alpha is infinite. A user whose first threshold orders every pair correctly stops:
    every further round would choose the same threshold again. Cuts lie midway between neighbouring values of
    the user's items. As D factors into e^{h_i} and e^{-h_k}, a round costs O(ratings x features), and less where
    many values are equal, as in other people's ratings with their holes filled. The objective, the sum of the
    users' mean losses, falls in every round.

    `rounds=validated` chooses the number of rounds by held-out ratings, a share of each user's: it boosts on
    the others too, finds the number of rounds with the least held-out pairwise error (mean over users, one
    number for all users, as in the paper) and keeps so many of the thresholds learnt on all ratings. Users with fewer
    than two ratings score NaN; those whose ratings are all alike, or whose items all look alike, zero.
    """

    rounds: Literal["all", "validated"] = "all"
    held_out: Annotated[float, Limits(above=0, below=1)] = 0.25
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 2

    def __post_init__(self) -> None:
        check(self)

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The model without thresholds, then a model after each round, until no threshold helps any user."""
        threads = checked_threads(threads)
        learners = np.flatnonzero(pairs_kernel.count(ratings=train.rows))
        own, rows = _of_users(train, learners), (len(learners) + (np.diff(train.indptr) < 2)).astype(np.int32)
        rows[learners] = np.arange(len(learners))
        validated = self.rounds == "validated"
        best = _best_rounds(*_hold_back(own, self.held_out, rng), threads) if validated else count()
        made = _Rounds.none(len(learners))
        losses = np.ones(len(learners))  # of scores all alike
        objectives = [losses.sum()]

        def step(rounds: int) -> Step:
            """The model of so many rounds."""
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

    features: Ints
    cuts: Floats
    weights: Floats

    @classmethod
    def none(cls, n_users: int) -> "_Rounds":
        """Arrays without a round yet."""
        shape = n_users + 2, _ROOM
        return cls(np.zeros(shape, np.int32), np.zeros(shape), np.zeros(shape))

    def with_round(self, number: int, thresholds: Thresholds) -> "_Rounds":
        """The thresholds with one round more, in the same arrays or, if they are full, in ones twice as large."""
        columns = self.features, self.cuts, self.weights
        if number == self.features.shape[1]:
            columns = tuple(np.hstack([column, np.zeros_like(column)]) for column in columns)  # type: ignore[assignment]
        for column, values in zip(columns, thresholds, strict=True):
            column[:-2, number] = values
        return _Rounds(*columns)

    def model(self, item_features: Matrix | None, rows: Ints, rounds: int) -> Stumps:
        """The model of the first rounds; `rows` holds each user's row."""
        kept, offsets = slice(rounds), np.zeros(len(self.features))
        offsets[-1] = np.nan
        return Stumps(item_features, rows, self.features[:, kept], self.cuts[:, kept], self.weights[:, kept], offsets)


@dataclass(frozen=True)
class _Runs:
    """The index that a round searches for thresholds: per user and feature, the items sorted by value.

    A run goes from the lowest value up or from the highest down. Both end before the largest group of equal
    values, which need not be visited.
    """

    user_chunks: Ints  # the chunks of runs of each user
    chunk_users: Ints
    chunk_runs: Ints
    starts: Ints
    features: Ints
    sides: Ints
    entries: Ints
    thresholds: Floats

    def arrays(self) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Floats]:
        """All arrays, as the kernel takes them."""
        chunks = self.user_chunks, self.chunk_users, self.chunk_runs
        return *chunks, self.starts, self.features, self.sides, self.entries, self.thresholds


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
    values = train.values[order]
    pairs = pairs_kernel.count(ratings=train.rows).astype(np.float64)
    runs = _runs_of(train, train.items[order], pairs, threads)
    scores, pulls = np.zeros((2, len(train)))
    totals = np.zeros(train.n_users)
    kept = scores, pulls, totals, losses
    kernel.weigh(train.indptr, values, pairs, *kept, threads)
    awake = max(1, min(threads, len(runs.entries) // _WORTH_A_THREAD))  # the bits are the same for any number
    for number in count():
        found = np.zeros(train.n_users, np.int32), np.zeros(train.n_users), np.zeros(train.n_users)
        kernel.boost(train.indptr, values, pairs, *runs.arrays(), *kept, *found, awake)
        if not found[-1].any():
            return
        yield found
        if number == 0:  # only a threshold that orders all pairs correctly, or all wrongly, has this weight
            totals[np.abs(found[-1]) > np.arctanh(1 - 0.75 / np.maximum(pairs, 1))] = 0.0


def _runs_of(train: Ratings, items: Ints, pairs: Floats, threads: int) -> _Runs:
    """The index that every round searches; `items` are the users' items by ascending rating."""
    table = scipy.sparse.csr_array(train.item_features)
    columns = table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data, table.shape[1]
    n_entries, n_runs = np.zeros((2, train.n_users), np.int64)
    kernel.count_runs(train.indptr, items, pairs, *columns, n_entries, n_runs, threads)
    user_entries, user_runs = (np.concatenate([[0], np.cumsum(counts)]) for counts in (n_entries, n_runs))
    entries, thresholds = np.empty(user_entries[-1], np.int32), np.empty(user_entries[-1])
    starts = np.empty(user_runs[-1] + 1, np.int64)
    features, sides = np.empty(user_runs[-1], np.int32), np.empty(user_runs[-1], np.int8)
    written = entries, thresholds, starts, features, sides
    kernel.list_runs(train.indptr, items, pairs, *columns, user_entries, user_runs, *written, threads)
    run_users = np.repeat(np.arange(train.n_users, dtype=np.int32), n_runs)
    return _Runs(*_chunks(run_users, starts, user_entries, train.n_users), starts, features, sides, entries, thresholds)


def _chunks(run_users: Ints, starts: Ints, user_entries: Ints, n_users: int) -> tuple[Ints, Ints, Ints]:
    """Chunks of consecutive runs of one user, the units of work: their start by user, their users, their runs."""
    parts = (starts[:-1] - user_entries[run_users]) // _CHUNK
    first = np.ones(len(run_users), bool)
    first[1:] = (run_users[1:] != run_users[:-1]) | (parts[1:] != parts[:-1])
    chunk_users = run_users[first]
    user_chunks = np.searchsorted(chunk_users, np.arange(n_users + 1))
    return user_chunks, chunk_users, np.append(np.flatnonzero(first), len(run_users))


def _hold_back(train: Ratings, share: float, rng: np.random.Generator) -> tuple[Ratings, Ratings]:
    """A random split into training and held-out ratings: each user holds out this share, rounded down."""
    order = np.lexsort((rng.random(len(train)), train.users))
    position = np.arange(len(train)) - np.repeat(train.indptr[:-1], np.diff(train.indptr))
    held = np.zeros(len(train), bool)
    held[order] = position < np.repeat((share * np.diff(train.indptr)).astype(np.int64), np.diff(train.indptr))
    return train.take(np.flatnonzero(~held)), train.take(np.flatnonzero(held))


def _best_rounds(train: Ratings, held: Ratings, threads: int) -> Iterator[int]:
    """The best number of rounds so far, after every round; the latest if no held-out pair exists."""
    users, scores = held.users, np.zeros(len(held))
    least = _error(held, scores, threads)
    if np.isnan(least):
        yield from count()
    best = 0
    yield best
    for made, (features, cuts, weights) in enumerate(_boost(train, np.zeros(train.n_users), threads), start=1):
        values = features_of(held.item_features).at(held.items, features[users])
        scores += np.where(values > cuts[users], weights[users], 0.0)
        if (error := _error(held, scores, threads)) < least:
            least, best = error, made
        yield best
    while True:
        yield best


def _error(held: Ratings, scores: Floats, threads: int) -> float:
    """The pairwise error on held-out ratings, a tie counting one half, mean over users."""
    rated = metrics_kernel.RatedScores(indptr=held.indptr, truth=held.values, scores=scores)
    return mean(metrics_kernel.per_user(test=rated, requests=_PAIRWISE_ERROR, threads=threads)[0])
