"""Intervals of a mean and of a difference that cover new users and new repetitions alike, with what they speak of."""

from dataclasses import dataclass, replace
from math import inf, nan

import numpy as np
from scipy.special import betaincinv

from rankbench.core.amounts import amount
from rankbench.core.contract import Floats
from rankbench.statistics.variation import FEWEST, Variation, freedom_of, linear, student, variation

Z95 = 1.959963984540054  # a normal mean reaches so many standard errors to each side at 95 %
_EVENTS = 30  # a rate with fewer hits or fewer misses has the exact interval
_ROUNDING = 1e-12  # a standard error below this share of the largest value comes from rounding
ONE_USER, NO_USER, ONE_VALUE = "one user says nothing of others", "no user has a value", "all values are the same"
INFINITE = "a value is infinite"


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval, the numbers behind it, and in words what limits it."""

    mean: float
    low: float
    high: float
    error: float
    users: int
    repetitions: int
    repetition_share: float  # of the variance
    reason: str = ""  # why it is unbounded or has no width, or what it is not to be trusted for
    unequal: float = 0.0  # degrees of freedom by users who weigh unequally; 0 stands for users - 1

    @property
    def freedom(self) -> float:
        """Satterthwaite's degrees of freedom of the standard error."""
        parts = (
            (self.repetition_share, self.repetitions - 1),
            (1 - self.repetition_share, self.unequal or self.users - 1),
        )
        taken = sum(share**2 / freedom for share, freedom in parts if freedom > 0)
        return 1 / taken if taken > 0 else 0.0

    def times(self, sign: float) -> "Estimate":
        """The same of the opposite difference, if the sign is negative."""
        return self if sign > 0 else replace(self, mean=-self.mean, low=-self.high, high=-self.low)


def table_of(values: Floats, weights: Floats | None = None) -> tuple[Floats, str, float]:
    """The linear tables of repetitions and users that have values, in words what was left out, and `freedom_of` them.

    `values` is ... x repetitions x users. Users without any value and repetitions without any user are left out.
    """
    values = np.asarray(values, np.float64)
    counted = ~np.isnan(values).reshape(int(np.prod(values.shape[:-2])), *values.shape[-2:])
    known = np.asarray(counted.any(axis=2)).all(axis=0)
    users = np.asarray(counted.any(axis=1)).any(axis=0)
    weights = None if weights is None else np.broadcast_to(weights, values.shape)[..., known, :][..., users]
    lost = int((~known).sum())
    kept = values[..., known, :][..., users]
    said = f"{amount(lost, 'repetition')} without values" if lost else ""
    return linear(kept, weights), said, freedom_of(kept, weights)


def mean_of_users(values: Floats, weights: Floats | None = None, limits: tuple[float, float] | None = None) -> Estimate:
    """The mean of repetitions x users with its interval; `limits` are those of the metric, such as (0, 1)."""
    if np.isinf(values).any():
        mean = float(np.nanmean(values))
        return Estimate(mean, -inf, inf, nan, values.shape[1], len(values), 0.0, INFINITE)
    table, lost, unequal = table_of(values, weights)
    if not table.size:
        return Estimate(nan, -inf, inf, nan, 0, 0, 0.0, NO_USER)
    found = variation(table, unequal)
    low, high = (float(end) for end in ends_of(found))
    reason = reason_of(found, lost, float(np.nanmax(np.abs(values))))
    if limits is not None and found.users > 1:
        width = limits[1] - limits[0]
        share = min(1.0, max(0.0, (float(found.mean) - limits[0]) / width))
        trials = _trials(found, share, width)
        if (min(share, 1 - share) * trials < _EVENTS and reason != ONE_VALUE) or share in (0.0, 1.0):
            exact = [limits[0] + width * end for end in _exact(share, trials)]
            hits = np.isnan(values) | (values == limits[0]) | (values == limits[1])
            low, high = exact if hits.all() else (min(low, exact[0]), max(high, exact[1]))
            reason = lost or "" if reason == ONE_VALUE else reason
        low, high = max(low, limits[0]), min(high, limits[1])
    return _estimate(found, low, high, reason)


