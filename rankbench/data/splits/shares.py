"""Splits that hold out a share of all rows, or of all items."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from rankbench.core.errors import UserError
from rankbench.data.splits import Split
from rankbench.data.splits.dealing import choose, deal, masked, only_ratings
from rankbench.data.views import View
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
        rows = len(view)
        test, validation = round(self.test * rows), round(self.validation * rows)
        rest = max(rows - test - validation, 0)
        train = rest if self.train is None else min(round(self.train * rows), rest)
        quotas = (np.array([quota]) for quota in (test, validation, train))
        labels = deal(np.array([0, rows]), rng, *quotas)
        found = masked(view, labels == 2, labels == 0)
        return replace(found, validation=view.take(np.flatnonzero(labels == 1))) if validation else found


@dataclass(frozen=True)
class ColdItems(Checked):
    """A random fraction of the items is held out: all ratings of these cold items are the test set.

    Cheng et al. 2018 do so on real data, to rank unseen items by their features.
    """

    test: Share = 0.2
    title: ClassVar = "unseen items"
    version: ClassVar[int] = 2

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Train on the ratings of warm items, and test on the ratings of cold items."""
        ratings = only_ratings(view)
        held_out = choose(ratings.n_items, round(self.test * ratings.n_items), rng)[ratings.items]
        return masked(ratings, ~held_out, held_out)
