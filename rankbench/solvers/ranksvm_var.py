"""Multi-task RankSVM: a shared linear function of item features and a deviation per task (Evgeniou and Pontil 2004)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import scipy.sparse

from rankbench.core.contract import Determinism, Floats, Int64s, Ints, Step
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.features.matrix import Features, SparseFeatures
from rankbench.kernels.methods import entries as entries_kernel
from rankbench.kernels.shared.rows import SparseRows
from rankbench.methods.losses import CODES, CurvedLoss
from rankbench.methods.newton import Linear, minimise
from rankbench.methods.pair_tasks import PairTasks, TaskFeatures
from rankbench.methods.task_inverses import TaskInverses
from rankbench.methods.tasks import checked_features
from rankbench.models import UserWeights
from rankbench.models.asking import sparse_rows
from rankbench.names import AddedLater, Checked, checked_threads
from rankbench.names.ranges import Weight

_PROBES = 8  # random vectors of signs by which a diagonal is estimated


@dataclass(frozen=True)
class RankSVMVar(Checked):
    """A linear function w + v_i per task, shared part and deviation, by truncated Newton with a duality gap.

    min over w, v of shared/2 |w|^2 + private/2 sum_i |v_i|^2 + C sum over all tasks' pairs of
    L((w + v_i) . (x_j - x_k)) (Cheng et al. 2018, «var»), with the squared hinge L(m) = max(0, 1 - m)^2, or
    log(1 + e^-m) for `loss=logistic`. Only shared/C and private/C matter: a large `private` approaches RankSVM jointly,
    a large `shared` separately. Of ratings all strict pairs count; with the squared hinge none is listed. A user
    without a pair contributes nothing and has v = 0: the shared part scores.
    """

    C: Weight = 1.0
    shared: Weight = 1.0
    private: Weight = 1.0
    loss: Annotated[CurvedLoss, AddedLater()] = "squared-hinge"
    learns_from: ClassVar = (Ratings, Comparisons)
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    title: ClassVar = "RankSVM, variances"
    version: ClassVar = 5  # the line search is exact, and directions are where steps gain little

    def steps(self, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The zero model, then a model after each Newton step, until the gap vanishes or the line search fails."""
        threads = checked_threads(threads)
        given = checked_features(train.item_features)
        tasks = PairTasks.of(train, threads, CODES[self.loss])
        places = _Support.of(tasks, given) if isinstance(given, SparseFeatures) else _Everywhere.of(tasks, given)
        for point in minimise(tasks, self._scaled(places), self.C):
            weights = places.table(*self._parts(point.unknowns, places))
            yield point.step(UserWeights(given.matrix, weights, np.zeros(len(weights))))

    def _scaled(self, places: "_Places") -> Linear:
        """The linear map of the unknowns sqrt(shared) w and sqrt(private) v_i: they make the penalty 1/2 |x|^2."""

        def forward(unknowns: Floats) -> Floats:
            """The score (w + v_i) . x of each row."""
            return places.scores(self._weights(unknowns, places))

        def backward(slope: Floats) -> Floats:
            """The transpose of `forward`: a gradient by the unknowns from slopes by row."""
            sums = places.sums(slope)
            return np.concatenate([places.totals(sums) / np.sqrt(self.shared), sums / np.sqrt(self.private)])

        def preconditioner(weights: Floats) -> Callable[[Floats], Floats]:
            """The inverse of the Hessian without products of different features: one system per feature."""
            return _arrows(places, places.squared_sums(weights), self.shared, self.private)

        def stronger(weights: Floats) -> Callable[[Floats], Floats] | None:
            """The inverse of the Hessian of complete graphs of pairs, but for products of different shared features."""
            return _coupled(places, weights, self.shared, self.private) if isinstance(places, _Support) else None

        return Linear(places.d + places.size, forward, backward, preconditioner, stronger)

    def _weights(self, unknowns: Floats, places: "_Places") -> Floats:
        """The weight w + v_i at each place."""
        shared, own = self._parts(unknowns, places)
        return places.spread(shared) + own

    def _parts(self, unknowns: Floats, places: "_Places") -> tuple[Floats, Floats]:
        """The shared part w, and the deviation v_i at each place."""
        return unknowns[: places.d] / np.sqrt(self.shared), unknowns[places.d :] / np.sqrt(self.private)


