"""Retargeted matrix completion: a low-rank matrix that respects each user's order (Gunasekar et al. 2016)."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.core.contract import Determinism, Floats, Model, Step
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.methods.completion import Completion, Descent, LowRankMatrix, Pull, Target
from rankbench.methods.entries import Entries
from rankbench.methods.isotonic import Blocks, OrderGraphs
from rankbench.methods.warm_starts import factors_of
from rankbench.names import AddedLater, Checked, checked_threads
from rankbench.names.ranges import Rank, Share, Tolerance, Weight


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
    version: ClassVar = 3  # gaps rest on exact norms, so that a descent ends as soon as it has converged

    def steps(self, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """X = 0, then a model after each step until the gap is at most the tolerance."""
        threads = checked_threads(threads)
        completion = self.completion(train, threads)
        lam = completion.penalty(self.lam, self.share)
        yield _step(completion, lam, Descent.zero(completion.observed))
        if len(train):
            for point in (completion.continuation if self.continuation else completion.descent)(lam, rng):
                yield _step(completion, lam, point)

    def steps_from(self, model: Model, train: View, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """This model of the same data, found at another penalty, then a model after each step, as in `steps`."""
        threads = checked_threads(threads)
        completion = self.completion(train, threads)
        lam = completion.penalty(self.lam, self.share)
        found = factors_of(model, completion.observed.shape, "RMC")
        start = Descent.at(LowRankMatrix.product(found.users, found.items), completion.observed)
        yield _step(completion, lam, start)
        if len(train):
            for point in completion.descent(lam, rng, start):
                yield _step(completion, lam, point)

    def completion(self, train: View, threads: int) -> Completion:
        """The completion problem of this view."""
        if isinstance(train, Ratings):
            observed = Entries.of(train.indptr, train.items, train.n_items, threads)
            target: Target = LevelsTarget(Blocks.of(train.indptr, train.values), self.eps, threads)
        else:
            observed, orders = _graphs(train, threads)
            if self.graphs == "as-levels":
                target = LevelsTarget(Blocks.of(observed.indptr, orders.levels()), self.eps, threads)
            else:
                target = GraphsTarget(orders, self.eps, threads, np.zeros(orders.n_edges))
        return Completion(observed, target, self.rank, self.tolerance)


def _step(completion: Completion, lam: float, point: Descent) -> Step:
    def objective() -> float:
        return completion.objective(lam, point)

    def gap() -> float:
        """The duality gap of this point."""
        return completion.gap(lam, point)

    return Step(completion.model(point), objective, gap)


def _graphs(train: Comparisons, threads: int) -> tuple[Entries, OrderGraphs]:
    """The entries that occur in comparisons, and each user's graph with edges from worse to better."""
    starts = train.users.astype(np.int64) * train.n_items
    better, worse = starts + train.better, starts + train.worse
    touched = np.unique(np.concatenate([better, worse]))
    indptr = np.searchsorted(touched, np.arange(train.n_users + 1, dtype=np.int64) * train.n_items)
    items = (touched % max(train.n_items, 1)).astype(np.int32)
    firsts = indptr[train.users]
    low, high = (np.searchsorted(touched, ends) - firsts for ends in (worse, better))
    orders = OrderGraphs.of(indptr, train.indptr, low, high, names=items)
    return Entries.of(indptr.astype(np.int64), items, train.n_items, threads), orders
