"""The requests to the metric kernels: rows with one number per user, from which metrics are combined."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankbench.arrays.npz import as_kernels_take
from rankbench.core.contract import Floats, Ints, Model
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.kernels.metrics import evaluation as kernel
from rankbench.kernels.metrics.codes import Code
from rankbench.kernels.metrics.requests import Requests

_WITH_TRAINING = {Code.TEST_TRAIN_ERROR, Code.BOTH_ERROR, Code.TEST_TRAIN_PAIRS, Code.BOTH_PAIRS}
_NO_LIMIT = np.iinfo(np.int32).max  # no user has more items


@dataclass(frozen=True)
class KernelRow:
    """A request for one number per user."""

    code: int  # the kernel's code for the number
    cut: int = 0  # the cut-off k; 0: all positions
    threshold: float = 0.0  # the lowest relevant rating, or eps
    whole: bool = False  # whether all items of the catalogue are candidates


def requested(rows: Sequence[KernelRow], positions: int) -> Requests:
    """The rows as the kernels take them, for users with at most this many candidates.

    NDCG discounts position p, counted from 1, by 1 / log2(1 + p).
    """
    return Requests(
        codes=np.array([row.code for row in rows], np.int32),
        cuts=np.array([min(row.cut, _NO_LIMIT) for row in rows], np.int32),
        thresholds=np.array([row.threshold for row in rows], np.float64),
        discounts=1 / np.log2(2 + np.arange(positions + 1)),
    )


def rated(model: Model, test: Ratings, rows: Sequence[KernelRow], threads: int, train: Ratings | None) -> Floats:
    """rows x users: the requested values; candidates are the user's own held-out items."""
    requests = requested(rows, int(np.diff(test.indptr).max(initial=0)))
    own = _scored(model, test)
    needed = train is not None and not _WITH_TRAINING.isdisjoint(row.code for row in rows)
    trained = _scored(model, train) if train is not None and needed else None
    return kernel.per_user(test=own, requests=requests, threads=threads, train=trained)


def _scored(model: Model, ratings: Ratings) -> kernel.RatedScores:
    """The ratings with the model's scores, as the kernels take them."""
    scores = scores_of(model, ratings.users, ratings.items)
    return kernel.RatedScores(indptr=ratings.indptr, truth=ratings.values, scores=scores)


def scores_of(model: Model, users: Ints, items: Ints) -> Floats:
    """The model's scores, one for each pair; NaN becomes the lowest score of all."""
    scores = as_kernels_take(model.score(users, items), np.float64)
    if scores.shape != users.shape:
        found = f"{type(model).__name__} gave scores of shape {scores.shape} for {len(users)} pairs"
        raise UserError(f"{found}: score must return one score for each pair")
    unknown = np.isnan(scores)
    return np.where(unknown, -np.inf, scores) if unknown.any() else scores
