"""A user's own comparisons: `pairs:PATH`, a text file of users, better items and worse items."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rankbench.data.building import numbered
from rankbench.data.files import File, Files
from rankbench.data.origins import OwnFile
from rankbench.data.parsed import parsed
from rankbench.data.sources.own_files import (
    Header,
    IdKind,
    Separator,
    Shape,
    item_features,
    layout_of,
    numbered_together,
    read_own,
    separator_set,
)
from rankbench.data.tables import Rows
from rankbench.data.tables.layout import Layout
from rankbench.data.views import Comparisons
from rankbench.names import Checked

_LAYOUT = Layout(names=("user", "better", "worse"), valued=False)


@dataclass(frozen=True)
class OwnPairs(Checked):
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
    version: ClassVar[int] = 2
    paths: ClassVar[tuple[str, ...]] = ("path", "features")

    @property
    def origin(self) -> OwnFile:
        """The origin: the user's files."""
        return OwnFile(self.path, self.features)

    def view(self, rng: np.random.Generator) -> Comparisons:
        """All comparisons."""
        return parsed(self, self.version, self.origin.files("pairs"), self._parse)

    def rows(self) -> Rows:
        """All rows as they stand in the file."""
        file = File(self.origin.files("pairs").paths[0])
        given = {"user": self.user, "better": self.better, "worse": self.worse}
        columns = {role: name for role, name in given.items() if name is not None}
        shape = Shape(separator_set(self.sep, self.separator), self.header, columns, "pairs:PATH")
        return read_own(file, layout_of(file, _LAYOUT, shape), self.ids)

    def _parse(self, files: Files) -> Comparisons:
        view = _comparisons(self.rows())
        if self.features is None:
            return view
        block = item_features(files.paths[1], view.item_ids)
        return replace(view, item_features=block.matrix, feature_names=block.names)


def _comparisons(rows: Rows) -> Comparisons:
    """The view of the rows; an item compared with itself is an error that names the line."""
    users, better, worse = rows.ids
    if (same := better == worse).any():
        row = int(np.argmax(same))
        rows.complain(row, f"item {better[row]} is compared with itself: take the row out")
    user_ids, user_numbers = numbered(users)
    item_ids, (better_numbers, worse_numbers) = numbered_together(better, worse)
    return Comparisons.from_triples(
        user_numbers,
        better_numbers,
        worse_numbers,
        len(user_ids),
        len(item_ids),
        user_ids=user_ids,
        item_ids=item_ids,
    )
