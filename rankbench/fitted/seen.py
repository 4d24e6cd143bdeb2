"""What users have seen in training, which is not recommended to them again."""

from dataclasses import dataclass

import numpy as np

from rankbench.arrays import soundness
from rankbench.core.contract import Floats, Int32s, Int64s, Ints
from rankbench.data.by_item import entries_of
from rankbench.data.views import View
from rankbench.metrics.catalogue import seen_items


@dataclass(frozen=True, eq=False)
class Seen:
    """The items that each user has in the training part, in CSR form, and the number of items of the catalogue."""

    indptr: Int64s
    items: Int32s
    n_items: int

    @classmethod
    def of(cls, train: View) -> "Seen":
        """The items of each user in this training part; both items of a comparison count."""
        return cls(*seen_items(train), train.n_items)

    def of_user(self, user: int) -> Int64s:
        """The items of one user."""
        return np.unique(self.items[self.indptr[user] : self.indptr[user + 1]]).astype(np.int64)

    def bar(self, scores: Floats, users: Ints) -> None:
        """Give the items that these users have seen the lowest score; there is a row of scores for each user."""
        rows, places = entries_of(self.indptr, users)
        scores[rows, self.items[places]] = -np.inf

    def validate(self) -> None:
        """Raise an error unless all items are in the catalogue and the rows of the users follow each other."""
        (rows,) = soundness.ids("seen.items", self.items, self.n_items, None)
        soundness.pointers("seen.indptr", self.indptr, len(np.atleast_1d(self.indptr)) - 1, rows)
