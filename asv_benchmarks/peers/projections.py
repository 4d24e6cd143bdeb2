"""The cost of projecting onto orders as they grow: Table 1 of Gunasekar et al. 2016, measured.

The table gives O(n) for a strict order, O(n log n) for blocks, and for a graph of n nodes and m edges O(n^2 m + n^3 log
n) by an exact algorithm of others, whereas rankbench solves the dual over the edges until its gap has closed. Each
line has the exponent p of the power n^p that fits the times best; n log n looks like a p of 1.05 to 1.1 here.
"""

from collections.abc import Callable, Iterator

import numpy as np
from turns import Measure, cpu_seconds, exponent

from rankbench.methods.isotonic import Blocks, OrderGraphs

_ROWS = (100_000, 300_000, 1_000_000, 3_000_000)
_NODES = (200, 400, 800, 1600)
_EDGES = 5  # per node
_LEVELS = 5

Work = Callable[[], object]


def projections(repeats: int) -> Iterator[Measure]:
    """The exponents of the three kinds of orders, each with the seconds of the largest projection; one thread."""
    yield from _growth("(A) strict order of n", [_strict(n) for n in _ROWS], _ROWS, repeats)
    yield from _growth(f"(B) n in {_LEVELS} blocks", [_blocks(n) for n in _ROWS], _ROWS, repeats)
    yield from _growth(f"(C) graph, n nodes, {_EDGES} n edges", [_graph(n) for n in _NODES], _NODES, repeats)


def _growth(what: str, works: list[Work], sizes: tuple[int, ...], repeats: int) -> Iterator[Measure]:
    """The exponent of the fitted power, and the least time of the largest size."""
    best = [min(cpu_seconds(work) for _ in range(repeats)) for work in works]
    yield Measure(f"{what}: exponent of n, {sizes[0]:,} to {sizes[-1]:,}", "", exponent(sizes, best))
    yield Measure(f"{what}: one projection, n = {sizes[-1]:,}", "s", best[-1])


def _strict(n: int) -> Work:
    """The projection of noise around an increasing line, far from any order."""
    x = np.random.default_rng(0).standard_normal(n) * n**0.5
    return lambda: Blocks(np.array([0, n]), np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)).project(x)


def _blocks(n: int) -> Work:
    """The projection onto blocks of equal ratings, in which x has to be sorted first."""
    rng = np.random.default_rng(0)
    ratings = rng.integers(_LEVELS, size=n).astype(np.float64)
    x = rng.standard_normal(n) + 0.1 * ratings
    return lambda: Blocks.of(np.array([0, n]), ratings).project(x)


def _graph(n: int) -> Work:
    """The projection onto a random partial order, with the transitive reduction."""
    rng = np.random.default_rng(0)
    ends = np.sort(rng.integers(n, size=(_EDGES * n, 2)), axis=1)
    low, high = ends[ends[:, 0] != ends[:, 1]].T
    x = 10 * rng.standard_normal(n)
    bounds = np.array([0, n]), np.array([0, len(low)])
    return lambda: OrderGraphs.of(*bounds, low, high).project(x)
