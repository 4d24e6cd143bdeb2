"""Splits by folds, each of which is the test set once: those that a data set was published with, or drawn ones."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.core.contract import Ints
from rankbench.data.splits import CannotCut, Split
from rankbench.data.splits.cores import Core
from rankbench.data.splits.dealing import Units, keys, masked, only_ratings, require_any
from rankbench.data.views import Ratings, View
from rankbench.names import Checked, Limits


@dataclass(frozen=True)
class GivenFolds(Checked):
    """The published folds (Gunasekar et al. 2016, Table 2): one fold is the test set, all others train.

    The first repetition tests on the first fold, and so on; with `fold` set, every repetition tests on that fold.
    Only users with `least` ratings in every fold's training part are kept: with least=10, 923 of the 943 users of
    MovieLens 100K, as in the paper.
    """

    fold: Annotated[int, Limits(low=1)] | None = None
    least: Annotated[int, Limits(low=0)] = 1
    title: ClassVar = "given folds"
    version: ClassVar[int] = 1

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


@dataclass(frozen=True)
class KFolds(Checked):
    """All rows in k random folds of equal size: one fold is the test set, all others train.

    The first repetition tests on the first fold, and so on; the folds of all repetitions are the same, so that with k
    repetitions each row is tested once. `per=user` deals the rows of each user to the folds as equally as possible.
    """

    k: Annotated[int, Limits(low=2)] = 5
    per: Literal["rows", "user"] = "rows"
    core: Core = 1
    title: ClassVar = "k folds"
    drawn_once: ClassVar[Literal[True]] = True
    version: ClassVar[int] = 1

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Train on the rows of all folds but one, and test on its rows."""
        if repetition >= self.k:
            raise CannotCut(f"asks for fold {repetition + 1} of {self.k}: ask for at most {self.k} repetitions")
        units = Units.of(view)
        if len(units) < self.k:
            raise CannotCut(f"deals {len(units)} {units.word} to {self.k} folds: lower k")
        drawn = keys(len(units), rng)
        order = np.lexsort((drawn, units.users)) if self.per == "user" else np.argsort(drawn)
        fold = np.empty(len(units), np.int64)
        fold[order] = np.arange(len(units)) % self.k
        of_rows = units.rows(fold)
        return masked(view, of_rows != repetition, of_rows == repetition)


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