@dataclass(frozen=True, eq=False)
class _Everywhere:
    """The places (task, feature) where deviations v are unknowns: all, for dense features.

    Vectors over the places are in the order of the tasks.
    """

    features: TaskFeatures
    squared: TaskFeatures

    @classmethod
    def of(cls, tasks: PairTasks, given: Features) -> "_Everywhere":
        """All places of these tasks."""
        return cls(TaskFeatures(tasks, given), TaskFeatures(tasks, given.squared()))

    @property
    def d(self) -> int:
        """How many features there are."""
        return self.features.d

    @property
    def size(self) -> int:
        """How many places there are."""
        return self.features.tasks.n_tasks * self.d

    def scores(self, weights: Floats) -> Floats:
        """The score of each row of the tasks by a weight for each place."""
        return self.features.scores(weights.reshape(-1, self.d))

    def sums(self, slope: Floats) -> Floats:
        """The transpose of `scores`: a sum for each place, of features times slopes of rows."""
        return self.features.sums(slope).ravel()

    def squared_sums(self, weights: Floats) -> Floats:
        """The same with squared features."""
        return self.squared.sums(weights).ravel()

    def spread(self, shared: Floats) -> Floats:
        """A value for each feature, at all its places."""
        return np.tile(shared, self.features.tasks.n_tasks)

    def totals(self, values: Floats) -> Floats:
        """The transpose of `spread`: for each feature the sum over its places."""
        return np.asarray(values.reshape(-1, self.d).sum(axis=0))

    def table(self, shared: Floats, own: Floats) -> Floats:
        """The weights w + v_i of all tasks for all features, tasks x features."""
        return np.asarray(shared + own.reshape(-1, self.d))


@dataclass(frozen=True, eq=False)
class _Support:
    """The places of the features that a task's items have, for sparse features; elsewhere v is and stays 0.

    A feature that no item of a task has gets no gradient from it. On MovieLens 1M with the words of the titles,
    one place in sixteen is left.
    """

    task_of_row: Ints
    n_tasks: int
    n_rows: int
    d: int
    threads: int
    matrix: scipy.sparse.csr_array  # the features of each row of the tasks, with a column for each place
    tasks: Int64s  # of each place
    features: Int64s
    rows: SparseRows  # the matrix as the kernels take it
    columns: SparseRows  # the transpose
    squared: SparseRows  # the transpose of the squares

    @classmethod
    def of(cls, tasks: PairTasks, given: SparseFeatures) -> "_Support":
        """The places of these tasks."""
        rows = given.rows(tasks.items).matrix
        task_of_row = np.repeat(np.arange(tasks.n_tasks), np.diff(tasks.indptr))
        keys = np.repeat(task_of_row, np.diff(rows.indptr)) * given.shape[1] + rows.indices
        places, at = np.unique(keys, return_inverse=True)
        matrix = scipy.sparse.csr_array((rows.data, at, rows.indptr), shape=(len(task_of_row), len(places)))
        columns = matrix.T.tocsr()
        parts = map(sparse_rows, (matrix, columns, columns**2))
        sizes = tasks.n_tasks, len(task_of_row), given.shape[1], tasks.threads
        return cls(task_of_row, *sizes, matrix, *np.divmod(places, given.shape[1]), *parts)

    @property
    def size(self) -> int:
        """How many places there are."""
        return len(self.tasks)

    def scores(self, weights: Floats) -> Floats:
        """A score for each row."""
        return _product(self.rows, weights, self.n_rows, self.threads)

    def sums(self, slope: Floats) -> Floats:
        """A sum for each place."""
        return _product(self.columns, slope, self.size, self.threads)

    def squared_sums(self, weights: Floats) -> Floats:
        """A sum for each place, with squared features."""
        return _product(self.squared, weights, self.size, self.threads)

    def spread(self, shared: Floats) -> Floats:
        """A value for each feature, at all its places."""
        return shared[self.features]

    def totals(self, values: Floats) -> Floats:
        """For each feature the sum over its places."""
        return np.asarray(np.bincount(self.features, values, self.d), np.float64)

    def table(self, shared: Floats, own: Floats) -> Floats:
        """The weights w + v_i of all tasks for all features."""
        found = np.tile(shared, (self.n_tasks, 1))
        found[self.tasks, self.features] += own
        return found


