"""Splits that deal out every user's rows by themselves."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankbench.data.splits import CannotCut, Split
from rankbench.data.splits.dealing import deal, labelled, rows_of, share, with_enough
from rankbench.data.views import View
from rankbench.names import Limits, check

Count = Annotated[int, Limits(low=1)]


@dataclass(frozen=True)
class NPerUser:
    """Park et al. 2015: users with at least n + least ratings; n drawn at random train, the rest test.

    Where a solver learns from comparisons, these are all strict pairs of the n: what Park and Zhang 2014
    call every pair from a random subset of items.
    """

    n: Count = 20
    least: Count = 10
    version: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check(self)

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """n rows of each kept user against the others."""
        kept = with_enough(view, self.n + self.least, "lower n")
        counts = np.diff(view.indptr)
        return labelled(view, deal(view.indptr, rng, self.n * kept, (counts - self.n) * kept))


@dataclass(frozen=True)
class ItemsPerTask:
    """Cheng et al. 2018: n items of each task train and `test` further ones test; no other row is used.

    The paper trains on 800 pairs per task, which its figures show to be all pairs of about 41 items, and
    tests pairs of test items and pairs of a test item with a training item. Tasks with fewer than
    n + test items are left out.
    """

    n: Annotated[int, Limits(low=2)] = 41
    test: Count = 20
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """n rows of each kept task against `test` others."""
        kept = with_enough(view, self.n + self.test, "lower n or test")
        return labelled(view, deal(view.indptr, rng, self.n * kept, self.test * kept))


@dataclass(frozen=True)
class PerUser:
    """A share of every user's rows tests, as for validation; at least one row of each user trains.

    The share is rounded to the nearest number of rows, so users with few rows may have none to test.
    """

    test: Annotated[float, Limits(above=0, below=1)] = 0.2
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """The larger rest against the share, user by user."""
        counts = np.diff(view.indptr)
        held_out = share(self.test, counts)
        if not held_out.any():
            most = f"the most that one has is {int(counts.max(initial=0))}"
            raise CannotCut(f"holds out none of any user's {rows_of(view)} ({most}): raise test, or use entries")
        return labelled(view, deal(view.indptr, rng, counts - held_out, held_out))


@dataclass(frozen=True)
class LeaveOneOut:
    """n ratings of each user, drawn at random, test and the rest trains: n=10 is the protocol of PrimalCR++.

    (Wu et al. 2017.) Users with fewer than n + least ratings are not tested: all their ratings train, since
    what they say about the items is of use for the others.
    """

    n: Count = 1
    least: Count = 1
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Everything else against n rows of each user who has enough."""
        tested = self.n * with_enough(view, self.n + self.least, "lower n or least")
        return labelled(view, deal(view.indptr, rng, np.diff(view.indptr) - tested, tested))
