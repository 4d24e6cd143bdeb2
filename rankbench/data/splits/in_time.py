"""Splits by the times of ratings: what comes later is predicted from what came before."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rankbench.core.contract import Int64s
from rankbench.data.splits import CannotCut, Split
from rankbench.data.splits.cores import Core
from rankbench.data.splits.dealing import keys, masked, only_ratings, with_enough
from rankbench.data.splits.per_user import Count
from rankbench.data.splits.shares import Share
from rankbench.data.views import Ratings, View
from rankbench.names import Checked


@dataclass(frozen=True)
class Temporal(Checked):
    """The latest share of all ratings is the test set, and all ratings before it train.

    There is one point in time for all users: no training rating is as late as a test rating. Ratings that were given at
    the very time of the cut are tested together, so that the test set can be larger than the share. Test ratings of
    users without a training rating are left out, unless new_users=keep.
    """

    test: Share = 0.2
    new_users: Literal["drop", "keep"] = "drop"
    core: Core = 1
    title: ClassVar = "one point in time"
    version: ClassVar[int] = 1

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Train on the ratings before the cut, and test on the others; nothing is drawn."""
        ratings = only_ratings(view)
        times = _times(ratings)
        held_out = max(1, round(self.test * len(times)))
        later = times >= np.partition(times, len(times) - held_out)[len(times) - held_out]
        if later.all():
            raise CannotCut(
                f"finds no time before the latest {held_out} ratings, which are as early as all: lower test"
            )
        trained = np.bincount(ratings.users[~later], minlength=ratings.n_users) > 0
        known = trained[ratings.users] if self.new_users == "drop" else True
        return masked(ratings, ~later, later & known)


@dataclass(frozen=True)
class LeaveLastOut(Checked):
    """The last n ratings of each user test and the earlier ones train; ties in time are broken at random.

    Users with fewer than n + least ratings are not tested: all their ratings train. Other users' training ratings can
    be later than a user's test ratings, which a recommender in use would not have seen yet; `temporal` avoids that.
    """

    n: Count = 1
    least: Count = 1
    core: Core = 1
    title: ClassVar = "the last item of each user"
    version: ClassVar[int] = 1

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Test on the last n ratings of each user who has enough, and train on all others."""
        ratings = only_ratings(view)
        times = _times(ratings)
        enough = with_enough(ratings, self.n + self.least, "lower n or least")
        order = np.lexsort((keys(len(times), rng), times, ratings.users))  # the users are in order already
        after = np.empty(len(times), np.int64)  # how many ratings of the same user are later
        after[order] = ratings.indptr[1:][ratings.users] - 1 - np.arange(len(times))
        tested = (after < self.n) & enough[ratings.users]
        return masked(ratings, ~tested, tested)


def _times(ratings: Ratings) -> Int64s:
    """The time of every rating."""
    if ratings.times is None:
        raise CannotCut(
            "needs the times of the ratings, and this data has none, or not all can be read (rankbench check FILE says "
            "which): use per-user or leave-one-out"
        )
    if not len(ratings):
        raise CannotCut("needs ratings, and there are none")
    return ratings.times