_Places = _Everywhere | _Support


def _arrows(places: _Places, curvature: Floats, shared: float, private: float) -> Callable[[Floats], Floats]:
    """The solution of I + [h/shared summed, h/sqrt(shared private); its transpose, h/private] for each feature.

    `curvature` holds h, a number for each place. Each matrix has the shape of an arrow: it is diagonal except for
    the shared unknown's row and column, and eliminating the other unknowns leaves one equation.
    """
    coupling, own = curvature / np.sqrt(shared * private), 1 + curvature / private
    pivot = 1 + places.totals(curvature / (shared * own))  # h/shared - coupling^2/own, summed

    def solve(right: Floats) -> Floats:
        """The solution, the shared unknowns first."""
        first, others = right.ravel()[: places.d], right.ravel()[places.d :]
        middle = (first - places.totals(coupling / own * others)) / pivot
        return np.concatenate([middle, (others - coupling * places.spread(middle)) / own])

    return solve


def _coupled(places: _Support, h: Floats, shared: float, private: float) -> Callable[[Floats], Floats] | None:
    """The inverse of I + Y^T Y with Y = [Y_w, Y_v] as in `TaskInverses`, where the shared part's S is a diagonal.

    With Z = (I + Y_v Y_v^T)^-1 the deviations are eliminated: (I + Y_v^T Y_v)^-1 = I - Y_v^T Z Y_v, and
    S = I + Y_w^T Z Y_w. Its diagonal is estimated as the mean of z * (Y^T Z Y z) over random signs z of the places.
    """
    found = TaskInverses.of(places.matrix, places.task_of_row, places.tasks, h, private)
    if found is None:
        return None

    def across(weights: Floats) -> Floats:
        """Z h^1/2 X weights, a number for each row."""
        return found.times(found.roots * places.scores(weights))

    def back(values: Floats) -> Floats:
        """X^T h^1/2 values, a number for each place."""
        return places.sums(found.roots * values)

    signs = np.random.default_rng(0).choice([-1.0, 1.0], (_PROBES, places.size))
    probed = np.mean([z * back(across(z)) for z in signs], axis=0)
    pivot = 1 + np.maximum(places.totals(probed), 0) / shared

    def solve(right: Floats) -> Floats:
        """The solution, the shared unknowns first."""
        first, others = right.ravel()[: places.d], right.ravel()[places.d :]
        eliminated = back(across(others) / np.sqrt(private))
        middle = (first - places.totals(eliminated) / np.sqrt(shared)) / pivot
        coupling = back(across(places.spread(middle)) / np.sqrt(shared))
        return np.concatenate([middle, others - (eliminated + coupling) / np.sqrt(private)])

    return solve


def _product(matrix: SparseRows, vector: Floats, n_rows: int, threads: int) -> Floats:
    """A sparse matrix with so many rows, times a vector."""
    out = np.empty((n_rows, 1))
    entries_kernel.times(matrix=matrix, dense=vector[:, None], out=out, threads=threads)
    return out.ravel()
