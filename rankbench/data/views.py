"""The two views that solvers learn from, both CSR by user, immutable, validated once at the door."""

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse

from rankbench.arrays import Arrays, is_sealed, sealed, unpack
from rankbench.contract import Flags, Floats, Int8s, Int32s, Int64s, Ints, Solver
from rankbench.data.by_item import ByItem, users_of
from rankbench.errors import UserError
from rankbench.feature_matrix import Matrix
from rankbench.kernels.data import pairs as pairs_kernel
from rankbench.kernels.shared.rows import ComparisonRows, SparseRows

ItemFeatures: TypeAlias = Matrix | None
Labels = Any  # a vector of published ids or names, integers or text; or None


@dataclass(frozen=True, eq=False)
class Ratings:
    """What each user gave each item; within a user, items ascend and none comes twice.

    Ratings imply an order with ties: a strictly higher value is preferred. `folds` says which of the
    published test folds a row belongs to, counted from 1; 0 is none. The ids are those of the
    publication, by which a split can be written out and made again elsewhere.
    """

    indptr: Int64s
    items: Int32s
    values: Floats
    n_items: int
    item_features: ItemFeatures = None
    feature_names: Labels = None
    user_ids: Labels = None
    item_ids: Labels = None
    folds: Int8s | None = None

    def __post_init__(self) -> None:
        _freeze(self, indptr=np.int64, items=np.int32, values=np.float64)
        if self.folds is not None:
            object.__setattr__(self, "folds", _column("folds", self.folds, np.int8))
            _check_lengths("items", self.items, "folds", self.folds)
        _check_rows(self.indptr, len(self.items))
        _check_ids("item", self.items, self.n_items)
        _check_lengths("items", self.items, "values", self.values)
        if not np.isfinite(self.values).all():
            row = int(np.flatnonzero(~np.isfinite(self.values))[0])
            raise UserError(f"rating {row} is {self.values[row]}: ratings must be finite")
        _check_ascending(self.indptr, self.items)

    @classmethod
    def from_triples(
        cls,
        users: Ints,
        items: Ints,
        values: Floats,
        n_users: int | None = None,
        n_items: int | None = None,
        item_features: ItemFeatures = None,
        folds: Ints | None = None,
        **labels: Labels,
    ) -> "Ratings":
        """The view of (user, item, value) rows in any order."""
        users, items, values = (np.atleast_1d(np.asarray(column)) for column in (users, items, values))
        n_users, n_items = _sizes("rating", users, {"items": items}, n_users, n_items)
        _check_lengths("users", users, "items", items)
        _check_lengths("users", users, "values", values)
        order = _order(n_items, users, items)
        folds = None if folds is None else np.asarray(folds)[order]
        columns = _arranged(items, order), _arranged(values, order)
        return cls(_indptr(users, n_users), *columns, n_items, item_features, folds=folds, **labels)

    @property
    def n_users(self) -> int:
        """How many users there are, those without a rating included."""
        return len(self.indptr) - 1

    @property
    def users(self) -> Int32s:
        """The user of every row."""
        return users_of(self.indptr)

    @property
    def rows(self) -> SparseRows:
        """The rows as the kernels take them, a user's items in the columns."""
        return SparseRows(indptr=self.indptr, columns=self.items, values=self.values)

    @property
    def has_order(self) -> Flags:
        """Which users' ratings imply an order: those that are not all alike."""
        users, found = self.users, np.zeros(self.n_users, bool)
        differs = (np.diff(self.values) != 0) & (users[1:] == users[:-1])
        found[users[1:][differs]] = True
        return found

    def by_item(self) -> ByItem:
        """The same rows in the order of the items, computed whenever it is asked for."""
        return ByItem.of(self.users, self.items, self.n_items)

    def __len__(self) -> int:
        return len(self.items)

    def take(self, rows: Ints) -> "Ratings":
        """The same users and items with these rows only (row ids, ascending)."""
        return replace(
            self,
            indptr=_take_indptr(self.indptr, rows),
            items=sealed(self.items[rows]),
            values=sealed(self.values[rows]),
            folds=None if self.folds is None else self.folds[rows],
        )

    def comparisons(self, limit: int | None = None, rng: np.random.Generator | None = None) -> "Comparisons":
        """The strict pairs that the ratings imply; with a limit, at most so many per user, drawn by `rng`."""
        counts = pairs_kernel.count(ratings=self.rows)
        if limit is not None and limit < 0:
            raise UserError(f"limit={limit} is out of range: must be at least 0")
        if limit is None:
            kept, rng = counts, rng or np.random.default_rng(0)  # nothing is drawn
        elif rng is None:
            raise UserError("drawing comparisons needs a random generator: pass rng=np.random.default_rng(0)")
        else:
            kept = np.minimum(counts, limit)
        indptr = np.concatenate([[0], np.cumsum(kept)])
        better, worse = pairs_kernel.list_pairs(ratings=self.rows, counts=counts, out_indptr=indptr, rng=rng)
        labels = {name: getattr(self, name) for name in LABELS}
        return Comparisons(indptr, sealed(better), sealed(worse), self.n_items, self.item_features, **labels)


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Which of two items each user preferred; per user in the order (better, worse), repeats allowed."""

    indptr: Int64s
    better: Int32s
    worse: Int32s
    n_items: int
    item_features: ItemFeatures = None
    feature_names: Labels = None
    user_ids: Labels = None
    item_ids: Labels = None

    def __post_init__(self) -> None:
        _freeze(self, indptr=np.int64, better=np.int32, worse=np.int32)
        _check_rows(self.indptr, len(self.better))
        _check_lengths("better", self.better, "worse", self.worse)
        _check_ids("item", self.better, self.n_items)
        _check_ids("item", self.worse, self.n_items)
        if (same := self.better == self.worse).any():
            row = int(np.flatnonzero(same)[0])
            raise UserError(f"comparison {row} holds item {self.better[row]} against itself")

    @classmethod
    def from_triples(
        cls,
        users: Ints,
        better: Ints,
        worse: Ints,
        n_users: int | None = None,
        n_items: int | None = None,
        item_features: ItemFeatures = None,
        **labels: Labels,
    ) -> "Comparisons":
        """The view of (user, better item, worse item) rows in any order."""
        users, better, worse = (np.atleast_1d(np.asarray(column)) for column in (users, better, worse))
        items = {"better": better, "worse": worse}
        n_users, n_items = _sizes("comparison", users, items, n_users, n_items)
        _check_lengths("users", users, "better", better)
        _check_lengths("users", users, "worse", worse)
        order = np.lexsort((worse, better, users))
        columns = _arranged(better, order), _arranged(worse, order)
        return cls(_indptr(users, n_users), *columns, n_items, item_features, **labels)

    @property
    def n_users(self) -> int:
        """How many users there are, those without a comparison included."""
        return len(self.indptr) - 1

    @property
    def users(self) -> Int32s:
        """The user of every row."""
        return users_of(self.indptr)

    @property
    def rows(self) -> ComparisonRows:
        """The comparisons as the kernels take them."""
        return ComparisonRows(indptr=self.indptr, better=self.better, worse=self.worse)

    def __len__(self) -> int:
        return len(self.better)

    def take(self, rows: Ints) -> "Comparisons":
        """The same users and items with these rows only (row ids, ascending)."""
        better, worse = sealed(self.better[rows]), sealed(self.worse[rows])
        return replace(self, indptr=_take_indptr(self.indptr, rows), better=better, worse=worse)


View = Ratings | Comparisons
LABELS = ("feature_names", "user_ids", "item_ids")
VIEWS: dict[str, type] = {"Ratings": Ratings, "Comparisons": Comparisons}


def view_of(arrays: Arrays, prefix: str = "") -> Any:
    """The view that was packed into these arrays, which were read from a file and are nobody else's."""
    for array in arrays.values():
        sealed(array)  # so that no column is copied: a file's arrays are in memory once
    return unpack(arrays, VIEWS, prefix)


