"""Models: small frozen records of arrays that score pairs, and are saved and loaded without pickle."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import scipy.sparse

from rankbench import soundness
from rankbench.arrays import pack, read_npz, unpack, write_npz
from rankbench.contract import Floats, Int32s, Int64s, Ints, Model
from rankbench.errors import UserError, unknown
from rankbench.item_kernels import ItemKernel, KernelName
from rankbench.kernels.models import gram as gram_kernel
from rankbench.kernels.models import scoring as scoring_kernel
from rankbench.kernels.models import stumps as stumps_kernel
from rankbench.kernels.shared.rows import SparseRows
from rankbench.names import checked_threads

_ROWS = 1 << 10  # items of a user whose kernel values are made at a time
_BLOCK = 1 << 16  # pairs scored at a time: scratch memory stays small however many are asked for


@dataclass(frozen=True, eq=False)
class ItemScores:
    """One score per item, the same for every user."""

    scores: Floats

    def score(self, users: Ints, items: Ints) -> Floats:
        """scores[item]."""
        return self.scores[_pairs(users, items, None, len(self.scores))[1]]

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """The same row for each of these users."""
        users, threads = _asked(users, None, threads)
        return np.broadcast_to(self.scores, (len(users), len(self.scores)))

    def validate(self) -> None:
        """Refuse anything but a vector."""
        soundness.numbers("scores", self.scores, None)


@dataclass(frozen=True, eq=False)
class Factors:
    """A vector per user and per item: score = u . v."""

    users: Floats
    items: Floats

    def score(self, users: Ints, items: Ints) -> Floats:
        """u_user . v_item; NaN for whoever has a row of NaN."""
        users, items = _pairs(users, items, len(self.users), len(self.items))
        return _in_blocks(lambda u, i: np.einsum("pk,pk->p", self.users[u], self.items[i]), users, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """A row of inner products for each of these users."""
        users, threads = _asked(users, len(self.users), threads)
        return _products(self.users, users, self.items, threads)

    def validate(self) -> None:
        """Refuse users and items whose vectors are not as long."""
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

    def score(self, users: Ints, items: Ints) -> Floats:
        """u . v / (a . b); NaN for whoever has a row of NaN."""
        users, items = _pairs(users, items, len(self.users), len(self.items))

        def block(u: Ints, i: Ints) -> Floats:
            weights: Floats = np.einsum("pk,pk->p", self.user_weights[u], self.item_weights[i])
            products: Floats = np.einsum("pk,pk->p", self.users[u], self.items[i])
            return products / weights

        return _in_blocks(block, users, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """A row of inner products for each of these users, over a row of weights."""
        users, threads = _asked(users, len(self.users), threads)
        products = _products(self.users, users, self.items, threads)
        products /= _products(self.user_weights, users, self.item_weights, threads)
        return products

    def validate(self) -> None:
        """Refuse vectors that are not as long, and weights of others than the users and items."""
        n_users, rank = soundness.numbers("users", self.users, None, None)
        n_items, _ = soundness.numbers("items", self.items, None, rank)
        _, models = soundness.numbers("user_weights", self.user_weights, n_users, None)
        soundness.numbers("item_weights", self.item_weights, n_items, models)


@dataclass(frozen=True, eq=False)
class FeatureFactors:
    """A few linear functions of item features, and how each user weighs them: score = v_user . U^T x_item."""

    users: Floats  # V
    basis: Floats  # U, a column per function
    features: Any  # X, dense or CSR, a row per item, seen or not

    def score(self, users: Ints, items: Ints) -> Floats:
        """v_user . U^T x_item; items of the same features tie exactly."""
        users, items = _pairs(users, items, len(self.users), self.features.shape[0])  # before all that work
        return Factors(self.users, self.items(np.arange(self.features.shape[0]))).score(users, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """A row of inner products for each of these users."""
        users, threads = _asked(users, len(self.users), threads)
        return _products(self.users, users, self.items(np.arange(self.features.shape[0]), threads), threads)

    def items(self, items: Ints, threads: int = 1) -> Floats:
        """What each basic function makes of these items: x_item^T U, summed in the order of the features."""
        items, threads = _ids("item", items, self.features.shape[0]), checked_threads(threads)
        if scipy.sparse.issparse(self.features):
            return np.asarray(self.features[items] @ np.ascontiguousarray(self.basis))
        return _products(self.features, items, np.ascontiguousarray(self.basis.T), threads)

    def ranking_functions(self) -> tuple[Floats, Floats]:
        """U, and how the mean user weighs its columns."""
        return self.basis, self.users.mean(axis=0)

    def validate(self) -> None:
        """Refuse functions of other features, and users who weigh other functions."""
        _, columns = soundness.features("features", self.features)
        _, rank = soundness.numbers("basis", self.basis, columns, None)
        soundness.numbers("users", self.users, None, rank)


@dataclass(frozen=True, eq=False)
class UserWeights:
    """A linear function of item features per user: score = x_item . w_user + offset_user."""

    features: Any  # dense or CSR, a row per item, seen or not
    weights: Floats
    offsets: Floats

    def score(self, users: Ints, items: Ints) -> Floats:
        """x_item . w_user + offset_user."""
        users, items = _pairs(users, items, len(self.offsets), self.features.shape[0])
        if scipy.sparse.issparse(self.features):
            return self._sparse(_as_kernels_take(users), _as_kernels_take(items))

        def block(u: Ints, i: Ints) -> Floats:
            values: Floats = (self.features[i] * self.weights[u]).sum(axis=1) + self.offsets[u]
            return values

        return _in_blocks(block, users, items)

    def _sparse(self, users: Int32s, items: Int32s) -> Floats:
        """The same over the values that an item has."""
        table, out = scipy.sparse.csr_array(self.features), np.empty(len(users))
        scoring_kernel.sparse_pairs(
            features=SparseRows(
                indptr=table.indptr.astype(np.int64),
                columns=table.indices.astype(np.int32),
                values=table.data.astype(np.float64),
            ),
            weights=np.ascontiguousarray(self.weights, np.float64),
            offsets=np.asarray(self.offsets, np.float64),
            users=users,
            items=items,
            out=out,
        )
        return out

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """A row of inner products for each of these users, the offset added."""
        users, threads = _asked(users, len(self.offsets), threads)
        if scipy.sparse.issparse(self.features):
            products = np.ascontiguousarray((self.features @ self.weights[users].T).T)
        else:
            products = _products(self.weights, users, self.features, threads)
        products += self.offsets[users][:, None]
        return products

    def validate(self) -> None:
        """Refuse weights of other features, and offsets of other users."""
        _, columns = soundness.features("features", self.features)
        n_users, _ = soundness.numbers("weights", self.weights, None, columns)
        soundness.numbers("offsets", self.offsets, n_users)


@dataclass(frozen=True, eq=False)
class KernelScores:
    """A kernel expansion per user over the items that user rated: sum_j a_j K(item, j) + offset."""

    gram: Floats  # K between items that differ
    rows: Int32s  # each item's row of it
    indptr: Int64s
    rated: Int32s  # the rows of what each user rated
    coefficients: Floats
    offsets: Floats

    def score(self, users: Ints, items: Ints) -> Floats:
        """One pass over the user's expansion per pair; pairs of an item in turn, its row of the matrix in cache."""
        users, items = _pairs(users, items, len(self.offsets), len(self.rows))
        asked, out = self.rows[items], np.empty(len(users))
        gram_kernel.expand(
            gram=self.gram,
            coefficients=SparseRows(indptr=self.indptr, columns=self.rated, values=self.coefficients),
            offsets=self.offsets,
            users=_as_kernels_take(users),
            asked=asked,
            order=np.argsort(asked),
            out=out,
        )
        return out

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """A sum of whole rows of the kernel for each of these users, the offset added."""
        users, threads = _asked(users, len(self.offsets), threads)
        shape = len(self.offsets), len(self.gram)
        expansion = scipy.sparse.csr_array((self.coefficients, self.rated, self.indptr), shape)[users]
        return np.asarray(expansion @ self.gram)[:, self.rows] + self.offsets[users][:, None]

    def validate(self) -> None:
        """Refuse items and expansions that point beyond the matrix, and expansions of other users."""
        size, _ = soundness.doubles("gram", self.gram, None, None)
        soundness.doubles("gram", self.gram, size, size)
        if not self.gram.flags.c_contiguous:
            raise UserError("gram lies column after column: it must lie row after row")
        soundness.ids("rows", self.rows, size, None, dtype=np.int32)
        (n_users,) = soundness.doubles("offsets", self.offsets, None)
        (entries,) = soundness.ids("rated", self.rated, size, None, dtype=np.int32)
        soundness.doubles("coefficients", self.coefficients, entries)
        soundness.pointers("indptr", self.indptr, n_users, entries, np.int64)


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
        users, items = _pairs(users, items, len(self.offsets), self.features.shape[0])
        users, items, out = _as_kernels_take(users), _as_kernels_take(items), np.empty(len(users))
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
        users, threads = _asked(users, len(self.offsets), threads)
        n_items = self.features.shape[0]
        out = np.empty((len(users), n_items))
        for row, user in enumerate(users):
            for first in range(0, n_items, _ROWS):
                block = np.arange(first, min(first + _ROWS, n_items), dtype=np.int32)
                out[row, block] = self._of_user(int(user), block)
        return out

    def validate(self) -> None:
        """Refuse an unknown kernel, and expansions over items that there are not, or of other users."""
        n_items, columns = soundness.features("features", self.features)
        if not scipy.sparse.issparse(self.features):
            soundness.doubles("features", self.features, n_items, columns)
        if self.kernel not in get_args(KernelName):
            raise unknown("kernel", str(self.kernel), get_args(KernelName))
        if self.kernel == "precomputed" and columns != n_items:
            raise UserError(f"features are {n_items} x {columns}: a kernel that is given must be square")
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

    item_features: Any  # dense or CSR, a row per item, seen or not
    rows: Int32s  # each user's row of the thresholds
    features: Int32s  # rows x thresholds, as are cuts and weights
    cuts: Floats
    weights: Floats
    offsets: Floats  # by row

    def score(self, users: Ints, items: Ints) -> Floats:
        """One pass over the user's thresholds per pair."""
        users, items = _pairs(users, items, len(self.rows), self.item_features.shape[0])
        out = np.empty(len(users))
        stumps_kernel.score(stumps=self._stumps(), rows=self.rows[users], items=_as_kernels_take(items), out=out)
        return out

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """A pass over the thresholds for each of these users and each item."""
        users, threads = _asked(users, len(self.rows), threads)
        out = np.empty((len(users), self.item_features.shape[0]))
        stumps_kernel.score_all(stumps=self._stumps(), rows=self.rows[users], out=out, threads=threads)
        return out

    def validate(self) -> None:
        """Refuse users without a row of thresholds, and thresholds on features that there are not."""
        _, columns = soundness.features("item_features", self.item_features)
        (n_rows,) = soundness.doubles("offsets", self.offsets, None)
        soundness.ids("rows", self.rows, n_rows, None, dtype=np.int32)
        shape = soundness.ids("features", self.features, columns, n_rows, None, dtype=np.int32)
        soundness.doubles("cuts", self.cuts, *shape)
        soundness.doubles("weights", self.weights, *shape)

    def _stumps(self) -> stumps_kernel.Stumps:
        """The thresholds as the kernels take them, with a plain array of features: of a CSR one the columns in use."""
        values, features = self.item_features, self.features
        if scipy.sparse.issparse(values):
            used, columns = np.unique(features, return_inverse=True)
            values, features = values[:, used].toarray(), columns.reshape(features.shape).astype(np.int32)
        return stumps_kernel.Stumps(
            values=np.ascontiguousarray(values, np.float64),
            features=features,
            cuts=self.cuts,
            weights=self.weights,
            offsets=self.offsets,
        )


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
    """Read back what `save` wrote; every index in the file is looked at before any is followed."""
    arrays = read_npz(Path(path))
    try:
        model = unpack(arrays, MODELS)
    except (KeyError, TypeError):
        raise UserError(f"{path} holds no model of rankbench") from None
    except UserError as error:
        raise _unsound(path, error) from None
    try:
        model.validate()
    except UserError as error:
        raise _unsound(path, error) from None
    loaded: Model = model
    return loaded


