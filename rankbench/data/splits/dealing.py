"""Functions that all splits share: draw rows per user at random, and cut a view by labels or masks."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbench.arrays.mixing import mixed
from rankbench.core.contract import Flags, Int8s, Int64s, Ints
from rankbench.data.splits import CannotCut, Split
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.kernels.data import splits as kernel

TRAIN, TEST = 0, 1  # labels of rows; rows with a higher label go to neither part


@dataclass(frozen=True, eq=False)
class Units:
    """What a split deals to its parts: rows; or groups of comparisons, such as rankings, whose rows stay together.

    `indptr` says where each user's units begin, and `of_rows` has the unit of each row, None if each is one.
    """

    indptr: Int64s
    of_rows: Ints | None
    word: str

    @classmethod
    def of(cls, view: View) -> "Units":
        """The units of a view."""
        if isinstance(view, Ratings) or view.groups is None:
            return cls(view.indptr, None, rows_of(view))
        low = int(view.groups.min(initial=0))
        width = int(view.groups.max(initial=0)) - low + 1
        units, of_rows = np.unique(view.users.astype(np.int64) * width + view.groups - low, return_inverse=True)
        users = units // width
        place = np.empty(len(units), np.int64)
        place[np.lexsort((_contents(view, of_rows, len(units)), users))] = np.arange(len(units))
        indptr = np.searchsorted(users, np.arange(view.n_users + 1))
        return cls(indptr, place[of_rows], "groups of comparisons")

    @property
    def users(self) -> Ints:
        """The user of each unit."""
        return np.repeat(np.arange(len(self.indptr) - 1), self.counts)

    @property
    def counts(self) -> Int64s:
        """How many units each user has."""
        return np.diff(self.indptr)

    def __len__(self) -> int:
        return int(self.indptr[-1])

    def rows(self, labels: Ints) -> Ints:
        """The label of each row, from those of the units."""
        return labels if self.of_rows is None else labels[self.of_rows]


def dealt(view: View, units: Units, rng: np.random.Generator, train: Ints, test: Ints) -> Split:
    """The split that trains on so many units of each user, drawn at random, and tests on so many others."""
    return labelled(view, units.rows(deal(units.indptr, rng, train, test)))


def deal(indptr: Int64s, rng: np.random.Generator, *quotas: Ints) -> Int8s:
    """A random label for every row: quotas[l][user] rows of each user get label l, the remaining rows the next one."""
    return kernel.deal(indptr=indptr, quotas=np.stack(quotas, axis=1), rng=rng)


def choose(n: int, k: int, rng: np.random.Generator) -> Flags:
    """A mask of k of n elements, drawn at random; all subsets are equally likely."""
    chosen: Flags = deal(np.array([0, n]), rng, np.array([k])) == 0
    return chosen


def at_most(n: int, candidates: Ints, rng: np.random.Generator) -> Ints:
    """n candidates drawn at random, in ascending order; all of them if there are fewer than n."""
    return candidates[choose(len(candidates), min(n, len(candidates)), rng)]


def share(fraction: float, counts: Ints) -> Ints:
    """The rounded share of each count, at most the count minus 1, so that one row is left for training."""
    rounded = np.floor(fraction * counts + 0.5).astype(np.int64)
    held_out: Ints = np.minimum(rounded, np.maximum(counts - 1, 0))
    return held_out


def _contents(view: Comparisons, of_rows: Ints, units: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A number for what stands in each group, so that the order of groups does not depend on how they are numbered."""
    pairs = view.better.astype(np.uint64) * np.uint64(view.n_items) + view.worse.astype(np.uint64)
    totals = np.zeros(units, np.uint64)
    np.add.at(totals, of_rows, mixed(pairs + np.uint64(1)))
    return totals


def keys(n: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """n random whole numbers, the raw bits of the generator; rows that are sorted by them are in random order."""
    drawn: np.ndarray[Any, np.dtype[np.uint64]] = rng.bit_generator.random_raw(n)
    return drawn


def labelled(view: View, labels: Ints) -> Split:
    """The split into the rows labelled TRAIN and the rows labelled TEST."""
    return Split(view.where(labels == TRAIN), view.where(labels == TEST))  # one mask after the other


def masked(view: View, train: Flags, test: Flags) -> Split:
    """The split into the rows of two masks."""
    return Split(view.where(train), view.where(test))


def only_ratings(view: View) -> Ratings:
    """The view if it holds ratings, else an error."""
    if isinstance(view, Comparisons):
        raise CannotCut("needs ratings, the data holds comparisons (use entries or per-user)")
    return view


def with_enough(view: View, least: int, remedy: str) -> Flags:
    """A mask of the users with at least this many rows, or groups of them; an error if there are none."""
    units = Units.of(view)
    counts = units.counts
    return require_any(counts >= least, f"{least} {units.word}", int(counts.max(initial=0)), remedy)


def require_any(users: Flags, wanted: str, most: int, remedy: str) -> Flags:
    """Return the mask, or raise an error that names the requirement and the largest count found."""
    if not users.any():
        raise CannotCut(f"keeps none of the {len(users)} users: no user has {wanted} (the most is {most}); {remedy}")
    return users


def rows_of(view: View) -> str:
    """The word for the view's rows in messages."""
    return "comparisons" if isinstance(view, Comparisons) else "ratings"
