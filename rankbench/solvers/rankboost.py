"""RankBoost with thresholds on item features, one ranking per user (Freund et al. 2003; Cortes et al. 2007)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import scipy.sparse

from rankbench.arrays import sealed
from rankbench.contract import Determinism, Floats, Ints, Step
from rankbench.data.views import Ratings
from rankbench.kernels import metrics as metrics_kernel
from rankbench.kernels import pairs as pairs_kernel
from rankbench.kernels import rankboost as kernel
from rankbench.metrics.evaluation import mean
from rankbench.models import Stumps
from rankbench.names import Limits, check, checked_threads

_CHUNK = 1 << 15  # entries that one thread searches at a time
_WORTH_A_THREAD = 1 << 17  # entries per round below which waking another thread takes longer than it helps
_ROOM = 16  # rounds that there is room for at first

Thresholds = tuple[Ints, Floats, Floats]  # of one round: each user's feature, cut and weight


@dataclass(frozen=True)
class RankBoost:
    """A sum of weighted thresholds on item features per user, one more in every round.

    min over h of the mean of exp(h(x_i) - h(x_k)) over the pairs y_i < y_k, by coordinate descent: with pairs
    weighted by that exponential, D, a round takes the threshold f(x) = [x_feature > cut] of largest |r|, r =
    sum_ik D(i, k) (f(x_k) - f(x_i)), and gives it the weight alpha = 1/2 ln((1 + r) / (1 - r)), r kept half a
    pair away from 1, where alpha is infinite. Whose first threshold has every pair right gets no second: it
    would be the same in every round, and scores would grow by thousands that say nothing. Cuts lie midway
    between neighbouring values of the user's items. As D factors into e^{h_i} and e^{-h_k}, a round costs
    O(ratings x features), and less where many values are alike, as other people's ratings with their holes
    filled are. The objective, the sum of the users' mean losses, falls in every round.

    `rounds=validated` holds back a share of each user's ratings and boosts on the others as well. Of the
    thresholds learnt on all ratings it keeps as many rounds as left the fewest of the pairs held back in
    the wrong order (mean over users): one number for all users, as the paper has it. Users with fewer
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
        """No threshold at all, then a model after each round; ends when no threshold helps any user."""
        threads = checked_threads(threads)
        learners = np.flatnonzero(pairs_kernel.count(train.indptr, train.values))
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
    """The thresholds of all rounds so far, users x rounds, and room for more.

    Two more rows have no threshold ever: that of users with no order to learn, who score zero, and that of
    users with fewer than two ratings, who score NaN.
    """

    features: Ints
    cuts: Floats
    weights: Floats

    @classmethod
    def none(cls, n_users: int) -> "_Rounds":
        """Room only."""
        shape = n_users + 2, _ROOM
        return cls(np.zeros(shape, np.int32), np.zeros(shape), np.zeros(shape))

    def with_round(self, number: int, thresholds: Thresholds) -> "_Rounds":
        """One round more, written where there was room, or else into twice the room."""
        columns = self.features, self.cuts, self.weights
        if number == self.features.shape[1]:
            columns = tuple(np.hstack([column, np.zeros_like(column)]) for column in columns)  # type: ignore[assignment]
        for column, values in zip(columns, thresholds, strict=True):
            column[:-2, number] = values
        return _Rounds(*columns)

    def model(self, item_features: Any, rows: Ints, rounds: int) -> Stumps:
        """The first rounds as a model; `rows` say which row is whose."""
        kept, offsets = slice(rounds), np.zeros(len(self.features))
        offsets[-1] = np.nan
        return Stumps(item_features, rows, self.features[:, kept], self.cuts[:, kept], self.weights[:, kept], offsets)


@dataclass(frozen=True)
class _Runs:
    """For each user and feature the positions of the items from the lowest value up and from the highest down.

    Both stop short of the largest group of equal values, which need not be looked at.
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
        """All of them, as the kernel takes them."""
        chunks = self.user_chunks, self.chunk_users, self.chunk_runs
        return *chunks, self.starts, self.features, self.sides, self.entries, self.thresholds


def _of_users(train: Ratings, users: Ints) -> Ratings:
    """The ratings of some users alone, who are numbered anew."""
    counts = np.diff(train.indptr)[users]
    chosen = np.zeros(train.n_users, bool)
    chosen[users] = True
    kept = np.repeat(chosen, np.diff(train.indptr))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return Ratings(indptr, sealed(train.items[kept]), sealed(train.values[kept]), train.n_items, train.item_features)


def _boost(train: Ratings, losses: Floats, threads: int) -> Iterator[Thresholds]:
    """Each round's thresholds, until none helps any user; `losses` are kept up to date."""
    order = np.lexsort((train.values, train.users))
    values = train.values[order]
    pairs = pairs_kernel.count(train.indptr, train.values).astype(np.float64)
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
        if number == 0:  # so much weight has only a threshold with every pair on its side, or on the other
            totals[np.abs(found[-1]) > np.arctanh(1 - 0.75 / np.maximum(pairs, 1))] = 0.0


def _runs_of(train: Ratings, items: Ints, pairs: Floats, threads: int) -> _Runs:
    """What every round searches; `items` are the users' items by ascending rating."""
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
    """Runs put together until there are enough entries, never two users': by user, each one's user, each one's runs."""
    parts = (starts[:-1] - user_entries[run_users]) // _CHUNK
    first = np.ones(len(run_users), bool)
    first[1:] = (run_users[1:] != run_users[:-1]) | (parts[1:] != parts[:-1])
    chunk_users = run_users[first]
    user_chunks = np.searchsorted(chunk_users, np.arange(n_users + 1))
    return user_chunks, chunk_users, np.append(np.flatnonzero(first), len(run_users))


def _hold_back(train: Ratings, share: float, rng: np.random.Generator) -> tuple[Ratings, Ratings]:
    """A share of each user's ratings, drawn evenly and rounded down, taken from the others: the others, and it."""
    order = np.lexsort((rng.random(len(train)), train.users))
    position = np.arange(len(train)) - np.repeat(train.indptr[:-1], np.diff(train.indptr))
    held = np.zeros(len(train), bool)
    held[order] = position < np.repeat((share * np.diff(train.indptr)).astype(np.int64), np.diff(train.indptr))
    return train.take(np.flatnonzero(~held)), train.take(np.flatnonzero(held))


def _best_rounds(train: Ratings, held: Ratings, threads: int) -> Iterator[int]:
    """The best number of rounds of those so far, after every round; all of them if nothing can be validated."""
    users, scores = held.users, np.zeros(len(held))
    least = _error(held, scores, threads)
    if np.isnan(least):
        yield from count()
    best = 0
    yield best
    for made, (features, cuts, weights) in enumerate(_boost(train, np.zeros(train.n_users), threads), start=1):
        values = np.asarray(held.item_features[held.items, features[users]]).ravel()
        scores += np.where(values > cuts[users], weights[users], 0.0)
        if (error := _error(held, scores, threads)) < least:
            least, best = error, made
        yield best
    while True:
        yield best


def _error(held: Ratings, scores: Floats, threads: int) -> float:
    """The share of misordered pairs, a tie counts one half; mean over users."""
    codes, cuts = np.array([metrics_kernel.PAIRWISE_ERROR], np.int32), np.zeros(1, np.int32)
    return mean(
        metrics_kernel.per_user(held.indptr, held.values, scores, codes, cuts, np.zeros(1), np.ones(1), threads)[0]
    )
