"""Isotonic regression with a margin (Gunasekar et al. 2016, section 4), for total orders, blocks and partial orders.

A vector z respects an order with margin eps if z_i + eps <= z_k wherever k is above i in the order. `project_*`
project the vector of one user. `Blocks` and `OrderGraphs` prepare the orders of many users once, and project all users
of a CSR array in parallel, with the same bits for any number of threads. Without constraints the projection is x.
"""

from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rankbench.arrays.npz import LARGEST, as_kernels_take
from rankbench.arrays.ordering import order_of
from rankbench.core.contract import Floats, Int32s, Int64s, Ints
from rankbench.core.errors import UserError
from rankbench.kernels.methods import all_pairs
from rankbench.kernels.methods import isotonic as kernel
from rankbench.kernels.methods import partial_order as dag
from rankbench.kernels.shared.rows import SparseRows
from rankbench.names import checked_threads

_NO_WEIGHTS = np.empty(0)
_LARGE = 8  # rows per block from which a user's blocks are large
_REDUCIBLE = 20_000  # most nodes for a transitive reduction, which needs a bit per pair of nodes


class Projection(NamedTuple):
    """A projection onto a partial order with its duality gap and its multipliers, a warm start for the next one."""

    z: Floats
    gap: float
    duals: Floats


def project_total(x: Floats, eps: float = 1.0, *, weights: Floats | None = None, out: Floats | None = None) -> Floats:
    """The projection of x onto vectors that ascend by at least eps: PAV(x - eps d) + eps d, d = 0, 1, ...; O(n)."""
    return project_blocks(x, np.arange(len(np.atleast_1d(x)), dtype=np.float64), eps, weights=weights, out=out)


def project_blocks(
    x: Floats, y: Floats, eps: float = 1.0, *, weights: Floats | None = None, out: Floats | None = None
) -> Floats:
    """The projection of x onto the vectors with z_i + eps <= z_k wherever y_i < y_k; O(n log n).

    Items with equal y are not ordered, so the best z keeps the order of x among them: sort x inside each block
    of equal y and project as for a total order, with d the number of the block (Lemma 2). There is a margin between
    blocks only, unlike in the printed Table 1. out=x works in place.
    """
    x = _vector("x", x)
    return Blocks.of(np.array([0, len(x)]), _vector("y", y, len(x))).project(x, eps, weights=weights, out=out)


def project_dag(
    x: Floats,
    edges: Ints,
    eps: float = 1.0,
    *,
    weights: Floats | None = None,
    duals: Floats | None = None,
) -> Projection:
    """The projection onto z_low + eps <= z_high for every row (low, high) of `edges`, with its duality gap.

    The paper's recipe, to subtract eps times the longest chain below a node and project without margin,
    is not this projection unless every edge joins consecutive depths: for edges a-b, b-c, d-c, eps = 1
    and x = (0, 1, 2, 1) no constraint is violated, yet the recipe requires x_d <= x_c - 2. So this function solves
    the dual over the edges of the transitive reduction. `duals` is a warm start: the multipliers of an earlier call
    with the same edges. A cycle is an error that names it.
    """
    x = _vector("x", x)
    edges = np.asarray(edges).reshape(-1, 2)
    orders = OrderGraphs.of(np.array([0, len(x)]), np.array([0, len(edges)]), edges[:, 0], edges[:, 1])
    duals = np.zeros(orders.n_edges) if duals is None else _vector("duals", duals, orders.n_edges).copy()
    z, gaps = orders.project(x, eps, weights=weights, duals=duals)
    return Projection(z, float(gaps[0]), duals)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Each user's rows sorted by rating, with the number of blocks of equal rating below each row.

    Inside a block `order` is a warm start that each projection overwrites, as are the borders between large blocks: if
    x has changed little, there is little to do. Results do not depend on it, except for rounding with weights where x
    has ties.
    """

    indptr: Int64s
    order: Int32s
    depth: Int32s

    @classmethod
    def of(cls, indptr: Ints, ratings: Floats) -> "Blocks":
        """The blocks of equal ratings of each user; the user's rows are indptr[user]:indptr[user + 1]."""
        bounds: Int64s = as_kernels_take(indptr, np.int64)
        values = as_kernels_take(ratings, np.float64)
        rows = SparseRows(indptr=bounds, columns=np.zeros(len(values), np.int32), values=values)
        depth, _ = all_pairs.rank_values(ratings=rows, threads=1)
        starts = np.repeat(bounds[:-1], np.diff(bounds))
        order = order_of(starts + depth, len(values))
        return cls(bounds, (order - starts).astype(np.int32), depth[order])

    def of_user(self, user: int) -> "Blocks":
        """The blocks of one user."""
        rows = slice(self.indptr[user], self.indptr[user + 1])
        return Blocks(self.indptr[user : user + 2] - self.indptr[user], self.order[rows], self.depth[rows])

    @cached_property
    def levels(self) -> kernel.Levels:
        """The blocks as the kernel takes them, with room for the borders between large ones."""
        block_indptr, block_ends = self._large()
        return kernel.Levels(
            indptr=self.indptr,
            order=self.order,
            depth=self.depth,
            block_indptr=block_indptr,
            block_ends=block_ends,
            borders=np.full((2, len(block_ends)), np.nan),
        )

    def _large(self) -> tuple[Int64s, Int32s]:
        """Where each user's blocks end, for users whose blocks are large on average, by a pointer for each user."""
        sizes = np.diff(self.indptr)
        known = np.flatnonzero(sizes)
        counts = np.zeros(len(sizes), np.int64)
        counts[known] = self.depth[self.indptr[1:][known] - 1] + 1
        counts[counts * _LARGE > sizes] = 0
        last = np.ones(len(self.depth), bool)  # whether each row is the last of its block
        last[:-1] = self.depth[1:] != self.depth[:-1]
        last[self.indptr[1:][known] - 1] = True
        last &= np.repeat(counts > 0, sizes)
        ends = np.flatnonzero(last) + 1 - np.repeat(self.indptr[:-1], counts)
        return np.concatenate([[0], np.cumsum(counts)]), ends.astype(np.int32)

    def project(
        self,
        x: Floats,
        eps: float = 1.0,
        *,
        weights: Floats | None = None,
        out: Floats | None = None,
        threads: int = 1,
    ) -> Floats:
        """The projection of every user's part of x; out=x works in place."""
        x, masses, out = _checked(x, eps, weights, out, len(self.order))
        kernel.project(levels=self.levels, x=x, weights=masses, eps=eps, out=out, threads=checked_threads(threads))
        return out

    def way(self, x: Floats, eps: float = 1.0, *, threads: int = 1) -> Floats:
        """The projection of every user's part of x, minus x."""
        x, masses, out = _checked(x, eps, None, None, len(self.order))
        threads = checked_threads(threads)
        kernel.project(levels=self.levels, x=x, weights=masses, eps=eps, out=out, threads=threads, less_x=True)
        return out


