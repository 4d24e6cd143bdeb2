"""Scores from the table of wins that are no maximum of a likelihood: shares of wins, eigenvectors, and Elo's.

All but Elo's are functions of the table W, where W[a, b] is how often a won against b, a tie being half a win of each.
"""

from collections.abc import Callable

import numpy as np

from rankbench.core.contract import Floats
from rankbench.leaderboards.fits.pairs import Pairs
from rankbench.leaderboards.fits.problems import Reweighted
from rankbench.leaderboards.votes import LEFT, RIGHT, TIE, Votes

DAMPING = 0.85  # of PageRank
_TOLERANCE = 1e-13  # relative change of an eigenvector at which to stop
_STEPS = 250
_SQUARINGS = 60


def table_of(pairs: Pairs, seen: Floats) -> Floats:
    """The table of wins, from how often each outcome of each pair was seen."""
    n = pairs.n_items
    cells = pairs.left * np.int64(n) + pairs.right
    turned = pairs.right * np.int64(n) + pairs.left
    half = seen[TIE] / 2
    wins = np.bincount(cells, seen[LEFT] + half, n * n) + np.bincount(turned, seen[RIGHT] + half, n * n)
    return wins.reshape(n, n).astype(float)


def counting(wins: Floats) -> Floats:
    """The number of wins."""
    found: Floats = wins.sum(axis=1)
    return found


def win_rate(wins: Floats) -> Floats:
    """The mean, over all items that it was compared with, of the share of comparisons won: every opponent counts alike.

    An item against itself counts as never won.
    """
    both = wins + wins.T
    shares = np.divide(wins, both, out=np.zeros_like(wins), where=both > 0)
    known = (both > 0).sum(axis=1)
    found: Floats = np.divide(shares.sum(axis=1), known, out=np.full(len(wins), np.nan), where=known > 0)
    return found


def eigen(wins: Floats) -> Floats:
    """The leading eigenvector x of the table, of length 1: sum over b of W[a, b] x_b = c x_a.

    A win counts as much as the loser's own number, which is high for who wins often. M. G. Kendall (1955),
    Biometrics 11. evalica 0.4.2 takes the table transposed, so that those who lose most come first.
    It is 0 where no two items won against each other, not even by way of others.
    """
    return _leading(wins, lambda x: float(np.linalg.norm(x)))


def pagerank(wins: Floats) -> Floats:
    """The shares of time that a walk spends at each item; it goes to winners, or with 1 - `DAMPING` anywhere."""
    return _leading((DAMPING * steps_of(wins)[0] + (1 - DAMPING) / len(wins)).T, lambda x: float(x.sum()))


def steps_of(wins: Floats) -> tuple[Floats, Floats]:
    """The chances of PageRank's steps from each item (row) to each one, and how often each item lost.

    From item b they go to a in proportion to W[a, b], from one that never lost to any item alike.
    """
    lost = wins.T
    totals = lost.sum(axis=1)
    alike = np.full(wins.shape, 1 / len(wins))
    return np.divide(lost, totals[:, None], out=alike, where=totals[:, None] > 0), totals


def _leading(matrix: Floats, size: Callable[[Floats], float]) -> Floats:
    """The leading eigenvector of a nonnegative matrix by the power method, and 0 where no way leads back to its start.

    Where all closed ways have, say, an even number of steps, the method goes back and forth between two vectors; where
    two groups share the eigenvalue, it is slow. So when it does not settle, a quarter of the eigenvalue is added to the
    diagonal, which leaves the eigenvectors as they are, and squaring the matrix doubles the steps each time.
    """
    x = np.ones(len(matrix))
    x /= size(x)
    for _ in range(max(_STEPS, len(x))):  # by then it is 0 if it ever will be
        found = matrix @ x
        length = size(found)
        if length == 0:
            return np.zeros_like(x)
        found /= length
        if np.abs(found - x).max() <= _TOLERANCE * found.max():
            return found
        x = found
    power = matrix + length / 4 * np.eye(len(x))
    for _ in range(_SQUARINGS):
        found = power @ x
        found /= size(found)
        if np.abs(found - x).max() <= _TOLERANCE * found.max():
            break
        x, power = found, power @ power
        power /= power.max()
    return found


def elo(votes: Votes, k: float = 30.0, initial: float = 1000.0) -> Floats:
    """Elo's ratings after all comparisons in the order of the rows: the winner takes k (1 - chance) from the loser.

    The chance is 1 / (1 + 10^((loser - winner) / 400)); a tie counts as half a win. They depend on the order.
    """
    ratings = [initial] * votes.n_items
    gains = {LEFT: 1.0, RIGHT: 0.0, TIE: 0.5}
    repeated = np.repeat(np.arange(len(votes)), votes.counts.astype(np.int64))
    columns = (votes.left, votes.right, votes.outcome, votes.weights)
    for a, b, outcome, weight in zip(*(column[repeated].tolist() for column in columns), strict=True):
        expected = 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / 400))
        gain = k * weight * (gains[outcome] - expected)
        ratings[a] += gain
        ratings[b] -= gain
    return np.array(ratings)


OF_TABLES: dict[str, Callable[[Floats], Floats]] = {
    "counting": counting,
    "win-rate": win_rate,
    "eigen": eigen,
    "pagerank": pagerank,
}


def redrawn(pairs: Pairs, reweighted: Reweighted, score: Callable[[Floats], Floats], rng: np.random.Generator
            ) -> Callable[[int], Floats]:  # fmt: skip
    """A function that gives the scores of so many draws of weights of judges, or of comparisons."""

    def block(count: int) -> Floats:
        drawn = reweighted.draw(rng, count)
        return np.stack([score(table_of(pairs, drawn[..., place])) for place in range(count)])

    return block
