"""Groups of items for threads to work on side by side: tournaments of groups, and partitions of the item graph."""

import heapq

import numpy as np
import scipy.sparse

from rankbench.core.contract import Int32s, Ints, Needs
from rankbench.core.errors import UserError
from rankbench.data.by_item import counted

METIS = Needs(("pymetis",), "pip install 'rankbench[partition]'")  # what `partition` imports


def loads(better: Ints, worse: Ints, n_items: int) -> Ints:
    """The number of comparisons of each item."""
    return counted(better, n_items) + counted(worse, n_items)


def rounds(groups: int) -> list[list[tuple[int, int]]]:
    """The rounds of a tournament in which every group meets every other and itself once, as few as possible.

    In a round every group occurs once, so that threads may work on its pairs side by side. With an even number of
    groups each meets itself in the first round, and every later round consists of pairs of two groups.
    """
    if groups % 2:
        return [_summing_to(total, groups) for total in range(groups)]
    last = groups - 1
    themselves = [(group, group) for group in range(groups)]
    others = [_summing_to(total, last) for total in range(last)]
    return [themselves, *([(a, last if a == b else b) for a, b in meets] for meets in others)]


def tasks(groups: int) -> Int32s:
    """The number of each pair of groups in the tournament's order, as a symmetric matrix."""
    table = np.empty((groups, groups), np.int32)
    for number, (one, other) in enumerate(pair for meets in rounds(groups) for pair in meets):
        table[one, other] = table[other, one] = number
    return table


def latin_square(size: int) -> Ints:
    """Row r, column w: the group that worker w has in round r; no two have the same, and all have all."""
    return np.add.outer(np.arange(size), np.arange(size)) % size


def balanced(load: Ints, groups: int) -> Int32s:
    """The group of every item, of nearly equal loads: the heaviest item goes first, each to the lightest group."""
    chosen = np.empty(len(load), np.int32)
    lightest = [(0, group) for group in range(groups)]
    for item in np.argsort(-load, kind="stable"):
        held, group = lightest[0]
        chosen[item] = group
        heapq.heapreplace(lightest, (held + int(load[item]), group))
    return chosen


def partition(better: Ints, worse: Ints, n_items: int, groups: int) -> Int32s:
    """The group of every item, cut by METIS into groups of similar load with few comparisons across.

    An edge weighs as many comparisons as its two items have with each other, an item as many as it is in. Items
    that are never compared are in group 0.
    """
    load = loads(better, worse, n_items)
    compared = np.flatnonzero(load)
    chosen = np.zeros(n_items, np.int32)
    if groups >= len(compared):
        chosen[compared] = np.arange(len(compared))
    elif groups > 1:
        chosen[compared] = _cut(_item_graph(better, worse, n_items)[compared][:, compared], load[compared], groups)
    return chosen


def _summing_to(total: int, groups: int) -> list[tuple[int, int]]:
    """The pairs a <= b with a + b = total modulo an odd number of groups: each group once, one with itself."""
    pairs = ((group, (total - group) % groups) for group in range(groups))
    return [(a, b) for a, b in pairs if a <= b]


def _item_graph(better: Ints, worse: Ints, n_items: int) -> scipy.sparse.csr_array:
    """How many comparisons there are between any two items, symmetric, as CSR."""
    ones = np.ones(len(better), np.int32)
    one_way = scipy.sparse.coo_array((ones, (better, worse)), (n_items, n_items)).tocsr()
    return scipy.sparse.csr_array(one_way + one_way.T)


def _cut(graph: scipy.sparse.csr_array, load: Ints, groups: int) -> Ints:
    """The group of every item of the graph, by METIS."""
    try:
        import pymetis  # noqa: PLC0415
    except ImportError:
        raise UserError(f"cutting the item graph needs a package more: {METIS.install}") from None
    rows = (np.ascontiguousarray(column, np.int32) for column in (graph.indptr, graph.indices))
    found = pymetis.part_graph(
        groups,
        pymetis.CSRAdjacency(*rows),
        vweights=load.astype(np.int32),
        eweights=graph.data,
        options=pymetis.Options(seed=0),
    )
    return np.array(found.vertex_part, np.int32)
