"""The core of a data set: the rows that are left when users and items with few rows are taken away."""

from typing import Annotated

import numpy as np

from rankbench.core.contract import Flags
from rankbench.data.views import Ratings, View
from rankbench.names import AddedLater, Limits

Core = Annotated[int, Limits(low=1), AddedLater()]  # the rows that each user and each item has at least in the core


def core_of(view: View, least: int) -> View:
    """The largest part of a view in which each user and each item that has a row has at least so many of them.

    Users and items keep their numbers. Rows of users and items with fewer are taken away, which may leave others with
    too few, until none is taken away any more. An item of comparisons has a row where it is better or worse.
    """
    while not (kept := _with_enough(view, least)).all():
        view = view.where(kept)
    return view


def _with_enough(view: View, least: int) -> Flags:
    """For each row whether its user and its items have enough rows."""
    sides = (view.items,) if isinstance(view, Ratings) else (view.better, view.worse)
    enough = np.sum([np.bincount(side, minlength=view.n_items) for side in sides], axis=0) >= least
    kept = np.repeat(np.diff(view.indptr) >= least, np.diff(view.indptr))
    for side in sides:
        kept &= enough[side]
    return kept
