"""The paired permutation test over users: were two solvers alike, a user's difference could as well be its opposite."""

import numpy as np
from scipy.special import ndtri

from rankbench.core.contract import Floats
from rankbench.statistics.resampling import affordable

_ALL = 12  # up to so many users every pattern of signs is tried
_BLOCK = 1 << 22  # signs drawn at a time: 32 MiB


def p_values(differences: Floats, permutations: int | None = None, seed: int = 0) -> Floats:
    """Two-sided p-values, one per column, of the sums over users being zero; the matrix is users x columns.

    Of at most twelve users all patterns of signs are tried; of more, random ones, as many as `affordable` says. The
    observed pattern counts as one of them, so that no p-value is zero.
    """
    n = len(differences)
    permutations = affordable(n) if permutations is None else permutations
    observed = np.abs(differences.sum(axis=0))
    bar = observed - 1e-10 * np.abs(differences).sum(axis=0)  # equal but for rounding is as extreme
    if n <= _ALL:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return np.asarray((np.abs(signs @ differences) >= bar).mean(axis=0))
    rng, reached, tried = np.random.default_rng(seed), np.zeros(differences.shape[1]), 0
    height = max(1, _BLOCK // n)
    while tried < permutations:
        rows = min(height, permutations - tried)
        bits = np.frombuffer(rng.bytes(-(-rows * n // 8)), np.uint8)
        signs = np.unpackbits(bits)[: rows * n].reshape(rows, n).astype(np.float64)
        sums = 2.0 * (signs @ differences) - differences.sum(axis=0)
        reached += (np.abs(sums) >= bar).sum(axis=0)
        tried += rows
    return np.asarray((1 + reached) / (1 + permutations))


def holm(p: Floats) -> Floats:
    """The p-values adjusted for being several, by Holm's step-down method (1979), in the order given."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, steps)
    return adjusted


def detectable(differences: Floats, level: float = 0.05, power: float = 0.8) -> float:
    """The difference of two means that so many users would show with this power, from the spread of their differences.

    `differences` is what each user adds to the difference of the means.
    """
    n = len(differences)
    if n < 2:
        return float("nan")
    spread = float(np.sqrt(n) * np.std(differences, ddof=1))
    return (float(ndtri(1 - level / 2)) + float(ndtri(power))) * spread
