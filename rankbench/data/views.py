"""The two data types that solvers learn from: ratings and comparisons in CSR form by user, immutable and validated."""

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

from rankbench.arrays.mapped import PIECE, Pile, pieces, put_aside
from rankbench.arrays.npz import LARGEST, Array, Arrays, is_sealed, sealed, unpack
from rankbench.arrays.soundness import first_unwritable
from rankbench.core.brief import Facts, as_html
from rankbench.core.contract import Flags, Floats, Int8s, Int32s, Int64s, Ints, Solver
from rankbench.core.errors import UserError
from rankbench.core.streams import RNG
from rankbench.data.by_item import ByItem, users_of
from rankbench.features.matrix import Matrix
from rankbench.features.single import as_doubles, is_single
from rankbench.kernels.data import pairs as pairs_kernel
from rankbench.kernels.shared.rows import ComparisonRows, SparseRows

ItemFeatures: TypeAlias = Matrix | None
_OTHER_SOLVER = "pass ratings, or take a solver that learns from comparisons (rankbench list solvers)"
Labels = Any  # a vector of published ids or names, integers or text; or None


@dataclass(frozen=True, eq=False)
class Ratings:
    """The ratings of each user, one per item, with the items in ascending order.

    Ratings imply an order with ties: a strictly higher value is preferred. `folds` is the published test fold
    of each row, counted from 1; 0 means none. `user_ids` and `item_ids` are the ids of the publication, by which
    a split can be exported and made again elsewhere. `times` says when each rating was given, in whole numbers that
    grow; only splits look at them.
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
    times: Int64s | None = None

    def __post_init__(self) -> None:
        _freeze(self, indptr=np.int64, items=np.int32, values=np.float64)
        for name, dtype in (("folds", np.int8), ("times", np.int64)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _column(name, getattr(self, name), dtype))
                _check_lengths("items", self.items, name, getattr(self, name))
        _check_rows(self.indptr, len(self.items))
        _check_ids("item", self.items, self.n_items)
        _check_lengths("items", self.items, "values", self.values)
        if (row := _first_beyond(self.values)) is not None:
            remedy = f"within {LARGEST:g}: scale them" if np.isfinite(self.values[row]) else "finite"
            raise UserError(f"rating {row} is {self.values[row]:g}: ratings must be {remedy}")
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
        times: Ints | None = None,
        **labels: Labels,
    ) -> "Ratings":
        """Make ratings from (user, item, value) rows in any order."""
        users, items, values = (np.atleast_1d(np.asarray(column)) for column in (users, items, values))
        n_users, n_items = _sizes("rating", users, {"items": items}, n_users, n_items)
        _check_lengths("users", users, "items", items)
        _check_lengths("users", users, "values", values)
        order = _order(n_items, users, items)
        fold, time = (None if own is None else _arranged(np.asarray(own), order) for own in (folds, times))
        columns = _arranged(items, order), _arranged(values, order)
        return cls(_indptr(users, n_users), *columns, n_items, item_features, folds=fold, times=time, **labels)

    @property
    def n_users(self) -> int:
        """The number of users, including users without a rating."""
        return len(self.indptr) - 1

    @property
    def users(self) -> Int32s:
        """The user of every row."""
        return users_of(self.indptr)

    @property
    def rows(self) -> SparseRows:
        """The ratings as the kernels take them: one sparse row per user, with the items as columns."""
        return SparseRows(indptr=self.indptr, columns=self.items, values=self.values)

    @property
    def has_order(self) -> Flags:
        """A mask of the users whose ratings imply an order: not all of their values are equal."""
        found = np.zeros(self.n_users, bool)
        for users, rows in blocks(self.indptr):
            starts = self.indptr[users.start : users.stop + 1] - rows.start
            changes = np.concatenate([[0], np.cumsum(np.diff(self.values[rows]) != 0)])
            some = np.diff(starts) > 0
            found[users][some] = changes[starts[1:][some] - 1] > changes[starts[:-1][some]]
        put_aside(self.values)
        return found

    def __repr__(self) -> str:
        return _in_brief(self, self._facts())

    def _repr_html_(self) -> str:
        return as_html("Ratings", self._facts())

    def by_item(self) -> ByItem:
        """The ratings in the order of the items, computed anew in each call."""
        return ByItem.of(self.users, self.items, self.n_items)

    def __len__(self) -> int:
        return len(self.items)

    def _facts(self) -> list[tuple[str, str]]:
        scale = f" from {self.values.min():g} to {self.values.max():g}" if len(self) else ""
        times = [] if self.times is None or not len(self) else [f"from {self.times.min()} to {self.times.max()}"]
        dated = [("times", text) for text in times]
        return [*_sizes_of(self), ("ratings", f"{len(self):,}{scale}"), *dated, *_extras_of(self)]

    def take(self, rows: Ints) -> "Ratings":
        """The view with these rows only (ascending row numbers), and with the same users and items."""
        return replace(
            self,
            indptr=_take_indptr(self.indptr, rows),
            items=sealed(self.items[rows]),
            values=sealed(self.values[rows]),
            folds=None if self.folds is None else self.folds[rows],
            times=None if self.times is None else sealed(self.times[rows]),
        )

    def where(self, mask: Flags) -> "Ratings":
        """The view with the rows of this mask only, and with the same users and items; made block by block."""
        more = {name: column for name in ("folds", "times") if (column := getattr(self, name)) is not None}
        indptr, (items, values, *kept) = _where(self.indptr, mask, (self.items, self.values, *more.values()))
        beside: dict[str, Any] = dict(zip(more, kept, strict=True))
        return replace(self, indptr=indptr, items=items, values=values, **beside)

    def comparisons(self, limit: int | None = None, rng: RNG = None) -> "Comparisons":
        """The strict pairs that the ratings imply; with a limit, at most that many per user, drawn by `rng`."""
        rng = None if rng is None else np.random.default_rng(rng)
        counts = pairs_kernel.count(ratings=self.rows)
        if limit is not None and limit < 0:
            raise UserError(f"limit={limit} is out of range: must be at least 0")
        if limit is None:
            kept, rng = counts, rng or np.random.default_rng(0)  # with all pairs, no number is drawn
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
    """Comparisons of two items by each user; a user's rows are sorted by (better, worse), and may repeat.

    `groups` has a number for each row: the ranking, question or session that it came from. Splits keep the rows of one
    user and group together, since one of them may follow from the others; solvers never see it.
    """

    indptr: Int64s
    better: Int32s
    worse: Int32s
    n_items: int
    item_features: ItemFeatures = None
    feature_names: Labels = None
    user_ids: Labels = None
    item_ids: Labels = None
    groups: Int32s | None = None

    def __post_init__(self) -> None:
        _freeze(self, indptr=np.int64, better=np.int32, worse=np.int32)
        if self.groups is not None:
            object.__setattr__(self, "groups", _column("groups", self.groups, np.int32))
            _check_lengths("better", self.better, "groups", self.groups)
        _check_rows(self.indptr, len(self.better))
        _check_lengths("better", self.better, "worse", self.worse)
        _check_ids("item", self.better, self.n_items)
        _check_ids("item", self.worse, self.n_items)
        if (same := self.better == self.worse).any():
            row = int(np.flatnonzero(same)[0])
            raise UserError(f"comparison {row} compares item {self.better[row]} with itself: leave it out")

    @classmethod
    def from_triples(
        cls,
        users: Ints,
        better: Ints,
        worse: Ints,
        n_users: int | None = None,
        n_items: int | None = None,
        item_features: ItemFeatures = None,
        groups: Ints | None = None,
        **labels: Labels,
    ) -> "Comparisons":
        """Make comparisons from (user, better item, worse item) rows in any order."""
        users, better, worse = (np.atleast_1d(np.asarray(column)) for column in (users, better, worse))
        items = {"better": better, "worse": worse}
        n_users, n_items = _sizes("comparison", users, items, n_users, n_items)
        _check_lengths("users", users, "better", better)
        _check_lengths("users", users, "worse", worse)
        order = np.lexsort((worse, better, users) if groups is None else (groups, worse, better, users))
        columns = _arranged(better, order), _arranged(worse, order)
        group = None if groups is None else _arranged(np.asarray(groups), order)
        return cls(_indptr(users, n_users), *columns, n_items, item_features, groups=group, **labels)

    @property
    def n_users(self) -> int:
        """The number of users, including users without a comparison."""
        return len(self.indptr) - 1

    @property
    def users(self) -> Int32s:
        """The user of every row."""
        return users_of(self.indptr)

    @property
    def rows(self) -> ComparisonRows:
        """The comparisons as the kernels take them."""
        return ComparisonRows(indptr=self.indptr, better=self.better, worse=self.worse)

    def __repr__(self) -> str:
        return _in_brief(self, self._facts())

    def _repr_html_(self) -> str:
        return as_html("Comparisons", self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        return [*_sizes_of(self), ("comparisons", f"{len(self):,}"), *_extras_of(self)]

    def __len__(self) -> int:
        return len(self.better)

    def take(self, rows: Ints) -> "Comparisons":
        """The view with these rows only (ascending row numbers), and with the same users and items."""
        better, worse = sealed(self.better[rows]), sealed(self.worse[rows])
        groups = None if self.groups is None else sealed(self.groups[rows])
        return replace(self, indptr=_take_indptr(self.indptr, rows), better=better, worse=worse, groups=groups)

    def where(self, mask: Flags) -> "Comparisons":
        """The view with the rows of this mask only, and with the same users and items; made block by block."""
        more = () if self.groups is None else (self.groups,)
        indptr, (better, worse, *groups) = _where(self.indptr, mask, (self.better, self.worse, *more))
        return replace(self, indptr=indptr, better=better, worse=worse, groups=groups[0] if groups else None)


View = Ratings | Comparisons
LABELS = ("feature_names", "user_ids", "item_ids")
VIEWS: dict[str, type] = {"Ratings": Ratings, "Comparisons": Comparisons}


def _in_brief(view: View, facts: Facts) -> str:
    """A view on one line."""
    return f"{type(view).__name__}({', '.join(f'{name}: {value}' for name, value in facts)})"


def _sizes_of(view: View) -> list[tuple[str, str]]:
    """The numbers of users and items, with an id of each."""
    sizes = (("users", view.n_users, view.user_ids), ("items", view.n_items, view.item_ids))
    return [(name, f"{size:,}" + _like(ids)) for name, size, ids in sizes]


def _like(ids: Labels) -> str:
    return f" like {ids[:1].tolist()[0]!r}" if ids is not None and len(ids) else ""


def _extras_of(view: View) -> list[tuple[str, str]]:
    """What a view has beside its rows."""
    features = view.item_features
    return [] if features is None else [("item features", f"{features.shape[1]:,}")]


def view_of(arrays: Arrays, prefix: str = "") -> Any:
    """The view that is packed into these arrays, which were just read or mapped from a file and are not shared."""
    return unpack({name: sealed(array) for name, array in arrays.items()}, VIEWS, prefix)  # so no column is copied


def mismatch(solver: Solver, view: View) -> str | None:
    """Why this solver cannot learn from this view, or None."""
    if solver.needs_features and view.item_features is None:
        return "needs item features, the data has none"
    if isinstance(view, Comparisons) and Comparisons not in accepted(solver):
        return "learns from ratings, the data holds comparisons"
    return None


def offer(solver: Solver, view: View) -> View:
    """The view reduced to what the solver declares that it learns from."""
    if reason := mismatch(solver, view):
        remedy = "load data that has them" if solver.needs_features and view.item_features is None else _OTHER_SOLVER
        raise UserError(f"{type(solver).__name__} {reason}", remedy=remedy)
    withheld: dict[str, None] = dict.fromkeys(LABELS)
    if not solver.needs_features:
        withheld["item_features"] = None
    withheld |= {"folds": None, "times": None} if isinstance(view, Ratings) else {"groups": None}
    offered = replace(view, **withheld)  # type: ignore[arg-type]
    if offered.item_features is not None and not getattr(solver, "takes_single", False):
        offered = replace(offered, item_features=as_doubles(offered.item_features))
    if isinstance(offered, Ratings) and Ratings not in accepted(solver):
        return offered.comparisons()
    return offered


def accepted(solver: Any) -> tuple[type, ...]:
    """The kinds of data that a solver learns from."""
    return solver.learns_from if isinstance(solver.learns_from, tuple) else (solver.learns_from,)


def _freeze(view: View, **dtypes: type) -> None:
    """Make each array contiguous, read-only and of its type, and check the features and labels."""
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
    """The labels as a read-only vector of integers or texts, one for each of `size` users, items or features."""
    if labels is None or size is None:
        return None
    column = np.asarray(labels)
    if column.ndim != 1 or column.dtype.kind not in "iuU" or len(column) != size:
        raise UserError(f"{name} must be a vector of {size} integers or texts, not {column.dtype}{list(column.shape)}")
    if column.dtype.kind == "U" and not is_sealed(column) and (wrong := first_unwritable(column)) is not None:
        problem = f"{name} holds {wrong!r:.60}, with a lone surrogate, which no file can hold"
        raise UserError(problem, remedy="repair the text where it was decoded")
    return _own(column, column)


def _own(array: Array, given: Array) -> Array:
    """A read-only view of `array`, or of a copy if it shares memory with the caller's array `given`.

    Large columns are rarely copied: arrays that were read from a file, and columns of other views, are sealed and need
    no copy, and a change of type has already made one. An array that is only locked is copied, as its owner can unlock
    it.
    """
    if np.may_share_memory(array, given) and not is_sealed(array):
        array = array.copy()
    return sealed(array).view()


def _column(name: str, values: npt.ArrayLike, dtype: type) -> Array:
    """The values as a read-only vector of this type, not shared with the caller; the conversion must be exact."""
    raw = _checked_column(name, values, dtype)
    return _own(np.ascontiguousarray(raw, dtype), raw)


def _checked_column(name: str, values: npt.ArrayLike, dtype: type) -> Array:
    """The values as an array; an error unless they are a vector that fits the type."""
    raw = np.asarray(values)
    if raw.ndim != 1:
        raise UserError(f"{name} has {raw.ndim} dimensions: it must be a vector")
    if np.issubdtype(dtype, np.integer):
        _check_integers(name, raw, dtype)
    _check_numbers(name, raw)
    return raw


def _check_integers(name: str, raw: Array, dtype: type) -> None:
    """Raise an error unless the values are integers that fit the type."""
    if raw.size and not np.issubdtype(raw.dtype, np.integer):
        raise UserError(f"{name} must be integers, not {raw.dtype}")
    if raw.size and raw.max() > np.iinfo(dtype).max:
        raise UserError(f"{name} holds {raw.max()}: ids must be below {np.iinfo(dtype).max}")
    if raw.size and raw.min() < np.iinfo(dtype).min:
        raise UserError(f"{name} holds {raw.min()}: ids must be at least 0")


def _check_numbers(name: str, raw: Array) -> None:
    if raw.size and raw.dtype.kind not in "biuf":
        found = f"texts such as {str(raw.flat[0])!r}" if raw.dtype.kind == "U" else f"of type {raw.dtype}"
        raise UserError(f"{name} must be numbers, but they are {found}")


def _checked_features(features: Matrix, n_items: int) -> ItemFeatures:
    if scipy.sparse.issparse(features):
        _check_numbers("item_features", np.asarray(features.data))
        features = _own_csr(scipy.sparse.csr_array(features, dtype=np.float64))
        values = features.data
    else:
        given = np.asarray(features)
        _check_numbers("item_features", given)
        kept = np.float32 if is_single(given) else np.float64
        values = features = _own(np.ascontiguousarray(given, kept), given)
    if features.ndim != 2 or features.shape[0] != n_items:
        raise UserError(f"item features have shape {features.shape}: expected a row for each of {n_items} items")
    if features.shape[1] == 0:
        raise UserError("item features have no column: leave them out, or give at least one")
    if not all(np.isfinite(piece).all() for piece in pieces(values)):
        raise UserError("item features hold NaN or infinite values: fill or drop them first")
    if (place := _first_beyond(values.ravel())) is not None:
        raise UserError(f"item features hold {values.flat[place]:g}: they must be within {LARGEST:g}: scale them")
    return features


def _first_beyond(values: Floats) -> int | None:
    """The place of the first value that is NaN or beyond the largest number allowed; None if there is none."""
    for number, piece in enumerate(pieces(values)):
        if not max(piece.max(), -piece.min()) <= LARGEST:  # a comparison with NaN is false
            return number * PIECE + int(np.flatnonzero(~(np.abs(piece) <= LARGEST))[0])
    return None


def _own_csr(theirs: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """A copy of the sparse matrix with read-only arrays that are not shared; an error if its indices are invalid."""
    data, indices, indptr = (_own(part, part) for part in (theirs.data, theirs.indices, theirs.indptr))
    features = scipy.sparse.csr_array((data, indices, indptr), shape=theirs.shape)
    try:
        features.check_format()
    except ValueError as error:
        raise UserError(f"item features are not a valid sparse matrix: {error}") from None
    for name in ("data", "indices", "indptr"):  # SciPy may have made new ones
        setattr(features, name, sealed(getattr(features, name)))
    return features


def _check_rows(indptr: Ints, rows: int) -> None:
    if len(indptr) < 1 or indptr[0] != 0 or indptr[-1] != rows:
        raise UserError(f"indptr must start at 0 and end at the number of rows, {rows}")
    if (falls := np.flatnonzero(np.diff(indptr) < 0)).size:
        raise UserError(f"indptr decreases after user {falls[0]}: it must never decrease")


def _check_ids(kind: str, ids: Ints, size: int) -> None:
    if len(ids) and (ids.min() < 0 or ids.max() >= size):
        wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
        raise UserError(f"{kind} id {wrong} is out of range: ids run from 0 to {size - 1}")


def _check_lengths(name: str, one: Sized, other_name: str, other: Sized) -> None:
    if len(one) != len(other):
        raise UserError(f"{name} has {len(one)} rows and {other_name} {len(other)}: they must have the same length")


def _check_ascending(indptr: Ints, items: Ints) -> None:
    """Raise an error unless the items of each user ascend strictly."""
    for users, rows in blocks(indptr):
        wrong = np.diff(items[rows]) <= 0
        borders = indptr[users.start + 1 : users.stop] - rows.start - 1  # to the next user the items may decrease
        wrong[borders[(borders >= 0) & (borders < len(wrong))]] = False
        put_aside(items)
        if wrong.any():
            _complain_of_order(indptr, items, rows.start + int(np.flatnonzero(wrong)[0]) + 1)


def _complain_of_order(indptr: Ints, items: Ints, row: int) -> NoReturn:
    """Raise the error for a row whose item is not above the one before."""
    user = int(np.searchsorted(indptr, row, side="right")) - 1
    if items[row] == items[row - 1]:
        raise UserError(f"user {user} rates item {items[row]} twice: keep one of the two rows")
    raise UserError(f"the items of user {user} are not in ascending order (row {row})")


def _sizes(kind: str, users: Ints, items: dict[str, Ints], n_users: int | None, n_items: int | None) -> tuple[int, int]:
    """The numbers of users and items, as given or as found in the ids; an error if an id is out of range."""
    for name, ids in {"users": users, **items}.items():
        _checked_column(name, ids, np.int32)  # invalid ids must be found before their maximum is used
    if len(users) == 0 and (n_users is None or n_items is None):
        raise UserError(f"there are no {kind}s: pass n_users and n_items, or check the data")
    n_users = int(users.max()) + 1 if n_users is None else n_users
    n_items = max(int(column.max()) for column in items.values()) + 1 if n_items is None else n_items
    _check_ids("user", users, n_users)
    for column in items.values():
        _check_ids("item", column, n_items)
    return n_users, n_items


def _indptr(users: Ints, n_users: int) -> Int64s:
    counts = np.bincount(np.asarray(users, np.int64), minlength=n_users)
    return np.concatenate([[0], np.cumsum(counts)])


def _order(n_items: int, users: Ints, items: Ints) -> Array | slice:
    """The order that sorts rows by user, then item; slice(None) if they are sorted already, as in most files."""
    keys = users.astype(np.int64) * n_items + items
    if (keys[1:] > keys[:-1]).all():
        return slice(None)
    return np.argsort(keys)


def _arranged(column: Array, order: Array | slice) -> Array:
    """The column in this order; sealed if it is a new array."""
    return column if isinstance(order, slice) else sealed(column[order])


def _take_indptr(indptr: Int64s, rows: Ints) -> Int64s:
    return np.searchsorted(rows, indptr)


def blocks(indptr: Ints) -> Iterator[tuple[slice, slice]]:
    """The users in order, in ranges with at most `PIECE` rows together or of one user, and the rows of each range."""
    first = 0
    while first < len(indptr) - 1:
        end = max(first + 1, int(np.searchsorted(indptr, indptr[first] + PIECE, side="right")) - 1)
        yield slice(first, end), slice(int(indptr[first]), int(indptr[end]))
        first = end


def _where(indptr: Int64s, mask: Flags, columns: Sequence[Array]) -> tuple[Int64s, list[Array]]:
    """Where each user's rows begin among those of the mask, and these rows of the columns."""
    piles, kept = [Pile(column.dtype) for column in columns], np.zeros_like(indptr)
    for users, rows in blocks(indptr):
        ends = np.concatenate([[0], np.cumsum(mask[rows])])
        kept[users.start + 1 : users.stop + 1] = (
            kept[users.start] + ends[indptr[users.start + 1 : users.stop + 1] - rows.start]
        )
        for pile, column in zip(piles, columns, strict=True):
            pile.add(column[rows][mask[rows]])
        put_aside(*columns)
    return kept, [sealed(pile.array()) for pile in piles]
