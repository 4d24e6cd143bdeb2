"""Sets of different items for many users at once: so many for each, popular ones more often.

The law is successive sampling: a user takes one item after the other, each time with probability
proportional to the weights of those still left. It is drawn exactly and in bounded time. Drawing with
repeats and counting only new items is that law, so rounds of fast draws fill most sets. Where these get on
too slowly, in sets that hold nearly all the popular items, the rest is filled in one go by exponential
waiting times: the items whose E_i / w_i are smallest are, by the lack of memory, the next ones of the same law.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rankbench.contract import Floats, Ints

ROUNDS = 12  # of fast draws at most
BLOCK = 1 << 20  # so many rows at a time, or those of one user


@dataclass(frozen=True, eq=False)
class Urn:
    """Weights arranged for drawing with repeats in constant time (the alias method of Walker and Vose)."""

    weights: Floats
    thresholds: Floats
    aliases: Ints

    @classmethod
    def of(cls, weights: Floats) -> "Urn":
        """The urn of these weights, of which some are above zero."""
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
        thresholds[poor + rich] = 1  # what rounding left over
        thresholds[weights == 0] = 0
        return cls(weights, thresholds, aliases)

    def draw(self, rng: np.random.Generator, size: int) -> Ints:
        """So many items, repeats and all."""
        points = rng.random(size) * len(self.weights)
        items = np.minimum(points.astype(np.int64), len(self.weights) - 1)  # the product may round up
        return np.where(points - items < self.thresholds[items], items, self.aliases[items])

    def waiting_times(self, rng: np.random.Generator) -> Floats:
        """When each item would come first if it came at the rate of its weight; infinity for weight zero."""
        times = rng.standard_exponential(len(self.weights))
        return np.divide(times, self.weights, out=np.full_like(times, np.inf), where=self.weights > 0)


def draw_sets(rng: np.random.Generator, counts: Ints, urn: Urn, given: Ints) -> Iterator[tuple[int, int, Ints]]:
    """Block by block of users: the first, the one after the last, and their keys in ascending order.

    A key is (user - first) * items + item. User u gets counts[u] different items; among them are those of
    `given`, which are keys over all users, ascending.
    """
    items = len(urn.weights)
    for first, end in _blocks(counts):
        low, high = np.searchsorted(given, [first * items, end * items])
        yield first, end, _filled(rng, counts[first:end], urn, given[low:high] - first * items)


def _blocks(counts: Ints) -> Iterator[tuple[int, int]]:
    """Users from here to there, whose rows fit a block."""
    block = (np.cumsum(counts) - counts) // BLOCK
    firsts = np.flatnonzero(np.diff(block, prepend=-1)).tolist()
    return zip(firsts, [*firsts[1:], len(counts)], strict=True)


def _filled(rng: np.random.Generator, counts: Ints, urn: Urn, keys: Ints) -> Ints:
    """The keys of a block."""
    items = len(urn.weights)
    short = _short(counts, keys, items)
    for _ in range(ROUNDS):
        if np.count_nonzero(short) * items <= len(keys):  # to fill them in one go costs less than a round
            break
        users = np.repeat(np.arange(len(counts)), short)
        keys = _united(keys, np.sort(users * items + urn.draw(rng, len(users))))
        short = _short(counts, keys, items)  # no set outgrows its size: it drew what it lacked
    return _completed(rng, keys, short, urn)


def _united(keys: Ints, drawn: Ints) -> Ints:
    """The keys, ascending, and among them what was drawn, ascending, each once."""
    drawn = drawn[np.diff(drawn, prepend=-1) > 0]
    before = np.searchsorted(keys, drawn)
    new = before == np.searchsorted(keys, drawn, side="right")
    return np.insert(keys, before[new], drawn[new])


def _short(counts: Ints, keys: Ints, items: int) -> Ints:
    """How many items each user of the block still lacks."""
    return np.asarray(counts - np.diff(np.searchsorted(keys, np.arange(len(counts) + 1) * items)))


def _completed(rng: np.random.Generator, keys: Ints, short: Ints, urn: Urn) -> Ints:
    """The keys, and for each user who lacks some the items whose waiting times end first."""
    items, added = len(urn.weights), [keys]
    starts = np.searchsorted(keys, np.arange(len(short) + 1) * items)
    for user in np.flatnonzero(short):
        times = urn.waiting_times(rng)
        times[keys[starts[user] : starts[user + 1]] - user * items] = np.inf
        added.append(user * items + np.argpartition(times, short[user] - 1)[: short[user]])
    return np.sort(np.concatenate(added))
