"""What is asked of models, checked, and the inner products that answer it."""

import numpy as np
import scipy.sparse

from rankbench.arrays.npz import as_kernels_take
from rankbench.core.contract import Floats, Int32s, Ints
from rankbench.core.errors import UserError
from rankbench.kernels.models import scoring as scoring_kernel
from rankbench.kernels.shared.rows import SparseRows
from rankbench.names import checked_threads


def products_of_pairs(rows: Floats, chosen: Ints, columns: Floats, asked: Ints) -> Floats:
    """The inner product of the chosen row with the asked column for each pair, with the bits of `products_with_all`."""
    out = np.empty(len(chosen))
    scoring_kernel.pairs(
        rows=contiguous_rows(rows),
        chosen=int32s(chosen),
        columns=contiguous_rows(columns),
        asked=int32s(asked),
        out=out,
    )
    return out


def products_with_all(rows: Floats, chosen: Ints, columns: Floats, threads: int) -> Floats:
    """The inner products of these rows with all columns."""
    out = np.empty((len(chosen), len(columns)))
    scoring_kernel.products(
        rows=as_kernels_take(rows, np.float64),
        chosen=int32s(chosen),
        columns=as_kernels_take(columns, np.float64),
        out=out,
        threads=threads,
    )
    return out


def contiguous_rows(table: Floats) -> Floats:
    """The table as doubles, each row contiguous; a part of the columns of such a table is taken without a copy."""
    if table.dtype == np.float64 and table.flags.aligned and table.strides[1] == table.itemsize:
        return table
    copied: Floats = as_kernels_take(table, np.float64)
    return copied


def sparse_rows(table: scipy.sparse.csr_array) -> SparseRows:
    """A CSR matrix as the kernels take it."""
    return SparseRows(
        indptr=as_kernels_take(table.indptr, np.int64),
        columns=as_kernels_take(table.indices, np.int32),
        values=as_kernels_take(table.data, np.float64),
    )


def checked_pairs(users: Ints, items: Ints, n_users: int | None, n_items: int) -> tuple[Ints, Ints]:
    """The user ids and item ids as vectors of the same length; an error if an id is not in the model."""
    users, items = checked_ids("user", users, n_users), checked_ids("item", items, n_items)
    if len(users) != len(items):
        raise UserError(f"there are {len(users)} users but {len(items)} items", remedy="pass one item for each user")
    return users, items


def checked_users(users: Ints, n_users: int | None, threads: int) -> tuple[Ints, int]:
    """The user ids and the number of threads, both checked."""
    return checked_ids("user", users, n_users), checked_threads(threads)


def checked_ids(kind: str, ids: Ints, size: int | None) -> Ints:
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


def int32s(ids: Ints) -> Int32s:
    """The ids as the kernels take them."""
    return as_kernels_take(ids, np.int32)
