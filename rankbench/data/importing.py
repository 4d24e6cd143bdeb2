"""Importing a user's own copy of a data set into the cache, either completely or not at all."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from rankbench.core.errors import UserError
from rankbench.core.regular import copied
from rankbench.data.files import folders
from rankbench.data.origins import Generated, Origin
from rankbench.data.sources.rdatasets import Shipped


def take(name: str, origin: Origin, path: Path, load: Callable[[], object]) -> Path:
    """Copy a file, or the files of a folder, into the cache, and return the cache folder.

    The copies are kept if the data set then loads from the cache; otherwise the previous state is restored.
    """
    if isinstance(origin, Generated | Shipped) or ":" in name:
        raise UserError(f"{name} needs no import ({origin.home}): load it directly")
    chosen = _chosen(name, path)
    folder = folders(name)[-1]
    fresh, before = folder.with_name(f"{folder.name}.importing"), folder.with_name(f"{folder.name}.before")
    try:
        _assemble(fresh, folder, chosen)
        if folder.exists():
            folder.rename(before)
        fresh.rename(folder)
        with _nothing_elsewhere():
            if remedy := origin.missing():
                raise UserError(f"{path} does not complete {name}: still missing files; {remedy}")
            load()
    except OSError as error:
        _put_back(folder, before)
        raise UserError(f"cannot copy {path} to {folder}: {error.strerror or error}") from error
    except BaseException:
        _put_back(folder, before)
        raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(before, ignore_errors=True)
    return folder


@contextmanager
def _nothing_elsewhere() -> Iterator[None]:
    """A context without RANKBENCH_DATA, whose files would be read and checked in place of the imported ones."""
    own = os.environ.pop("RANKBENCH_DATA", None)
    try:
        yield
    finally:
        if own is not None:
            os.environ["RANKBENCH_DATA"] = own


def _chosen(name: str, path: Path) -> list[Path]:
    """The files to import: the file at the path, or all files in the folder at the path."""
    if not path.exists():
        raise UserError(f"no file or folder {str(path)!r} to import {name} from")
    found = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    if not found:
        raise UserError(f"the folder {str(path)!r} is empty: name the one that holds {name}")
    if repeated := [one for one, other in pairwise(sorted(found, key=lambda one: one.name)) if one.name == other.name]:
        raise UserError(
            f"{str(path)!r} holds several files {repeated[0].name}: name the folder that holds the right one"
        )
    return found


def _assemble(fresh: Path, folder: Path, chosen: list[Path]) -> None:
    """Fill a new folder with the files that exist already, and copy the chosen files over them."""
    shutil.rmtree(fresh, ignore_errors=True)
    if folder.exists():
        shutil.copytree(folder, fresh)
    fresh.mkdir(parents=True, exist_ok=True)
    for path in chosen:
        copied(path, fresh / path.name)


def _put_back(folder: Path, before: Path) -> None:
    """Restore the state before the import."""
    shutil.rmtree(folder, ignore_errors=True)
    if before.exists():
        before.rename(folder)
