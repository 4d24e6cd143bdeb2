"""Kernel matrices between items that several users share, and the models made from them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from rankbench.core.contract import Floats, Int32s, Int64s, Model
from rankbench.data.by_item import entries_of
from rankbench.data.views import Ratings
from rankbench.features.item_kernels import ItemKernel
from rankbench.features.matrix import features_of
from rankbench.kernels.shared.rows import SparseRows
from rankbench.models import KernelExpansion, KernelScores

FITS = 8192  # distinct items up to which the whole kernel matrix is kept: half a gigabyte


@dataclass(frozen=True, eq=False)
class Shared:
    """Some users with a kernel matrix between all items that they rated, and each rating's row of it."""

    users: Int32s
    gram: Floats
    rows: Int32s
    ratings: SparseRows  # of all users by these rows, as the kernels take them; only those of `users` have a meaning


@dataclass(frozen=True, eq=False)
class KernelMatrices:
    """The kernel matrices between the items of some ratings, whole or group by group."""

    kernel: ItemKernel
    train: Ratings
    threads: int

    @cached_property
    def whole(self) -> tuple[Floats, Int32s] | None:
        """The kernel matrix between all distinct items with each item's row of it; None if they are too many."""
        features, rows = self.kernel.points(self.train.item_features)
        if features.shape[0] > FITS:
            return None
        return self.kernel.gram(features, self.threads), rows.astype(np.int32, copy=False)

    def parts(self, users: Int32s) -> Iterator[Shared]:
        """These users with the whole matrix if it fits into memory, else in groups with a matrix each.

        A group takes users in order as long as their items together fit; a single user who rated more items than
        that is a group.
        """
        if len(users) == 0:
            return
        if self.whole is not None:
            gram, rows = self.whole
            yield self._shared(users, gram, rows[self.train.items])
            return
        indptr, items = self.train.indptr, self.train.items
        for group in _groups(indptr, items, users, self.train.n_items):
            _, own = entries_of(indptr, group)
            rated = np.unique(items[own])
            rows = np.zeros(len(items), np.int32)
            rows[own] = np.searchsorted(rated, items[own])
            yield self._shared(group, self.kernel.gram_of(self.train.item_features, rated, self.threads), rows)

    def _shared(self, users: Int32s, gram: Floats, rows: Int32s) -> Shared:
        """The part of these users, with each rating's row of the matrix."""
        return Shared(users, gram, rows, SparseRows(indptr=self.train.indptr, columns=rows, values=self.train.values))

    def weights(self, coefficients: Floats, users: Int32s) -> Floats:
        """The weights of features of these users under a linear kernel, from the coefficients, one for each rating."""
        train = self.train
        expansion = scipy.sparse.csr_array((coefficients, train.items, train.indptr), (train.n_users, train.n_items))
        return features_of(train.item_features).combined(expansion[users])

    def expansion(self, coefficients: Floats, offsets: Floats) -> Model:
        """The model whose score is a sum of kernel values, weighted by the user's coefficients, one for each rating."""
        train, kernel = self.train, self.kernel
        if self.whole is not None:
            gram, rows = self.whole
            return KernelScores(gram, rows, train.indptr, rows[train.items], coefficients, offsets)
        settings = kernel.name, kernel.width, kernel.degree
        return KernelExpansion(train.item_features, *settings, train.indptr, train.items, coefficients, offsets)


def _groups(indptr: Int64s, items: Int32s, users: Int32s, n_items: int) -> Iterator[Int32s]:
    """The users in consecutive groups whose items together are few enough, or single users."""
    seen, count, start = np.zeros(n_items, bool), 0, 0
    for index, user in enumerate(users):
        own = items[indptr[user] : indptr[user + 1]]
        new = int((~seen[own]).sum())
        if count + new > FITS and index > start:
            yield users[start:index]
            seen[:], start, count, new = False, index, 0, len(own)
        seen[own] = True
        count += new
    yield users[start:]