def _unsound(path: str | Path, error: UserError) -> UserError:
    """The same problem, said of a file."""
    return UserError(str(error), subject=f"{path} holds no sound model", remedy="save the model again")


def _products(rows: Floats, chosen: Ints, columns: Floats, threads: int) -> Floats:
    """The inner products of these rows with all columns."""
    out = np.empty((len(chosen), len(columns)))
    scoring_kernel.products(
        rows=np.ascontiguousarray(rows, np.float64),
        chosen=_as_kernels_take(chosen),
        columns=np.ascontiguousarray(columns, np.float64),
        out=out,
        threads=threads,
    )
    return out


def _pairs(users: Ints, items: Ints, n_users: int | None, n_items: int) -> tuple[Ints, Ints]:
    """The ids as vectors, if they are as long and each is in the model."""
    users, items = _ids("user", users, n_users), _ids("item", items, n_items)
    if len(users) != len(items):
        raise UserError(f"{len(users)} users and {len(items)} items make no pairs", remedy="give as many of both")
    return users, items


def _asked(users: Ints, n_users: int | None, threads: int) -> tuple[Ints, int]:
    """Whose rows are asked for, and of how many threads, if there are such users and threads."""
    return _ids("user", users, n_users), checked_threads(threads)


def _ids(kind: str, ids: Ints, size: int | None) -> Ints:
    """The ids as a vector, of which each must be from 0 to size - 1; a model that knows no users takes any.

    Two passes that only compare: kernels look wherever an id points, and numpy counts a negative one from the end.
    """
    found = np.atleast_1d(np.asarray(ids))
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
        raise UserError(f"{kind} ids are {found.dtype}{list(found.shape)}: they must be a vector of integers")
    if not len(found):
        return found.astype(np.int32)  # an empty list has the type of floats
    if size is not None and not 0 <= (low := found.min()) <= (high := found.max()) < size:
        known = f"ids run from 0 to {size - 1}" if size else f"the model knows no {kind}"
        raise UserError(f"{kind} id {low if low < 0 else high} is out of range: {known}")
    return found


def _as_kernels_take(ids: Ints) -> Int32s:
    return np.ascontiguousarray(ids, np.int32)


def _in_blocks(score: Callable[[Ints, Ints], Floats], users: Ints, items: Ints) -> Floats:
    """The scores of all pairs, computed block by block."""
    out = np.empty(len(users))
    for start in range(0, len(users), _BLOCK):
        block = slice(start, start + _BLOCK)
        out[block] = score(users[block], items[block])
    return out
