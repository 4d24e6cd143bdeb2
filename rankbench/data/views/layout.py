"""The columns of views: checked, sorted by user, sealed against changes, and cut to some of their rows."""

from collections.abc import Iterator, Sequence, Sized
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

from rankbench.arrays.mapped import PIECE, Pile, pieces
from rankbench.arrays.npz import LARGEST, Array, is_sealed, sealed
from rankbench.arrays.ordering import ascend, lexical_order
from rankbench.arrays.soundness import first_unwritable
from rankbench.core.contract import Flags, Floats, Int64s, Ints
from rankbench.core.errors import UserError
from rankbench.features.matrix import Matrix
from rankbench.features.single import is_single

_BLOCK = 1 << 16  # rows to look at together, at least

ItemFeatures: TypeAlias = Matrix | None
Labels = Any  # a vector of published ids or names, integers or text; or None


def freeze(view: Any, **dtypes: type) -> None:
    """Make each array contiguous, read-only and of its type, and check the features and labels."""
    for name, dtype in dtypes.items():
        object.__setattr__(view, name, column(name, getattr(view, name), dtype))
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


def called(numbers: Ints, labels: Labels) -> Any:
    """The published ids of these users or items; their numbers where the data has no ids."""
    return numbers if labels is None else labels[numbers]


def _own(array: Array, given: Array) -> Array:
    """A read-only view of `array`, or of a copy if it shares memory with the caller's array `given`.

    Large columns are rarely copied: arrays that were read from a file, and columns of other views, are sealed and need
    no copy, and a change of type has already made one. An array that is only locked is copied, as its owner can unlock
    it.
    """
    if np.may_share_memory(array, given) and not is_sealed(array):
        array = array.copy()
    return sealed(array).view()


def column(name: str, values: npt.ArrayLike, dtype: type) -> Array:
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
    if raw.dtype == dtype:
        return
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
    if (place := first_beyond(values.ravel())) is not None:
        raise UserError(f"item features hold {values.flat[place]:g}: they must be within {LARGEST:g}: scale them")
    return features


def first_beyond(values: Floats) -> int | None:
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


def check_rows(indptr: Ints, rows: int) -> None:
    """Raise an error unless these row pointers rise from 0 to the number of rows."""
    if len(indptr) < 1 or indptr[0] != 0 or indptr[-1] != rows:
        raise UserError(f"indptr must start at 0 and end at the number of rows, {rows}")
    if (falls := np.flatnonzero(np.diff(indptr) < 0)).size:
        raise UserError(f"indptr decreases after user {falls[0]}: it must never decrease")


def check_ids(kind: str, ids: Ints, size: int) -> None:
    """Raise an error unless all ids are from 0 to below this size."""
    if len(ids) and (ids.min() < 0 or ids.max() >= size):
        wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
        raise UserError(f"{kind} id {wrong} is out of range: ids run from 0 to {size - 1}")


def check_lengths(name: str, one: Sized, other_name: str, other: Sized) -> None:
    """Raise an error unless both columns have as many rows."""
    if len(one) != len(other):
        raise UserError(f"{name} has {len(one)} rows and {other_name} {len(other)}: they must have the same length")


def check_ascending(indptr: Ints, items: Ints) -> None:
    """Raise an error unless the items of each user ascend strictly."""
    for users, rows in blocks(indptr):
        wrong = np.diff(items[rows]) <= 0
        borders = indptr[users.start + 1 : users.stop] - rows.start - 1  # to the next user the items may decrease
        wrong[borders[(borders >= 0) & (borders < len(wrong))]] = False
        if wrong.any():
            _complain_of_order(indptr, items, rows.start + int(np.flatnonzero(wrong)[0]) + 1)


def _complain_of_order(indptr: Ints, items: Ints, row: int) -> NoReturn:
    """Raise the error for a row whose item is not above the one before."""
    user = int(np.searchsorted(indptr, row, side="right")) - 1
    if items[row] == items[row - 1]:
        raise UserError(f"user {user} rates item {items[row]} twice: keep one of the two rows")
    raise UserError(f"the items of user {user} are not in ascending order (row {row})")


def sizes(kind: str, users: Ints, items: dict[str, Ints], n_users: int | None, n_items: int | None) -> tuple[int, int]:
    """The numbers of users and items, as given or as found in the ids; an error if an id is out of range."""
    for name, ids in {"users": users, **items}.items():
        _checked_column(name, ids, np.int32)  # invalid ids must be found before their maximum is used
    if len(users) == 0 and (n_users is None or n_items is None):
        raise UserError(f"there are no {kind}s: pass n_users and n_items, or check the data")
    n_users = int(users.max()) + 1 if n_users is None else n_users
    n_items = max(int(column.max()) for column in items.values()) + 1 if n_items is None else n_items
    check_ids("user", users, n_users)
    for column in items.values():
        check_ids("item", column, n_items)
    return n_users, n_items


def row_ends(users: Ints, n_users: int) -> Int64s:
    """Where the rows of each user begin and end once they are sorted by user; here they may be in any order."""
    counts, size = np.zeros(n_users, np.int64), max(n_users, _BLOCK)
    for start in range(0, len(users), size):  # NumPy counts a copy in 64 bits
        counts += np.bincount(np.asarray(users[start : start + size], np.int64), minlength=n_users)
    return np.concatenate([[0], np.cumsum(counts)])


def order(users: Ints, items: Ints, n_users: int, n_items: int) -> Array | slice:
    """The order that sorts rows by user, then item; slice(None) if they are sorted already, as in most files."""
    return slice(None) if ascend(users, items) else lexical_order((users, n_users), (items, n_items))


def arranged(column: Array, order: Array | slice) -> Array:
    """The column in this order; sealed if it is a new array."""
    return column if isinstance(order, slice) else sealed(column[order])


def taken_ends(indptr: Int64s, rows: Ints) -> Int64s:
    """The row pointers of the rows with these numbers, ascending, alone."""
    return np.searchsorted(rows, indptr)


def blocks(indptr: Ints) -> Iterator[tuple[slice, slice]]:
    """The users in order, in ranges with at most `PIECE` rows together or of one user, and the rows of each range."""
    first = 0
    while first < len(indptr) - 1:
        end = max(first + 1, int(np.searchsorted(indptr, indptr[first] + PIECE, side="right")) - 1)
        yield slice(first, end), slice(int(indptr[first]), int(indptr[end]))
        first = end


def where(indptr: Int64s, mask: Flags, columns: Sequence[Array]) -> tuple[Int64s, list[Array]]:
    """Where each user's rows begin among those of the mask, and these rows of the columns."""
    piles, kept = [Pile(column.dtype) for column in columns], np.zeros_like(indptr)
    for users, rows in blocks(indptr):
        ends = np.concatenate([[0], np.cumsum(mask[rows])])
        kept[users.start + 1 : users.stop + 1] = (
            kept[users.start] + ends[indptr[users.start + 1 : users.stop + 1] - rows.start]
        )
        for pile, column in zip(piles, columns, strict=True):
            pile.add(column[rows][mask[rows]])
    return kept, [sealed(pile.array()) for pile in piles]
