"""A user's own ratings: `csv:PATH`, a text file of users, items and ratings."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.data.building import Repeats, ratings
from rankbench.data.files import File
from rankbench.data.sources.own_files import (
    Header,
    IdKind,
    OwnSource,
    Separator,
    Shape,
    layout_of,
    read_own,
    scale_of,
    separator_set,
    untimed,
)
from rankbench.data.tables import Rows
from rankbench.data.tables.layout import Layout
from rankbench.data.views import Ratings
from rankbench.names import AddedLater

_POSITIVE = Layout(fields=(0, 1), names=("user", "item"), valued=False)


@dataclass(frozen=True)
class OwnRatings(OwnSource):
    """A text file with a user, an item and a rating on each line, gzipped if its name ends in .gz.

    A header decides which column is which by the usual names: user, userId, reviewer; item, movieId, isbn; rating,
    stars, score. Case and punctuation do not matter. A column timestamp, time or date, of whole numbers or of dates
    such as 2020-01-31, is kept for splits by time, and so are dates such as 31/01/2020 if some day above 12 tells the
    days from the months. All other columns are ignored. With other names, say which is which, by name or by number:
    csv:PATH[user=who,item=film,rating=points,sep=;]. A file without a header has the user, the item and the rating in
    its first three columns. Separator and header are detected unless set by `sep` (a character, or comma, tab,
    semicolon, double-colon or space) and `header` (yes or no). `separator` is the older name of `sep`, kept for the
    names in stored results; it takes only the words.

    With `ids=auto`, ids are integers if all of them are, without leading zeros. `low` and `high` limit the ratings. A
    pair that occurs twice is an error; with `repeats=last` its last rating is kept. `features` is a second file with
    an item and its numbers on each line, or .npy, .npz (with `ids`) or .parquet.

    With `positive=true` the file has no ratings, as with clicks: every row is a user and an item, and counts as a
    rating of 1. A pair that occurs twice then counts once.

    A rating that is missing is an error; with `missing=drop` such rows are left out: those where it is empty, a dash, a
    question mark, or a word such as NA, null or none. So are rows whose user or item is empty. `decimal=comma` reads
    4,5 as 4.5.
    """

    path: str
    separator: Separator = "auto"
    header: Header = "auto"
    ids: IdKind = "auto"
    low: float | None = None
    high: float | None = None
    repeats: Repeats = "error"
    features: str | None = None
    user: str | None = None
    item: str | None = None
    rating: str | None = None
    sep: str | None = None
    positive: Annotated[bool, AddedLater()] = False
    missing: Annotated[Literal["error", "drop"], AddedLater()] = "error"
    decimal: Annotated[Literal["point", "comma"], AddedLater()] = "point"
    kind: ClassVar[str] = "csv"
    version: ClassVar[int] = 5  # dates may be days and months first, and whole numbers have a sign

    def __post_init__(self) -> None:
        super().__post_init__()
        scale_of("OwnRatings", self.low, self.high)

    def rows(self) -> Rows:
        """All rows as they stand in the file, with those that repeat a pair."""
        file, layout = self._found()
        return read_own(file, layout, self.ids)

    def untimed(self) -> str:
        """The first row whose time cannot be read, and why; empty if there is none, or no column of times."""
        return untimed(*self._found())

    def _found(self) -> tuple[File, Layout]:
        """The file, and how it is to be read."""
        file = File(self._files().paths[0])
        scale = scale_of("OwnRatings", self.low, self.high)
        columns = self.columns("user", "item", "rating")
        shape = Shape(separator_set(self.sep, self.separator), self.header, columns)
        letter = {"point": ".", "comma": ","}[self.decimal]
        base = _POSITIVE if self.positive else Layout(scale=scale, decimal=letter)
        return file, layout_of(file, replace(base, drop_missing=self.missing == "drop"), shape)

    def _without_features(self) -> Ratings:
        rows = self.rows()
        if self.positive:
            rows = replace(rows, values=np.ones(len(rows.ids[0])))
        return ratings(rows, repeats="last" if self.positive else self.repeats)
