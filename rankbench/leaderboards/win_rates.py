"""How far win rates would be from these with other votes, also where a pair of items has a single one."""

from dataclasses import replace

import numpy as np
import scipy.sparse
from scipy.special import expit

from rankbench.core.contract import Floats
from rankbench.leaderboards.fits.fitting import fitted
from rankbench.leaderboards.fits.likelihoods import BradleyTerry
from rankbench.leaderboards.fits.pairs import Pairs
from rankbench.leaderboards.fits.problems import OfPairs
from rankbench.leaderboards.uncertainty import Spread, of_judges, of_singles
from rankbench.leaderboards.votes import Groups

_PENALTY = 4.0  # comparisons added to each item, half of them won: those of Agresti and Coull's interval of a share
_MOST_LEVERAGE = 0.5


def spread_of(pairs: Pairs, rates: Floats, groups: Groups | None, seed: int) -> Spread:
    """The errors of the win rates of all items, for the pairs that were compared, as often as they were.

    The share of a pair seen once is 0 or 1, which would leave no error. So a vote's error is its distance from the
    chance that Bradley-Terry's model gives it, which all votes on the two items tell. Where the model is wrong, these
    errors are too large rather than too small. They are divided by 1 - the vote's leverage on this chance (the
    jackknife), and no pair has smaller ones than p (1 - p) times the share that ties leave of it in all pairs.
    """
    problem = OfPairs(pairs, BradleyTerry())
    fit = fitted(problem, _PENALTY)
    margins, _ = problem.margins(fit.parameters)
    chances = expit(margins) * expit(-margins)
    left, right, inverse = pairs.left, pairs.right, fit.inverse
    widths = inverse[left, left] + inverse[right, right] - 2 * inverse[left, right]
    errors = problem.terms(fit.parameters).by_m / (1 - np.minimum(chances * widths, _MOST_LEVERAGE))
    seen = (pairs.squares * errors**2).sum(axis=0)
    least = pairs.squares.sum(axis=0) * chances
    lacking = np.maximum(seen.sum() / least.sum() * least - seen, 0.0)
    shares = _shares(pairs)
    extra = _covariance(shares, lacking)
    if groups is None:
        found = of_singles(_covariance(shares, seen) + extra, "comparisons", seed)
    else:
        slopes = scipy.sparse.vstack([shares.multiply(one[:, None]) for one in errors]).tocsr()
        found = of_judges(-(pairs.by_group(groups) @ slopes).toarray(), groups, extra, seed)
    low, high = found.interval(rates)
    return replace(found, low=np.clip(low, 0, 1), high=np.clip(high, 0, 1))


def _shares(pairs: Pairs) -> scipy.sparse.csr_array:
    """What a win of the left item adds to the win rates (pair x item): it is one of the pair's, and the pair one of k.

    Each item has its own k, the number of items that it was compared with.
    """
    size, rows, totals = len(pairs), np.arange(len(pairs)), pairs.seen.sum(axis=0)
    sides = np.concatenate([pairs.left, pairs.right])
    opponents = np.bincount(sides, minlength=pairs.n_items)[sides]
    values = np.repeat([1.0, -1.0], size) / (np.tile(totals, 2) * opponents)
    return scipy.sparse.coo_array((values, (np.tile(rows, 2), sides)), shape=(size, pairs.n_items)).tocsr()


def _covariance(shares: scipy.sparse.csr_array, variances: Floats) -> Floats:
    """The covariance of the win rates, from the variance of the wins in each pair."""
    found: Floats = (shares.T @ shares.multiply(variances[:, None]).tocsr()).toarray()
    return found
