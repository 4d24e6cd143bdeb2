"""Votes for tests: made of tables, and drawn."""

import numpy as np

from rankbench.leaderboards.votes import Groups, Rankings, Votes, from_rankings


def votes_from(rows, judges=None, counts=None):
    """Votes of (left, right, outcome) with the numbers of items."""
    left, right, outcome = (np.array(column) for column in zip(*rows, strict=True))
    n = max(left.max(), right.max()) + 1
    ones = np.ones(len(rows))
    groups = None
    if judges is not None:
        names, codes = np.unique(judges, return_inverse=True)
        groups = Groups(names.astype(str).astype(object), codes.astype(np.int32))
    items = np.array([f"i{number}" for number in range(n)], object)
    counted = ones if counts is None else np.array(counts, float)
    return Votes(items, left.astype(np.int32), right.astype(np.int32), outcome.astype(np.int8), counted, ones, groups)


def drawn(seed=0, n=6, size=400, judges=20, ties=True):
    """Random votes on items of falling quality."""
    rng = np.random.default_rng(seed)
    left = rng.integers(n, size=size)
    right = (left + rng.integers(1, n, size)) % n
    m = (right - left) * 0.4 + rng.logistic(size=size)
    outcome = np.where(m > 0.5 * ties, 0, np.where(m < -0.5 * ties, 1, 2))
    return votes_from(list(zip(left, right, outcome, strict=True)), rng.integers(judges, size=size))


def drawn_rankings(seed=0, n=6, size=80, longest=6):
    """Random orders of some of the items, from Plackett and Luce's model."""
    rng = np.random.default_rng(seed)
    orders = []
    for _ in range(size):
        some = rng.permutation(n)[: rng.integers(1, longest + 1)]
        orders.append(some[np.argsort(0.5 * some - rng.gumbel(size=len(some)))])
    members = np.concatenate(orders).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum([len(order) for order in orders])])
    levels = np.concatenate([np.arange(len(order)) for order in orders]).astype(np.int32)
    items = np.array([f"i{number}" for number in range(n)], object)
    return from_rankings(items, Rankings(indptr, members), levels, None), orders
