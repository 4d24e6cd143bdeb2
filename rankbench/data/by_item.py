"""An index of the rows of a users x items matrix by item, as in compressed sparse columns (CSC)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from rankbench.arrays.mapped import pieces
from rankbench.arrays.ordering import order_of
from rankbench.core.contract import Floats, Int32s, Int64s, Ints
from rankbench.kernels.shared.rows import SparseRows


@dataclass(frozen=True, eq=False)
class ByItem:
    """An index of rows by item: an item's rows are indptr[item]:indptr[item + 1], by ascending user."""

    indptr: Int64s
    users: Int32s  # the user of each row, in the order by item
    rows: Int64s  # each row's number in the order by user: values[rows] are a column's values in the order by item

    @classmethod
    def of(cls, users: Int32s, items: Ints, n_items: int) -> "ByItem":
        """The index of (user, item) rows that are sorted by user."""
        rows = order_of(items, n_items).astype(np.int64, copy=False)
        return cls(np.concatenate([[0], np.cumsum(counted(items, n_items))]), users[rows], rows)

    @property
    def counts(self) -> Int64s:
        """How many rows each item has."""
        return np.diff(self.indptr)

    @cached_property
    def places(self) -> Int32s:
        """Where each row, by user, stands in the order by item."""
        out = np.empty(len(self.rows), np.int32)
        out[self.rows] = np.arange(len(out), dtype=np.int32)
        return out

    def __len__(self) -> int:
        return len(self.rows)


def users_of(indptr: Ints) -> Int32s:
    """The user of every row, given that a user's rows are indptr[user]:indptr[user + 1]."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))


def entries_of(indptr: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """Which of the chosen rows of a sparse matrix each of their entries belongs to, and where these entries stand."""
    first, counts = indptr[chosen], indptr[chosen + 1] - indptr[chosen]
    rows = np.repeat(np.arange(len(chosen)), counts)
    return rows, first[rows] + np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)


def counted(items: Ints, n_items: int) -> Int64s:
    """How many rows each item has; counted in pieces, since NumPy converts what it counts."""
    counts = np.zeros(n_items, np.int64)
    for piece in pieces(items):
        counts += np.bincount(piece, minlength=n_items)
    return counts


def by_columns(indptr: Int64s, columns: Int32s, values: Floats, n_columns: int) -> SparseRows:
    """The transpose of a sparse matrix, with ascending rows in each column, in linear time and without an index."""
    matrix = scipy.sparse.csr_array((values, columns, indptr), shape=(len(indptr) - 1, n_columns)).tocsc()
    return SparseRows(
        indptr=matrix.indptr.astype(np.int64),
        columns=matrix.indices.astype(np.int32, copy=False),
        values=matrix.data,
    )
