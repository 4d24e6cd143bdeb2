"""Retargeted matrix completion: a low-rank matrix that respects each user's order (Gunasekar et al. 2016)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from rankbench.core.contract import Determinism, Floats, Ints, Model, Step
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.kernels.methods import all_pairs
from rankbench.methods.completion import Completion, Descent, LowRankMatrix, Pull
from rankbench.methods.entries import Entries
from rankbench.methods.folding import penalised, with_vectors
from rankbench.methods.isotonic import Blocks, OrderGraphs
from rankbench.methods.newcomers import Bent, minima
from rankbench.methods.warm_starts import factors_of
from rankbench.models import Factors
from rankbench.names import AddedLater, Checked, checked_threads
from rankbench.names.ranges import Rank, Share, Tolerance, Weight

_ROUNDING = 1e-11  # of the largest of some numbers: two that are closer are one


@dataclass(frozen=True, eq=False)
class LevelsTarget:
    """The loss of completion from ratings: half the squared distance from vectors in each user's order."""

    blocks: Blocks
    eps: float
    threads: int

    def pull(self, x: Floats) -> Floats:
        """The projection minus x."""
        return self.blocks.way(x, self.eps, threads=self.threads)

    def measure(self, x: Floats) -> Pull:
        """The same with its loss; by the projection's optimality <w, v> is least at the projection."""
        nearest = self.blocks.project(x, self.eps, threads=self.threads)
        way = nearest - x
        return Pull(way, float(way @ way) / 2, float(way @ nearest))

    def of_user(self, user: int) -> Callable[[Floats], Bent]:
        """The loss of one user."""
        blocks = self.blocks.of_user(user)
        margins = np.empty(len(blocks.depth))
        margins[blocks.order] = self.eps * blocks.depth

        def loss(x: Floats) -> Bent:
            nearest = blocks.project(x, self.eps)
            common = nearest - margins  # one number for all that move together
            return _bent(x, nearest, lambda: _alike(common))

        return loss


@dataclass(frozen=True, eq=False)
class GraphsTarget:
    """The loss of completion from comparisons: half the squared distance from vectors ascending along their graphs."""

    orders: OrderGraphs
    eps: float
    threads: int
    duals: Floats  # the last projection's multipliers, the warm start of the next

    def pull(self, x: Floats) -> Floats:
        """The projection minus x."""
        way, _ = self.orders.project(x, self.eps, duals=self.duals, threads=self.threads)
        way -= x
        return way

    def measure(self, x: Floats) -> Pull:
        """The same from the multipliers a: then <w, v> = sum_e a_e (v_high - v_low) is at least eps sum_e a_e."""
        duals = np.zeros_like(self.duals)
        nearest, _ = self.orders.project(x, self.eps, duals=duals, threads=self.threads)
        rest = nearest - x
        return Pull(self.orders.forces(duals), float(rest @ rest) / 2, self.eps * float(duals.sum()))

    def of_user(self, user: int) -> Callable[[Floats], Bent]:
        """The loss of one user."""
        order = self.orders.of_user(user)
        (low, high), duals = order.ends, np.zeros(order.n_edges)

        def loss(x: Floats) -> Bent:
            nearest, _ = order.project(x, self.eps, duals=duals)
            tight = duals > 0
            edges = scipy.sparse.coo_array((tight[tight], (low[tight], high[tight])), shape=(len(x), len(x)))
            return _bent(x, nearest, lambda: connected_components(edges, directed=False)[1])

        return loss


def _bent(x: Floats, nearest: Floats, groups: Callable[[], Ints]) -> Bent:
    """Half the squared distance of x from an order, given its projection, and the groups of rows that move together.

    The projection moves a group by the mean of what its rows are moved by, so that the second derivatives are those of
    half the squared distance of the group's rows from their mean; that of a row that is not moved is 0.
    """
    way = nearest - x

    def curve(vectors: Floats, *, convex: bool) -> Floats:
        moved = way != 0
        own, group = vectors[moved], groups()[moved]
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        means = np.add.reduceat(own[order], starts) / np.sqrt(np.diff(starts, append=len(order)))[:, None]
        return np.asarray(own.T @ own - means.T @ means) if len(own) else np.zeros((vectors.shape[1],) * 2)

    return Bent(float(way @ way) / 2, -way, curve)


def _alike(values: Floats) -> Ints:
    """The group of each number: numbers that differ by no more than rounding are in one."""
    order = np.argsort(values)
    ascending, groups = values[order], np.empty(len(values), np.int64)
    groups[order] = np.cumsum(np.diff(ascending, prepend=ascending[0]) > _ROUNDING * np.abs(values).max())
    return groups


