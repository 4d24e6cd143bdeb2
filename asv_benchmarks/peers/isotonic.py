"""Projections onto orders compared with SciPy's isotonic regression and clarabel's quadratic programs."""

from collections.abc import Iterator

import clarabel
import numpy as np
import scipy.sparse
from scipy.optimize import isotonic_regression
from turns import Row, compared, insist, per_second

from rankbench.core.contract import Floats, Ints
from rankbench.methods.isotonic import Blocks, OrderGraphs

_USERS, _ITEMS = 10_000, 100
_LONG = 10_000_000
_AGREEMENT = 1e-8


def isotonic(repeats: int) -> Iterator[Row]:
    """Many short projections, a long one, and one onto a graph, each on one thread."""
    yield _blocks(repeats)
    yield _long(repeats)
    yield _graph(repeats)


def _blocks(repeats: int) -> Row:
    """Blocks of equal ratings; SciPy gets every user's values sorted within the blocks, minus the margins."""
    rng = np.random.default_rng(0)
    ratings = np.sort(rng.integers(1, 6, (_USERS, _ITEMS)), axis=1).astype(np.float64).ravel()
    users = np.repeat(np.arange(_USERS), _ITEMS)
    x = rng.standard_normal(len(users)) + 0.5 * ratings
    x = x[np.lexsort((x, ratings, users))]
    blocks = Blocks.of(np.arange(_USERS + 1) * _ITEMS, ratings)
    ready, out = (x - blocks.depth).reshape(_USERS, _ITEMS), np.empty_like(x)
    _agree("blocks", blocks.project(x), np.concatenate([isotonic_regression(row).x for row in ready]) + blocks.depth)
    peer = per_second(lambda: [isotonic_regression(row) for row in ready], len(x))
    ours = per_second(lambda: blocks.project(x, out=out), len(x))
    what = f"blocks, {_USERS:,} users x {_ITEMS} : loop over scipy"
    return compared(repeats, what, "elements/s", 6.0, peer=peer, ours=ours)


def _long(repeats: int) -> Row:
    """One long projection onto a total order."""
    x = np.random.default_rng(0).standard_normal(_LONG) + np.arange(_LONG)
    blocks = Blocks.of(np.array([0, _LONG]), np.arange(_LONG, dtype=np.float64))
    ready, out = x - blocks.depth, np.empty_like(x)
    _agree("one vector", blocks.project(x) - blocks.depth, isotonic_regression(ready).x)
    peer = per_second(lambda: isotonic_regression(ready), _LONG)
    ours = per_second(lambda: blocks.project(x, out=out), _LONG)
    return compared(repeats, f"one vector of {_LONG:,} : scipy", "elements/s", 1.0, peer=peer, ours=ours)


def _graph(repeats: int) -> Row:
    """A partial order with 1,000 nodes and 10,000 edges; rankbench's time includes the transitive reduction."""
    rng = np.random.default_rng(0)
    ends = np.unique(np.sort(rng.integers(1000, size=(11_000, 2)), axis=1), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    edges = rng.permutation(1000)[rng.permutation(ends)[:10_000]]
    x = 100 * rng.standard_normal(1000)
    distances = [np.square(z - x).sum(keepdims=True) for z in (_our_graph(x, edges), _their_graph(x, edges))]
    _agree("graph", distances[0] / distances[1], np.ones(1))
    runs = {"peer": per_second(lambda: _their_graph(x, edges)), "ours": per_second(lambda: _our_graph(x, edges))}
    return compared(repeats, "graph, 1,000 nodes, 10,000 edges : clarabel", "projections/s", 10.0, **runs)


def _our_graph(x: Floats, edges: Ints) -> Floats:
    orders = OrderGraphs.of(np.array([0, len(x)]), np.array([0, len(edges)]), edges[:, 0], edges[:, 1])
    return orders.project(x)[0]


def _their_graph(x: Floats, edges: Ints) -> Floats:
    """The change from x to its projection by clarabel, at the smallest tolerance that it reaches here."""
    n, m = len(x), len(edges)
    places = np.tile(np.arange(m), 2), edges.T.ravel()
    order = scipy.sparse.csc_matrix((np.repeat([1.0, -1.0], m), places), shape=(m, n))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-10
    missing = 1.0 - (x[edges[:, 1]] - x[edges[:, 0]])
    quadratic, cone = scipy.sparse.identity(n, format="csc"), [clarabel.NonnegativeConeT(m)]
    return x + np.array(clarabel.DefaultSolver(quadratic, np.zeros(n), order, -missing, cone, settings).solve().x)


def _agree(what: str, ours: Floats, theirs: Floats) -> None:
    """Exit unless both give the same values."""
    difference = float(np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max()))
    print(f"{what}: largest relative difference {difference:.1e}")
    insist(difference, _AGREEMENT)
