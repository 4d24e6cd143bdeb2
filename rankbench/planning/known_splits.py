"""What planning needs to know of splits, kept beside the results, so that a stored run resumes without cutting them.

An entry holds as long as nothing that could change a split has changed: the names of data and split, the seed, the code
that makes and cuts data, and the size and date of each published file. Files and code of users are not remembered. A
split that a cell is trained on is cut again and must have the hash that was remembered.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import scipy

from rankbench import data as data_sets
from rankbench.core import regular
from rankbench.core.errors import MAKE_ROOM, UserError, writing_to
from rankbench.core.leftovers import replacing
from rankbench.core.source_code import source_digest
from rankbench.data.splits import SPLITS, VALIDATIONS, Split
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.kernels import build_info
from rankbench.names import Named, ReadsFiles
from rankbench.records.cells import Place
from rankbench.records.codec import Unreadable, decode, encode

FILE = "known-splits.json"
_LARGEST = 16 << 20  # bytes of a file of 50,000 splits
_CODE = ("arrays", "core", "data", "features", "names", "planning")  # the folders whose code decides what a split is


@dataclass(frozen=True)
class Shape:
    """What decides whether a solver can learn from a part of a split, and whether a metric can be measured on it."""

    kind: Literal["ratings", "comparisons"]
    has_features: bool
    low: float  # the lowest and the highest rating, and 0
    high: float

    @classmethod
    def of(cls, view: View) -> "Shape":
        """The shape of a view."""
        values = view.values if isinstance(view, Ratings) else np.zeros(0)
        kind: Literal["ratings", "comparisons"] = "ratings" if isinstance(view, Ratings) else "comparisons"
        ends = float(values.min(initial=0.0)), float(values.max(initial=0.0))
        return cls(kind, view.item_features is not None, *ends)

    @property
    def example(self) -> View:
        """The smallest view of this shape: one user and two items."""
        return _example(self)

    @property
    def ratings(self) -> Ratings:
        """The smallest ratings of this shape."""
        found = _example(replace(self, kind="ratings"))
        assert isinstance(found, Ratings)
        return found


@lru_cache(1 << 10)  # thousands of splits have a few shapes
def _example(shape: Shape) -> View:
    """The smallest view of a shape."""
    features = np.eye(2) if shape.has_features else None
    one, other = np.array([0]), np.array([1])
    if shape.kind == "comparisons":
        return Comparisons.from_triples(one, one, other, 1, 2, features)
    values = np.array([shape.low, shape.high])
    return Ratings.from_triples(np.array([0, 0]), np.array([0, 1]), values, 1, 2, features)


@dataclass(frozen=True)
class KnownSplit:
    """The hash of a split, whether some user's held-out items have an order, and the shapes of its parts."""

    hash: str
    is_ordered: bool
    train: Shape
    test: Shape
    seen: Shape | None = None

    @classmethod
    def of(cls, split: Split) -> "KnownSplit":
        """What planning needs to know of a split."""
        seen = None if split.seen is None else Shape.of(split.seen)
        is_ordered = isinstance(split.test, Comparisons) or bool(split.test.has_order.any())
        return cls(split.hash, is_ordered, Shape.of(split.train), Shape.of(split.test), seen)

    @property
    def example(self) -> Split:
        """A split of the smallest views of these shapes."""
        return Split(self.train.example, self.test.example, None if self.seen is None else self.seen.ratings)


@dataclass(frozen=True)
class _Content:
    """The content of a file of known splits: by the key of each, its hash and shapes."""

    splits: Mapping[str, KnownSplit]


class KnownSplits:
    """The splits that are known, in a file beside the results; without a file, in memory."""

    def __init__(self, seed: int, file: Path | None = None) -> None:
        self._seed = seed
        self._file = file
        self._remembered = _read(file) if file else {}
        self._new: dict[str, KnownSplit] = {}
        self._saved = 0  # of the new ones

    def get(self, place: Place) -> KnownSplit | None:
        """What is known of the split of a place, or None."""
        key = _key(place, self._seed)
        return self._new.get(key) or self._remembered.get(key)

    def add(self, place: Place, known: KnownSplit) -> None:
        """Take down what is known of a split, unless it depends on files or code of the user's."""
        if all(map(_is_built_in, _names(place))):
            self._new[_key(place, self._seed)] = known

    def check(self, place: Place, split: Split) -> None:
        """Raise an error if a split that was cut again is not the one that the file knows."""
        before = self._remembered.get(_key(place, self._seed))
        if before and before.hash != split.hash:
            problem = f"{place.written}, repetition {place.repetition}, is another split than {self._file} says"
            raise UserError(problem, remedy="delete this file")

    def save(self) -> None:
        """Write the file if something was added."""
        if self._file and len(self._new) > self._saved:
            content = _Content(self._remembered | self._new)
            with writing_to(self._file.parent, MAKE_ROOM), replacing(self._file) as path:
                path.write_text(encode(content, indent=None), encoding="utf-8")
            self._saved = len(self._new)


def _read(file: Path) -> dict[str, KnownSplit]:
    """The known splits in a file; none if there is no file that can be read."""
    try:
        return dict(decode(_Content, regular.content(file, _LARGEST).decode("utf-8")).splits)
    except (OSError, UnicodeError, Unreadable):
        return {}


def _names(place: Place) -> list[Named]:
    return [value for field in fields(place) if isinstance(value := getattr(place, field.name), Named)]


def _is_built_in(name: Named) -> bool:
    """Whether a name's class comes with rankbench and reads no file of the user's."""
    homes = (*data_sets.DATASETS.entries.values(), *SPLITS.entries.values(), *VALIDATIONS.entries.values())
    return name.home in homes and not isinstance(name.record, ReadsFiles)


def _key(place: Place, seed: int) -> str:
    """The SHA-256 of all that decides a split."""
    values = (getattr(place, field.name) for field in fields(place))
    about = [value.identity if isinstance(value, Named) else value for value in values]
    files = [_stamp(held.path) for held in place.data.record.origin.held()]
    return hashlib.sha256(json.dumps([_code(), seed, about, files]).encode()).hexdigest()


def _stamp(path: Path) -> tuple[str, int, int]:
    """A file's path, size and date."""
    about = path.stat()
    return str(path), about.st_size, about.st_mtime_ns


def _code() -> list[str]:
    """The code and the libraries that make and cut data, by their digests and versions."""
    return [source_digest(_CODE), build_info.digest(), np.__version__, scipy.__version__]
