"""A user's own comparisons: `pairs:PATH`, a text file of users, better items and worse items."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.data.building import comparisons
from rankbench.data.files import File
from rankbench.data.sources.own_files import (
    Header,
    IdKind,
    OwnSource,
    Separator,
    Shape,
    layout_of,
    read_own,
    separator_set,
)
from rankbench.data.tables import Rows
from rankbench.data.tables.layout import Layout
from rankbench.data.tables.texts import equal
from rankbench.data.views import Comparisons

_LAYOUT = Layout(names=("user", "better", "worse"), valued=False)


@dataclass(frozen=True)
class OwnPairs(OwnSource):
    """A text file with a user, a better and a worse item on each line, gzipped if its name ends in .gz.

    A header decides which column is which by the usual names: user, userId, judge; better, winner, chosen; worse,
    loser, rejected. Case and punctuation do not matter, and all other columns are ignored. With other names, say
    which is which, by name or by number: pairs:PATH[user=who,better=first,worse=second,sep=;]. A file without a
    header has the user, the better and the worse item in its first three columns. Separator and header are detected
    unless set by `sep` (a character, or comma, tab, semicolon, double-colon or space) and `header` (yes or no).
    `separator` is the older name of `sep`, kept for the names in stored results; it takes only the words.

    With `ids=auto`, ids are integers if all of them are, without leading zeros. The same comparison may occur several
    times. `features` is a second file with an item and its numbers on each line, or .npy, .npz (with
    `ids`) or .parquet.
    """

    path: str
    separator: Separator = "auto"
    header: Header = "auto"
    ids: IdKind = "auto"
    features: str | None = None
    user: str | None = None
    better: str | None = None
    worse: str | None = None
    sep: str | None = None
    kind: ClassVar[str] = "pairs"
    version: ClassVar[int] = 2

    def rows(self) -> Rows:
        """All rows as they stand in the file."""
        file = File(self._files().paths[0])
        columns = self.columns(*_LAYOUT.names)
        shape = Shape(separator_set(self.sep, self.separator), self.header, columns, "pairs:PATH")
        return read_own(file, layout_of(file, _LAYOUT, shape), self.ids)

    def _without_features(self) -> Comparisons:
        """The view of the rows; an item compared with itself is an error that names the line."""
        rows = self.rows()
        _, better, worse = rows.ids
        if (same := equal(better, worse)).any():
            row = int(np.argmax(same))
            rows.complain(row, f"item {better[row]} is compared with itself: take the row out")
        return comparisons(*rows.ids)
