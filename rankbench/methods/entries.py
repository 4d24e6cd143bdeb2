"""The entries of a users x items matrix: products with them, and the loss of comparisons by their scores."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from rankbench.core.contract import Flags, Floats, Int32s, Int64s, Ints
from rankbench.data.by_item import ByItem, users_of
from rankbench.data.views import Comparisons
from rankbench.kernels.methods import entries as kernel
from rankbench.kernels.shared.rows import ComparisonRows, Pattern, SparseRows
from rankbench.methods.factors import padded
from rankbench.methods.losses import CODES


@dataclass(frozen=True, eq=False)
class Entries:
    """The places (user, item) of a users x items matrix that hold an entry, in order by user and by item."""

    indptr: Int64s  # where each user's entries begin
    items: Int32s
    by_item: ByItem
    threads: int

    @classmethod
    def of(cls, indptr: Int64s, items: Int32s, n_items: int, threads: int) -> "Entries":
        """The entries (user, item), the items of a user being items[indptr[user]:indptr[user + 1]]."""
        return cls(indptr, items, ByItem.of(users_of(indptr), items, n_items), threads)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def shape(self) -> tuple[int, int]:
        """How many users and items there are."""
        return len(self.indptr) - 1, len(self.by_item.indptr) - 1

    @property
    def seen(self) -> tuple[Ints, Ints]:
        """The users and the items that have an entry."""
        return np.flatnonzero(np.diff(self.indptr)), np.flatnonzero(self.by_item.counts)

    @cached_property
    def places(self) -> Pattern:
        """The entries as the kernels take them, a user's items in the columns."""
        return Pattern(indptr=self.indptr, columns=self.items)

    @cached_property
    def by_item_places(self) -> Pattern:
        """The same item by item, an item's users in the columns."""
        return Pattern(indptr=self.by_item.indptr, columns=self.by_item.users)

    def inner_products(self, users: Floats, items: Floats, out: Floats | None = None) -> Floats:
        """The inner product of the user's and the item's row for each entry, in `out` if that is given."""
        out, left, right = np.empty(len(self.items)) if out is None else out, padded(users), padded(items)
        kernel.inner_products(entries=self.places, left=left, right=right, out=out, threads=self.threads)
        return out

    def holding(self, values: Floats) -> "Sparse":
        """The sparse matrix that has these values at the entries."""
        return Sparse(self, values)


@dataclass(frozen=True, eq=False)
class Sparse:
    """A users x items matrix that holds a value at each entry, and zeros elsewhere."""

    entries: Entries
    values: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """How many users and items there are."""
        return self.entries.shape

    @cached_property
    def rows(self) -> SparseRows:
        """The rows of the matrix."""
        return SparseRows(indptr=self.entries.indptr, columns=self.entries.items, values=self.values)

    @cached_property
    def columns(self) -> SparseRows:
        """The rows of its transpose."""
        index, values = self.entries.by_item, np.empty_like(self.values)
        kernel.arrange(values=self.values, places=index.places, out=values, threads=self.entries.threads)
        return SparseRows(indptr=index.indptr, columns=index.users, values=values)

    def times(self, dense: Floats) -> Floats:
        """S times a matrix with a row for each item."""
        return self._product(self.rows, self.shape[0], dense)

    def transposed_times(self, dense: Floats) -> Floats:
        """S^T times a matrix with a row for each user."""
        return self._product(self.columns, self.shape[1], dense)

    def matrix(self) -> scipy.sparse.csr_array:
        """The same matrix as SciPy has it."""
        return scipy.sparse.csr_array((self.values, self.entries.items, self.entries.indptr), self.shape)

    def _product(self, rows: SparseRows, n_rows: int, dense: Floats) -> Floats:
        out = np.empty((n_rows, dense.shape[1]))
        kernel.times(matrix=rows, dense=np.ascontiguousarray(dense), out=out, threads=self.entries.threads)
        return out


@dataclass(frozen=True, eq=False)
class ComparedEntries:
    """The distinct (user, item) pairs that occur in comparisons, and the loss of comparisons by the entries' scores.

    `slopes` gives the loss with its derivatives; by the chain rule, products with the matrix that holds these turn
    them into gradients of the factors of users and items.
    """

    entries: Entries
    comparisons: ComparisonRows  # of each, the items as places among their user's entries

    @classmethod
    def of(cls, train: Comparisons, threads: int) -> "ComparedEntries":
        """The entries of these comparisons."""
        indptr, items, better, worse = kernel.gather(comparisons=train.rows, n_items=train.n_items)
        entries = Entries.of(indptr, items, train.n_items, threads)
        return cls(entries, ComparisonRows(indptr=train.indptr, better=better, worse=worse))

    def slopes(self, loss: str, scores: Floats, out: Floats | None = None) -> tuple[float, Floats]:
        """The sum of losses at these scores of the entries, and its derivative by each, in `out` if that is given."""
        losses, slopes = np.zeros(self.entries.shape[0]), np.empty(len(self.entries)) if out is None else out
        if len(slopes):
            kernel.slopes(
                loss=CODES[loss],
                entries=self.entries.places,
                comparisons=self.comparisons,
                scores=scores,
                loss_out=losses,
                slope_out=slopes,
                threads=self.entries.threads,
            )
        return float(losses.sum()), slopes

    def gradients(self, loss: str, users: Floats, items: Floats) -> tuple[float, Floats, Floats]:
        """The sum of losses at the scores users items^T, and its derivatives by the rows of users and of items.

        The derivatives have as many columns as the kernels need, those behind the factors' own columns of no use.
        """
        users, items, threads = padded(users), padded(items), self.entries.threads
        losses, of_users, of_items = np.zeros(len(users)), np.empty(users.shape), np.empty(items.shape)
        slopes = np.empty(len(self.entries) if threads > 1 else 0)
        kernel.gradients(
            loss=CODES[loss],
            entries=self.entries.places,
            comparisons=self.comparisons,
            users=users,
            items=items,
            out=kernel.Derivatives(losses=losses, users=of_users, items=of_items, slopes=slopes),
            threads=threads,
        )
        if threads > 1:
            of_items = self.entries.holding(slopes).transposed_times(users)
        return float(losses.sum()), of_users, of_items


def known_rows(rows: Floats, known: Ints | Flags) -> Floats:
    """The rows of the known users or items, NaN for the others."""
    out = np.full(rows.shape, np.nan)
    out[known] = rows[known]
    return out
