"""Models with a function of item features for each user: a linear one, or weighted thresholds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from rankbench.arrays import soundness
from rankbench.arrays.npz import as_kernels_take
from rankbench.core.brief import brief, brief_html
from rankbench.core.contract import Floats, Int32s, Ints
from rankbench.kernels.models import scoring as scoring_kernel
from rankbench.kernels.models import stumps as stumps_kernel
from rankbench.models.asking import (
    checked_pairs,
    checked_users,
    int32s,
    products_of_pairs,
    products_with_all,
    sparse_rows,
)


@dataclass(frozen=True, eq=False)
class UserWeights:
    """A linear function of item features per user: score = x_item . w_user + offset_user."""

    features: Any  # dense or CSR, one row per item, rated in training or not
    weights: Floats
    offsets: Floats

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """x_item . w_user + offset_user for each pair."""
        users, items = checked_pairs(users, items, len(self.offsets), self.features.shape[0])
        if scipy.sparse.issparse(self.features):
            return self._sparse(int32s(users), int32s(items))
        products = products_of_pairs(self.weights, users, self.features, items)
        products += self.offsets[users]
        return products

    def _sparse(self, users: Int32s, items: Int32s) -> Floats:
        """x_item . w_user + offset_user for each pair, summed over the stored values of a sparse x_item."""
        table, out = scipy.sparse.csr_array(self.features), np.empty(len(users))
        scoring_kernel.sparse_pairs(
            features=sparse_rows(table),
            weights=as_kernels_take(self.weights, np.float64),
            offsets=as_kernels_take(self.offsets, np.float64),
            users=users,
            items=items,
            out=out,
        )
        return out

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the inner products of weights and features, plus the user's offset."""
        users, threads = checked_users(users, len(self.offsets), threads)
        if scipy.sparse.issparse(self.features):
            products = np.ascontiguousarray((self.features @ self.weights[users].T).T)
        else:
            products = products_with_all(self.weights, users, self.features, threads)
        products += self.offsets[users][:, None]
        return products

    def validate(self) -> None:
        """Raise an error unless there is a weight for each feature and an offset for each user."""
        _, columns = soundness.features("features", self.features)
        n_users, _ = soundness.numbers("weights", self.weights, None, columns)
        soundness.numbers("offsets", self.offsets, n_users)


@dataclass(frozen=True, eq=False)
class Stumps:
    """Weighted thresholds on item features per user: offset + sum_t weight_t [x_item,feature_t > cut_t]."""

    item_features: Any  # dense or CSR, one row per item, rated in training or not
    rows: Int32s  # each user's row in the arrays below
    features: Int32s  # rows x thresholds; cuts and weights have the same shape
    cuts: Floats
    weights: Floats
    offsets: Floats  # one per row

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """The user's weighted sum of thresholds at the item, for each pair."""
        users, items = checked_pairs(users, items, len(self.rows), self.item_features.shape[0])
        out = np.empty(len(users))
        stumps_kernel.score(stumps=self._stumps(), rows=self.rows[users], items=int32s(items), out=out)
        return out

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: each user's weighted sum of thresholds at all items."""
        users, threads = checked_users(users, len(self.rows), threads)
        out = np.empty((len(users), self.item_features.shape[0]))
        stumps_kernel.score_all(stumps=self._stumps(), rows=self.rows[users], out=out, threads=threads)
        return out

    def validate(self) -> None:
        """Raise an error unless each user has a row of thresholds, and each threshold is on an existing feature."""
        _, columns = soundness.features("item_features", self.item_features)
        (n_rows,) = soundness.doubles("offsets", self.offsets, None)
        soundness.ids("rows", self.rows, n_rows, None, dtype=np.int32)
        shape = soundness.ids("features", self.features, columns, n_rows, None, dtype=np.int32)
        soundness.doubles("cuts", self.cuts, *shape)
        soundness.doubles("weights", self.weights, *shape)

    def _stumps(self) -> stumps_kernel.Stumps:
        """The thresholds as the kernels take them, with dense features; CSR features keep only the columns in use."""
        values, features = self.item_features, self.features
        if scipy.sparse.issparse(values):
            used, columns = np.unique(features, return_inverse=True)
            values, features = values[:, used].toarray(), columns.reshape(features.shape).astype(np.int32)
        return stumps_kernel.Stumps(
            values=as_kernels_take(values, np.float64),
            features=features,
            cuts=self.cuts,
            weights=self.weights,
            offsets=self.offsets,
        )