def mismatch(solver: Solver, view: View) -> str | None:
    """Why this solver cannot learn from this view, or None."""
    accepted = _accepted(solver)
    if solver.needs_features and view.item_features is None:
        return "needs item features, the data has none"
    if isinstance(view, Comparisons) and Comparisons not in accepted:
        return "learns from ratings, the data holds comparisons"
    return None


def offer(solver: Solver, view: View) -> View:
    """What the solver declared that it learns from and nothing more: the rest is withheld."""
    if reason := mismatch(solver, view):
        raise UserError(f"{type(solver).__name__} {reason}")
    withheld: dict[str, None] = dict.fromkeys(LABELS)
    if not solver.needs_features:
        withheld["item_features"] = None
    if isinstance(view, Ratings):
        withheld["folds"] = None
    offered = replace(view, **withheld)  # type: ignore[arg-type]
    if isinstance(offered, Ratings) and Ratings not in _accepted(solver):
        return offered.comparisons()
    return offered


def _accepted(solver: Solver) -> tuple[type, ...]:
    return solver.learns_from if isinstance(solver.learns_from, tuple) else (solver.learns_from,)


def _freeze(view: View, **dtypes: type) -> None:
    """Give each array its type, contiguous and not writeable, and check the features' shape."""
    for name, dtype in dtypes.items():
        object.__setattr__(view, name, _column(name, getattr(view, name), dtype))
    object.__setattr__(view, "n_items", int(view.n_items))
    if view.item_features is not None:
        object.__setattr__(view, "item_features", _checked_features(view.item_features, view.n_items))
    columns = None if view.item_features is None else view.item_features.shape[1]
    sizes = {"feature_names": columns, "user_ids": len(view.indptr) - 1, "item_ids": view.n_items}
    for name, size in sizes.items():
        object.__setattr__(view, name, _checked_labels(name, getattr(view, name), size))


