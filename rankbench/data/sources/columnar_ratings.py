"""A user's own ratings: `parquet:PATH`, `arrow:PATH` and `json:PATH`, files with columns of users, items, ratings."""

from dataclasses import dataclass
from typing import ClassVar

from rankbench.data.building import Repeats
from rankbench.data.origins import OwnFile
from rankbench.data.sources.columnar import INSTALL, PACKAGE, ROLES, ColumnRows, Wanted, ratings, rows_in, untimed
from rankbench.data.sources.own_files import OwnSource, scale_of
from rankbench.data.views import Ratings


@dataclass(frozen=True)
class OwnColumns(OwnSource):
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
    kind: ClassVar[str] = "columnar"
    version: ClassVar[int] = 4  # texts of times may be whole numbers, and have days and months first

    def __post_init__(self) -> None:
        super().__post_init__()
        scale_of("OwnColumns", self.low, self.high)

    @property
    def origin(self) -> OwnFile:
        """The origin: the user's files."""
        return OwnFile(self.path, self.features, package=PACKAGE, install=INSTALL)

    def rows(self) -> ColumnRows:
        """All rows as they stand in the file, with those that repeat a pair."""
        return rows_in(self._files().paths[0], self._wanted())

    def untimed(self) -> str:
        """The first row whose time cannot be read, and why; empty if there is none, or no column of times."""
        return untimed(self._files().paths[0], self._wanted())

    def _wanted(self) -> Wanted:
        return Wanted(self.columns(*ROLES), scale_of("OwnColumns", self.low, self.high), self.repeats)

    def _without_features(self) -> Ratings:
        return ratings(self._files().paths[0], self._wanted())