@dataclass(frozen=True, eq=False)
class OrderGraphs:
    """Each user's graph after transitive reduction, its nodes in a topological order."""

    indptr: Int64s
    nodes: Int64s  # the rows in the order of the nodes
    edge_indptr: Int64s
    low: Int32s  # nodes, numbered within the user
    high: Int32s

    @classmethod
    def of(cls, indptr: Ints, edge_indptr: Ints, low: Ints, high: Ints, names: Ints | None = None) -> "OrderGraphs":
        """The graphs of these edges; `low` and `high` count a user's rows from 0, and `names` are used in errors."""
        names = np.arange(indptr[-1]) - np.repeat(indptr[:-1], np.diff(indptr)) if names is None else names
        users = [
            _order_of(names[slice(*rows)], np.asarray(low[slice(*edges)]), np.asarray(high[slice(*edges)]), user)
            for user, (rows, edges) in enumerate(zip(pairwise(indptr), pairwise(edge_indptr), strict=True))
        ]
        nodes, lows, highs = (np.concatenate([np.empty(0, np.int64), *parts]) for parts in zip(*users, strict=True))
        counts = [len(kept) for _, kept, _ in users]
        starts = np.repeat(np.asarray(indptr[:-1]), np.diff(indptr))
        return cls(
            as_kernels_take(indptr, np.int64),
            np.asarray(nodes + starts, np.int64),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            lows.astype(np.int32),
            highs.astype(np.int32),
        )

    def of_user(self, user: int) -> "OrderGraphs":
        """The graph of one user."""
        first, edge = self.indptr[user], self.edge_indptr[user]
        edges = slice(edge, self.edge_indptr[user + 1])
        nodes = self.nodes[first : self.indptr[user + 1]] - first
        bounds = self.indptr[user : user + 2] - first, self.edge_indptr[user : user + 2] - edge
        return OrderGraphs(bounds[0], nodes, bounds[1], self.low[edges], self.high[edges])

    @cached_property
    def graphs(self) -> dag.Graphs:
        """The graphs as the kernel takes them."""
        return dag.Graphs(indptr=self.indptr, edge_indptr=self.edge_indptr, low=self.low, high=self.high)

    @property
    def n_edges(self) -> int:
        """The number of edges after the reduction."""
        return len(self.low)

    def levels(self) -> Floats:
        """The length of the longest chain below each row: ratings that agree with all edges, but order more pairs."""
        low, high = self.ends
        found: Floats = np.zeros(len(self.nodes))
        while (too_low := found[high] <= found[low]).any():
            np.maximum.at(found, high[too_low], found[low[too_low]] + 1)
        return found

    @property
    def ends(self) -> tuple[Int64s, Int64s]:
        """The rows at the lower and at the higher ends of the edges."""
        starts = np.repeat(self.indptr[:-1], np.diff(self.edge_indptr))
        return self.nodes[starts + self.low], self.nodes[starts + self.high]

    def forces(self, duals: Floats) -> Floats:
        """For each row the sum of the multipliers of its incoming edges, minus that of its outgoing edges."""
        (low, high), size = self.ends, len(self.nodes)
        return np.asarray(np.bincount(high, duals, size) - np.bincount(low, duals, size), np.float64)

    def project(
        self,
        x: Floats,
        eps: float = 1.0,
        *,
        weights: Floats | None = None,
        duals: Floats | None = None,
        out: Floats | None = None,
        threads: int = 1,
    ) -> tuple[Floats, Floats]:
        """Every user's projection and duality gap; `duals` is a warm start, overwritten; out=x works in place."""
        x, masses, out = _checked(x, eps, weights, out, len(self.nodes))
        duals = np.zeros(self.n_edges) if duals is None else duals
        found = np.empty(len(x))
        gaps = dag.project(
            graphs=self.graphs,
            x=x[self.nodes],
            weights=masses[self.nodes] if len(masses) else masses,
            eps=eps,
            duals=duals,
            out=found,
            threads=checked_threads(threads),
        )
        out[self.nodes] = found
        return out, gaps


