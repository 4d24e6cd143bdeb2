"""The paired bootstrap over users, and bias-corrected and accelerated (BCa) intervals (Efron 1987).

Users are drawn with replacement, each with the values of all repetitions and all solvers, so that what solvers and
repetitions have in common stays in common. BCa intervals need nothing but the resampled estimates and one influence
per user; they respect the range of a metric, and have no standard error within a resample that could be zero, which
is where the studentised bootstrap fails on few users. What they do not contain is how much the mean moves between
repetitions: that is the standard deviation, which stands beside them.

A resample is a row of counts, how often each user was drawn, and so all means of all resamples are one product of
matrices.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from rankbench.core.contract import Floats

RESAMPLES = 10_000
LEVEL = 0.95
_BLOCK = 1 << 22  # counts drawn at a time: 32 MiB
_COUNTED = 1 << 16  # draws counted at a time, few enough for the second cache
_KEPT = 1 << 26  # counts kept at most for the next call with as many users: 128 MiB in two bytes each
_DRAWN = 200_000_000  # users drawn for one interval at most, in about two seconds


def affordable(n_users: int, most: int = RESAMPLES) -> int:
    """How many resamples or permutations of so many users to take: `most`, but fewer of more than 20,000 users.

    With so many users a resampled mean is normal for all purposes, and the 1,000 that are always taken give its
    quantiles to within a tenth of the interval's half width.
    """
    return max(1000, min(most, _DRAWN // max(n_users, 1)))


def counts(n_users: int, resamples: int = RESAMPLES, seed: int = 0) -> Iterator[Floats]:
    """How often each user is drawn in each resample, in blocks of resamples x users."""
    small = n_users * resamples <= _KEPT
    for block in (_kept if small else _drawn)(n_users, resamples, seed):
        yield block.astype(np.float64)


@lru_cache(maxsize=1)
def _kept(n_users: int, resamples: int, seed: int) -> tuple[NDArray[np.uint16], ...]:
    """The blocks of `_drawn`; a report asks for those of the same number of users once per metric and solver."""
    return tuple(_drawn(n_users, resamples, seed))


def _drawn(n_users: int, resamples: int, seed: int) -> Iterator[NDArray[np.uint16]]:
    """Draws the blocks of `counts`; two bytes hold a count, since n draws from n users hardly hit one 20 times."""
    rng = np.random.default_rng(seed)
    height = max(1, min(resamples, _BLOCK // max(n_users, 1)))
    for start in range(0, resamples, height):
        block = np.empty((min(height, resamples - start), n_users), np.uint16)
        step = max(1, _COUNTED // max(n_users, 1))
        for first in range(0, len(block), step):
            rows = block[first : first + step]
            drawn = rng.integers(0, n_users, size=rows.shape, dtype=np.int32)
            drawn += n_users * np.arange(len(rows), dtype=np.int32)[:, None]
            rows[:] = np.bincount(drawn.ravel(), minlength=rows.size).reshape(rows.shape)
        yield block


def resampled(numerators: Floats, denominators: Floats, resamples: int | None = None, seed: int = 0) -> Floats:
    """The resampled ratios, resamples x columns, of sums over users; both matrices are users x columns."""
    resamples = affordable(len(numerators)) if resamples is None else resamples
    constant = np.all(denominators == denominators[:1], axis=0)  # such a sum is the same in every resample
    varying = denominators[:, ~constant]
    distinct, places = np.unique(varying, axis=1, return_inverse=True) if varying.size else (varying, np.zeros(0, int))
    found = []
    for block in counts(len(numerators), resamples, seed):
        totals = np.empty((len(block), denominators.shape[1]))
        totals[:, constant] = denominators[0, constant] * len(numerators)
        totals[:, ~constant] = (block @ distinct)[:, places.ravel()]
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append((block @ numerators) / totals)
    return np.concatenate(found)


def bca(estimate: float, resamples: Floats, influences: Floats, level: float = LEVEL) -> tuple[float, float]:
    """The BCa interval of an estimate, from its resampled values and the influence of each user on it."""
    known = resamples[np.isfinite(resamples)]
    spread = float(np.square(influences).sum())
    if not len(known) or not np.isfinite(estimate):
        return np.nan, np.nan
    if spread == 0 or known.min() == known.max():
        return estimate, estimate
    tolerance = 1e-12 * max(abs(float(known.min())), abs(float(known.max())))
    below = np.mean(known < estimate - tolerance) + 0.5 * np.mean(np.abs(known - estimate) <= tolerance)
    half = 0.5 / len(known)
    bias = float(ndtri(min(max(below, half), 1 - half)))
    acceleration = float(np.power(influences, 3).sum() / (6 * spread**1.5))
    ends = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        moved = bias + float(ndtri(share))
        ends.append(float(ndtr(bias + moved / (1 - acceleration * moved))))
    low, high = np.quantile(known, ends)
    return float(low), float(high)
