"""Models with a kernel expansion for each user."""

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import scipy.sparse

from rankbench.arrays import soundness
from rankbench.core.brief import brief, brief_html
from rankbench.core.contract import Floats, Int32s, Int64s, Ints
from rankbench.core.errors import UserError, unknown
from rankbench.features.item_kernels import ItemKernel, KernelName
from rankbench.kernels.models import gram as gram_kernel
from rankbench.kernels.shared.rows import SparseRows
from rankbench.models.asking import checked_pairs, checked_users, int32s

_ROWS = 1 << 10  # kernel values between this many items and a user's rated items are computed at a time


@dataclass(frozen=True, eq=False)
class KernelScores:
    """A kernel expansion per user over the items that user rated: sum_j a_j K(item, j) + offset."""

    gram: Floats  # K between the distinct items
    rows: Int32s  # each item's row of gram
    indptr: Int64s
    rated: Int32s  # the rows in gram of each user's rated items
    coefficients: Floats
    offsets: Floats

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """The user's kernel expansion at the item, for each pair; computed item by item to keep a row of K in cache."""
        users, items = checked_pairs(users, items, len(self.offsets), len(self.rows))
        asked, out = self.rows[items], np.empty(len(users))
        gram_kernel.expand(
            gram=self.gram,
            coefficients=SparseRows(indptr=self.indptr, columns=self.rated, values=self.coefficients),
            offsets=self.offsets,
            users=int32s(users),
            asked=asked,
            order=np.argsort(asked),
            out=out,
        )
        return out

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: each user's weighted sum of rows of K, plus the user's offset."""
        users, threads = checked_users(users, len(self.offsets), threads)
        shape = len(self.offsets), len(self.gram)
        expansion = scipy.sparse.csr_array((self.coefficients, self.rated, self.indptr), shape)[users]
        return np.asarray(expansion @ self.gram)[:, self.rows] + self.offsets[users][:, None]

    def validate(self) -> None:
        """Raise an error unless all indices lie within the kernel matrix, and the arrays have matching lengths."""
        size, _ = soundness.doubles("gram", self.gram, None, None)
        soundness.doubles("gram", self.gram, size, size)
        if not self.gram.flags.c_contiguous:
            raise UserError("gram is stored by columns: it must be stored by rows (numpy.ascontiguousarray)")
        soundness.ids("rows", self.rows, size, None, dtype=np.int32)
        (n_users,) = soundness.doubles("offsets", self.offsets, None)
        (entries,) = soundness.ids("rated", self.rated, size, None, dtype=np.int32)
        soundness.doubles("coefficients", self.coefficients, entries)
        soundness.pointers("indptr", self.indptr, n_users, entries, np.int64)


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """A kernel expansion per user without a kernel matrix: kernel values are computed from the features when needed."""

    features: Any  # dense or CSR, one row per item, rated in training or not
    kernel: KernelName
    width: float
    degree: int
    indptr: Ints
    items: Ints
    coefficients: Floats
    offsets: Floats

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """The user's kernel expansion at the item, for each pair; computed user by user, in blocks."""
        users, items = checked_pairs(users, items, len(self.offsets), self.features.shape[0])
        users, items, out = int32s(users), int32s(items), np.empty(len(users))
        order = np.argsort(users, kind="stable")
        ends = np.append(np.flatnonzero(np.diff(users[order])) + 1, len(users))
        start = 0
        for end in ends if len(users) else ():
            for first in range(start, end, _ROWS):
                pairs = order[first : min(first + _ROWS, end)]
                out[pairs] = self._of_user(int(users[pairs[0]]), items[pairs])
            start = end
        return out

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: each user's kernel expansion at all items, computed in blocks of items."""
        users, threads = checked_users(users, len(self.offsets), threads)
        n_items = self.features.shape[0]
        out = np.empty((len(users), n_items))
        for row, user in enumerate(users):
            for first in range(0, n_items, _ROWS):
                block = np.arange(first, min(first + _ROWS, n_items), dtype=np.int32)
                out[row, block] = self._of_user(int(user), block)
        return out

    def validate(self) -> None:
        """Raise an error unless the kernel is known, all item ids exist, and the arrays have matching lengths."""
        n_items, columns = soundness.features("features", self.features)
        if not scipy.sparse.issparse(self.features):
            soundness.doubles("features", self.features, n_items, columns)
        if self.kernel not in get_args(KernelName):
            raise unknown("kernel", str(self.kernel), get_args(KernelName))
        if self.kernel == "precomputed" and columns != n_items:
            raise UserError(f"features are {n_items} x {columns}: with kernel=precomputed they must be a square matrix")
        if not isinstance(self.width, float | int) or not 0 < self.width < np.inf:
            raise UserError(f"width={self.width} is out of range: must be above 0")
        if not isinstance(self.degree, int) or self.degree < 1:
            raise UserError(f"degree={self.degree} is out of range: must be at least 1")
        (n_users,) = soundness.numbers("offsets", self.offsets, None)
        (entries,) = soundness.ids("items", self.items, n_items, None)
        soundness.numbers("coefficients", self.coefficients, entries)
        soundness.pointers("indptr", self.indptr, n_users, entries)

    def _of_user(self, user: int, asked: Ints) -> Floats:
        rows = slice(self.indptr[user], self.indptr[user + 1])
        values = ItemKernel(self.kernel, self.width, self.degree).between(self.features, asked, self.items[rows])
        scores: Floats = np.einsum("ij,j->i", values, self.coefficients[rows]) + self.offsets[user]
        return scores
