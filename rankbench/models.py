"""Models: small frozen records of arrays that score pairs, and are saved and loaded without pickle."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse

from rankbench.arrays import soundness
from rankbench.arrays.npz import (
    Array,
    Arrays,
    as_kernels_take,
    fingerprint_in_pieces,
    pack,
    read_npz,
    unpack,
    write_npz,
)
from rankbench.core.brief import brief, brief_html
from rankbench.core.contract import Executor, Floats, Int32s, Int64s, Ints, Model, Scattered, Sums
from rankbench.core.errors import UserError, unknown
from rankbench.features.item_kernels import ItemKernel, KernelName
from rankbench.kernels.models import gram as gram_kernel
from rankbench.kernels.models import item_weights as weights_kernel
from rankbench.kernels.models import scoring as scoring_kernel
from rankbench.kernels.models import stumps as stumps_kernel
from rankbench.kernels.shared.rows import SparseRows
from rankbench.names import checked_threads

Uint64s = npt.NDArray[np.uint64]

_ROWS = 1 << 10  # kernel values between this many items and a user's rated items are computed at a time


@dataclass(frozen=True, eq=False)
class ItemScores:
    """One score per item, the same for every user."""

    scores: Floats

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """The score of the item in each pair."""
        return self.scores[_pairs(users, items, None, len(self.scores))[1]]

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the item scores, repeated for each user."""
        users, threads = _asked(users, None, threads)
        return np.broadcast_to(self.scores, (len(users), len(self.scores)))

    def validate(self) -> None:
        """Raise an error unless the scores are a vector of numbers."""
        soundness.numbers("scores", self.scores, None)


