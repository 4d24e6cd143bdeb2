"""The splits of Cortes et al. 2007, where other reviewers' ratings are the item features."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from rankbench.arrays.mapped import Pile
from rankbench.arrays.npz import sealed
from rankbench.core.contract import Flags, Ints
from rankbench.data.splits import CannotCut, Split
from rankbench.data.splits.dealing import at_most, deal, labelled, only_ratings, require_any, with_enough
from rankbench.data.views import Ratings, View
from rankbench.data.views.layout import blocks, called
from rankbench.names import Checked, Limits


@dataclass(frozen=True)
class HalfPerUser(Checked):
    """Cortes et al. 2007: half of each reviewer's ratings train, half test.

    `reviewers` users are drawn from those with `least` to `most` ratings. With `references` above zero, that many
    other users with `low` to `high` ratings become the item features: an item's vector has their ratings of it, and
    a missing rating is filled with the reference reviewer's median.
    """

    reviewers: Annotated[int, Limits(low=1)] = 300
    least: Annotated[int, Limits(low=2)] = 50
    most: Annotated[int, Limits(low=2)] = 300
    references: Annotated[int, Limits(low=0)] = 0
    low: Annotated[int, Limits(low=1)] = 20
    high: Annotated[int, Limits(low=1)] = 40
    title: ClassVar = "half of each user"
    version: ClassVar[int] = 2

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Train on half of each drawn reviewer's rows, rounded up, and test on the other half."""
        ratings = only_ratings(view)
        counts = np.diff(ratings.indptr)
        suitable = (counts >= self.least) & (counts <= self.most)
        wanted = f"{self.least} to {self.most} ratings"
        require_any(suitable, wanted, int(counts.max(initial=0)), "lower least or raise most")
        reviewers = at_most(self.reviewers, np.flatnonzero(suitable), rng)
        if self.references:
            others = np.setdiff1d(np.flatnonzero((counts >= self.low) & (counts <= self.high)), reviewers)
            ratings = _with_references(ratings, self._references(others, rng))
        return _halves(ratings, reviewers, rng)

    def _references(self, others: Ints, rng: np.random.Generator) -> Ints:
        if len(others) == 0:
            raise CannotCut(f"finds no reference reviewer with {self.low} to {self.high} ratings: widen low..high")
        return at_most(self.references, others, rng)


@dataclass(frozen=True)
class LeaveReviewerOut(Checked):
    """Cortes et al. 2007 on Book-Crossing: one reviewer's ratings are halved, all other reviewers give item features.

    Reviewers have at least `least` ratings; items are kept if at least `raters` of these reviewers have rated them
    (131 reviewers and 89 books in the paper). The repetition selects the reviewer, in the order of ids; half of
    that reviewer's ratings train and half test. An item's vector has the ratings of all other reviewers, and a
    missing rating is filled with the reviewer's median. A reviewer with one remaining rating is used only for
    features, and a reviewer with none is not used.
    """

    least: Annotated[int, Limits(low=2)] = 200
    raters: Annotated[int, Limits(low=1)] = 10
    title: ClassVar = "one reviewer left out"
    version: ClassVar[int] = 1

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Train on half of one reviewer's rows over the kept items, and test on the other half."""
        ratings = only_ratings(view)
        reviewers = with_enough(ratings, self.least, "lower least")
        left = _only(ratings, reviewers, self._items(ratings, reviewers))
        reviewer = _numbered(left, repetition)
        others = np.setdiff1d(np.flatnonzero(np.diff(left.indptr)), reviewer)
        if len(others) == 0:
            raise CannotCut("finds no other reviewer of these items to make features of: lower least or raters")
        return _halves(_with_references(left, others), reviewer, rng)

    def _items(self, ratings: Ratings, reviewers: Flags) -> Flags:
        """The items that enough of the reviewers have rated."""
        by_reviewers = np.repeat(reviewers, np.diff(ratings.indptr))
        raters = np.bincount(ratings.items[by_reviewers], minlength=ratings.n_items)
        if not (raters >= self.raters).any():
            raise CannotCut(
                f"keeps none of the {ratings.n_items} items: none has {self.raters} ratings by the "
                f"{int(reviewers.sum())} reviewers with {self.least} ratings (the most is {raters.max()}); lower raters"
            )
        kept: Flags = raters >= self.raters
        return kept


def _numbered(left: Ratings, repetition: int) -> Ints:
    """The reviewer of this repetition, among those with at least two ratings (one to train on, one to test)."""
    able = np.flatnonzero(with_enough(left, 2, "lower least or raters"))
    if repetition >= len(able):
        raise CannotCut(f"has {len(able)} reviewers to leave out: ask for at most {len(able)} repetitions")
    return able[repetition : repetition + 1]


def _only(ratings: Ratings, users: Flags, items: Flags) -> Ratings:
    """The ratings of these items by these users; the items get new numbers and keep their ids."""
    kept = ratings.where(np.repeat(users, np.diff(ratings.indptr)) & items[ratings.items])
    ids = np.flatnonzero(items)
    return Ratings(
        kept.indptr,
        sealed((np.cumsum(items, dtype=np.int32) - 1)[kept.items]),
        kept.values,
        len(ids),
        user_ids=kept.user_ids,
        item_ids=called(ids, kept.item_ids),
    )


def _halves(ratings: Ratings, reviewers: Ints, rng: np.random.Generator) -> Split:
    """A split of the rows of each of these reviewers into two halves."""
    counts = np.zeros(ratings.n_users, np.int64)
    counts[reviewers] = np.diff(ratings.indptr)[reviewers]
    return labelled(ratings, deal(ratings.indptr, rng, (counts + 1) // 2, counts // 2))


def _with_references(ratings: Ratings, references: Ints) -> Ratings:
    """The ratings with item features: each reference reviewer's rating of the item, or that reviewer's median.

    The features are made for a block of items at a time, since they can be larger than the memory.
    """
    rated = ratings.where(np.repeat(_mask(ratings.n_users, references), np.diff(ratings.indptr)))
    column = np.cumsum(_mask(ratings.n_users, references)) - 1  # of a reference reviewer
    medians = np.array([np.median(rated.values[rated.indptr[user] : rated.indptr[user + 1]]) for user in references])
    index, features = rated.by_item(), Pile(np.float64, (len(references),))
    for items, _ in blocks(len(references) * np.arange(ratings.n_items + 1)):
        block = np.repeat(medians[None], items.stop - items.start, axis=0)
        found = slice(index.indptr[items.start], index.indptr[items.stop])
        at = index.rows[found]
        block[rated.items[at] - items.start, column[index.users[found]]] = rated.values[at]
        features.add(block)
    return replace(ratings, item_features=features.array(), feature_names=called(references, ratings.user_ids))


def _mask(size: int, chosen: Ints) -> Flags:
    """A mask of the chosen ones of so many."""
    mask = np.zeros(size, bool)
    mask[chosen] = True
    return mask
