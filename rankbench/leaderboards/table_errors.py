"""How far scores from the table of wins would be from these with other votes, also where a pair has a single one."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse
from scipy.special import expit

from rankbench.core.contract import Floats
from rankbench.leaderboards.fits.classical import DAMPING, eigen, pagerank, steps_of, table_of
from rankbench.leaderboards.fits.fitting import fitted
from rankbench.leaderboards.fits.likelihoods import BradleyTerry
from rankbench.leaderboards.fits.pairs import Pairs
from rankbench.leaderboards.fits.problems import OfPairs
from rankbench.leaderboards.uncertainty import Spread, of_judges, of_singles
from rankbench.leaderboards.votes import LEFT, RIGHT, TIE, Groups

_PENALTY = 4.0  # comparisons added to each item, half of them won: those of Agresti and Coull's interval of a share
_MOST_LEVERAGE = 0.5
_APART = 1e-9  # of an eigenvalue, so that two groups of items that share it leave a matrix with an inverse
_Slopes = tuple[
    scipy.sparse.csr_array, scipy.sparse.csr_array, Floats
]  # of the left and of the right item's wins, pair x q, and what both move


def spread_of(pairs: Pairs, model: str, scores: Floats, groups: Groups | None, seed: int) -> Spread:
    """The errors of these scores of all items, by what a further win of either item of a pair adds to each.

    The share of a pair seen once is 0 or 1, which would leave no error. So a vote's error is its distance from the
    chance that Bradley-Terry's model gives it, which all votes on the two items tell, and slopes are those at the table
    that these chances expect. Where the model is wrong, these errors are too large rather than too small. They are
    divided by 1 - the vote's leverage on this chance (the jackknife), and no pair has smaller ones than p (1 - p) times
    the share that ties leave of it in all pairs. With other votes, pairs are compared more or less often as well, which
    moves all scores but the win rates.
    """
    problem = OfPairs(pairs, BradleyTerry())
    fit = fitted(problem, _PENALTY)
    margins, _ = problem.margins(fit.parameters)
    p, total = expit(margins), pairs.seen.sum(axis=0)
    chances = p * expit(-margins)
    left, right, inverse = pairs.left, pairs.right, fit.inverse
    widths = inverse[left, left] + inverse[right, right] - 2 * inverse[left, right]
    errors = problem.terms(fit.parameters).by_m / (1 - np.minimum(chances * widths, _MOST_LEVERAGE))
    seen = (pairs.squares * errors**2).sum(axis=0)
    least = pairs.squares.sum(axis=0) * chances
    lacking = np.maximum(seen.sum() / least.sum() * least - seen, 0.0)
    expected = np.zeros_like(pairs.seen)
    expected[LEFT], expected[RIGHT] = total * p, total * (1 - p)
    of_left, of_right, moved = SLOPES[model](pairs, table_of(pairs, expected))
    won, often = (
        scipy.sparse.csr_array(of_left - of_right),
        scipy.sparse.csr_array(_scaled(of_left, p) + _scaled(of_right, 1 - p)),
    )
    extra = moved.T @ _squares(won, lacking) @ moved
    if groups is None:
        own = _squares(won, seen) + _squares(often, pairs.squares.sum(axis=0))
        found = of_singles(moved.T @ own @ moved + extra, "comparisons", seed)
    else:
        slopes = scipy.sparse.vstack([often - _scaled(won, errors[outcome]) for outcome in (LEFT, RIGHT, TIE)])
        found = of_judges((pairs.by_group(groups) @ slopes.tocsr()).toarray() @ moved, groups, extra, seed)
    low, high = found.interval(scores)
    return replace(found, low=np.clip(low, 0, 1), high=np.clip(high, 0, 1))


def _of_win_rates(pairs: Pairs, wins: Floats) -> _Slopes:
    """A win is one of the pair's, and the pair one of k; each item has its own k, the number of its opponents."""
    left, right = pairs.left, pairs.right
    each = 1 / pairs.seen.sum(axis=0)
    p = wins[left, right] * each
    opponents = np.bincount(np.concatenate([left, right]), minlength=pairs.n_items)
    shares = _rows(pairs, each / opponents[left], -each / opponents[right])
    return _scaled(shares, 1 - p), _scaled(shares, -p), np.eye(pairs.n_items)


def _of_pagerank(pairs: Pairs, wins: Floats) -> _Slopes:
    """A win of a against b turns the walk's steps from b towards a, and away from where b's steps went before."""
    steps, totals = steps_of(wins)
    walk = np.linalg.inv(np.eye(len(wins)) - DAMPING * steps.T).T
    turned = DAMPING * pagerank(wins) / np.maximum(totals, np.finfo(float).tiny)
    of_left, of_right, none = turned[pairs.right], turned[pairs.left], np.zeros(len(pairs))
    return (
        scipy.sparse.hstack([_rows(pairs, of_left, none), _rows(pairs, none, -of_left)], format="csr"),
        scipy.sparse.hstack([_rows(pairs, none, of_right), _rows(pairs, -of_right, none)], format="csr"),
        np.concatenate([walk, steps @ walk]),
    )


def _of_eigen(pairs: Pairs, wins: Floats) -> _Slopes:
    """The derivative of the eigenvector x of length 1, by the left one y: that of W x = c x solved for x."""
    x, y = eigen(wins), eigen(wins.T)
    value, both = float(x @ wins @ x), np.outer(x, y) / float(x @ y)
    moved = np.linalg.inv(value * ((1 + _APART) * np.eye(len(x)) + both) - wins)
    moved -= np.outer(x, x @ moved)
    none = np.zeros(len(pairs))
    return _rows(pairs, x[pairs.right], none), _rows(pairs, none, x[pairs.left]), np.asarray(moved.T, np.float64)


SLOPES: dict[str, Callable[[Pairs, Floats], _Slopes]] = {
    "win-rate": _of_win_rates,
    "pagerank": _of_pagerank,
    "eigen": _of_eigen,
}


def _rows(pairs: Pairs, at_left: Floats, at_right: Floats) -> scipy.sparse.csr_array:
    """A row for each pair (pair x item), with these numbers at its left and at its right item."""
    places = np.tile(np.arange(len(pairs)), 2), np.concatenate([pairs.left, pairs.right])
    values = np.concatenate([at_left, at_right])
    return scipy.sparse.coo_array((values, places), shape=(len(pairs), pairs.n_items)).tocsr()


def _scaled(rows: scipy.sparse.csr_array, by: Floats) -> scipy.sparse.csr_array:
    """Each row multiplied by its own number."""
    return scipy.sparse.csr_array(rows.multiply(by[:, None]))


def _squares(rows: scipy.sparse.csr_array, variances: Floats) -> Floats:
    """The covariance of what the rows add up to, from the variance in each pair."""
    found: Floats = (rows.T @ _scaled(rows, variances)).toarray()
    return found
