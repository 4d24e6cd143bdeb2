"""Models: small frozen records of arrays that score pairs, and are saved and loaded without pickle."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from rankbench.arrays import pack, read_npz, unpack, write_npz
from rankbench.contract import Floats, Ints, Model
from rankbench.errors import UserError
from rankbench.item_kernels import ItemKernel, KernelName
from rankbench.kernels import gram as gram_kernel
from rankbench.kernels import scoring as scoring_kernel
from rankbench.kernels import stumps as stumps_kernel

_ROWS = 1 << 10  # items of a user whose kernel values are made at a time
_BLOCK = 1 << 16  # pairs scored at a time: scratch memory stays small however many are asked for


@dataclass(frozen=True, eq=False)
class ItemScores:
    """One score per item, the same for every user."""

    scores: Floats

    def score(self, users: Ints, items: Ints) -> Floats:
        """scores[item]."""
        return self.scores[items]

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """The same row for each of these users."""
        return np.broadcast_to(self.scores, (len(users), len(self.scores)))


@dataclass(frozen=True, eq=False)
class Factors:
    """A vector per user and per item: score = u . v."""

    users: Floats
    items: Floats

    def score(self, users: Ints, items: Ints) -> Floats:
        """u_user . v_item; NaN for whoever has a row of NaN."""
        return _in_blocks(lambda u, i: np.einsum("pk,pk->p", self.users[u], self.items[i]), users, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """A row of inner products for each of these users."""
        return _products(self.users, users, self.items, threads)


@dataclass(frozen=True, eq=False)
class BlendedFactors:
    """A weighted mean of many low-rank models, as two products: score = u . v / (a . b).

    The rows of `users` and `items` hold all models' factors side by side, each times its weight for that user
    or item; the weights themselves are the rows of `user_weights` and `item_weights`.
    """

    users: Floats
    items: Floats
    user_weights: Floats
    item_weights: Floats

    def score(self, users: Ints, items: Ints) -> Floats:
        """u . v / (a . b); NaN for whoever has a row of NaN."""

        def block(u: Ints, i: Ints) -> Floats:
            weights: Floats = np.einsum("pk,pk->p", self.user_weights[u], self.item_weights[i])
            products: Floats = np.einsum("pk,pk->p", self.users[u], self.items[i])
            return products / weights

        return _in_blocks(block, users, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """A row of inner products for each of these users, over a row of weights."""
        products = _products(self.users, users, self.items, threads)
        products /= _products(self.user_weights, users, self.item_weights, threads)
        return products


@dataclass(frozen=True, eq=False)
class FeatureFactors:
    """A few linear functions of item features, and how each user weighs them: score = v_user . U^T x_item."""

    users: Floats  # V
    basis: Floats  # U, a column per function
    features: Any  # X, dense or CSR, a row per item, seen or not

    def score(self, users: Ints, items: Ints) -> Floats:
        """v_user . U^T x_item; items of the same features tie exactly."""
        return Factors(self.users, self.items(np.arange(self.features.shape[0]))).score(users, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """A row of inner products for each of these users."""
        return _products(self.users, users, self.items(np.arange(self.features.shape[0]), threads), threads)

    def items(self, items: Ints, threads: int = 1) -> Floats:
        """What each basic function makes of these items: x_item^T U, summed in the order of the features."""
        if scipy.sparse.issparse(self.features):
            return np.asarray(self.features[items] @ np.ascontiguousarray(self.basis))
        return _products(self.features, items, np.ascontiguousarray(self.basis.T), threads)

    def ranking_functions(self) -> tuple[Floats, Floats]:
        """U, and how the mean user weighs its columns."""
        return self.basis, self.users.mean(axis=0)


@dataclass(frozen=True, eq=False)
class UserWeights:
    """A linear function of item features per user: score = x_item . w_user + offset_user."""

    features: Any  # dense or CSR, a row per item, seen or not
    weights: Floats
    offsets: Floats

    def score(self, users: Ints, items: Ints) -> Floats:
        """x_item . w_user + offset_user."""
        if scipy.sparse.issparse(self.features):
            return self._sparse(
                _within("user", users, len(self.offsets)), _within("item", items, self.features.shape[0])
            )

        def block(u: Ints, i: Ints) -> Floats:
            values: Floats = (self.features[i] * self.weights[u]).sum(axis=1) + self.offsets[u]
            return values

        return _in_blocks(block, users, items)

    def _sparse(self, users: Ints, items: Ints) -> Floats:
        """The same over the values that an item has."""
        table, out = scipy.sparse.csr_array(self.features), np.empty(len(users))
        rows = table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data.astype(np.float64)
        weights = np.ascontiguousarray(self.weights, np.float64)
        scoring_kernel.sparse_pairs(*rows, weights, np.asarray(self.offsets, np.float64), users, items, out)
        return out

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """A row of inner products for each of these users, the offset added."""
        if scipy.sparse.issparse(self.features):
            products = np.ascontiguousarray((self.features @ self.weights[users].T).T)
        else:
            products = _products(self.weights, users, self.features, threads)
        products += self.offsets[users][:, None]
        return products


@dataclass(frozen=True, eq=False)
class KernelScores:
    """A kernel expansion per user over the items that user rated: sum_j a_j K(item, j) + offset."""

    gram: Floats  # K between items that differ
    rows: Ints  # each item's row of it
    indptr: Ints
    rated: Ints  # the rows of what each user rated
    coefficients: Floats
    offsets: Floats

    def score(self, users: Ints, items: Ints) -> Floats:
        """One pass over the user's expansion per pair; pairs of an item in turn, its row of the matrix in cache."""
        out = np.empty(len(users))
        users, asked = _within("user", users, len(self.offsets)), self.rows[_within("item", items, len(self.rows))]
        expansion = self.indptr, self.rated, self.coefficients, self.offsets
        gram_kernel.expand(self.gram, *expansion, users, asked, np.argsort(asked), out)
        return out

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """A sum of whole rows of the kernel for each of these users, the offset added."""
        shape = len(self.offsets), len(self.gram)
        expansion = scipy.sparse.csr_array((self.coefficients, self.rated, self.indptr), shape)[users]
        return np.asarray(expansion @ self.gram)[:, self.rows] + self.offsets[users][:, None]


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """The same without a matrix between all items: kernel values are made from the features when they are asked for."""

    features: Any  # dense or CSR, a row per item, seen or not
    kernel: KernelName
    width: float
    degree: int
    indptr: Ints
    items: Ints
    coefficients: Floats
    offsets: Floats

    def score(self, users: Ints, items: Ints) -> Floats:
        """Kernel values of each user's pairs with what that user rated, block by block."""
        out = np.empty(len(users))
        users, items = _within("user", users, len(self.offsets)), _within("item", items, self.features.shape[0])
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
        """A row for each of these users, block by block of items."""
        n_items = self.features.shape[0]
        out = np.empty((len(users), n_items))
        for row, user in enumerate(_within("user", users, len(self.offsets))):
            for first in range(0, n_items, _ROWS):
                block = np.arange(first, min(first + _ROWS, n_items), dtype=np.int32)
                out[row, block] = self._of_user(int(user), block)
        return out

    def _of_user(self, user: int, asked: Ints) -> Floats:
        rows = slice(self.indptr[user], self.indptr[user + 1])
        values = ItemKernel(self.kernel, self.width, self.degree).between(self.features, asked, self.items[rows])
        scores: Floats = np.einsum("ij,j->i", values, self.coefficients[rows]) + self.offsets[user]
        return scores


