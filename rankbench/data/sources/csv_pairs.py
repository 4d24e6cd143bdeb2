"""A user's own comparisons: `pairs:PATH`, a text file of users, better items and worse items."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rankbench.data.building import numbered
from rankbench.data.files import File, Files
from rankbench.data.parsed import parsed
from rankbench.data.sources.own_files import (
    Header,
    IdKind,
    OwnFile,
    Separator,
    item_features,
    layout_of,
    numbered_together,
    read_own,
)
from rankbench.data.tables import Layout, Rows
from rankbench.data.views import Comparisons
from rankbench.names import check

_LAYOUT = Layout(names=("user", "better", "worse"), valued=False)


@dataclass(frozen=True)
class OwnPairs:
    """A file of `user,better,worse` in that order, gzipped if its name ends in .gz; further columns are ignored.

    The separator and the header line are detected unless set; if the ids are text, only `user,better,worse` is
    detected as a header. With `ids=auto`, ids are integers if all of them are. The same comparison may occur
    several times. `features` is a second file with an item and its numbers on each line.
    """

    path: str
    separator: Separator = "auto"
    header: Header = "auto"
    ids: IdKind = "auto"
    features: str | None = None
    version: ClassVar[int] = 1
    paths: ClassVar[tuple[str, ...]] = ("path", "features")

    def __post_init__(self) -> None:
        check(self)

    @property
    def origin(self) -> OwnFile:
        """The origin: the user's files."""
        return OwnFile(self.path, self.features)

    def view(self, rng: np.random.Generator) -> Comparisons:
        """All comparisons."""
        return parsed(self, self.version, self.origin.files("pairs"), self._parse)

    def _parse(self, files: Files) -> Comparisons:
        file = File(files.paths[0])
        view = _comparisons(read_own(file, layout_of(file, _LAYOUT, self.separator, self.header), self.ids))
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