def _checked_labels(name: str, labels: Labels, size: int | None) -> Labels:
    """A read-only vector of integers or text, one for each."""
    if labels is None or size is None:
        return None
    column = np.asarray(labels)
    if column.ndim != 1 or column.dtype.kind not in "iuU" or len(column) != size:
        raise UserError(f"{name} must be a vector of {size} integers or texts, not {column.dtype}{list(column.shape)}")
    return _own(column, column)


def _own(array: Any, given: Any) -> Any:
    """A read-only view of an array that no one else can write to: of a copy, if the caller still can.

    A column of 20 million ratings is copied at most once in its life: what was made here or read from a file is
    sealed, and so is a column of another view. A change of type has made a copy already.
    """
    if np.may_share_memory(array, given) and not is_sealed(array):
        array = array.copy()
    return sealed(array).view()


def _column(name: str, values: Any, dtype: type) -> Any:
    """A read-only vector of this type, and no one else's; a change of type must not change a value."""
    raw = _checked_column(name, values, dtype)
    return _own(np.ascontiguousarray(raw, dtype), raw)


def _checked_column(name: str, values: Any, dtype: type) -> Any:
    """The values as an array, if they are a vector that this type can hold."""
    raw = np.asarray(values)
    if raw.ndim != 1:
        raise UserError(f"{name} has {raw.ndim} dimensions: it must be a vector")
    if np.issubdtype(dtype, np.integer):
        _check_integers(name, raw, dtype)
    _check_numbers(name, raw)
    return raw


def _check_integers(name: str, raw: Any, dtype: type) -> None:
    """The ids, if any, must be integers that fit the type."""
    if raw.size and not np.issubdtype(raw.dtype, np.integer):
        raise UserError(f"{name} holds {raw.dtype}: ids must be integers")
    if raw.size and raw.max() > np.iinfo(dtype).max:
        raise UserError(f"{name} holds {raw.max()}: ids must be below {np.iinfo(dtype).max}")
    if raw.size and raw.min() < np.iinfo(dtype).min:
        raise UserError(f"{name} holds {raw.min()}: ids must be at least 0")


def _check_numbers(name: str, raw: Any) -> None:
    if raw.size and raw.dtype.kind not in "biuf":
        raise UserError(f"{name} holds {raw.dtype}: expected numbers")