@dataclass(frozen=True, eq=False)
class Stumps:
    """Weighted thresholds on item features per user: offset + sum_t weight_t [x_item,feature_t > cut_t]."""

    item_features: Any  # dense or CSR, a row per item, seen or not
    rows: Ints  # each user's row of the thresholds
    features: Ints  # rows x thresholds, as are cuts and weights
    cuts: Floats
    weights: Floats
    offsets: Floats  # by row

    def score(self, users: Ints, items: Ints) -> Floats:
        """One pass over the user's thresholds per pair."""
        out = np.empty(len(users))
        rows = self.rows[_within("user", users, len(self.rows))]
        stumps_kernel.score(*self._thresholds(), rows, _within("item", items, self.item_features.shape[0]), out)
        return out

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """A pass over the thresholds for each of these users and each item."""
        out = np.empty((len(users), self.item_features.shape[0]))
        rows = self.rows[_within("user", users, len(self.rows))]
        stumps_kernel.score_all(*self._thresholds(), rows, out, threads)
        return out

    def _thresholds(self) -> tuple[Floats, Ints, Floats, Floats, Floats]:
        """The features as a plain array, of a CSR one only those columns that a threshold looks at."""
        values, features = self.item_features, self.features
        if scipy.sparse.issparse(values):
            used, columns = np.unique(features, return_inverse=True)
            values, features = values[:, used].toarray(), columns.reshape(features.shape).astype(np.int32)
        return np.ascontiguousarray(values, np.float64), features, self.cuts, self.weights, self.offsets


MODELS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        ItemScores,
        Factors,
        BlendedFactors,
        FeatureFactors,
        UserWeights,
        KernelScores,
        KernelExpansion,
        Stumps,
    )
}


def save(model: Model, path: str | Path) -> None:
    """Write a model to an npz file: plain arrays, no pickle."""
    write_npz(Path(path), pack(model))


def load(path: str | Path) -> Model:
    """Read back what `save` wrote."""
    arrays = read_npz(Path(path))
    try:
        model: Model = unpack(arrays, MODELS)
    except (KeyError, TypeError):
        raise UserError(f"{path} holds no model of rankbench") from None
    return model


def _products(rows: Floats, users: Ints, columns: Floats, threads: int) -> Floats:
    """The inner products of these users' rows with all columns."""
    out = np.empty((len(users), len(columns)))
    known = np.ascontiguousarray(rows, np.float64), _within("user", users, len(rows))
    scoring_kernel.products(*known, np.ascontiguousarray(columns, np.float64), out, threads)
    return out


def _within(kind: str, ids: Ints, size: int) -> Ints:
    """The ids as a kernel takes them, which looks wherever they point: beyond the model is an error here."""
    if len(ids) and not 0 <= ids.min() <= ids.max() < size:
        raise IndexError(f"{kind} ids run from {ids.min()} to {ids.max()}: the model knows {size}")
    return np.asarray(ids, np.int32)


def _in_blocks(score: Callable[[Ints, Ints], Floats], users: Ints, items: Ints) -> Floats:
    """The scores of all pairs, computed block by block."""
    out = np.empty(len(users))
    for start in range(0, len(users), _BLOCK):
        block = slice(start, start + _BLOCK)
        out[block] = score(users[block], items[block])
    return out
