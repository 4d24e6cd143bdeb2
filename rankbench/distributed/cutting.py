"""The cut of a training set into parts: ranges of users with about as many rows each."""

from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from rankbench.core.contract import Int64s
from rankbench.core.errors import UserError
from rankbench.data.views import LABELS, Comparisons, Ratings

V = TypeVar("V", bound=Ratings | Comparisons)


def edges_of(view: Ratings | Comparisons, parts: int, solver: str) -> Int64s:
    """Where each part's users begin, and the number of users: each part has a user, and about as many rows."""
    if parts > max(view.n_users, 1):
        problem = f"partitions={parts} is above the number of users, {view.n_users}"
        raise UserError(problem, subject=solver, remedy="lower partitions")
    even = np.searchsorted(view.indptr, np.arange(1, parts) * (len(view) / parts))
    edges = np.concatenate([[0], even, [view.n_users]]).astype(np.int64)
    least = np.arange(parts + 1)
    for part in range(1, parts):
        edges[part] = max(edges[part], edges[part - 1] + 1)
    return np.minimum(edges, view.n_users - least[::-1])


def parts_of(view: V, edges: Int64s) -> list[V]:
    """The rows of each part, with its users counted from 0 and all items, without features and labels."""
    return [_part(view, int(first), int(end)) for first, end in pairwise(edges)]


def _part(view: V, first: int, end: int) -> V:
    rows = slice(int(view.indptr[first]), int(view.indptr[end]))
    bare = dict.fromkeys(LABELS)
    indptr = view.indptr[first : end + 1] - view.indptr[first]
    if isinstance(view, Ratings):
        cut = {"items": view.items[rows], "values": view.values[rows], "folds": None}
    else:
        cut = {"better": view.better[rows], "worse": view.worse[rows]}
    return replace(view, indptr=indptr, item_features=None, **cut, **bare)  # type: ignore[arg-type]
