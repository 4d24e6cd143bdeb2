"""Data sets that are parsed from files, and the cache of what was parsed."""

import hashlib
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np

from rankbench.arrays.array_files import read_arrays, write_arrays
from rankbench.arrays.npz import pack
from rankbench.core.contract import Dataclass
from rankbench.core.errors import UserError
from rankbench.data.files import Files, cache_folder
from rankbench.data.views import Comparisons, Ratings, view_of
from rankbench.names import Checked, settings_of, show_settings

_ENDINGS = (".arrays", ".npz")  # of what is kept, and of what versions up to 0.2.0 kept
AnyView = TypeVar("AnyView", Ratings, Comparisons)


def parsed(record: Dataclass, version: int, files: Files, parse: Callable[[Files], AnyView]) -> AnyView:
    """The view that `parse` makes of the files, read from the cache until a file, a setting or the version changes.

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


class FromFiles(Checked):
    """A data set that is parsed from files: a frozen dataclass with `origin`, `version` and `_parse`."""

    version: ClassVar[int]

    @property
    def origin(self) -> Any:
        """Where the data comes from, with the files that are parsed."""
        ...

    def view(self, rng: np.random.Generator | None = None) -> Any:
        """All rows of the files, ratings or comparisons; nothing is drawn."""
        return parsed(self, self.version, self._files(), self._parse)

    def _files(self) -> Files:
        """The files that are parsed, which must be there."""
        files: Files = self.origin.files()
        return files

    def _parse(self, files: Files) -> Any:
        """The view of the files, ratings or comparisons."""
        ...