@dataclass(frozen=True, eq=False)
class HashedScores:
    """A random score from 0 to 1 for each pair of user and item, computed from a seed and the pair, and not stored."""

    seed: int
    n_users: int
    n_items: int

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """The random score of each pair, the same whenever it is asked for."""
        users, items = _pairs(users, items, self.n_users, self.n_items)
        return self._drawn(users, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the random scores of all items for these users."""
        users, threads = _asked(users, self.n_users, threads)
        return self._drawn(users[:, None], np.arange(self.n_items)[None, :])

    def validate(self) -> None:
        """Raise an error unless the seed and the sizes are whole numbers within their ranges."""
        limits = {"seed": 2**63, "n_users": 2**31, "n_items": 2**31}
        for name, high in limits.items():
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value < high:
                raise UserError(f"{name}={value} is out of range: must be a whole number from 0 to {high - 1}")

    def _drawn(self, users: Ints, items: Ints) -> Floats:
        """The first 53 bits of the mixed number of each pair, as a fraction."""
        pairs = users.astype(np.uint64) * np.uint64(self.n_items) + items.astype(np.uint64)
        bits = _mixed(np.uint64(self.seed) + _mixed(pairs + np.uint64(1))) >> np.uint64(11)
        return bits.astype(np.float64) * 2.0**-53


@dataclass(frozen=True, eq=False)
class Factors:
    """A vector per user and per item: score = u . v."""

    users: Floats
    items: Floats

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """u_user . v_item for each pair; NaN if the user's or the item's vector is NaN."""
        users, items = _pairs(users, items, len(self.users), len(self.items))
        return _products_of_pairs(self.users, users, self.items, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the inner products of the users' vectors with all items' vectors."""
        users, threads = _asked(users, len(self.users), threads)
        return _products(self.users, users, self.items, threads)

    def validate(self) -> None:
        """Raise an error unless the vectors of users and items have the same length."""
        _, rank = soundness.numbers("users", self.users, None, None)
        soundness.numbers("items", self.items, None, rank)


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

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """u . v / (a . b) for each pair; NaN if the user's or the item's vector is NaN."""
        users, items = _pairs(users, items, len(self.users), len(self.items))
        products = _products_of_pairs(self.users, users, self.items, items)
        products /= _products_of_pairs(self.user_weights, users, self.item_weights, items)
        return products

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the inner products u . v, divided by the weights a . b."""
        users, threads = _asked(users, len(self.users), threads)
        products = _products(self.users, users, self.items, threads)
        products /= _products(self.user_weights, users, self.item_weights, threads)
        return products

    def validate(self) -> None:
        """Raise an error unless users and items have vectors of the same length, and weights of the same length."""
        n_users, rank = soundness.numbers("users", self.users, None, None)
        n_items, _ = soundness.numbers("items", self.items, None, rank)
        _, models = soundness.numbers("user_weights", self.user_weights, n_users, None)
        soundness.numbers("item_weights", self.item_weights, n_items, models)


@dataclass(frozen=True, eq=False)
class FeatureFactors:
    """A few linear functions of item features, weighted by each user: score = v_user . U^T x_item."""

    users: Floats  # V
    basis: Floats  # U, one column per function
    features: Any  # X, dense or CSR, one row per item, rated in training or not

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """v_user . U^T x_item for each pair; items with the same features tie exactly."""
        users, items = _pairs(users, items, len(self.users), self.features.shape[0])  # check ids first
        return Factors(self.users, self.items(np.arange(self.features.shape[0]))).score(users, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the scores of all items for these users."""
        users, threads = _asked(users, len(self.users), threads)
        return _products(self.users, users, self.items(np.arange(self.features.shape[0]), threads), threads)

    def items(self, items: Ints, threads: int = 1) -> Floats:
        """items x functions: the value x_item^T U of each function, summed in the order of the features."""
        items, threads = _ids("item", items, self.features.shape[0]), checked_threads(threads)
        if scipy.sparse.issparse(self.features):
            return np.asarray(self.features[items] @ np.ascontiguousarray(self.basis))
        return _products(self.features, items, np.ascontiguousarray(self.basis.T), threads)

    def ranking_functions(self) -> tuple[Floats, Floats]:
        """U, and the mean over users of the weight of each column."""
        return self.basis, self.users.mean(axis=0)

    def validate(self) -> None:
        """Raise an error unless features, functions and users' weights have matching sizes."""
        _, columns = soundness.features("features", self.features)
        _, rank = soundness.numbers("basis", self.basis, columns, None)
        soundness.numbers("users", self.users, None, rank)


@dataclass(frozen=True, eq=False)
class ScatteredUsers:
    """The users' vectors of a model, which stay with the parts of a training set, wherever an executor keeps these."""

    executor: Executor
    edges: Int64s  # part p has the users from edges[p] to edges[p + 1]
    vectors: Callable[[Any], Floats]  # those of a part's users
    rank: int

    def __repr__(self) -> str:
        return f"ScatteredUsers({len(self)} x {self.rank} in {len(self.edges) - 1} parts)"

    def __len__(self) -> int:
        return int(self.edges[-1])

    def scores(self, items: Floats, users: Ints, asked: Ints) -> Floats:
        """u_user . v_item for each pair, computed where the user's vector is, given all items' vectors."""
        users, asked = _pairs(users, asked, len(self), len(items))
        own, out = self._by_part(users), np.empty(len(users))
        pairs = {part: (users[rows] - self.edges[part], asked[rows]) for part, rows in own.items()}
        found = self.executor.ask(_scores_of, pairs, self.vectors, items) if own else {}
        for part, rows in own.items():
            out[rows] = found[part]
        return out

    def rows(self, users: Ints) -> Floats:
        """The vectors of these users, brought to this process."""
        own, out = self._by_part(users), np.empty((len(users), self.rank))
        asked = {part: (users[rows] - self.edges[part],) for part, rows in own.items()}
        found = self.executor.ask(_rows_of, asked, self.vectors) if own else {}
        for part, rows in own.items():
            out[rows] = found[part]
        return out

    def pieces(self) -> Iterator[Floats]:
        """The vectors of one part after another."""
        for part in range(len(self.edges) - 1):
            yield self.executor.ask(_all_of, {part: ()}, self.vectors)[part]

    def mean(self) -> Floats:
        """The mean vector of all users."""
        total: Floats = self.executor.total(_sum_of, self.vectors)[0]
        return total / len(self)

    def _by_part(self, users: Ints) -> dict[int, Ints]:
        """Which of the asked users each part has, for the parts that have any."""
        part_of = np.searchsorted(self.edges, users, side="right") - 1
        return {int(part): np.flatnonzero(part_of == part) for part in np.unique(part_of)}


@dataclass(frozen=True, eq=False)
class ScatteredFactors:
    """`Factors` whose users' vectors stay with the parts of a training set."""

    users: ScatteredUsers
    items: Floats

    __repr__ = brief

    def score(self, users: Ints, items: Ints) -> Floats:
        """u_user . v_item for each pair; only scores travel."""
        return self.users.scores(self.items, users, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the scores of all items for these users, whose vectors travel."""
        users, threads = _asked(users, len(self.users), threads)
        return _products(self.users.rows(users), np.arange(len(users)), self.items, threads)

    def gathered(self) -> Factors:
        """The plain model, in this process."""
        return Factors(np.concatenate(list(self.users.pieces())), self.items)

    def digest(self) -> str:
        """The hash of the plain model's arrays."""
        bare = Factors(np.empty((0, self.users.rank)), self.items)
        return fingerprint_in_pieces(bare, "users", len(self.users), self.users.pieces())


@dataclass(frozen=True, eq=False)
class ScatteredFeatureFactors:
    """`FeatureFactors` whose users' weights stay with the parts of a training set."""

    users: ScatteredUsers
    basis: Floats
    features: Any

    __repr__ = brief

    def score(self, users: Ints, items: Ints) -> Floats:
        """v_user . U^T x_item for each pair; only scores travel."""
        return self.users.scores(self._items(1), users, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the scores of all items for these users, whose weights travel."""
        users, threads = _asked(users, len(self.users), threads)
        return _products(self.users.rows(users), np.arange(len(users)), self._items(threads), threads)

    def ranking_functions(self) -> tuple[Floats, Floats]:
        """U, and the mean over users of the weight of each column."""
        return self.basis, self.users.mean()

    def gathered(self) -> FeatureFactors:
        """The plain model, in this process."""
        return self._with(np.concatenate(list(self.users.pieces())))

    def digest(self) -> str:
        """The hash of the plain model's arrays."""
        bare = self._with(np.empty((0, self.users.rank)))
        return fingerprint_in_pieces(bare, "users", len(self.users), self.users.pieces())

    def _with(self, users: Floats) -> FeatureFactors:
        return FeatureFactors(users, self.basis, self.features)

    def _items(self, threads: int) -> Floats:
        """The value of each function for each item."""
        plain = self._with(np.empty((0, self.users.rank)))
        return plain.items(np.arange(self.features.shape[0]), threads)


def _scores_of(part: Any, users: Ints, asked: Ints, vectors: Callable[[Any], Floats], items: Floats) -> Floats:
    return Factors(vectors(part), items).score(users, asked)


def _rows_of(part: Any, users: Ints, vectors: Callable[[Any], Floats]) -> Floats:
    return vectors(part)[users]


def _all_of(part: Any, vectors: Callable[[Any], Floats]) -> Floats:
    return np.ascontiguousarray(vectors(part))


def _sum_of(part: Any, vectors: Callable[[Any], Floats]) -> Sums:
    return (vectors(part).sum(axis=0),)


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
        users, items = _pairs(users, items, len(self.offsets), self.features.shape[0])
        if scipy.sparse.issparse(self.features):
            return self._sparse(_int32s(users), _int32s(items))
        products = _products_of_pairs(self.weights, users, self.features, items)
        products += self.offsets[users]
        return products

    def _sparse(self, users: Int32s, items: Int32s) -> Floats:
        """x_item . w_user + offset_user for each pair, summed over the stored values of a sparse x_item."""
        table, out = scipy.sparse.csr_array(self.features), np.empty(len(users))
        scoring_kernel.sparse_pairs(
            features=_sparse_rows(table),
            weights=as_kernels_take(self.weights, np.float64),
            offsets=as_kernels_take(self.offsets, np.float64),
            users=users,
            items=items,
            out=out,
        )
        return out

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the inner products of weights and features, plus the user's offset."""
        users, threads = _asked(users, len(self.offsets), threads)
        if scipy.sparse.issparse(self.features):
            products = np.ascontiguousarray((self.features @ self.weights[users].T).T)
        else:
            products = _products(self.weights, users, self.features, threads)
        products += self.offsets[users][:, None]
        return products

    def validate(self) -> None:
        """Raise an error unless there is a weight for each feature and an offset for each user."""
        _, columns = soundness.features("features", self.features)
        n_users, _ = soundness.numbers("weights", self.weights, None, columns)
        soundness.numbers("offsets", self.offsets, n_users)


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
        users, items = _pairs(users, items, len(self.offsets), len(self.rows))
        asked, out = self.rows[items], np.empty(len(users))
        gram_kernel.expand(
            gram=self.gram,
            coefficients=SparseRows(indptr=self.indptr, columns=self.rated, values=self.coefficients),
            offsets=self.offsets,
            users=_int32s(users),
            asked=asked,
            order=np.argsort(asked),
            out=out,
        )
        return out

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: each user's weighted sum of rows of K, plus the user's offset."""
        users, threads = _asked(users, len(self.offsets), threads)
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
        users, items = _pairs(users, items, len(self.offsets), self.features.shape[0])
        users, items, out = _int32s(users), _int32s(items), np.empty(len(users))
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
        users, threads = _asked(users, len(self.offsets), threads)
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
        users, items = _pairs(users, items, len(self.rows), self.item_features.shape[0])
        out = np.empty(len(users))
        stumps_kernel.score(stumps=self._stumps(), rows=self.rows[users], items=_int32s(items), out=out)
        return out

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: each user's weighted sum of thresholds at all items."""
        users, threads = _asked(users, len(self.rows), threads)
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
        users, items = _pairs(users, items, len(self.indptr) - 1, len(self.columns))
        out = np.empty(len(users))
        if len(self.rated):
            asked = self.columns[items]
            if scipy.sparse.issparse(self.weights):
                weights_kernel.sparse_pairs(
                    rows=self._rows(), weights=_sparse_rows(self.weights), users=_int32s(users), asked=asked, out=out
                )
            else:
                weights_kernel.dense_pairs(
                    rows=self._rows(), weights=self.weights, users=_int32s(users), asked=asked, out=out
                )
        else:
            out[:] = 0.0
        return out + self.offsets[items]

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the weighted sums of all items for these users, with the bits that `score` gives."""
        users, threads = _asked(users, len(self.indptr) - 1, threads)
        out = np.zeros((len(users), self.weights.shape[1]))
        if scipy.sparse.issparse(self.weights):
            weights_kernel.sparse_all(
                rows=self._rows(), weights=_sparse_rows(self.weights), users=_int32s(users), out=out, threads=threads
            )
        else:
            weights_kernel.dense_all(
                rows=self._rows(), weights=self.weights, users=_int32s(users), out=out, threads=threads
            )
        return out[:, self.columns] + self.offsets

    def validate(self) -> None:
        """Raise an error unless all indices lie within W, W is square, and the arrays have matching lengths."""
        size, _ = soundness.features("weights", self.weights)
        soundness.features("weights", self.weights, size, size)
        if scipy.sparse.issparse(self.weights):
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

    def _rows(self) -> SparseRows:
        return SparseRows(indptr=self.indptr, columns=self.rated, values=self.values)


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
        HashedScores,
        ItemWeights,
    )
}
FEATURES: dict[str, str] = {  # the models that score any item by its features, and the field that has these
    "FeatureFactors": "features",
    "UserWeights": "features",
    "KernelExpansion": "features",
    "Stumps": "item_features",
}


def save(model: Model, path: str | Path, **beside: Array) -> None:
    """Write a model to an npz file, with the arrays `beside` it: plain arrays, no pickle.

    A model whose users' vectors are in other processes is gathered first.
    """
    model = model.gathered() if isinstance(model, Scattered) else model
    write_npz(Path(path), pack(model) | beside)


def load(path: str | Path) -> Model:
    """Read the model in a file that `save` wrote; all indices in the file are checked before any is used.

    `rankbench.load` also reads the ids beside it.
    """
    return unpacked(path, arrays_in(path))


def arrays_in(path: str | Path) -> Arrays:
    """All arrays in the file of a model."""
    try:
        return read_npz(Path(path))
    except OSError as error:
        raise UserError(f"cannot read the model {path}: {error.strerror}") from None


def unpacked(path: str | Path, arrays: Arrays) -> Model:
    """The model in these arrays of a file, checked."""
    try:
        model = unpack(arrays, MODELS)
    except (KeyError, TypeError):
        raise UserError(f"{path} holds no rankbench model") from None
    except UserError as error:
        raise unsound(path, error) from None
    try:
        model.validate()
    except UserError as error:
        raise unsound(path, error) from None
    loaded: Model = model
    return loaded


def unsound(path: str | Path, error: UserError) -> UserError:
    """The error about the content of a file of a model, with the file as its subject."""
    return UserError(str(error), subject=f"{path} holds an invalid model", remedy="save the model again")


def _products(rows: Floats, chosen: Ints, columns: Floats, threads: int) -> Floats:
    """The inner products of these rows with all columns."""
    out = np.empty((len(chosen), len(columns)))
    scoring_kernel.products(
        rows=as_kernels_take(rows, np.float64),
        chosen=_int32s(chosen),
        columns=as_kernels_take(columns, np.float64),
        out=out,
        threads=threads,
    )
    return out


def _products_of_pairs(rows: Floats, chosen: Ints, columns: Floats, asked: Ints) -> Floats:
    """The inner product of the chosen row with the asked column for each pair, with the bits of `_products`."""
    out = np.empty(len(chosen))
    scoring_kernel.pairs(
        rows=_contiguous_rows(rows),
        chosen=_int32s(chosen),
        columns=_contiguous_rows(columns),
        asked=_int32s(asked),
        out=out,
    )
    return out


def _contiguous_rows(table: Floats) -> Floats:
    """The table as doubles, each row contiguous; a part of the columns of such a table is taken without a copy."""
    if table.dtype == np.float64 and table.flags.aligned and table.strides[1] == table.itemsize:
        return table
    copied: Floats = as_kernels_take(table, np.float64)
    return copied


def _sparse_rows(table: scipy.sparse.csr_array) -> SparseRows:
    """A CSR matrix as the kernels take it."""
    return SparseRows(
        indptr=table.indptr.astype(np.int64),
        columns=table.indices.astype(np.int32),
        values=table.data.astype(np.float64),
    )


def _mixed(numbers: Uint64s) -> Uint64s:
    """SplitMix64's finaliser, as in the kernels' random streams: flipping any bit flips about half of the result's."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _pairs(users: Ints, items: Ints, n_users: int | None, n_items: int) -> tuple[Ints, Ints]:
    """The user ids and item ids as vectors of the same length; an error if an id is not in the model."""
    users, items = _ids("user", users, n_users), _ids("item", items, n_items)
    if len(users) != len(items):
        raise UserError(f"there are {len(users)} users but {len(items)} items", remedy="pass one item for each user")
    return users, items


def _asked(users: Ints, n_users: int | None, threads: int) -> tuple[Ints, int]:
    """The user ids and the number of threads, both checked."""
    return _ids("user", users, n_users), checked_threads(threads)


def _ids(kind: str, ids: Ints, size: int | None) -> Ints:
    """The ids as a vector of integers, each from 0 to size - 1; with size None any id is allowed.

    The check is needed because kernels do not check bounds, and NumPy counts negative ids from the end.
    """
    found = np.atleast_1d(np.asarray(ids))
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
        raise UserError(f"{kind} ids are {found.dtype}{list(found.shape)}: they must be a vector of integers")
    if not len(found):
        return found.astype(np.int32)  # NumPy makes an empty list an array of floats
    if size is not None and not 0 <= (low := found.min()) <= (high := found.max()) < size:
        known = f"ids run from 0 to {size - 1}" if size else f"the model has no {kind}s"
        raise UserError(f"{kind} id {low if low < 0 else high} is out of range: {known}")
    return found


def _int32s(ids: Ints) -> Int32s:
    return as_kernels_take(ids, np.int32)
