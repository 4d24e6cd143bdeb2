"""What all splits do: count a user's rows, deal them out at random, and take the parts."""

from typing import Any

import numpy as np

from rankbench.contract import Int8s, Int64s, Ints
from rankbench.data.splits import CannotCut, Split
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.kernels.data import splits as kernel

Mask = np.ndarray[Any, np.dtype[np.bool_]]
TRAIN, TEST = 0, 1  # labels of rows; above them is what goes to neither part


def deal(indptr: Int64s, rng: np.random.Generator, *quotas: Ints) -> Int8s:
    """The label of every row: so many rows of each user get 0, so many 1, and those left over the next number."""
    return kernel.deal(indptr=indptr, quotas=np.stack(quotas, axis=1), rng=rng)


def choose(n: int, k: int, rng: np.random.Generator) -> Mask:
    """Which k of n are drawn; every choice is as likely as any other."""
    chosen: Mask = deal(np.array([0, n]), rng, np.array([k])) == 0
    return chosen


def at_most(n: int, candidates: Ints, rng: np.random.Generator) -> Ints:
    """n of the candidates, ascending, or all where they are fewer."""
    return candidates[choose(len(candidates), min(n, len(candidates)), rng)]


def share(fraction: float, counts: Ints) -> Ints:
    """The rounded share of each count, but never all of it: something is left to train on."""
    rounded = np.floor(fraction * counts + 0.5).astype(np.int64)
    held_out: Ints = np.minimum(rounded, np.maximum(counts - 1, 0))
    return held_out


def labelled(view: View, labels: Ints) -> Split:
    """The rows labelled TRAIN against those labelled TEST."""
    return masked(view, labels == TRAIN, labels == TEST)


def masked(view: View, train: Mask, test: Mask) -> Split:
    """The rows of one mask against those of another."""
    return Split(view.take(np.flatnonzero(train)), view.take(np.flatnonzero(test)))


def only_ratings(view: View) -> Ratings:
    """The view, if it holds ratings."""
    if isinstance(view, Comparisons):
        raise CannotCut("needs ratings, the data holds comparisons (use entries or per-user)")
    return view


def with_enough(view: View, least: int, remedy: str) -> Mask:
    """Which users have at least so many rows; an error that says how many there are where nobody has."""
    counts = np.diff(view.indptr)
    return somebody(counts >= least, f"{least} {rows_of(view)}", int(counts.max(initial=0)), remedy)


def somebody(users: Mask, wanted: str, most: int, remedy: str) -> Mask:
    """These users, if there is any: what was wanted of them, and the most that one has, stand in the error."""
    if not users.any():
        raise CannotCut(f"keeps none of the {len(users)} users: nobody has {wanted} (the most is {most}); {remedy}")
    return users


def rows_of(view: View) -> str:
    """What the view's rows are, in a word."""
    return "comparisons" if isinstance(view, Comparisons) else "ratings"
