"""Metrics with the whole catalogue as candidates, in blocks of users, since all scores at once need too much memory.

The size of a block depends on the number of items and not on the number of threads, and a user's values do not
depend on the other users of the block.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from rankbench.arrays.distinct import distinct
from rankbench.arrays.npz import as_kernels_take
from rankbench.core.contract import Floats, Int32s, Int64s, Model, ScoresAll
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings, View
from rankbench.kernels.metrics import catalogue as kernel
from rankbench.kernels.shared.rows import Pattern
from rankbench.metrics.rows import KernelRow, requested, scores_of

_BLOCK = 1 << 20  # scores in memory at a time, 8 MiB; more if one user has more items


def whole_catalogue(model: Model, test: Ratings, rows: Sequence[KernelRow], threads: int, train: View) -> Floats:
    """rows x users: the requested values; candidates are the held-out items and all items without a training rating."""
    values = np.full((len(rows), test.n_users), np.nan)
    indptr, items = seen_items(train)
    held_out, seen = test.rows, Pattern(indptr=indptr, columns=items)
    requests = requested(rows, test.n_items)
    for users, scores in scored(model, test, threads):
        kernel.per_user(
            scores=scores,
            users=users,
            held_out=held_out,
            seen=seen,
            requests=requests,
            out=values,
            threads=threads,
        )
    return values


def scored(model: Model, test: Ratings, threads: int) -> Iterator[tuple[Int32s, Floats]]:
    """The users with a held-out rating, block by block, with the scores of all items for each of them."""
    users = np.flatnonzero(np.diff(test.indptr)).astype(np.int32)
    size = max(1, _BLOCK // max(1, test.n_items))
    for first in range(0, len(users), size):
        block = users[first : first + size]
        yield block, _scores(model, block, test.n_items, threads)


def seen_items(train: View) -> tuple[Int64s, Int32s]:
    """indptr and ascending items of each user's training part in CSR form; both items of a comparison count."""
    if isinstance(train, Ratings):
        return train.indptr, train.items
    users = train.users.astype(np.int64) * train.n_items
    pairs = distinct(np.concatenate([users + train.better, users + train.worse]))  # each pair of user and item once
    indptr = np.searchsorted(pairs, np.arange(train.n_users + 1) * train.n_items)
    return indptr, (pairs % train.n_items).astype(np.int32)


def _scores(model: Model, users: Int32s, n_items: int, threads: int) -> Floats:
    """users x items: the model's scores, by its score_all if it has one, else pair by pair."""
    if not isinstance(model, ScoresAll):
        items = np.tile(np.arange(n_items, dtype=np.int32), len(users))
        return scores_of(model, np.repeat(users, n_items), items).reshape(len(users), n_items)
    scores = as_kernels_take(model.score_all(users, threads), np.float64)
    if scores.shape != (len(users), n_items):
        found = f"{type(model).__name__} gave scores of shape {scores.shape} for {len(users)} users"
        raise UserError(f"{found} and {n_items} items: score_all must return an array of shape (users, items)")
    return scores
