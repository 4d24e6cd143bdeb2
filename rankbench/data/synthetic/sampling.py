"""Sampling sets of distinct items for many users at once, with popular items drawn more often.

The distribution is successive sampling: a user draws one item after another, each time with probability
proportional to the weights of the remaining items. It is sampled exactly and in bounded time. Drawing with
replacement and ignoring repeated items gives this distribution, so rounds of fast draws fill most sets. Sets that
already hold nearly all popular items fill slowly; they are completed in one step by exponential waiting times: the
items with the smallest E_i / w_i are, because the exponential distribution is memoryless, the next ones drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankbench.core.contract import Floats, Ints

ROUNDS = 12  # largest number of rounds of fast draws
BLOCK = 1 << 20  # rows per block; a single user may have more


@dataclass(frozen=True, eq=False)
class Urn:
    """Weights arranged for drawing with repeats in constant time (the alias method of Walker and Vose)."""

    weights: Floats
    thresholds: Floats
    aliases: Ints

    @classmethod
    def of(cls, weights: Floats) -> "Urn":
        """The urn of these weights, of which at least one must be positive."""
        thresholds = weights * (len(weights) / weights.sum())
        aliases = np.arange(len(weights))
        poor = np.flatnonzero(thresholds < 1).tolist()
        rich = np.flatnonzero(thresholds >= 1).tolist()
        while poor and rich:
            one, other = poor.pop(), rich[-1]
            aliases[one] = other
            thresholds[other] -= 1 - thresholds[one]
            if thresholds[other] < 1:
                poor.append(rich.pop())
        thresholds[poor + rich] = 1  # left over because of rounding
        thresholds[weights == 0] = 0
        return cls(weights, thresholds, aliases)

    def draw(self, rng: np.random.Generator, size: int) -> Ints:
        """This many items, drawn with replacement."""
        points = rng.random(size) * len(self.weights)
        items = np.minimum(points.astype(np.int64), len(self.weights) - 1)  # the product may round up
        return np.where(points - items < self.thresholds[items], items, self.aliases[items])

    def waiting_times(self, rng: np.random.Generator) -> Floats:
        """A random waiting time per item, exponential with the item's weight as its rate; infinite for weight zero."""
        times = rng.standard_exponential(len(self.weights))
        return np.divide(times, self.weights, out=np.full_like(times, np.inf), where=self.weights > 0)


def draw_sets(rng: np.random.Generator, counts: Ints, urn: Urn, given: Ints) -> Iterator[tuple[int, int, Ints]]:
    """The sets of all users, block by block, as (first user, end of the users, ascending keys).

    A key is (user - first) * items + item. User u gets counts[u] distinct items, which include the items in
    `given`: ascending keys over all users, with first = 0.
    """
    items = len(urn.weights)
    for first, end in _blocks(counts):
        low, high = np.searchsorted(given, [first * items, end * items])
        yield first, end, _filled(rng, counts[first:end], urn, given[low:high] - first * items)


def _blocks(counts: Ints) -> Iterator[tuple[int, int]]:
    """Ranges (first, end) of users with about `BLOCK` rows together."""
    block = (np.cumsum(counts) - counts) // BLOCK
    firsts = np.flatnonzero(np.diff(block, prepend=-1)).tolist()
    return zip(firsts, [*firsts[1:], len(counts)], strict=True)


def _filled(rng: np.random.Generator, counts: Ints, urn: Urn, keys: Ints) -> Ints:
    """The ascending keys of a block, which include the given `keys`."""
    items = len(urn.weights)
    short = _short(counts, keys, items)
    for _ in range(ROUNDS):
        if np.count_nonzero(short) * items <= len(keys):  # completing the sets is cheaper than another round
            break
        users = np.repeat(np.arange(len(counts)), short)
        keys = _united(keys, np.sort(users * items + urn.draw(rng, len(users))))
        short = _short(counts, keys, items)  # never negative: each set draws only as many items as it lacks
    return _completed(rng, keys, short, urn)


def _united(keys: Ints, drawn: Ints) -> Ints:
    """The union of two ascending arrays of keys, ascending and without repeats."""
    drawn = drawn[np.diff(drawn, prepend=-1) > 0]
    before = np.searchsorted(keys, drawn)
    new = before == np.searchsorted(keys, drawn, side="right")
    return np.insert(keys, before[new], drawn[new])


def _short(counts: Ints, keys: Ints, items: int) -> Ints:
    """How many items each user of the block still lacks."""
    return np.asarray(counts - np.diff(np.searchsorted(keys, np.arange(len(counts) + 1) * items)))


def _completed(rng: np.random.Generator, keys: Ints, short: Ints, urn: Urn) -> Ints:
    """The keys plus, for each user who lacks items, the remaining items with the shortest waiting times."""
    items, added = len(urn.weights), [keys]
    starts = np.searchsorted(keys, np.arange(len(short) + 1) * items)
    for user in np.flatnonzero(short):
        times = urn.waiting_times(rng)
        times[keys[starts[user] : starts[user + 1]] - user * items] = np.inf
        added.append(user * items + np.argpartition(times, short[user] - 1)[: short[user]])
    return np.sort(np.concatenate(added))
