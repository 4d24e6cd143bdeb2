"""The model with weights between items."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from rankbench.arrays import soundness
from rankbench.core.brief import brief, brief_html
from rankbench.core.contract import Floats, Int32s, Int64s, Ints
from rankbench.core.errors import UserError
from rankbench.kernels.models import item_weights as weights_kernel
from rankbench.kernels.shared.rows import SparseRows
from rankbench.models.asking import checked_pairs, checked_users, int32s, sparse_rows


@dataclass(frozen=True, eq=False)
class ItemWeights:
    """Weights between items: score = offset_item + the sum over the items j that the user rated of x_j W[j, item]."""

    indptr: Int64s
    rated: Int32s  # the row of W of each item that a user rated, ascending for each user
    values: Floats  # x
    weights: Any  # W, dense or CSR: rows and columns stand for the items rated in training
    columns: Int32s  # each item's row and column of W
    offsets: Floats  # one per item; NaN for an item without a score

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """The weighted sum of each pair, over the items that the user rated."""
        users, items = checked_pairs(users, items, len(self.indptr) - 1, len(self.columns))
        out = np.zeros(len(users))
        if len(self.rated):
            kernel = weights_kernel.sparse_pairs if self._sparse else weights_kernel.dense_pairs
            kernel(**self._given(users), asked=self.columns[items], out=out)
        return out + self.offsets[items]

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the weighted sums of all items for these users, with the bits that `score` gives."""
        users, threads = checked_users(users, len(self.indptr) - 1, threads)
        out = np.zeros((len(users), self.weights.shape[1]))
        kernel = weights_kernel.sparse_all if self._sparse else weights_kernel.dense_all
        kernel(**self._given(users), out=out, threads=threads)
        scores = np.take(out, self.columns, axis=1)  # by rows, where out[:, columns] would lie by columns
        scores += self.offsets
        return scores

    def validate(self) -> None:
        """Raise an error unless all indices lie within W, W is square, and the arrays have matching lengths."""
        size, _ = soundness.features("weights", self.weights)
        soundness.features("weights", self.weights, size, size)
        if self._sparse:
            if not self.weights.has_canonical_format:
                raise UserError("weights are not sorted by columns, or hold an entry twice (csr_array.sum_duplicates)")
        else:
            soundness.doubles("weights", self.weights, size, size)
            if not self.weights.flags.c_contiguous:
                raise UserError("weights are stored by columns: they must be stored by rows (numpy.ascontiguousarray)")
        (n_items,) = soundness.doubles("offsets", self.offsets, None)
        soundness.ids("columns", self.columns, size, n_items, dtype=np.int32)
        (entries,) = soundness.ids("rated", self.rated, size, None, dtype=np.int32)
        soundness.doubles("values", self.values, entries)
        soundness.pointers("indptr", self.indptr, max(0, len(self.indptr) - 1), entries, np.int64)

    @property
    def _sparse(self) -> bool:
        return bool(scipy.sparse.issparse(self.weights))

    def _given(self, users: Ints) -> dict[str, Any]:
        """The users' rows and the weights as the kernels take them."""
        rows = SparseRows(indptr=self.indptr, columns=self.rated, values=self.values)
        weights = sparse_rows(self.weights) if self._sparse else self.weights
        return {"rows": rows, "weights": weights, "users": int32s(users)}
