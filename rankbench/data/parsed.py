"""The cache of parsed data sets, which is valid until a file, a setting or the parser's version changes."""

import hashlib
from collections.abc import Callable
from typing import TypeVar

from rankbench.arrays.array_files import read_arrays, write_arrays
from rankbench.arrays.npz import pack
from rankbench.core.contract import Dataclass
from rankbench.core.errors import UserError
from rankbench.data.cache import cache_folder
from rankbench.data.files import Files
from rankbench.data.views import Comparisons, Ratings, view_of
from rankbench.names import settings_of, show_settings

_ENDINGS = (".arrays", ".npz")  # of what is kept, and of what versions up to 0.2.0 kept
AnyView = TypeVar("AnyView", Ratings, Comparisons)


def parsed(record: Dataclass, version: int, files: Files, parse: Callable[[Files], AnyView]) -> AnyView:
    """The view that `parse` makes of the files, read from the cache if nothing has changed.

    The cache key is made of the record's settings and version and of the path, size and time of change of
    every file; an outdated cache file for the same settings is removed.
    """
    settings = hashlib.sha256(f"{version} {show_settings(settings_of(record))}".encode()).hexdigest()[:12]
    folder = cache_folder() / "parsed"
    path = folder / f"{files.name}-{settings}-{files.stamp()[:16]}.arrays"
    try:
        view: AnyView = view_of(read_arrays(path))
        return view
    except (OSError, UserError, KeyError):
        pass  # not cached yet, or damaged: parse the files
    view = parse(files)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{files.name}-{settings}-*"):
            if old.suffix in _ENDINGS:  # others are being written at this moment
                old.unlink(missing_ok=True)
        write_arrays(path, pack(view))
    except OSError:
        pass  # if the cache cannot be written, the files are parsed again next time
    return view
