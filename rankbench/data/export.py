"""Writing a split as plain files with the published ids, and reading it back.

DIR/train.csv, test.csv   user,item,rating or user,better,worse; numbers counted from 0 if the data has no ids
DIR/seen.csv              the items that users have seen, if the split has that part
DIR/common.npz            what the parts share: the numbers of users and items, all ids, item features
DIR/split.json            data, split, seed, repetition, hash, counts and version
"""

import csv
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

import rankbench
from rankbench.arrays.npz import Array, fingerprint, pack, read_npz, unpack, write_npz
from rankbench.core.contract import Ints
from rankbench.core.errors import UserError
from rankbench.core.leftovers import partial_of
from rankbench.core.regular import content, opened
from rankbench.data.files import File
from rankbench.data.splits import Split
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.data.views.layout import ItemFeatures, Labels, called, check_ids

FORMAT = 1  # version of the file format
_COLUMNS = {"Ratings": ("user", "item", "rating"), "Comparisons": ("user", "better", "worse")}


@dataclass(frozen=True, eq=False)
class Common:
    """What all parts of a split share: everything but their rows."""

    n_users: int
    n_items: int
    item_features: ItemFeatures = None
    feature_names: Labels = None
    user_ids: Labels = None
    item_ids: Labels = None


def export(parts: Split, folder: Path, *, data: str, split: str, seed: int, repetition: int) -> dict[str, Any]:
    """Write a split into a new folder and return the content of its split.json.

    The files are written into a temporary folder, which is renamed once it is complete.
    """
    common = _common(parts)
    record = {"data": data, "split": split, "seed": seed, "repetition": repetition, **_facts(parts)}
    folder = folder.absolute()
    _check_free(folder)
    partial = partial_of(folder)
    try:
        partial.mkdir(parents=True)
        for name, part in parts.parts.items():
            _write_rows(partial / f"{name}.csv", part)
        write_npz(partial / "common.npz", pack(common))
        (partial / "split.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        partial.replace(folder)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}; choose another folder with --to") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return record


def read_back(folder: Path) -> Split:
    """The split that `export` wrote into this folder; an error if the files were changed since."""
    with _explained(folder, remedy="export it again"):
        record = json.loads(content(folder / "split.json"))
        if record["format"] != FORMAT:
            raise UserError(f"its format is {record['format']}, not {FORMAT}")
        common = unpack(read_npz(folder / "common.npz"), {"Common": Common})
        parts: dict[str, Any] = {name: _read_rows(folder / f"{name}.csv", common) for name in record["parts"]}
        split = Split(**parts)
    if split.hash != record["hash"]:
        raise UserError(f"the split in {folder} was changed, its hash differs: export it again")
    return split


def read_for(folder: Path, view: View) -> Split:
    """The split that `export` wrote into this folder, over the users and items of the data that it was made from."""
    with _explained(folder, " for this data"):
        record = json.loads(content(folder / "split.json"))
        names, hashed = list(record["parts"]), str(record["hash"])
        common = _common_of(view)
        parts: dict[str, Any] = {name: _timed(_read_rows(folder / f"{name}.csv", common), view) for name in names}
        split = Split(**parts)
    if split.hash != hashed:
        raise UserError(
            f"the split in {folder} has the hash {split.hash[:12]} with this data, and split.json says {hashed[:12]}",
            remedy="take the data that it was exported from, or export it again",
        )
    return split