@dataclass(frozen=True)
class RMC(Checked):
    """Retargeted matrix completion: min over X, z of lam |X|_* + 1/2 |z - X_obs|^2, z in each user's order.

    X_obs are the observed entries of X. z respects user u's order with margin eps: z_ui + eps <= z_uk where u
    puts k above i (equation 2). From ratings the orders are blocks of equals, from comparisons directed graphs
    without cycles. For given X the best z is the projection of X_obs, so this is min over X of lam |X|_* + 1/2
    dist^2(X_obs, orders): jointly convex, hence convex in X, with gradient P*(X_obs - z(X)) that is 1-Lipschitz. So a
    step projects and then shrinks singular values by lam with step size 1, where the paper's Algorithm 1
    moves X and z side by side and needs 1/2; it starts at z(0), for which X = 0 is no fixed point. The
    descent is accelerated, and ends at a duality gap of `tolerance` of the objective.

    `graphs=as-levels` first turns a graph into ratings, the longest chain below each item. These imply more
    than the comparisons do: the option exists to measure what the graph itself contributes.

    Only lam / eps matters to the order of the scores (Proposition 1). Users with no order have no
    influence. For users and items without an observed entry the optimum is X = 0 and the score 0.

    `share` sets lam as a share of the largest useful penalty, which is the smallest one at which X = 0 is optimal;
    `lam` then counts for nothing. One grid of shares serves data of any size. With `continuation` a descent from
    X = 0 first takes a few steps at larger penalties, so that it reaches the same optimum in less time if lam is small.
    """

    lam: Weight = 16.0
    eps: Weight = 1.0
    graphs: Literal["as-they-are", "as-levels"] = "as-they-are"
    rank: Rank | None = None  # at most this, to save memory; if too low, the gap stays large
    tolerance: Tolerance = 1e-5
    share: Annotated[Share | None, AddedLater()] = None
    continuation: Annotated[bool, AddedLater()] = False
    learns_from: ClassVar = (Ratings, Comparisons)
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    path: ClassVar = MappingProxyType({"lam": "falls", "share": "falls"})
    version: ClassVar = 4  # a descent on few items ends as soon as it has converged

    def steps(self, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """X = 0, then a model after each step until the gap is at most the tolerance."""
        threads = checked_threads(threads)
        completion = self.completion(train, threads)
        lam = completion.penalty(self.lam, self.share)
        for point in completion.points(lam, rng, continued=self.continuation):
            yield completion.step(lam, point, completion.model(lam, point))

    def steps_from(self, model: Model, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """This model of the same data, found at another penalty, then a model after each step, as in `steps`."""
        threads = checked_threads(threads)
        completion = self.completion(train, threads)
        lam = completion.penalty(self.lam, self.share)
        found = factors_of(model, completion.observed.shape, "RMC")
        start = Descent.at(LowRankMatrix.product(found.users, found.items), completion.observed)
        for point in completion.points(lam, rng, start):
            yield completion.step(lam, point, completion.model(lam, point))

    def fold_in(self, model: Model, ratings: View, threads: int = 1) -> Factors:
        """The model of these users, each at the minimum that the nuclear norm leaves to them at the optimum."""
        (known, penalties), threads = penalised(model), checked_threads(threads)
        view, vectors = with_vectors(known, ratings, threads, zeros=False)
        (observed, target), scales = self._problem(view, threads), 1 / np.sqrt(penalties)
        lists = np.column_stack([observed.indptr[:-1], observed.indptr[1:]])
        users = minima(lists, observed.items, vectors * scales, target.of_user)
        return Factors(users * scales, known.items, penalties)

    def completion(self, train: View, threads: int) -> Completion:
        """The completion problem of this view."""
        return Completion(*self._problem(train, threads), self.rank, self.tolerance)

    def _problem(self, train: View, threads: int) -> tuple[Entries, LevelsTarget | GraphsTarget]:
        """The observed entries, and their loss."""
        if isinstance(train, Ratings):
            observed = Entries.of(train.indptr, train.items, train.n_items, threads)
            return observed, LevelsTarget(Blocks.of(train.indptr, train.values), self.eps, threads)
        observed, orders = _graphs(train, threads)
        if self.graphs == "as-levels":
            return observed, LevelsTarget(Blocks.of(observed.indptr, orders.levels()), self.eps, threads)
        return observed, GraphsTarget(orders, self.eps, threads, np.zeros(orders.n_edges))


def _graphs(train: Comparisons, threads: int) -> tuple[Entries, OrderGraphs]:
    """The entries that occur in comparisons, and each user's graph with edges from worse to better."""
    indptr, items, better, worse = all_pairs.place_pairs(comparisons=train.rows, n_items=train.n_items)
    orders = OrderGraphs.of(indptr, train.indptr, worse, better, names=items)
    return Entries.of(indptr, items, train.n_items, threads), orders
