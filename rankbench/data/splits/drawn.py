"""Splits that train on comparisons drawn at random from users' ratings."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.arrays.npz import sealed
from rankbench.data.splits import CannotCut, Split
from rankbench.data.splits.cores import Core
from rankbench.data.splits.dealing import choose, deal, labelled, only_ratings, require_any, share, with_enough
from rankbench.data.splits.shares import Share
from rankbench.data.views import LABELS, Comparisons, Ratings, View
from rankbench.kernels.data import pairs as pairs_kernel
from rankbench.kernels.data import splits as kernel
from rankbench.kernels.shared.rows import Pattern
from rankbench.names import Checked, Limits


@dataclass(frozen=True)
class Binary(Checked):
    """Park et al. 2015, binary data: a user likes the items that the user rated, and the value of a rating is ignored.

    A share of all (user, item) pairs is held out. The training part has C comparisons per user: a random
    training item is better than a random item without a training rating of that user, drawn with replacement.
    `seen` holds the training items, which are not candidates in the test. Users without a training item and
    users who rated every item have no comparison. The unrated items are not listed: a draw costs O(log n).
    """

    C: Annotated[int, Limits(low=1)] = 1000
    test: Share = 0.1
    core: Core = 1
    title: ClassVar = "binary comparisons"
    version: ClassVar[int] = 1

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """The split into comparisons of training items with unrated items, and the held-out items."""
        ratings = only_ratings(view)
        liked = replace(ratings, values=np.ones(len(ratings)), folds=None)
        held_out = choose(len(liked), round(self.test * len(liked)), rng)
        seen = liked.where(~held_out)
        return Split(self._comparisons(seen, rng), liked.where(held_out), seen)

    def whole(self, view: View, rng: np.random.Generator) -> tuple[Comparisons, Ratings]:
        """Comparisons drawn from all items of each user, with nothing held out, and these items."""
        ratings = only_ratings(view)
        seen = replace(ratings, values=np.ones(len(ratings)), folds=None)
        return self._comparisons(seen, rng), seen

    def _comparisons(self, seen: Ratings, rng: np.random.Generator) -> Comparisons:
        """C comparisons for each user who has rated some items in training, but not all."""
        counts = np.diff(seen.indptr)
        comparable = (counts > 0) & (counts < seen.n_items)
        if len(seen) and not comparable.any():
            raise CannotCut("finds no user with an unrated item to compare with: each rated every item in training")
        indptr = np.concatenate([[0], np.cumsum(self.C * comparable)])
        rated = Pattern(indptr=seen.indptr, columns=seen.items)
        better, worse = kernel.against_unrated(rated=rated, n_items=seen.n_items, out_indptr=indptr, rng=rng)
        labels = {name: getattr(seen, name) for name in LABELS}
        return Comparisons(indptr, sealed(better), sealed(worse), seen.n_items, seen.item_features, **labels)


@dataclass(frozen=True)
class DrawnComparisons(Checked):
    """Park and Zhang 2014: comparisons drawn from each user's ratings, of which a share is held out.

    The report draws in two ways: of=pairs draws n of the user's strict pairs, without replacement; of=items takes
    every strict pair of n of the user's items. Users with fewer pairs or items are left out. The defaults follow the
    counts in the report: in its Table 1 and the test samples they are multiples of 500 and of 100, and a fifth
    of the comparisons is held out. To test on items that are in no training comparison, use n-per-user.
    """

    n: Annotated[int, Limits(low=2)] = 500
    of: Literal["pairs", "items"] = "pairs"
    test: Share = 0.2
    title: ClassVar = "drawn comparisons"
    version: ClassVar[int] = 1

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """The split of the drawn comparisons, with a share of each user's held out."""
        ratings = only_ratings(view)
        drawn = self._pairs(ratings, rng) if self.of == "pairs" else self._pairs_of_items(ratings, rng)
        counts = np.diff(drawn.indptr)
        held_out = share(self.test, counts)
        return labelled(drawn, deal(drawn.indptr, rng, counts - held_out, held_out))

    def _pairs(self, ratings: Ratings, rng: np.random.Generator) -> Comparisons:
        """n strict pairs of each user who has at least n."""
        counts = pairs_kernel.count(ratings=ratings.rows)
        users = require_any(counts >= self.n, f"{self.n} strict pairs", int(counts.max(initial=0)), "lower n")
        kept = np.repeat(users, np.diff(ratings.indptr))
        return ratings.where(kept).comparisons(self.n, rng)

    def _pairs_of_items(self, ratings: Ratings, rng: np.random.Generator) -> Comparisons:
        """Every strict pair of n items of each user who has at least n."""
        users = with_enough(ratings, self.n, "lower n")
        chosen = deal(ratings.indptr, rng, self.n * users) == 0
        return ratings.where(chosen).comparisons()
