"""A user's own ratings: `parquet:PATH`, `arrow:PATH` and `json:PATH`, files with columns of users, items, ratings."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rankbench.data.building import Repeats
from rankbench.data.files import Files
from rankbench.data.origins import OwnFile
from rankbench.data.parsed import parsed
from rankbench.data.sources.columnar import INSTALL, PACKAGE, ColumnRows, Wanted, ratings, rows_in
from rankbench.data.sources.own_files import item_features, scale_of
from rankbench.data.views import Ratings
from rankbench.names import Checked


@dataclass(frozen=True)
class OwnColumns(Checked):
    """A file of Parquet, Arrow or JSON lines with a user, an item and a rating in each row; needs pyarrow.

    The columns are found by the usual names, as in csv:PATH: user, userId, reviewer; item, movieId, isbn; rating,
    stars, score. Case and punctuation do not matter. A column timestamp, time or date, of whole numbers or of dates, is
    kept for splits by time, and all other columns are ignored. With other names, say which is which, by name or by
    number: parquet:PATH[user=who,item=film,rating=points]. Ids are whole numbers or texts. The content of the file
    decides as what it is read: Parquet, an Arrow file or stream, or JSON with a record on each line, which may be
    gzipped under a name ending in .gz.

    The file is read in parts, and may be larger than the memory; this takes least where the rows come by user.
    `low` and `high` limit the ratings. A pair that occurs twice is an error; with `repeats=last` its last rating is
    kept. `features` is a second file, of text, with an item and its numbers on each line.
    """

    path: str
    low: float | None = None
    high: float | None = None
    repeats: Repeats = "error"
    features: str | None = None
    user: str | None = None
    item: str | None = None
    rating: str | None = None
    version: ClassVar[int] = 2
    paths: ClassVar[tuple[str, ...]] = ("path", "features")

    def __post_init__(self) -> None:
        super().__post_init__()
        scale_of("OwnColumns", self.low, self.high)

    @property
    def origin(self) -> OwnFile:
        """The origin: the user's files."""
        return OwnFile(self.path, self.features, package=PACKAGE, install=INSTALL)

    def view(self, rng: np.random.Generator) -> Ratings:
        """All ratings."""
        return parsed(self, self.version, self.origin.files("columnar"), self._parse)

    def rows(self) -> ColumnRows:
        """All rows as they stand in the file, with those that repeat a pair."""
        return rows_in(self.origin.files("columnar").paths[0], self._wanted())

    def _wanted(self) -> Wanted:
        given = {"user": self.user, "item": self.item, "rating": self.rating}
        columns = {role: name for role, name in given.items() if name is not None}
        return Wanted(columns, scale_of("OwnColumns", self.low, self.high), self.repeats)

    def _parse(self, files: Files) -> Ratings:
        view = ratings(files.paths[0], self._wanted())
        if self.features is None:
            return view
        block = item_features(files.paths[1], view.item_ids)
        return replace(view, item_features=block.matrix, feature_names=block.names)
