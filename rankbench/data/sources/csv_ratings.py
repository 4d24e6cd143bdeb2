"""A user's own ratings: `csv:PATH`, a text file of users, items and ratings."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rankbench.data.building import Repeats, ratings
from rankbench.data.files import File, Files
from rankbench.data.parsed import parsed
from rankbench.data.sources.own_files import Header, IdKind, OwnFile, Separator, item_features, layout_of, read_own
from rankbench.data.tables import Layout
from rankbench.data.views import Ratings
from rankbench.errors import UserError
from rankbench.names import check


@dataclass(frozen=True)
class OwnRatings:
    """A file of `user,item,rating` in that order, gzipped if its name ends in .gz; further columns are ignored.

    The separator and the header line are detected unless set. With `ids=auto`, ids are integers if all of them
    are. `low` and `high` limit the ratings. A pair that occurs twice is an error; with `repeats=last` its last
    rating is kept. `features` is a second file with an item and its numbers on each line.
    """

    path: str
    separator: Separator = "auto"
    header: Header = "auto"
    ids: IdKind = "auto"
    low: float | None = None
    high: float | None = None
    repeats: Repeats = "error"
    features: str | None = None
    version: ClassVar[int] = 1
    paths: ClassVar[tuple[str, ...]] = ("path", "features")

    def __post_init__(self) -> None:
        check(self)
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise UserError(f"low={self.low:g} must be below high={self.high:g}", subject="OwnRatings")

    @property
    def origin(self) -> OwnFile:
        """The origin: the user's files."""
        return OwnFile(self.path, self.features)

    def view(self, rng: np.random.Generator) -> Ratings:
        """All ratings."""
        return parsed(self, self.version, self.origin.files("csv"), self._parse)

    def _parse(self, files: Files) -> Ratings:
        file = File(files.paths[0])
        scale = (-np.inf if self.low is None else self.low, np.inf if self.high is None else self.high)
        rows = read_own(file, layout_of(file, Layout(scale=scale), self.separator, self.header), self.ids)
        view = ratings(rows, repeats=self.repeats)
        if self.features is None:
            return view
        block = item_features(files.paths[1], view.item_ids)
        return replace(view, item_features=block.matrix, feature_names=block.names)
