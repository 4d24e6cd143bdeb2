"""Functions that all splits share: draw rows per user at random, and cut a view by labels or masks."""

from typing import Any

import numpy as np

from rankbench.core.contract import Int8s, Int64s, Ints
from rankbench.data.splits import CannotCut, Split
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.kernels.data import splits as kernel

Mask = np.ndarray[Any, np.dtype[np.bool_]]
TRAIN, TEST = 0, 1  # labels of rows; rows with a higher label go to neither part


def deal(indptr: Int64s, rng: np.random.Generator, *quotas: Ints) -> Int8s:
    """A random label for every row: quotas[l][user] rows of each user get label l, the remaining rows the next one."""
    return kernel.deal(indptr=indptr, quotas=np.stack(quotas, axis=1), rng=rng)


def choose(n: int, k: int, rng: np.random.Generator) -> Mask:
    """A mask of k of n elements, drawn at random; all subsets are equally likely."""
    chosen: Mask = deal(np.array([0, n]), rng, np.array([k])) == 0
    return chosen


def at_most(n: int, candidates: Ints, rng: np.random.Generator) -> Ints:
    """n candidates drawn at random, in ascending order; all of them if there are fewer than n."""
    return candidates[choose(len(candidates), min(n, len(candidates)), rng)]


def share(fraction: float, counts: Ints) -> Ints:
    """The rounded share of each count, at most the count minus 1, so that one row is left for training."""
    rounded = np.floor(fraction * counts + 0.5).astype(np.int64)
    held_out: Ints = np.minimum(rounded, np.maximum(counts - 1, 0))
    return held_out


def keys(n: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """n random whole numbers, the raw bits of the generator; rows that are sorted by them are in random order."""
    drawn: np.ndarray[Any, np.dtype[np.uint64]] = rng.bit_generator.random_raw(n)
    return drawn


def labelled(view: View, labels: Ints) -> Split:
    """The split into the rows labelled TRAIN and the rows labelled TEST."""
    return masked(view, labels == TRAIN, labels == TEST)


def masked(view: View, train: Mask, test: Mask) -> Split:
    """The split into the rows of two masks."""
    return Split(view.where(train), view.where(test))


def only_ratings(view: View) -> Ratings:
    """The view if it holds ratings, else an error."""
    if isinstance(view, Comparisons):
        raise CannotCut("needs ratings, the data holds comparisons (use entries or per-user)")
    return view


def with_enough(view: View, least: int, remedy: str) -> Mask:
    """A mask of the users with at least this many rows; an error if there are none."""
    counts = np.diff(view.indptr)
    return require_any(counts >= least, f"{least} {rows_of(view)}", int(counts.max(initial=0)), remedy)


def require_any(users: Mask, wanted: str, most: int, remedy: str) -> Mask:
    """Return the mask, or raise an error that names the requirement and the largest count found."""
    if not users.any():
        raise CannotCut(f"keeps none of the {len(users)} users: no user has {wanted} (the most is {most}); {remedy}")
    return users


def rows_of(view: View) -> str:
    """The word for the view's rows in messages."""
    return "comparisons" if isinstance(view, Comparisons) else "ratings"
