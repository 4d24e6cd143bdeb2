"""The squared hinge loss over the pairs of many tasks, with its curvature and products with item features."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankbench.core.contract import Flags, Floats, Int32s, Int64s
from rankbench.data.views import Ratings, View
from rankbench.data.views.layout import blocks
from rankbench.features.matrix import Features, SparseFeatures
from rankbench.kernels.methods import all_pairs as pairs_kernel
from rankbench.kernels.methods import ranksvm as kernel
from rankbench.kernels.shared.losses import Loss
from rankbench.kernels.shared.rows import ComparisonRows, Pattern
from rankbench.models.asking import sparse_rows


@dataclass(frozen=True, eq=False)
class PairTasks:
    """Ranking tasks: rows of (task, item), and for each task the pairs of rows that are to be ordered.

    The pairs are all strict ones that the task's ratings imply, which are never listed, or a list of comparisons.
    The loss is the sum over pairs of L(s_better - s_worse), with a score s per row, where L is the squared hinge
    max(0, 1 - m)^2, or for listed pairs another smooth loss.
    """

    indptr: Int64s  # where each task's rows begin
    items: Int32s
    rows: Pattern  # the same as the kernels take it
    pairs: pairs_kernel.TaskPairs
    paired: Flags  # whether each task has any pair
    threads: int
    loss: Loss = Loss.SQUARED_HINGE

    @classmethod
    def of(cls, train: View, threads: int, loss: Loss = Loss.SQUARED_HINGE) -> "PairTasks":
        """The tasks of ratings or of comparisons; with another loss than the squared hinge all pairs are listed."""
        if isinstance(train, Ratings) and loss != Loss.SQUARED_HINGE:
            train = train.comparisons()
        if isinstance(train, Ratings):
            rows = Pattern(indptr=train.indptr, columns=train.items)
            level, levels = pairs_kernel.rank_values(ratings=train.rows, threads=threads)
            pairs = pairs_kernel.TaskPairs(rows=rows, level=level, levels=levels)
            return cls(train.indptr, train.items, rows, pairs, np.asarray(levels > 1), threads)
        indptr, items, better, worse = pairs_kernel.place_pairs(comparisons=train.rows, n_items=train.n_items)
        rows = Pattern(indptr=indptr, columns=items)
        listed = ComparisonRows(indptr=train.indptr, better=better, worse=worse)
        pairs = pairs_kernel.TaskPairs(rows=rows, listed=listed, loss=loss)
        return cls(indptr, items, rows, pairs, np.asarray(np.diff(train.indptr) > 0), threads, loss)

    @property
    def n_tasks(self) -> int:
        """How many tasks there are, those without pairs included."""
        return len(self.indptr) - 1

    def met(self, n_items: int) -> Flags:
        """Whether each item occurs in a task that has pairs."""
        found = np.zeros(n_items, bool)
        for tasks, rows in blocks(self.indptr):
            found[self.items[rows][np.repeat(self.paired[tasks], _sizes(self.indptr, tasks))]] = True
        return found

    def unsorted(self) -> Int32s:
        """Scratch arrays for `at`, in which no order of scores is known: each row's position within its task first."""
        windows = np.empty((3, len(self.items)), np.int32)
        for tasks, rows in blocks(self.indptr):
            firsts = np.repeat(self.indptr[tasks], _sizes(self.indptr, tasks))
            windows[0, rows] = np.arange(rows.start, rows.stop) - firsts
        return windows

    def at(self, scores: Floats, windows: Int32s | None = None, sums: Floats | None = None) -> "ScoredPairs":
        """The loss and slope at these scores, with what its curvature needs.

        `windows` are the scratch arrays of an earlier call. If its scores were similar, there is little to sort. They
        are overwritten, so that `curve` of the earlier result must not be called any more. So are `sums`, two numbers
        per row; then the earlier result's slope is overwritten too.
        """
        windows = self.unsorted() if windows is None else windows
        sums = np.empty((2, len(scores))) if sums is None else sums
        (degree, slope), losses = sums, np.zeros(self.n_tasks)
        if len(scores):
            pairs_kernel.evaluate_all(
                tasks=self.pairs,
                scores=scores,
                windows=windows,
                degree=degree,
                slope=slope,
                losses=losses,
                threads=self.threads,
            )
        return ScoredPairs(self, scores, losses, slope, windows, degree)


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """The loss of each task at some scores, with its derivative by each row's score."""

    tasks: PairTasks
    scores: Floats
    losses: Floats
    slope: Floats
    windows: Int32s
    degree: Floats

    @property
    def loss(self) -> float:
        """The loss of all tasks."""
        return float(self.losses.sum())

    def curve(self, direction: Floats) -> Floats:
        """The Hessian of the loss times a direction of scores."""
        out = np.empty(len(self.scores))
        if len(out):
            pairs_kernel.curve_all(
                tasks=self.tasks.pairs,
                scores=self.scores,
                windows=self.windows,
                degree=self.degree,
                direction=direction,
                out=out,
                threads=self.tasks.threads,
            )
        return out


@dataclass(frozen=True, eq=False)
class TaskFeatures:
    """The features of each row of the tasks, dense or sparse, without a copy for each row."""

    tasks: PairTasks
    features: Features

    @property
    def d(self) -> int:
        """How many features an item has."""
        return self.features.shape[1]

    @cached_property
    def matrix(self) -> kernel.ItemFeatures:
        """The features as the kernels take them."""
        if not isinstance(self.features, SparseFeatures):
            return kernel.ItemFeatures(d=self.d, dense=self.features.matrix)
        return kernel.ItemFeatures(d=self.d, sparse=sparse_rows(self.features.matrix))

    def scores(self, weights: Floats) -> Floats:
        """A score per row: its item's features times its task's weights."""
        out, tasks = np.empty(len(self.tasks.items)), self.tasks
        if len(out):
            kernel.scores(features=self.matrix, rows=tasks.rows, weights=weights, out=out, threads=tasks.threads)
        return out

    def sums(self, slope: Floats) -> Floats:
        """tasks x features: each task's sum of its items' features, weighted by its rows of `slope`."""
        out, tasks = np.zeros((self.tasks.n_tasks, self.d)), self.tasks
        if len(slope):
            kernel.sums(features=self.matrix, rows=tasks.rows, slope=slope, out=out, threads=tasks.threads)
        return out

    def newton(self, C: float, tolerance: float, weights: Floats, done: Int32s) -> None:
        """One Newton step of min 1/2 |w|^2 + C loss, in place, for every task not done yet, which may then be done."""
        if not len(self.tasks.items):
            done[:] = 1
            return
        kernel.newton(
            tasks=self.tasks.pairs,
            features=self.matrix,
            C=C,
            tolerance=tolerance,
            weights=weights,
            done=done,
            threads=self.tasks.threads,
        )


def _sizes(indptr: Int64s, tasks: slice) -> Int64s:
    """How many rows each of these tasks has."""
    return np.diff(indptr[tasks.start : tasks.stop + 1])
