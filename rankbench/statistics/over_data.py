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
from scipy.special import stdtr, stdtrit

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError

_DRAWS = 20_000
LEVEL = 0.05


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


def on_new_data(differences: Sequence[float], errors: Sequence[float]) -> NewData:
    """The mean of differences on data sets, each with its standard error, and the chance of a new one above zero.

    The true differences vary normally between data sets, by Paule and Mandel's estimate (1982); the interval of their
    mean is Hartung and Knapp's (2001), and that of the chance follows from it.
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
    chance, low, high = (float(stdtr(n - 1, end / anew)) for end in (mean, mean - reach, mean + reach))
    few = f"{n} data sets are few: the chance is hardly known" if high - low > 0.5 else ""
    return NewData(mean, mean - reach, mean + reach, float(np.sqrt(between)), chance, low, high, few)


def _between(given: Floats, variances: Floats) -> float:
    """The variance between data sets with which the weighted squares are as large as they should be."""
    low, high = 0.0, float(np.ptp(given) ** 2)
    for _ in range(80):
        middle = (low + high) / 2
        weights = 1 / (variances + middle)
        mean = weights @ given / weights.sum()
        low, high = (middle, high) if weights @ (given - mean) ** 2 > len(given) - 1 else (low, middle)
    return low
