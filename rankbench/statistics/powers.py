"""Power laws y = c x^a fitted to measured costs, and means of a few repeated measurements, with 95 % intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, log, nan, sqrt

import numpy as np
from scipy.special import stdtrit

_COVERED = 0.975  # of Student's distribution, at the upper end of a 95 % interval
_FEWEST = 3  # measurements for an interval; of two it would have 12.7 standard errors on each side, which says nothing

UNKNOWN = ("", "", "")  # in place of the three columns of an `Ends`


@dataclass(frozen=True)
class Ends:
    """A number with the two ends of its 95 % interval, which are infinite where too little was measured for one."""

    value: float
    low: float = -inf
    high: float = inf

    @property
    def bounded(self) -> bool:
        """Whether there is an interval."""
        return self.high < inf

    @property
    def columns(self) -> tuple[float | str, float | str, float | str]:
        """The value and the ends of the interval for three columns of CSV, with empty texts where there is none."""
        return (self.value, self.low, self.high) if self.bounded else (self.value, "", "")

    def excludes(self, low: float, high: float) -> bool:
        """Whether no value from low to high lies in the interval."""
        return self.high < low or high < self.low


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> Ends | None:
    """The exponent a of the power law through these points, by least squares of the logarithms.

    The interval is Student's, with two degrees of freedom fewer than there are sizes: with two sizes there is none.
    None if fewer than two different sizes have a positive cost. Give one cost for each size, the mean of its
    repetitions: what a curve deviates from a power law is alike in all repetitions, which are then not independent.
    """
    known = [(log(size), log(cost)) for size, cost in zip(sizes, costs, strict=True) if size > 0 and cost > 0]
    x, y = np.array(known).T if known else np.zeros((2, 0))
    if len(set(x)) < 2:
        return None
    x, y = x - x.mean(), y - y.mean()
    slope = float(x @ y / (x @ x))
    freedom = len(x) - 2
    if not freedom:
        return Ends(slope)
    error = sqrt(float(((y - slope * x) ** 2).sum()) / freedom / float(x @ x))
    reach = float(stdtrit(freedom, _COVERED)) * error
    return Ends(slope, slope - reach, slope + reach)


def exponent_above_base(sizes: Sequence[float], costs: Sequence[float], least: float) -> Ends | None:
    """The exponent a of b + c x^a, with an unknown base b, for sizes in ascending order that grow by a factor.

    From one size to the next such a cost grows by c (f^a - 1) x^a, a power law without the base: this is fitted, where
    the cost grows by at least `least`. None if that is so for fewer than two sizes.
    """
    steps = zip(pairwise(sizes), pairwise(costs), strict=True)
    grown = [(size, after - before) for (size, _), (before, after) in steps if after - before >= least]
    return exponent([size for size, _ in grown], [growth for _, growth in grown])


def mean_of(values: Sequence[float]) -> Ends:
    """The mean of repeated measurements with Student's interval; fewer than three have none, and none have a NaN."""
    if not values:
        return Ends(nan)
    mean, freedom = float(np.mean(values)), len(values) - 1
    if len(values) < _FEWEST:
        return Ends(mean)
    reach = float(stdtrit(freedom, _COVERED)) * float(np.std(values, ddof=1)) / sqrt(len(values))
    return Ends(mean, mean - reach, mean + reach)


def ratio_of(values: Sequence[float]) -> Ends:
    """The geometric mean of positive ratios, with Student's interval of their logarithms."""
    found = mean_of([log(value) for value in values])
    return Ends(exp(found.value), exp(found.low), exp(found.high)) if found.bounded else Ends(exp(found.value))
