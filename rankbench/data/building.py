"""Making a view from the rows of a file: numbering ids, handling repeated pairs, checking published counts."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, NoReturn

import numpy as np

from rankbench.arrays.npz import sealed
from rankbench.arrays.ordering import ascend, lexical_order
from rankbench.core.contract import Floats, Int64s, Ints
from rankbench.core.errors import UserError
from rankbench.data.features import Features
from rankbench.data.tables import Rows
from rankbench.data.tables.fields import Ids
from rankbench.data.tables.texts import Coded, Column, joined
from rankbench.data.views import Comparisons, Ratings

Repeats = Literal["error", "last"]
_WIDE = 50_000_000  # ids below this are numbered by a lookup table, other ids by sorting


@dataclass(frozen=True)
class Counts:
    """The published numbers of ratings, users and items of a data set."""

    ratings: int
    users: int
    items: int

    def __str__(self) -> str:
        return f"{self.users:,} users, {self.items:,} items, {self.ratings:,} ratings"


def numbered(ids: Column) -> tuple[Ids, Ints]:
    """The distinct ids, ascending, and the number of each row's id among them."""
    if isinstance(ids, Coded):
        return ids.texts, ids.codes
    if ids.dtype.kind in "iu" and len(ids) and ids.min() >= 0 and ids.max() < _WIDE:
        there = np.zeros(int(ids.max()) + 1, bool)
        there[ids] = True
        numbers = np.cumsum(there, dtype=np.int32) - 1
        return np.flatnonzero(there), numbers[ids]
    if ids.dtype.kind == "U":
        return numbered(Coded.of(ids))
    distinct, codes = np.unique(ids, return_inverse=True)
    return distinct, codes.astype(np.int32)


def ratings(
    rows: Rows,
    features: Features | None = None,
    repeats: Repeats = "error",
    folds: Ints | None = None,
) -> Ratings:
    """The view of (user, item, value) rows; users and items are numbered in the order of their ids.

    Only items with a rating are included. If a (user, item) pair occurs twice, `repeats` decides: the last row
    is kept, or an error names both lines.
    """

    def refuse(first: int, second: int) -> NoReturn:
        pair = ", ".join(f"{name} {ids[second]}" for name, ids in zip(rows.layout.names, rows.ids, strict=False))
        rows.complain(second, f"{pair} is on line {rows.line_of(first)} already: keep one of the two rows")

    assert rows.values is not None
    users, items = rows.ids
    values, times = sealed(rows.values), None if rows.times is None else sealed(rows.times)  # made by the parser
    return of_columns(users, items, values, times, refuse if repeats == "error" else None, folds, features)


def of_columns(
    users: Column,
    items: Column,
    values: Floats,
    times: Int64s | None,
    refuse: Callable[[int, int], NoReturn] | None,
    folds: Ints | None = None,
    features: Features | None = None,
) -> Ratings:
    """The ratings in columns of ids, values and perhaps times and folds.

    `refuse` raises the error for two rows of one user and item; without it the last of such rows is kept.
    """
    with ThreadPoolExecutor(2) as pool:
        (user_ids, users), (item_ids, items) = pool.map(numbered, (users, items))
    sizes = len(user_ids), len(item_ids)
    order = _order(users, items, sizes, refuse)
    if order is not None:
        users, items = users[order], items[order]
        values = sealed(values[order])
        times, folds = (None if own is None else sealed(own[order]) for own in (times, folds))
    block = features.of(item_ids) if features else None
    return Ratings.from_triples(
        users,
        sealed(items),
        values,
        *sizes,
        block.matrix if block else None,
        folds,
        times=times,
        feature_names=block.names if block else None,
        user_ids=user_ids,
        item_ids=item_ids,
    )


def comparisons(users: Column, better: Column, worse: Column) -> Comparisons:
    """The view of (user, better, worse) ids; users and items are numbered in the order of their ids."""
    user_ids, numbers = numbered(users)
    item_ids, items = numbered(joined([better, worse]))
    one, other = np.split(items, 2)
    sizes = len(user_ids), len(item_ids)
    return Comparisons.from_triples(numbers, one, other, *sizes, user_ids=user_ids, item_ids=item_ids)


def expect(view: Ratings, counts: Counts, name: str) -> None:
    """Raise an error unless the view has the published counts."""
    found = Counts(len(view), view.n_users, view.n_items)
    if found != counts:
        raise UserError(f"{name} holds {found} where {counts} were published: the files are cut or another edition")


def _order(
    users: Ints, items: Ints, sizes: tuple[int, int], refuse: Callable[[int, int], NoReturn] | None
) -> Ints | None:
    """The rows by user, then item, of one user and item only the last one; None if they stand in that order."""
    if ascend(users, items):
        return None
    order: Ints = lexical_order((users, sizes[0]), (items, sizes[1]))
    again = np.logical_and(*(np.diff(column[order]) == 0 for column in (users, items)))
    if refuse and again.any():
        places = np.flatnonzero(again)
        place = places[np.argmin(order[places + 1])]  # of the first row that comes again
        refuse(int(order[place]), int(order[place + 1]))
    kept: Ints = order[np.append(~again, True)] if again.any() else order
    return kept
