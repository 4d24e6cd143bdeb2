"""Ratings or comparisons as the rows that kernels of pairs take, task by task; see pyx/all_pairs.pxd."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbench.contract import Floats, Ints
from rankbench.data.views import Ratings, View
from rankbench.kernels import all_pairs as kernel

_NO_IDS, _NO_STARTS = np.empty(0, np.int32), np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Tasks:
    """A task per user: its items, and either the levels of its ratings or its pairs, as places among its items.

    The pairs of ratings, all those of different value, are never listed.
    """

    indptr: Ints
    items: Ints
    level: Ints
    levels: Ints
    pair_indptr: Ints
    better: Ints
    worse: Ints

    @classmethod
    def of(cls, view: View, threads: int = 1) -> "Tasks":
        """The tasks of this view."""
        if isinstance(view, Ratings):
            level, levels = kernel.rank_values(view.indptr, view.values, threads)
            return cls(view.indptr, view.items, level, levels, _NO_STARTS, _NO_IDS, _NO_IDS)
        indptr, items, better, worse = kernel.place_pairs(view.indptr, view.better, view.worse, view.n_items)
        return cls(indptr, items, _NO_IDS, _NO_IDS, view.indptr, better, worse)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def rows(self) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
        """What kernels of pairs take first."""
        return self.indptr, self.level, self.levels, self.pair_indptr, self.better, self.worse

    @property
    def paired(self) -> Any:
        """Whether each task holds any pair at all."""
        return self.levels > 1 if len(self.levels) else np.diff(self.pair_indptr) > 0

    def met(self, n_items: int) -> Any:
        """Whether each item is in some pair."""
        held = np.repeat(self.paired, np.diff(self.indptr))
        return np.bincount(self.items[held], minlength=n_items) > 0

    def losses(self, scores: Floats, threads: int = 1) -> Floats:
        """Each task's sum of squared hinges at these scores of its items."""
        outs = np.empty(len(self)), np.empty(len(scores)), np.empty(len(scores))
        if len(self.levels):
            kernel.all_pairs(self.indptr, self.level, self.levels, scores, scores, *outs, threads)
        else:
            pairs = self.pair_indptr, self.better, self.worse
            kernel.listed_pairs(self.indptr, *pairs, scores, scores, *outs, threads)
        return outs[0]
