"""Splits that cut each user's rows separately."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankbench.data.splits import CannotCut, Split
from rankbench.data.splits.cores import Core
from rankbench.data.splits.dealing import Units, dealt, share, with_enough
from rankbench.data.views import View
from rankbench.names import Checked, Limits

Count = Annotated[int, Limits(low=1)]


@dataclass(frozen=True)
class NPerUser(Checked):
    """Park et al. 2015: n random ratings per user train and the rest test; users need n + least ratings.

    A solver that learns from comparisons gets all strict pairs of the n ratings: what Park and Zhang 2014 call
    every pair from a random subset of items.
    """

    n: Count = 20
    least: Count = 10
    core: Core = 1
    title: ClassVar = "ratings per user"
    version: ClassVar[int] = 2

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Train on n rows of each kept user, and test on that user's remaining rows."""
        kept, units = with_enough(view, self.n + self.least, "lower n"), Units.of(view)
        return dealt(view, units, rng, self.n * kept, (units.counts - self.n) * kept)


@dataclass(frozen=True)
class ItemsPerTask(Checked):
    """Cheng et al. 2018: n random items of each task train, `test` more items test; no other row is used.

    The paper trains on 800 pairs per task, which its figures show to be all pairs of about 41 items, and
    tests pairs of test items and pairs of a test item with a training item. Tasks with fewer than
    n + test items are left out.
    """

    n: Annotated[int, Limits(low=2)] = 41
    test: Count = 20
    title: ClassVar = "items per task"
    version: ClassVar[int] = 1

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Train on n rows of each kept task, and test on `test` more rows."""
        kept = with_enough(view, self.n + self.test, "lower n or test")
        return dealt(view, Units.of(view), rng, self.n * kept, self.test * kept)


@dataclass(frozen=True)
class PerUser(Checked):
    """A random share of each user's rows is held out, for example as a validation set; at least one row trains.

    The share is rounded to a whole number of rows, so users with few rows may have no test rows.
    """

    test: Annotated[float, Limits(above=0, below=1)] = 0.2
    core: Core = 1
    title: ClassVar = "a share of each user"
    version: ClassVar[int] = 1

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Hold out the rounded share of each user's rows, and train on the rest."""
        units = Units.of(view)
        held_out = share(self.test, units.counts)
        if not held_out.any():
            most = f"the most that one has is {int(units.counts.max(initial=0))}"
            raise CannotCut(f"holds out none of any user's {units.word} ({most}): raise test, or use entries")
        return dealt(view, units, rng, units.counts - held_out, held_out)


@dataclass(frozen=True)
class LeaveOneOut(Checked):
    """n random ratings of each user test and the rest train; n=10 is the protocol of PrimalCR++ (Wu et al. 2017).

    Users with fewer than n + least ratings are not tested: all their ratings train, because they are informative
    about the items.
    """

    n: Count = 1
    least: Count = 1
    core: Core = 1
    title: ClassVar = "one item of each user"
    version: ClassVar[int] = 1

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Test on n rows of each user who has enough, and train on all other rows."""
        tested, units = self.n * with_enough(view, self.n + self.least, "lower n or least"), Units.of(view)
        return dealt(view, units, rng, units.counts - tested, tested)
