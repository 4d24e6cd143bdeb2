"""Features of items from arrays: a .npy or .npz file of NumPy, or a Parquet file, as embeddings are stored."""

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.core.regular import opened
from rankbench.data.features import Block
from rankbench.data.sources.headers import named
from rankbench.data.tables.fields import Ids

ENDINGS = (".npy", ".npz", ".parquet", ".pq")
_IDS = ("ids", "items", "item_ids")  # the array of ids in a .npz file
_WITHOUT_IDS = "number the items by the rows from 0, or store ids beside: numpy.savez(FILE, ids=..., features=...)"


def embeddings(path: Path, item_ids: Ids) -> Block:
    """The features of these items, from a row of numbers for each; rows of other items are passed over."""
    try:
        if path.suffix == ".npy":
            ids, table, names = None, np.load(path, mmap_mode="r", allow_pickle=False), None
        elif path.suffix == ".npz":
            ids, table, names = _of_archive(path)
        else:
            ids, table, names = _of_parquet(path)
    except (OSError, ValueError, EOFError, KeyError, BadZipFile) as error:
        raise UserError(f"{path} is no file of arrays: {str(error)[:200]}") from None
    if table.ndim != 2 or table.dtype.kind not in "iufb":
        raise UserError(f"{path} holds {table.dtype}{list(table.shape)}, not a row of numbers for each item")
    rows = _rows_of(path, ids, len(table), item_ids)
    kept = np.float32 if table.dtype in (np.float16, np.float32) else np.float64  # as many bits as solvers can take
    matrix: Floats = np.asarray(table[rows], kept)
    if not (finite := np.isfinite(matrix).all(axis=1)).all():
        raise UserError(f"{path}: a feature of item {item_ids.tolist()[int(finite.argmin())]!r} is not finite")
    return Block(np.array(names or [f"f{number}" for number in range(1, matrix.shape[1] + 1)], np.str_), matrix)


def _rows_of(path: Path, ids: Ids | None, size: int, item_ids: Ids) -> Any:
    """The row of each item; an error if it has none, or two."""
    if ids is None:
        if item_ids.dtype.kind not in "iu":
            raise UserError(
                f"{path} has no ids, and the items are called {item_ids.tolist()[0]!r}", remedy=_WITHOUT_IDS
            )
        absent = (item_ids < 0) | (item_ids >= size)
        if absent.any():
            raise UserError(f"{path} has {size:,} rows, and no row {item_ids[absent.argmax()]}", remedy=_WITHOUT_IDS)
        return item_ids
    if len(ids) != size or ids.ndim != 1:
        raise UserError(f"{path} has {size:,} rows, and ids of shape {list(ids.shape)}")
    keys = ids.astype(str) if item_ids.dtype.kind == "U" or ids.dtype.kind in "UOS" else ids
    wanted = item_ids.astype(str) if keys.dtype.kind == "U" else item_ids
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    if (twice := ordered[1:] == ordered[:-1]).any():
        raise UserError(f"{path} has two rows for item {ordered[twice.argmax()]}")
    places = np.minimum(np.searchsorted(ordered, wanted), max(size - 1, 0))
    found = ordered[places] == wanted if size else np.zeros(len(wanted), bool)
    if not found.all():
        item = item_ids.tolist()[int(found.argmin())]
        raise UserError(f"{path} has no row for item {item!r}: every item in the data needs one")
    return order[places]


def _of_archive(path: Path) -> tuple[Ids | None, Any, None]:
    """The ids, if there are any, and the one array of two dimensions."""
    with opened(path) as stream, np.load(stream, allow_pickle=False) as stored:
        ids = next((stored[name] for name in _IDS if name in stored.files), None)
        others = [name for name in stored.files if name not in _IDS]
        if len(others) != 1:
            raise UserError(f"{path} holds {', '.join(stored.files) or 'nothing'}", remedy="store one array, and `ids`")
        return ids, stored[others[0]], None


def _of_parquet(path: Path) -> tuple[Ids, Any, list[str] | None]:
    """The ids, the numbers in the other columns or in the lists of the only other column, and the columns' names."""
    try:
        import pyarrow.parquet  # noqa: PLC0415  optional
    except ImportError:
        raise UserError("reading Parquet needs pyarrow", remedy='pip install "rankbench[parquet]"') from None
    with opened(path) as stream:
        table = pyarrow.parquet.read_table(stream)
    items = named(table.column_names, "item")
    place = items[0] if items else 0
    ids = table.column(place).to_numpy()
    names = [name for number, name in enumerate(table.column_names) if number != place]
    columns = [table.column(name) for name in names]
    if len(columns) == 1 and not pyarrow.types.is_floating(columns[0].type) and hasattr(columns[0].type, "value_type"):
        return _texts(ids), np.stack(columns[0].to_numpy()), None
    return _texts(ids), np.column_stack([column.to_numpy() for column in columns]), names


def _texts(ids: Any) -> Ids:
    found: Ids = ids.astype(str) if ids.dtype.kind == "O" else ids
    return found
