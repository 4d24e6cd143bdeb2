"""The squared hinge loss over the pairs of many tasks, with its curvature and products with item features."""

from dataclasses import dataclass

import numpy as np

from rankbench.contract import Flags, Floats, Ints
from rankbench.data.by_item import ByItem, users_of
from rankbench.data.views import Ratings, View
from rankbench.feature_matrix import Features, SparseFeatures
from rankbench.kernels.methods import all_pairs as pairs_kernel
from rankbench.kernels.methods import ranksvm as kernel

_NONE = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class PairTasks:
    """Ranking tasks: rows of (task, item), and for each task the pairs of rows that are to be ordered.

    The pairs are all strict ones that the task's ratings imply, which are never listed, or a list of comparisons.
    The loss is the sum over pairs of max(0, 1 - (s_better - s_worse))^2, with a score s per row.
    """

    indptr: Ints
    items: Ints
    level: Ints  # the rank of each row's rating among the task's distinct ones; empty if pairs are listed
    levels: Ints  # the number of each task's distinct ratings; empty if pairs are listed
    pair_indptr: Ints  # the listed pairs, as row numbers within the task; empty if the ratings imply them
    better: Ints
    worse: Ints
    threads: int

    @classmethod
    def of(cls, train: View, threads: int) -> "PairTasks":
        """The tasks of ratings or of comparisons."""
        if isinstance(train, Ratings):
            levels = pairs_kernel.rank_values(train.indptr, train.values, threads)
            return cls(train.indptr, train.items, *levels, np.zeros(1, np.int64), _NONE, _NONE, threads)
        rows = pairs_kernel.place_pairs(train.indptr, train.better, train.worse, train.n_items)
        indptr, items, better, worse = rows
        return cls(indptr, items, _NONE, _NONE, train.indptr, better, worse, threads)

    @property
    def n_tasks(self) -> int:
        """How many tasks there are, those without pairs included."""
        return len(self.indptr) - 1

    @property
    def paired(self) -> Flags:
        """Whether each task has any pair."""
        return np.asarray(self.levels > 1 if len(self.levels) else np.diff(self.pair_indptr) > 0)

    def met(self, n_items: int) -> Flags:
        """Whether each item occurs in a task that has pairs."""
        held = np.repeat(self.paired, np.diff(self.indptr))
        return np.asarray(np.bincount(self.items[held], minlength=n_items) > 0)

    def by_item(self, n_items: int) -> ByItem:
        """The rows in the order of the items."""
        return ByItem.of(users_of(self.indptr), self.items, n_items)

    @property
    def pairs(self) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
        """The pairs as the kernels take them."""
        return self.indptr, self.level, self.levels, self.pair_indptr, self.better, self.worse

    def unsorted(self) -> Ints:
        """Scratch arrays for `at`, in which no order of scores is known: each row's position within its task first."""
        windows = np.empty((3, len(self.items)), np.int32)
        windows[0] = np.arange(len(self.items)) - np.repeat(self.indptr[:-1], np.diff(self.indptr))
        return windows

    def at(self, scores: Floats, windows: Ints | None = None) -> "ScoredPairs":
        """The loss and slope at these scores, with what its curvature needs.

        `windows` are the scratch arrays of an earlier call. If its scores were similar, there is little to sort. They
        are overwritten, so that `curve` of the earlier result must not be called any more.
        """
        windows = self.unsorted() if windows is None else windows
        degree, slope, losses = np.zeros(len(scores)), np.zeros(len(scores)), np.zeros(self.n_tasks)
        if len(scores):
            pairs_kernel.evaluate_all(*self.pairs, scores, windows, degree, slope, losses, self.threads)
        return ScoredPairs(self, scores, losses, slope, windows, degree)


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """The loss of each task at some scores, with its derivative by each row's score."""

    tasks: PairTasks
    scores: Floats
    losses: Floats
    slope: Floats
    windows: Ints
    degree: Floats

    @property
    def loss(self) -> float:
        """The loss of all tasks."""
        return float(self.losses.sum())

    def curve(self, direction: Floats) -> Floats:
        """The Hessian of the loss times a direction of scores."""
        out = np.zeros(len(self.scores))
        if len(out):
            state = self.scores, self.windows, self.degree
            pairs_kernel.curve_all(*self.tasks.pairs, *state, direction, out, self.tasks.threads)
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

    def scores(self, weights: Floats) -> Floats:
        """A score per row: its item's features times its task's weights."""
        out, tasks = np.zeros(len(self.tasks.items)), self.tasks
        if len(out) and isinstance(self.features, SparseFeatures):
            parts = _parts(self.features)
            kernel.scores_sparse(tasks.indptr, tasks.items, *parts, weights, out, tasks.threads)
        elif len(out):
            kernel.scores_dense(tasks.indptr, tasks.items, self.features.matrix, weights, out, tasks.threads)
        return out

    def sums(self, slope: Floats) -> Floats:
        """tasks x features: each task's sum of its items' features, weighted by its rows of `slope`."""
        out, tasks = np.zeros((self.tasks.n_tasks, self.d)), self.tasks
        if len(slope) and isinstance(self.features, SparseFeatures):
            parts = _parts(self.features)
            kernel.sums_sparse(tasks.indptr, tasks.items, *parts, slope, out, tasks.threads)
        elif len(slope):
            kernel.sums_dense(tasks.indptr, tasks.items, self.features.matrix, slope, out, tasks.threads)
        return out

    def newton(self, C: float, tolerance: float, weights: Floats, done: Ints) -> None:
        """One Newton step of min 1/2 |w|^2 + C loss, in place, for every task not done yet, which may then be done."""
        tasks = self.tasks
        if not len(tasks.items):
            done[:] = 1
        elif isinstance(self.features, SparseFeatures):
            sparse_rows = *tasks.pairs, tasks.items, *_parts(self.features)
            kernel.newton_sparse(*sparse_rows, C, tolerance, weights, done, tasks.threads)
        else:
            rows = *tasks.pairs, tasks.items
            kernel.newton_dense(*rows, self.features.matrix, C, tolerance, weights, done, tasks.threads)


def _parts(features: SparseFeatures) -> tuple[Floats, Ints, Ints]:
    """The values, starts of rows and columns of sparse features, as the kernels take them."""
    matrix = features.matrix
    return matrix.data, matrix.indptr.astype(np.int32, copy=False), matrix.indices.astype(np.int32, copy=False)
