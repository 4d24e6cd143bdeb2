"""The loss of comparisons as a function of the scores of the (user, item) pairs that occur in them."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from rankbench.contract import Floats, Ints
from rankbench.data.by_item import ByItem, users_of
from rankbench.data.views import Comparisons
from rankbench.kernels.methods import entries as kernel
from rankbench.methods.losses import CODES


@dataclass(frozen=True, eq=False)
class ComparedEntries:
    """The distinct (user, item) pairs that occur in comparisons, as the entries of a sparse matrix.

    `slopes` gives the loss of the entries' scores with its derivatives; by the chain rule, `times` and
    `transposed_times` turn these into gradients of the factors of users and items.
    """

    comparisons: Ints  # where each user's comparisons begin
    better: Ints  # of each comparison, as a position among the user's entries
    worse: Ints
    indptr: Ints  # where each user's entries begin
    items: Ints
    by_item: ByItem  # the index of the entries by item
    threads: int

    @classmethod
    def of(cls, train: Comparisons, threads: int) -> "ComparedEntries":
        """The entries of these comparisons."""
        indptr, items, better, worse = kernel.gather(train.indptr, train.better, train.worse, train.n_items)
        by_item = ByItem.of(users_of(indptr), items, train.n_items)
        return cls(train.indptr, better, worse, indptr, items, by_item, threads)

    @property
    def shape(self) -> tuple[int, int]:
        """How many users and items there are."""
        return len(self.indptr) - 1, len(self.by_item.indptr) - 1

    @property
    def seen(self) -> tuple[Ints, Ints]:
        """The users and the items that are in some comparison."""
        return np.flatnonzero(np.diff(self.indptr)), np.flatnonzero(self.by_item.counts)

    def slopes(self, loss: str, scores: Floats) -> tuple[float, Floats]:
        """The sum of losses at these scores of the entries, and its derivative by each."""
        losses, slopes = np.zeros(self.shape[0]), np.zeros(len(self.items))
        if len(self.better):
            rows = self.comparisons, self.better, self.worse, self.indptr
            kernel.slopes(CODES[loss], *rows, scores, losses, slopes, self.threads)
        return float(losses.sum()), slopes

    def products(self, users: Floats, items: Floats) -> Floats:
        """The inner product of the user's and the item's row, entry by entry."""
        out = np.zeros(len(self.items))
        if out.size and users.size:
            kernel.products(self.indptr, self.items, users, items, out, self.threads)
        return out

    def times(self, weights: Floats, items: Floats) -> Floats:
        """The users x items matrix of these weights, times a matrix with a row for each item."""
        return self._sums(self.indptr, self.items, weights, items)

    def transposed_times(self, weights: Floats, users: Floats) -> Floats:
        """Its transpose times a matrix with a row for each user."""
        return self._sums(self.by_item.indptr, self.by_item.users, weights[self.by_item.rows], users)

    def matrix(self, weights: Floats) -> scipy.sparse.csr_array:
        """The users x items matrix itself, sparse."""
        return scipy.sparse.csr_array((weights, self.items, self.indptr), self.shape)

    def _sums(self, indptr: Ints, columns: Ints, weights: Floats, rows: Floats) -> Floats:
        out = np.zeros((len(indptr) - 1, rows.shape[1]))
        if out.size and len(columns):
            kernel.sums(indptr, columns, weights, np.ascontiguousarray(rows), out, self.threads)
        return out


def known_rows(rows: Floats, known: Ints) -> Floats:
    """The rows of the known users or items, NaN for the others."""
    out = np.full(rows.shape, np.nan)
    out[known] = rows[known]
    return out
