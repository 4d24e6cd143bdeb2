"""What intervals of scores mean for ranks: intervals of ranks, tiers, and the chance to be first."""

from dataclasses import dataclass

import numpy as np

from rankbench.core.contract import Floats, Int64s
from rankbench.leaderboards.uncertainty import ROUNDING, Spread
from rankbench.statistics.decisions import in_tiers

_LEVEL = 0.95
_BLOCK = 1 << 24  # numbers in a block
_WORK, _FEWEST = 400_000_000, 400  # differences that are drawn in all, and draws at least


@dataclass(frozen=True, eq=False)
class Ranks:
    """For each item its rank, a 95 % interval of its rank, its tier (1 is the best), and its chance to be first."""

    rank: Int64s
    low: Int64s
    high: Int64s
    tier: Int64s
    first: Floats


def ranks_of(scores: Floats, spread: Spread) -> Ranks:
    """The ranks of these scores.

    An item's rank is at least 1 + the number of items surely above it, and at most n - the number of items surely below
    it, where "surely" holds for all comparisons with this item together in 95 % of draws: the differences are compared
    with the quantile of the largest one (M. Mogstad, J. Romano, A. Shaikh and D. Wilhelm, 2024, Review of Economic
    Studies). Tiers compare all items with each other, so that their threshold is that of all differences together.
    """
    n = len(scores)
    errors, nothing = spread.differences, ROUNDING * max(1.0, float(np.nanmax(np.abs(scores))))
    draws = max(_FEWEST, min(len(spread.deviations), _WORK // n**2))
    largest, every = _largest(spread.deviations[:draws], errors)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviates = (scores - scores[:, None]) / errors  # how far above the row's item the column's one is
    deviates[errors <= nothing] = 0.0
    above, below = (deviates > largest[:, None]).sum(axis=1), (deviates < -largest[:, None]).sum(axis=1)
    order = np.argsort(-scores, kind="stable")
    rank, tier = np.empty(n, np.int64), np.empty(n, np.int64)
    rank[order] = np.arange(1, n + 1)
    for number, members in enumerate(in_tiers(scores, np.abs(deviates), every), 1):
        tier[list(members)] = number
    drawn = scores + spread.deviations
    tops = drawn >= np.fmax.reduce(drawn, axis=1, keepdims=True) - nothing  # equal ones share the place
    first = (tops / tops.sum(axis=1, keepdims=True)).mean(axis=0)
    return Ranks(rank, np.minimum(1 + above, rank), np.maximum(n - below, rank), tier, first)


def _largest(deviations: Floats, errors: Floats) -> tuple[Floats, float]:
    """Of each item the quantile of its largest standardised difference from another one, and that of all together."""
    draws, n = deviations.shape
    scaled = np.divide(1.0, errors, out=np.zeros_like(errors), where=errors > 0)
    largest, step = np.empty(n), max(1, _BLOCK // (draws * max(n, 1)))
    every = np.zeros(draws)
    for low in range(0, n, step):
        rows = slice(low, low + step)
        found = (np.abs(deviations[:, rows, None] - deviations[:, None, :]) * scaled[rows]).max(axis=2)
        largest[rows] = np.quantile(found, _LEVEL, axis=0)
        every = np.maximum(every, found.max(axis=1))
    return largest, float(np.quantile(every, _LEVEL))