@contextmanager
def _explained(folder: Path, purpose: str = "", remedy: str = "") -> Iterator[None]:
    """A context in which an error about a file of a split becomes one line that names the folder."""
    try:
        yield
    except OSError as error:
        file = Path(error.filename or folder).name
        raise UserError(f"{folder} holds no complete split: {file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"the split in {folder} cannot be read{purpose}: {error}", remedy=remedy) from None


def _timed(part: View, view: View) -> View:
    """The part with the times that its ratings have in the data, if all of them are there."""
    if not isinstance(part, Ratings) or not isinstance(view, Ratings) or view.times is None or not len(view):
        return part
    known, asked = (one.users.astype(np.int64) * one.n_items + one.items for one in (view, part))
    places = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return replace(part, times=view.times[places]) if (known[places] == asked).all() else part


def read_parts(path: Path, view: View) -> tuple[Ints, Ints, Array]:
    """The users, the items and the parts in a CSV file with these columns, by the ids of the data."""
    import pandas  # noqa: PLC0415

    kinds = {"user": _dtype(view.user_ids), "item": _dtype(view.item_ids), "part": "str"}
    try:
        with File(path).open() as file:
            table = pandas.read_csv(file, dtype=kinds, na_filter=False)
        columns = [table[name].to_numpy() for name in kinds]
    except KeyError as error:
        raise UserError(f"{path} has no column {error}", remedy="give it a header: user,item,part") from None
    except (ValueError, OverflowError, OSError) as error:
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    users, items = _numbers(columns[0], view.user_ids, "user"), _numbers(columns[1], view.item_ids, "item")
    check_ids("user", users, view.n_users)
    check_ids("item", items, view.n_items)
    return users, items, np.asarray(columns[2], np.str_)


def _common_of(view: View) -> Common:
    """What all parts of a split of this data share."""
    return Common(**{field.name: getattr(view, field.name) for field in fields(Common)})


def _common(parts: Split) -> Common:
    """What all parts share; an error if the parts differ in it, or if an id is not unique."""
    found = [_common_of(part) for part in parts.parts.values()]
    if len({fingerprint(common) for common in found}) > 1:
        raise UserError("the parts of this split differ in their users, items or features: it cannot be written out")
    _check_unique("user", found[0].user_ids)
    _check_unique("item", found[0].item_ids)
    return found[0]


def _check_unique(kind: str, ids: Labels) -> None:
    if ids is None:
        return
    values, times = np.unique(ids, return_counts=True)
    if (times > 1).any():
        twice = values[np.argmax(times > 1)]
        raise UserError(f"{kind} id {twice} belongs to {times.max()} {kind}s: give each {kind} a unique id")


def _facts(parts: Split) -> dict[str, Any]:
    """The facts about a split for split.json: hash, sizes, rows per part and versions."""
    counts = {
        name: {"rows": len(part), "users": int(np.count_nonzero(np.diff(part.indptr)))}
        for name, part in parts.parts.items()
    }
    sizes = {"users": parts.train.n_users, "items": parts.train.n_items}
    return {"hash": parts.hash, **sizes, "parts": counts, "rankbench": rankbench.__version__, "format": FORMAT}


def _check_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already: choose another folder with --to, or remove it first")


def _write_rows(path: Path, part: View) -> None:
    """Write the rows of a part as CSV with a header; text ids are always quoted."""
    import pandas  # noqa: PLC0415  slow to import, and not needed to read a help page

    items = (part.items,) if isinstance(part, Ratings) else (part.better, part.worse)
    values = (part.values,) if isinstance(part, Ratings) else ()
    columns = (called(part.users, part.user_ids), *(called(ids, part.item_ids) for ids in items), *values)
    table = pandas.DataFrame(dict(enumerate(columns)), copy=False)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(_COLUMNS[type(part).__name__]) + "\n")
        table.to_csv(file, index=False, header=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)


def _read_rows(path: Path, common: Common) -> View:
    """The part in one CSV file, over the common users and items."""
    import pandas  # noqa: PLC0415

    items = _dtype(common.item_ids)
    dtypes = {"user": _dtype(common.user_ids), "item": items, "better": items, "worse": items}
    with opened(path) as file:
        table = pandas.read_csv(file, dtype=dtypes, na_filter=False, converters={"rating": float})  # to the last bit
    users = _numbers(table["user"].to_numpy(), common.user_ids, "user")
    if tuple(table.columns) == _COLUMNS["Ratings"]:
        items = _numbers(table["item"].to_numpy(), common.item_ids, "item")
        return Ratings.from_triples(users, items, table["rating"].to_numpy(), **vars(common))
    better, worse = (_numbers(table[name].to_numpy(), common.item_ids, "item") for name in ("better", "worse"))
    return Comparisons.from_triples(users, better, worse, **vars(common))


def _dtype(ids: Labels) -> Any:
    """The type to read ids as; text ids stay text even if they look like numbers."""
    if ids is None:
        return "int64"
    return "str" if ids.dtype.kind == "U" else ids.dtype.name


def _numbers(column: Array, ids: Labels, kind: str) -> Ints:
    """The numbers of published ids."""
    if ids is None:
        return column
    import pandas  # noqa: PLC0415

    numbers = pandas.Index(ids).get_indexer(pandas.Index(column))
    if (numbers < 0).any():
        raise UserError(f"{kind} id {column[numbers < 0][0]} is unknown")
    return numbers
