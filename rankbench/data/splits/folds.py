"""The split by the folds that a data set was published with."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankbench.contract import Ints
from rankbench.data.splits import CannotCut, Split
from rankbench.data.splits.dealing import masked, only_ratings, require_any
from rankbench.data.views import Ratings, View
from rankbench.names import Limits, check


@dataclass(frozen=True)
class GivenFolds:
    """The published folds (Gunasekar et al. 2016, Table 2): one fold is the test set, all others train.

    The first repetition tests on the first fold, and so on; with `fold` set, every repetition tests on that fold.
    Only users with `least` ratings in every fold's training part are kept: with least=10, 923 of the 943 users of
    MovieLens 100K, as in the paper.
    """

    fold: Annotated[int, Limits(low=1)] | None = None
    least: Annotated[int, Limits(low=0)] = 1
    title: ClassVar = "given folds"
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Train on the kept users' rows outside the fold, and test on their rows in it."""
        ratings = only_ratings(view)
        folds = _published(ratings)
        fold = self._chosen(int(folds.max()), repetition)
        train_rows = _fewest_to_train(ratings, folds)
        wanted = f"{self.least} ratings in every fold's training part"
        users = require_any(train_rows >= self.least, wanted, int(train_rows.max(initial=0)), "lower least")
        kept = np.repeat(users, np.diff(ratings.indptr))
        return masked(ratings, kept & (folds != fold), kept & (folds == fold))

    def _chosen(self, published: int, repetition: int) -> int:
        fold = self.fold or repetition + 1
        if fold > published:
            remedy = "lower fold" if self.fold else f"ask for at most {published} repetitions"
            raise CannotCut(f"asks for fold {fold}, but {published} folds were published: {remedy}")
        return fold


def _published(ratings: Ratings) -> Ints:
    """The published fold of every row."""
    if ratings.folds is None or not ratings.folds.any():
        raise CannotCut("needs published folds, and this data has none: use another split, or data with folds")
    return ratings.folds


def _fewest_to_train(ratings: Ratings, folds: Ints) -> Ints:
    """For every user, the number of rows in the smallest training part over all folds."""
    width = int(folds.max()) + 1
    tested = np.bincount(ratings.users.astype(np.int64) * width + folds, minlength=ratings.n_users * width)
    largest: Ints = tested.reshape(-1, width)[:, 1:].max(axis=1)
    return np.diff(ratings.indptr) - largest
