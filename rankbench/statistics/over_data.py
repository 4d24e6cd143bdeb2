"""Solvers over several data sets: an exact test of average ranks, and the chance to be better on a new data set.

The ranks of a data set are exchanged among its solvers, as they could be were all alike; the largest difference of
average ranks is then the bar for each (Nemenyi's test without its normal approximation). With five data sets it can
tell three solvers apart, where Wilcoxon's test with Holm's correction cannot, however clear they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np
from scipy import stats
from scipy.special import chdtri, ndtr, stdtr, stdtrit

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError

_DRAWS = 20_000
LEVEL = 0.05
_STRATA = (np.arange(400) + 0.5) / 400  # of a distribution
_FAR = 40.0  # standard errors, beyond which a chance is 0 or 1


@dataclass(frozen=True)
class OverData:
    """Average ranks over data sets, 1 the best, and the p-values of their differences."""

    ranks: tuple[float, ...]
    p: tuple[tuple[float, ...], ...]  # solvers x solvers, for all pairs together
    least: float  # the smallest p-value that so many data sets and solvers can reach
    reason: str = ""  # why nothing can be told


@dataclass(frozen=True)
class NewData:
    """One solver minus another over data sets, and the chance that it is better on a new one."""

    mean: float
    low: float
    high: float
    spread: float  # between data sets, beyond what their own errors explain
    chance: float
    chance_low: float
    chance_high: float
    reason: str = ""


def over_data(values: Floats, better: str, seed: int = 0) -> OverData:
    """The ranks of solvers x data sets and which of them differ; data sets without a value for each do not count."""
    if values.ndim != 2 or better not in ("higher", "lower"):
        raise UserError(f"ranks of values of {values.ndim} dimensions, {better!r} being better",
                        remedy="pass solvers x data sets, and higher or lower")  # fmt: skip
    whole = values[:, np.isfinite(values).all(axis=0)]
    k, n = whole.shape
    if k < 2 or n < 1:
        return OverData((nan,) * k, ((1.0,) * k,) * k, 1.0, "fewer than two solvers with values on a common data set")
    sign = -1.0 if better == "higher" else 1.0
    table = stats.rankdata(sign * whole, axis=0)
    ranks = table.mean(axis=1)
    rng = np.random.default_rng(seed)
    drawn = np.zeros((_DRAWS, k))
    for column in table.T:
        drawn += rng.permuted(np.tile(column, (_DRAWS, 1)), axis=1)
    widths = np.sort(np.ptp(drawn, axis=1) / n)
    gaps = np.abs(ranks[:, None] - ranks)
    reached = _DRAWS - np.searchsorted(widths, gaps - 1e-9)
    p = np.where(np.eye(k, dtype=bool), 1.0, np.minimum(1.0, (1 + reached) / (1 + _DRAWS)))
    least = float(np.prod([1 / k / (k - 1)] * (n - 1)))  # all data sets agree on the first and on the last
    reason = "" if least < LEVEL else f"{n} data sets are too few to tell {k} solvers apart, however clear they are"
    return OverData(tuple(ranks.tolist()), tuple(tuple(row) for row in p.tolist()), least, reason)


def on_new_data(differences: Sequence[float], errors: Sequence[float], pairs: int = 1) -> NewData:
    """The mean of differences on data sets, each with its standard error, and the chance of a new one above zero.

    The true differences vary normally between data sets, by Paule and Mandel's estimate (1982); the interval of their
    mean is Hartung and Knapp's (2001). That of the chance has the error of the spread as well. Of so many `pairs` of
    solvers, one of which the data picked, the intervals of the chances hold all together at 95 %.
    """
    given, error = np.asarray(differences, np.float64), np.asarray(errors, np.float64)
    known = np.isfinite(given) & np.isfinite(error)
    given, error = given[known], error[known]
    n = len(given)
    if n < 2:
        return NewData(float(given.mean()) if n else nan, -inf, inf, nan, nan, 0.0, 1.0,
                       f"{n} data sets say nothing of others")  # fmt: skip
    floor = 1e-9 * (float(np.abs(given).max()) or 1.0)  # so that a weight is finite
    variances = np.maximum(error, floor) ** 2
    between = _between(given, variances)
    weights = 1 / (variances + between)
    mean = float(weights @ given / weights.sum())
    unexplained = float(weights @ (given - mean) ** 2) / (n - 1)
    own = float(np.sqrt(max(unexplained, 1.0) / weights.sum()))
    reach = float(stdtrit(n - 1, 0.975)) * own
    anew = float(np.sqrt(between + own**2))
    chance = float(stdtr(n - 1, mean / anew))
    low, high = _of_chance(given, variances, LEVEL / pairs)
    low, high = min(low, chance), max(high, chance)
    few = f"{n} data sets are few: the chance is hardly known" if high - low > 0.5 else ""
    return NewData(mean, mean - reach, mean + reach, float(np.sqrt(between)), chance, low, high, few)


def _of_chance(given: Floats, variances: Floats, level: float) -> tuple[float, float]:
    """The interval of the chance that a new true difference is above zero, which fails with probability `level`.

    The weighted squares of the true variance between data sets have a chi-squared distribution, and about it the mean
    has a normal one. Both turned round give a distribution of mean and spread (Iyer, Wang and Mathew 2004): for exact
    differences the interval is that of the noncentral t-distribution.
    """
    squares = chdtri(len(given) - 1, _STRATA)
    low, high = np.zeros(len(squares)), len(given) * np.ptp(given) ** 2 / squares
    for _ in range(50):
        middle = (low + high) / 2
        inside = _squares(given, variances, middle)[0] > squares
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    _, means, errors = _squares(given, variances, low)
    spreads = np.sqrt(low)
    ends = []
    for share in (level / 2, 1 - level / 2):
        below, above = -_FAR, _FAR
        for _ in range(50):
            tried = (below + above) / 2
            reached = float(ndtr((tried * spreads - means) / errors).mean()) >= share
            below, above = (below, tried) if reached else (tried, above)
        ends.append(float(ndtr((below + above) / 2)))
    return ends[0], ends[1]


def _squares(given: Floats, variances: Floats, between: Floats) -> tuple[Floats, Floats, Floats]:
    """For each variance between data sets the weighted squares, the weighted mean and its standard error."""
    weights = 1 / (variances + between[:, None])
    total = weights.sum(axis=1)
    means = weights @ given / total
    return (weights * (given - means[:, None]) ** 2).sum(axis=1), means, 1 / np.sqrt(total)


def _between(given: Floats, variances: Floats) -> float:
    """The variance between data sets with which the weighted squares are as large as they should be."""
    low, high = 0.0, float(np.ptp(given) ** 2)
    for _ in range(80):
        middle = (low + high) / 2
        weights = 1 / (variances + middle)
        mean = weights @ given / weights.sum()
        low, high = (middle, high) if weights @ (given - mean) ** 2 > len(given) - 1 else (low, middle)
    return low
