"""Splits that hold out a share of all rows, or of all items."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from rankbench.core.errors import UserError
from rankbench.data.splits import Split
from rankbench.data.splits.cores import Core
from rankbench.data.splits.dealing import Units, at_most, choose, deal, dealt, masked, with_enough
from rankbench.data.views import Ratings, View
from rankbench.names import Checked, Limits, show_value

Share = Annotated[float, Limits(above=0, below=1)]


@dataclass(frozen=True)
class Entries(Checked):
    """Gunasekar et al. 2016: a random fraction of all rows is the test set, the rest trains.

    For the paper's Figure 1, a fraction `validation` of the rows is left out of both parts, for the choice of
    settings, and `train` is the fraction of all rows (as on the figure's axis) that is drawn for training from the
    remaining ones:
    entries[test=0.1,validation=0.1,train=0.4]. Without `train`, all remaining rows train.
    """

    test: Share = 0.2
    validation: Annotated[float, Limits(low=0, below=1)] = 0.0
    train: Share | None = None
    core: Core = 1
    title: ClassVar = "a share of all entries"
    version: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.test + self.validation + (self.train or 0.0) > 1 + 1e-9:  # 0.1 + 0.1 + 0.8 is above 1 by rounding
            shown = [f"{name}={show_value(getattr(self, name))}" for name in ("test", "validation", "train")]
            problem = f"{', '.join(shown)} add up to more than 1: lower one of them"
            raise UserError(problem, subject="Entries")

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Draw the rows of both parts at random; the shares are rounded to whole rows."""
        units = Units.of(view)
        rows = len(units)
        test, validation = round(self.test * rows), round(self.validation * rows)
        rest = max(rows - test - validation, 0)
        train = rest if self.train is None else min(round(self.train * rows), rest)
        quotas = (np.array([quota]) for quota in (test, validation, train))
        labels = units.rows(deal(np.array([0, rows]), rng, *quotas))
        found = masked(view, labels == 2, labels == 0)
        return replace(found, validation=view.take(np.flatnonzero(labels == 1))) if validation else found


@dataclass(frozen=True)
class ColdItems(Checked):
    """A random fraction of the items is held out: all ratings of these cold items are the test set.

    Cheng et al. 2018 do so on real data, to rank unseen items by their features. Of comparisons those with a cold item
    on either side are the test set.
    """

    test: Share = 0.2
    core: Core = 1
    title: ClassVar = "unseen items"
    version: ClassVar[int] = 2

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Train on the rows of warm items alone, and test on all rows with a cold item."""
        cold = choose(view.n_items, round(self.test * view.n_items), rng)
        held_out = cold[view.items] if isinstance(view, Ratings) else cold[view.better] | cold[view.worse]
        return masked(view, ~held_out, held_out)


@dataclass(frozen=True)
class NewUsers(Checked):
    """A random share of the users is new: a few rows of each train, and all other rows of theirs test.

    All rows of all other users train. With `known=0` nothing is known of a new user, so that only models with something
    common to all users tell items apart. Users with fewer than known + least rows are never new.
    """

    test: Share = 0.2
    known: Annotated[int, Limits(low=0)] = 5
    least: Annotated[int, Limits(low=1)] = 1
    core: Core = 1
    title: ClassVar = "new users"
    version: ClassVar[int] = 1

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Test on all but `known` rows of the drawn users, and train on everything else."""
        units = Units.of(view)
        able = np.flatnonzero(with_enough(view, self.known + self.least, "lower known or least"))
        drawn = at_most(max(1, round(self.test * len(able))), able, rng)
        tested = np.zeros(view.n_users, np.int64)
        tested[drawn] = units.counts[drawn] - self.known
        return dealt(view, units, rng, units.counts - tested, tested)
