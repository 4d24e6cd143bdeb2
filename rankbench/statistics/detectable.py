"""The difference between two solvers that so many users and repetitions show."""

from functools import lru_cache
from math import inf

import numpy as np
from scipy.special import chdtri, ndtri

from rankbench.core.contract import Floats, Ints
from rankbench.statistics.variation import Variation, reach_of, steady, student

_STRATA = (np.arange(1000) + 0.5) / 1000
_NORMAL = ndtri(_STRATA)  # of draws, the .8 quantile of 1,000 lies up to a tenth of an error off


def detectable(pair: Variation, bar: float) -> float:
    """The difference that is seen with a probability of .8, where `bar` standard errors are asked for.

    The variances are taken for the true ones; those that a repetition of the whole would estimate are drawn from them.
    """
    if pair.users < 2:
        return inf
    by_user = float(pair.by_user) * _estimated(pair.of_users, 0)
    if pair.repetitions < 2:
        reach = np.sqrt(by_user) * student(pair.of_users, bar)
    else:
        by_repetition, freedom = _seen(pair)
        cells = pair.by_cell / (pair.users * pair.repetitions)
        reach = reach_of(by_user, by_repetition, cells, pair.of_users, freedom, bar, pair.repetitions)
    return float(np.quantile(reach + float(pair.error) * _NORMAL, 0.8))


def _seen(pair: Variation) -> tuple[Floats, Ints]:
    """Draws of the estimated variance by repetition, with the degrees of freedom that it would get."""
    alone = pair.repetitions - 1
    together = max(pair.pooled, alone)
    own = _estimated(alone, 1)
    if together == alone or int(pair.degrees) < together:  # alone, or varying more than the others
        return float(pair.by_repetition) * own, np.full(len(own), alone)
    pooled = _estimated(together, 2)
    freedom = np.where(steady(own, pooled, alone, together), together, alone)
    return float(pair.by_repetition) * np.maximum(own, pooled), freedom


@lru_cache(maxsize=64)
def _estimated(freedom: float, part: int) -> Floats:
    """What a variance of one is estimated to be with these degrees of freedom, evenly spread, in an order of chance."""
    return np.asarray(chdtri(freedom, np.random.default_rng(part).permutation(_STRATA)) / freedom)
