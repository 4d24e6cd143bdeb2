"""Making a view from the rows of a file: numbering ids, handling repeated pairs, checking published counts."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankbench.arrays.npz import sealed
from rankbench.arrays.ordering import ascend, lexical_order
from rankbench.core.contract import Ints
from rankbench.core.errors import UserError
from rankbench.data.features import Features
from rankbench.data.tables import Rows
from rankbench.data.tables.fields import Ids
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


def numbered(ids: Ids) -> tuple[Ids, Ints]:
    """The distinct ids, ascending, and the number of each row's id among them."""
    if ids.dtype.kind in "iu" and len(ids) and ids.min() >= 0 and ids.max() < _WIDE:
        there = np.zeros(int(ids.max()) + 1, bool)
        there[ids] = True
        numbers = np.cumsum(there, dtype=np.int32) - 1
        return np.flatnonzero(there), numbers[ids]
    if ids.dtype.kind == "U":
        import pandas  # noqa: PLC0415  hashing text is many times faster than sorting it

        codes, distinct = pandas.factorize(ids, sort=True)
        return np.asarray(distinct, dtype=ids.dtype), codes.astype(np.int32)
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
    assert rows.values is not None
    with ThreadPoolExecutor(len(rows.ids)) as pool:
        (user_ids, users), (item_ids, items) = pool.map(numbered, rows.ids)
    order = _order(users, items, (len(user_ids), len(item_ids)), rows, repeats)
    values, times = rows.values, rows.times
    if order is not None:
        users, items, values = users[order], items[order], values[order]
        times = None if times is None else times[order]
        folds = None if folds is None else folds[order]
    block = features.of(item_ids) if features else None
    return Ratings.from_triples(
        users,
        sealed(items),  # made here or by the parser, so the view can use these columns without a copy
        sealed(values),
        len(user_ids),
        len(item_ids),
        block.matrix if block else None,
        folds,
        times=None if times is None else sealed(times),
        feature_names=block.names if block else None,
        user_ids=user_ids,
        item_ids=item_ids,
    )


def comparisons(users: Ids, better: Ids, worse: Ids) -> Comparisons:
    """The view of (user, better, worse) ids; users and items are numbered in the order of their ids."""
    user_ids, numbers = numbered(users)
    item_ids, items = numbered(np.concatenate([better, worse]))
    one, other = np.split(items, 2)
    sizes = len(user_ids), len(item_ids)
    return Comparisons.from_triples(numbers, one, other, *sizes, user_ids=user_ids, item_ids=item_ids)


def expect(view: Ratings, counts: Counts, name: str) -> None:
    """Raise an error unless the view has the published counts."""
    found = Counts(len(view), view.n_users, view.n_items)
    if found != counts:
        raise UserError(f"{name} holds {found} where {counts} were published: the files are cut or another edition")


def _order(users: Ints, items: Ints, sizes: tuple[int, int], rows: Rows, repeats: Repeats) -> Ints | None:
    """The rows by user, then item, of repeated pairs only the last one; None if they stand in that order."""
    if ascend(users, items):
        return None
    order: Ints = lexical_order((users, sizes[0]), (items, sizes[1]))
    same = np.logical_and(*(np.diff(column[order]) == 0 for column in (users, items)))
    if not same.any():
        return order
    if repeats == "error":
        first, second = order[int(np.argmax(same))], order[int(np.argmax(same)) + 1]
        pair = ", ".join(f"{name} {ids[second]}" for name, ids in zip(rows.layout.names, rows.ids, strict=False))
        earlier = rows.line_of(int(first))
        rows.complain(int(second), f"{pair} is on line {earlier} already: keep one of the two rows")
    kept: Ints = order[np.append(~same, True)]
    return kept
