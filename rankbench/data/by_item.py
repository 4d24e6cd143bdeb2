"""The rows of a users x items matrix in the order of the items: its transpose, as compressed sparse columns have it."""

from dataclasses import dataclass

import numpy as np

from rankbench.contract import Int32s, Int64s, Ints


@dataclass(frozen=True, eq=False)
class ByItem:
    """An index of rows item by item: those of an item are indptr[item]:indptr[item + 1], by ascending user."""

    indptr: Int64s
    users: Int32s  # the user of each row, in the order by item
    rows: Int64s  # each row's number in the order by user: values[rows] are a column's values in the order by item

    @classmethod
    def of(cls, users: Int32s, items: Ints, n_items: int) -> "ByItem":
        """The index of rows (user, item) that are given in the order by user."""
        rows = np.argsort(items, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=n_items))])
        return cls(indptr, users[rows], rows)

    @property
    def counts(self) -> Int64s:
        """How many rows each item has."""
        return np.diff(self.indptr)

    def __len__(self) -> int:
        return len(self.rows)


def users_of(indptr: Ints) -> Int32s:
    """The user of every row, where a user's rows are indptr[user]:indptr[user + 1]."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
