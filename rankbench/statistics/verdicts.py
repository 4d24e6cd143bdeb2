"""Which solvers of a group cannot be told from the best one, how far apart they are, and what the data could show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TypeVar

import numpy as np

from rankbench.core.contract import Floats
from rankbench.statistics.permutation import detectable, holm, p_values
from rankbench.statistics.resampling import bca, resampled
from rankbench.statistics.samples import Sample, paired, spread

ALPHA = 0.05
_ROUNDING = 1e-12  # a standard deviation below this share of the mean comes from rounding

Key = TypeVar("Key")


@dataclass(frozen=True)
class Interval:
    """A mean over users with its 95 % interval."""

    mean: float
    low: float
    high: float
    users: int


@dataclass(frozen=True)
class Contrast:
    """Two solvers on the same users: the difference of their means, its interval, test and size.

    `effect` is the mean of the users' differences over their standard deviation (Cohen's d for pairs). `wins` counts
    the users for whom the first solver has the larger value.
    """

    difference: float
    low: float
    high: float
    p: float
    effect: float
    effect_low: float
    effect_high: float
    wins: int
    ties: int
    losses: int
    detectable: float  # the difference that these users would show with a power of 0.8


_UNKNOWN = Contrast(nan, nan, nan, 1.0, nan, nan, nan, 0, 0, 0, nan)  # of solvers that share no user


@dataclass(frozen=True)
class Verdict:
    """One solver of a group: its interval, and its contrast with the best solver, whose own is None."""

    interval: Interval
    against_best: Contrast | None
    p: float  # adjusted for the number of solvers by Holm's method; 1 for the best
    bold: bool  # not distinguishable from the best at the level of 5 %
    alone: bool = False  # there is no other solver to compare with


def intervals(samples: Sequence[Sample]) -> list[Interval]:
    """The mean and interval of each sample; all are resampled with the same users."""
    samples = spread(samples)
    columns = [sample.masses() for sample in samples]
    numerators, denominators = (np.concatenate(parts).T for parts in zip(*columns, strict=True))
    some = denominators.any(axis=1)
    if not some.any():
        return [Interval(np.nan, np.nan, np.nan, 0)] * len(samples)
    ratios = resampled(numerators[some], denominators[some])
    found, first = [], 0
    for sample, (rows, _) in zip(samples, columns, strict=True):
        end = first + len(rows)
        mean = sample.mean()
        low, high = bca(mean, ratios[:, first:end].mean(axis=1), sample.influences())
        found.append(Interval(mean, low, high, sample.n_users))
        first = end
    return found


def contrast(one: Sample, other: Sample) -> Contrast:
    """The first solver against the second one, user by user."""
    return contrasts([(one, other)])[0]


def verdicts(samples: Mapping[Key, Sample], better: str) -> dict[Key, Verdict]:
    """The verdict on each solver of a group; `better` is `higher` or `lower`, the direction of the metric."""
    sign = 1.0 if better == "higher" else -1.0
    names = [name for name, sample in samples.items() if np.isfinite(sample.mean())]
    if not names:
        return {}
    best = max(names, key=lambda name: sign * samples[name].mean())
    others = [name for name in names if name != best]
    measured = dict(zip(names, intervals([samples[name] for name in names]), strict=True))
    against = dict(zip(others, contrasts([(samples[name], samples[best]) for name in others]), strict=True))
    adjusted = dict(zip(others, holm(np.array([against[name].p for name in others])).tolist(), strict=True))
    found = {best: Verdict(measured[best], None, 1.0, True, alone=not others)}
    for name in others:
        found[name] = Verdict(measured[name], against[name], adjusted[name], adjusted[name] >= ALPHA)
    return {name: found[name] for name in names}


def contrasts(pairs: Sequence[tuple[Sample, Sample]]) -> list[Contrast]:
    """The first solver of each pair against the second one; users that are counted alike share their resamples."""
    both = spread([sample for pair in pairs for sample in pair])
    shares = [paired(one, other) for one, other in zip(both[::2], both[1::2], strict=True)]
    by_users: dict[int, list[int]] = {}
    for place, share in enumerate(shares):
        by_users.setdefault(len(share), []).append(place)
    found: dict[int, Contrast] = {}
    for places in by_users.values():
        columns = np.stack([shares[place] for place in places], axis=1)
        found |= zip(places, _of_columns(columns), strict=True)
    return [found[place] for place in range(len(pairs))]


def _of_columns(shares: Floats) -> list[Contrast]:
    """A contrast per column of users x columns, each entry what a user adds to a difference of means."""
    n, width = shares.shape
    if n == 0:
        return [_UNKNOWN] * width
    values = shares * n  # the difference of the means is the mean of these
    powers = np.concatenate([values, values**2], axis=1)
    sums = resampled(powers, np.ones_like(powers))
    tests = p_values(shares)
    return [_contrast_of(values[:, column], sums[:, column::width], float(tests[column])) for column in range(width)]


def _contrast_of(values: Floats, sums: Floats, p: float) -> Contrast:
    """The contrast of users' differences, given their resampled means and mean squares.

    Differences that are equal but for rounding have no standard deviation, and an infinite effect.
    """
    means = sums[:, 0]
    mean, deviation = float(values.mean()), float(values.std())
    low, high = bca(mean, means, (values - mean) / len(values))
    if deviation > _ROUNDING * abs(mean):
        effect = mean / deviation
        with np.errstate(invalid="ignore", divide="ignore"):
            ends = bca(effect, means / np.sqrt(sums[:, 1] - means**2), effect_influences(values))
    else:
        effect = 0.0 if mean == 0 else float(np.copysign(np.inf, mean))
        ends = (effect, effect)
    return Contrast(
        mean, low, high, p, effect, *ends,
        wins=int((values > 0).sum()), ties=int((values == 0).sum()), losses=int((values < 0).sum()),
        detectable=detectable(values / len(values)),
    )  # fmt: skip


def effect_influences(values: Floats) -> Floats:
    """The derivative of mean / standard deviation by the weight of each value."""
    scaled = (values - values.mean()) / values.std()
    influences: Floats = (scaled - values.mean() / values.std() / 2 * (scaled**2 - 1)) / len(values)
    return influences
