"""The cache of parsed data sets: reading text once is enough, until a file, a setting or the parser changes."""

import hashlib
from collections.abc import Callable
from typing import TypeVar

from rankbench.arrays import pack, read_npz, write_npz
from rankbench.contract import Dataclass
from rankbench.data.cache import cache_folder
from rankbench.data.files import Files
from rankbench.data.views import Comparisons, Ratings, view_of
from rankbench.errors import UserError
from rankbench.names import settings_of, show_settings

AnyView = TypeVar("AnyView", Ratings, Comparisons)


def parsed(record: Dataclass, version: int, files: Files, parse: Callable[[Files], AnyView]) -> AnyView:
    """The view that `parse` makes of the files, from the cache if nothing has changed since.

    What is cached is found by the record's settings and version and by place, size and time of change of
    every file; an older one of the same settings is removed.
    """
    settings = hashlib.sha256(f"{version} {show_settings(settings_of(record))}".encode()).hexdigest()[:12]
    folder = cache_folder() / "parsed"
    path = folder / f"{files.name}-{settings}-{files.stamp()[:16]}.npz"
    try:
        view: AnyView = view_of(read_npz(path))
        return view
    except (OSError, UserError, KeyError):
        pass  # not there yet, or damaged: it is made anew
    view = parse(files)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{files.name}-{settings}-*.npz"):
            old.unlink(missing_ok=True)
        write_npz(path, pack(view))
    except OSError:
        pass  # a cache that cannot be written costs the parsing next time, nothing else
    return view
