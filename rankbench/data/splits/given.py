"""A split that somebody else made: one that was exported, or a table that says which rating is in which part."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from rankbench.core.contract import Int64s
from rankbench.core.errors import UserError
from rankbench.data import export
from rankbench.data.splits import CannotCut, Split
from rankbench.data.splits.dealing import only_ratings
from rankbench.data.views import Ratings, View
from rankbench.names import Checked
from rankbench.names.user_files import is_file, own_path

_PARTS = ("train", "test", "validation")


@dataclass(frozen=True)
class Given(Checked):
    """A split from a file, for the data set that it was made from; every repetition has the same parts.

    `file` is the folder that `rankbench data export` wrote, or its split.json: its parts are read again by the ids of
    the data, and must have the hash that split.json says. Or it is a CSV file with the columns user, item and part,
    where part is train, test or validation, and ids are those of the data: each line puts a rating of the data into a
    part, and ratings without a line are in none. The content of split.json or of the CSV file is part of the split's
    identity.
    """

    file: str | None = None
    title: ClassVar = "a given split"
    version: ClassVar[int] = 1
    paths: ClassVar[tuple[str, ...]] = ("file",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.file and own_path(self.file).is_dir():
            object.__setattr__(self, "file", str(Path(self.file) / "split.json"))

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """The parts that the file says; nothing is drawn."""
        if not self.file:
            raise CannotCut("needs a file: write given[file=FOLDER], with a folder that rankbench data export wrote")
        path = own_path(self.file)
        if not is_file(path):
            raise CannotCut(f"has no file {str(path)!r}: check the path")
        if path.suffix == ".json":
            return export.read_for(path.parent, view)
        ratings = only_ratings(view)
        parts = _parts_of(path, ratings)
        found = {name: ratings.where(parts == number) for number, name in enumerate(_PARTS)}
        return Split(
            found["train"], found["test"], validation=found["validation"] if len(found["validation"]) else None
        )


def _parts_of(path: Path, ratings: Ratings) -> Int64s:
    """The number of the part of each rating, -1 for none."""
    users, items, names = export.read_parts(path, ratings)
    if (wrong := ~np.isin(names, _PARTS)).any():
        raise UserError(f"{path}: the part {str(names[wrong][0])!r} is unknown", remedy=f"use {', '.join(_PARTS)}")
    known = ratings.users.astype(np.int64) * ratings.n_items + ratings.items
    asked = users.astype(np.int64) * ratings.n_items + items
    places = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    if (absent := known[places] != asked).any():
        line = int(np.argmax(absent)) + 2
        raise UserError(
            f"{path}, line {line}: the data has no rating of this user and item", remedy="take the line out"
        )
    again = np.ones(len(places), bool)
    again[np.unique(places, return_index=True)[1]] = False
    if again.any():
        line = int(np.argmax(again)) + 2
        raise UserError(
            f"{path}, line {line}: this user and item are on an earlier line too", remedy="keep one of them"
        )
    parts = np.full(len(known), -1)
    parts[places] = np.argmax(names[:, None] == np.array(_PARTS), axis=1)
    return parts