def _order_of(names: Ints, low: Ints, high: Ints, user: int) -> tuple[Int64s, Int32s, Int32s]:
    """One user's nodes in topological order, and the reduced edges between their positions there."""
    size = len(names)
    _check_edges(size, low, high, user)
    positions = _positions(size, low, high)
    if (positions < 0).any():
        raise UserError(f"the order of user {user} contains a cycle: {_cycle(names[low], names[high])}")
    edges = np.unique(np.column_stack([positions[low], positions[high]]).astype(np.int64), axis=0)
    lower, higher = (np.ascontiguousarray(ends, np.int32) for ends in edges.T)
    if size <= _REDUCIBLE:
        kept = dag.reduced(n=size, low=lower, high=higher, starts=np.searchsorted(lower, np.arange(size + 1)))
        lower, higher = lower[kept], higher[kept]
    return np.argsort(positions), lower, higher


def _positions(size: int, low: Ints, high: Ints) -> Int32s:
    """Each node's position in a topological order, -1 for nodes on or after a cycle."""
    order = np.argsort(low, kind="stable")
    starts = np.searchsorted(low[order], np.arange(size + 1))
    return dag.topological(n=size, high=np.ascontiguousarray(high[order], np.int32), starts=starts)


def _check_edges(size: int, low: Ints, high: Ints, user: int) -> None:
    """Raise an error unless each edge joins two different nodes."""
    if len(low) == 0:
        return
    if not np.issubdtype(low.dtype, np.integer):
        raise UserError(f"edges must be rows (lower, higher) of integers, not {low.dtype}")
    if (same := low == high).any():
        raise UserError(f"user {user} has an edge from {low[same][0]} to itself: leave it out")
    if min(low.min(), high.min()) < 0 or max(low.max(), high.max()) >= size:
        wrong = low.min() if low.min() < 0 else max(low.max(), high.max())
        raise UserError(f"user {user} has an edge at {wrong}: nodes run from 0 to {size - 1}")


def _cycle(low: Ints, high: Ints) -> str:
    """A cycle as text: `2 < 5 < 3 < 2`."""
    below: dict[int, list[int]] = {}
    for one, other in zip(low.tolist(), high.tolist(), strict=True):
        below.setdefault(other, []).append(one)
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        return " < ".join(map(str, error.args[1]))
    raise AssertionError("no cycle where one was found")  # pragma: no cover: callers have found that there is one


def _checked(
    x: Floats, eps: float, weights: Floats | None, out: Floats | None, size: int
) -> tuple[Floats, Floats, Floats]:
    """The arguments as the kernels take them."""
    if not 0 < eps <= LARGEST:
        raise UserError(f"eps={eps} is out of range: must be above 0 and at most {LARGEST:g}")
    x = _vector("x", x, size, LARGEST)
    masses = _NO_WEIGHTS if weights is None else _vector("weights", weights, size)
    for mass in (masses.min(initial=1.0), masses.max(initial=1.0)):
        if not 1 / LARGEST <= mass <= LARGEST:
            raise UserError(f"weight {mass:g} is out of range: must be above 0, from {1 / LARGEST:g} to {LARGEST:g}")
    return x, masses, np.empty_like(x) if out is None else _target(out, size)


def _target(out: Floats, size: int) -> Floats:
    """The array given as `out`, or an error if the kernels cannot write into it."""
    if out.dtype != np.float64 or out.shape != (size,) or not out.flags.c_contiguous:
        raise UserError(f"out must be a contiguous vector of {size} 64-bit floats, not {out.dtype}{list(out.shape)}")
    return out


def _vector(name: str, values: Floats, size: int | None = None, largest: float = np.inf) -> Floats:
    """The values as a contiguous vector of finite 64-bit floats, at most the largest, or an error."""
    vector: Floats = as_kernels_take(values, np.float64)
    if vector.ndim != 1 or (size is not None and len(vector) != size):
        raise UserError(f"{name} has shape {vector.shape}: expected a vector" + (f" of {size}" if size else ""))
    low, high = vector.min(initial=0.0), vector.max(initial=0.0)  # NaN if there is any
    if not np.isfinite([low, high]).all():
        row = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise UserError(f"{name}[{row}] is {vector[row]}: must be finite")
    if max(-low, high) > largest:
        raise UserError(f"{name} holds {max(low, high, key=abs):g}: must be within {largest:g}, scale it")
    return vector