def _checked_features(features: Any, n_items: int) -> ItemFeatures:
    if scipy.sparse.issparse(features):
        features = _own_csr(scipy.sparse.csr_array(features, dtype=np.float64))
        values = features.data
    else:
        given = np.asarray(features)
        _check_numbers("item_features", given)
        values = features = _own(np.ascontiguousarray(given, np.float64), given)
    if features.ndim != 2 or features.shape[0] != n_items:
        raise UserError(f"item features have shape {features.shape}: expected a row for each of {n_items} items")
    if features.shape[1] == 0:
        raise UserError("item features have no column: leave them out, or give at least one")
    if not np.isfinite(values).all():
        raise UserError("item features hold NaN or infinite values: fill or drop them first")
    return features


def _own_csr(theirs: Any) -> Any:
    """A sparse matrix whose three arrays no one else can write to, and which points nowhere beyond itself."""
    data, indices, indptr = (_own(part, part) for part in (theirs.data, theirs.indices, theirs.indptr))
    features = scipy.sparse.csr_array((data, indices, indptr), shape=theirs.shape)
    try:
        features.check_format()
    except ValueError as error:
        raise UserError(f"item features are no sound sparse matrix: {error}") from None
    for part in (features.data, features.indices, features.indptr):
        part.flags.writeable = False
    return features


def _check_rows(indptr: Ints, rows: int) -> None:
    if len(indptr) < 1 or indptr[0] != 0 or indptr[-1] != rows:
        raise UserError(f"indptr must start at 0 and end at the number of rows, {rows}")
    if (np.diff(indptr) < 0).any():
        raise UserError(f"indptr falls after user {int(np.flatnonzero(np.diff(indptr) < 0)[0])}: it must never")


def _check_ids(kind: str, ids: Ints, size: int) -> None:
    if len(ids) and (ids.min() < 0 or ids.max() >= size):
        wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
        raise UserError(f"{kind} id {wrong} is out of range: ids run from 0 to {size - 1}")


def _check_lengths(name: str, one: Any, other_name: str, other: Any) -> None:
    if len(one) != len(other):
        raise UserError(f"{name} has {len(one)} rows and {other_name} {len(other)}: they must be as long")


def _check_ascending(indptr: Ints, items: Ints) -> None:
    """Within each user the items must ascend strictly."""
    wrong = np.diff(items) <= 0
    borders = indptr[1:-1] - 1  # between two users anything goes
    wrong[borders[(borders >= 0) & (borders < len(wrong))]] = False
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0]) + 1
        user = int(np.searchsorted(indptr, row, side="right")) - 1
        if items[row] == items[row - 1]:
            raise UserError(f"user {user} rates item {items[row]} twice: keep one of the two rows")
        raise UserError(f"the items of user {user} are not in ascending order (row {row})")


def _sizes(kind: str, users: Ints, items: dict[str, Ints], n_users: int | None, n_items: int | None) -> tuple[int, int]:
    """The numbers of users and items, given or found, with every id in range."""
    for name, ids in {"users": users, **items}.items():
        _checked_column(name, ids, np.int32)  # what is no id must not be counted with
    if len(users) == 0 and (n_users is None or n_items is None):
        raise UserError(f"no {kind}s: say n_users and n_items, or check the data")
    n_users = int(users.max()) + 1 if n_users is None else n_users
    n_items = max(int(column.max()) for column in items.values()) + 1 if n_items is None else n_items
    _check_ids("user", users, n_users)
    for column in items.values():
        _check_ids("item", column, n_items)
    return n_users, n_items


def _indptr(users: Ints, n_users: int) -> Int64s:
    counts = np.bincount(np.asarray(users, np.int64), minlength=n_users)
    return np.concatenate([[0], np.cumsum(counts)])


def _order(n_items: int, users: Ints, items: Ints) -> Any:
    """What arranges rows by user, then item: nothing to do where they stand so already, as in most files."""
    keys = users.astype(np.int64) * n_items + items
    if (keys[1:] > keys[:-1]).all():
        return slice(None)
    return np.argsort(keys)


def _arranged(column: Any, order: Any) -> Any:
    """The column in this order, sealed where that has made a new one."""
    return column if isinstance(order, slice) else sealed(column[order])


def _take_indptr(indptr: Int64s, rows: Ints) -> Int64s:
    return np.searchsorted(rows, indptr)