def difference_of_users(
    one: Floats, other: Floats, weights: Floats | None = None, limits: tuple[float, float] | None = None
) -> Estimate:
    """The mean of one minus the other over the users that both have, with its interval."""
    table, lost, unequal = table_of(np.asarray(one, np.float64) - other, weights)
    if not table.size:
        return Estimate(nan, -inf, inf, nan, 0, 0, 0.0, NO_USER)
    found = few_hits(variation(table, unequal), apart(np.stack([one, other]), limits)[0, 1])
    low, high = (float(end) for end in ends_of(found))
    return _estimate(found, low, high, reason_of(found, lost, float(np.nanmax(np.abs(one)))))


def apart(values: Floats, limits: tuple[float, float] | None) -> Floats:
    """How far each two solvers are apart for a user who tells them apart; 0 unless most values stand at a limit.

    `values` is solvers x repetitions x users. Two solvers that no user tells apart could be as far apart as can be.
    """
    none = np.zeros((len(values), len(values)))
    known = int(np.isfinite(values).sum())
    if limits is None or ((values == limits[0]) | (values == limits[1])).sum() <= known / 2:
        return none
    width, counted = limits[1] - limits[0], np.isfinite(values).sum(axis=1)
    means = np.nansum(values, axis=1) / np.maximum(counted, 1)
    for one, own in enumerate(means):
        far = np.where((counted > 0) & (counted[one] > 0), np.abs(means - own), 0.0)
        differing = (far > _ROUNDING * width).sum(axis=1)
        none[one] = np.where(differing > 0, np.sqrt((far**2).sum(axis=1) / np.maximum(differing, 1)), width)
    return none


def few_hits(found: Variation, sizes: Floats) -> Variation:
    """The variation of differences of rates, with one more user on each side (Bonett and Price 2012)."""
    return replace(found, by_user=found.by_user + 2 * (sizes / (found.users + 2)) ** 2)


def ends_of(found: Variation, z: float = Z95) -> tuple[Floats, Floats]:
    """The ends of the intervals: the wider of Student's and of that corrected for skewness (Hall 1992), each way."""
    if found.users < 2:
        return np.full_like(found.mean, -inf), np.full_like(found.mean, inf)
    reach, error = found.reach(z), np.where(found.error > 0, found.error, 1.0)
    skewed = np.where(np.abs(found.skewness) > 1e-6, found.skewness, 1e-6)
    moved = [3 / skewed * (np.cbrt(1 + skewed * (side * reach / error - skewed / 6)) - 1) for side in (1, -1)]
    bounded = [np.clip(end, -3 * reach / error, 3 * reach / error) for end in moved]
    return (found.mean - np.maximum(reach, error * bounded[0]), found.mean + np.maximum(reach, -error * bounded[1]))


def reason_of(found: Variation, lost: str = "", largest: float = 0.0) -> str:
    """What limits the first interval, in words; empty if nothing does."""
    if found.users < 2:
        return ONE_USER
    if float(np.max(found.error)) <= _ROUNDING * largest:
        return ONE_VALUE
    if found.repetitions == 1:
        return "one repetition: what another split, search or start would change is not in it"
    few = f"{found.repetitions} repetitions are few to estimate what they change"
    return lost or (few if found.repetitions < FEWEST else "")


def _estimate(found: Variation, low: float, high: float, reason: str) -> Estimate:
    share = float(found.repetition_share)
    error, unequal = float(found.error), found.unequal
    return Estimate(float(found.mean), low, high, error, found.users, found.repetitions, share, reason, unequal)


def _trials(found: Variation, share: float, width: float) -> float:
    """How many independent hits or misses the mean is worth (Korn and Graubard 1998); the users, if nothing varies."""
    error = float(found.error) / width
    if share in (0.0, 1.0) or error <= _ROUNDING:
        return float(found.users)
    freer = float(student(found.of_users, Z95)) * error / max(float(found.reach(Z95)) / width, 1e-300)
    return share * (1 - share) / error**2 * min(1.0, freer) ** 2


def _exact(share: float, trials: float) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a share of so many trials."""
    hits = share * trials
    low = float(betaincinv(hits, trials - hits + 1, 0.025)) if hits > 0 else 0.0
    return low, float(betaincinv(hits + 1, trials - hits, 0.975)) if hits < trials else 1.0
