"""How many standard errors apart solvers of a group may be for chance alone, in 5 % of groups of equal ones."""

from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from rankbench.core.contract import Flags, Floats
from rankbench.statistics.variation import Together

_DRAWS = 4000
_ROUNDING = 1e-12  # of the largest variance


def thresholds(group: Together, seed: int = 0, every: bool = False, families: int = 1) -> tuple[float, float]:
    """How many standard errors behind the best one any of these solvers is in 5 and in 10 % of groups, all alike.

    With `every`, how many any two of them are apart. With several families the groups are so many times rarer.
    """
    sure = 1 - 0.05 / families, 1 - 0.1 / families
    least = tuple(float(ndtri((1 + share) / 2)) for share in sure)
    if len(group.means) <= 2:
        return least[0], least[1]
    drawn, errors, known = _drawn(group, seed)
    if every:
        largest = np.max(_from_each(drawn, errors, known), axis=0)
    else:
        best = drawn.argmax(axis=1)
        largest = _apart(drawn.max(axis=1), drawn, errors[best], known[best]).max(axis=1)
    bar, closer = np.quantile(largest, sure)
    return max(float(bar), least[0]), max(float(closer), least[1])


def _drawn(group: Together, seed: int) -> tuple[Floats, Floats, Flags]:
    """Draws of the means of equal solvers that vary as these do, the errors of their differences, and which vary."""
    of_repetitions = group.common / group.repetitions  # few of them tell no solvers apart in this
    covariances = _nonnegative(group.by_user + of_repetitions * np.eye(len(group.means)))
    known = _errors(covariances) > 1e-7 * np.sqrt(np.diag(covariances).max())
    covariances = levelled(covariances, group.of_users)
    return shaped(_normals(seed, _DRAWS, len(covariances)), covariances), _errors(covariances), known


def _from_each(drawn: Floats, errors: Floats, known: Flags) -> Floats:
    """For each solver, how many standard errors the farthest one is from it in each draw."""
    apart = (_apart(drawn[:, place], drawn, errors[place], known[place]) for place in range(len(errors)))
    return np.stack([one.max(axis=1) for one in apart])


def _nonnegative(covariances: Floats) -> Floats:
    """The nearest covariances without a negative variance, as chance estimates it where solvers hardly vary.

    Where none is positive the solvers count as independent and equally varied, the most cautious case.
    """
    values, vectors = np.linalg.eigh(covariances)
    if values[0] >= -_ROUNDING * values[-1] and values[-1] > 0:
        return covariances
    kept = np.maximum(values, 0.0)
    return np.asarray((vectors * kept) @ vectors.T) if kept.any() else np.eye(len(values))


def levelled(covariances: Floats, freedom: float) -> Floats:
    """The covariances without what all solvers share, closer to those of alike solvers the fewer users tell of them.

    Few users leave solvers spread in fewer directions than there are, and thus too low a threshold. How close is the
    estimate of Chen, Wiesel, Eldar and Hero (2010): all the way where users tell of no difference between directions.
    """
    k = len(covariances)
    if k < 2:
        return np.zeros_like(covariances)
    own = covariances - covariances.mean(axis=0)
    own -= own.mean(axis=1)[:, None]
    directions, whole, squares = k - 1, float(np.trace(own)), float((own**2).sum())
    uneven = squares - whole**2 / directions
    taken = (1 - 2 / directions) * squares + whole**2
    share = min(1.0, taken / room) if (room := (freedom + 1 - 2 / directions) * uneven) > 0 else 1.0
    return np.asarray((1 - share) * own + share * whole / directions * (np.eye(k) - 1 / k))


def _errors(covariances: Floats) -> Floats:
    """The standard errors of all differences."""
    own = np.diag(covariances)
    return np.asarray(np.sqrt(np.maximum(own[:, None] + own - 2 * covariances, 0.0)))


def _apart(one: Floats, all_of_them: Floats, errors: Floats, known: Flags) -> Floats:
    """How many standard errors each draw of one solver is from those of all."""
    behind = np.abs(one[:, None] - all_of_them)
    return np.divide(behind, errors, out=np.zeros_like(behind), where=np.broadcast_to(known, behind.shape))


@lru_cache(maxsize=32)
def _normals(seed: int, size: int, solvers: int) -> Floats:
    """Standard normal draws, size x solvers."""
    return np.random.default_rng(seed).standard_normal((size, solvers))


def shaped(normals: Floats, covariances: Floats) -> Floats:
    """Standard normal draws, turned into those with these covariances.

    By their symmetric root, which hardly changes where the covariances hardly change. Eigenvectors alone may turn round
    by a rounding error, or by another library, and with them every draw.
    """
    values, vectors = np.linalg.eigh(covariances)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return np.asarray(normals @ root)
