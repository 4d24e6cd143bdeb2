"""Which share of a number's variance each source brings: its users, and what repetitions draw anew.

Runs that draw fewer sources anew than another one tell them apart: if the variance between repetitions is that of
splits, search and start in one run, and that of the start in another, then the difference is that of splits and
search. Each variance is a mean square with its degrees of freedom, and so the interval of a share is made of what the
true variances could be, given the measured ones (generalised confidence intervals, Weerahandi 1993).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankbench.core.contract import Floats
from rankbench.statistics.variation import variation

USERS = "users"
_DRAWS = 4000
Sources = frozenset[str]


@dataclass(frozen=True, eq=False)
class Redrawn:
    """A table of repetitions x users whose mean is the number in question; each repetition draws these sources anew."""

    sources: Sources
    table: Floats  # without NaN, as `table_of` returns it
    unequal: float = 0.0  # degrees of freedom by users who weigh unequally; 0 stands for users - 1


@dataclass(frozen=True)
class Share:
    """A share of the variance that a number of one repetition has in new draws, with its 95 % interval."""

    sources: tuple[str, ...]  # several where no run tells them apart; none: what they bring only together
    variance: float
    share: float
    low: float
    high: float
    freedom: float  # degrees of freedom of the variance


@dataclass(frozen=True, eq=False)
class _Part:
    """A variance with its degrees of freedom, and draws of what its true value could be."""

    value: float
    freedom: float
    drawn: Floats

    def less(self, others: Sequence["_Part"]) -> "_Part":
        """What remains of this variance without the others; Satterthwaite's degrees of freedom."""
        value = self.value - sum(one.value for one in others)
        taken = sum(one.value**2 / one.freedom for one in (self, *others) if one.freedom > 0)
        freedom = value**2 / taken if taken > 0 else self.freedom
        drawn = self.drawn - sum((one.drawn for one in others), np.zeros(_DRAWS))
        return _Part(max(value, 0.0), freedom, np.maximum(drawn, 0.0)) if others else self


def shares(runs: Sequence[Redrawn], seed: int = 0) -> list[Share]:
    """The shares of users and of each source, as far as these runs tell them apart; empty if no run has repetitions.

    The whole is the variance of the run that draws most sources anew, that of its users included. Each share is
    estimated by itself, so that those of few repetitions need not add up to one.
    """
    rng = np.random.default_rng(seed)
    told = {run.sources: run for run in runs if run.sources and min(run.table.shape) > 1}
    if not told:
        return []
    ordered = sorted(told, key=lambda sources: (len(sources), sorted(sources)))
    between = {sources: _of_repetitions(told[sources].table, rng) for sources in ordered}
    users, repetitions = _of_users(told[ordered[-1]], rng), between[ordered[-1]]
    whole, drawn = users.value + repetitions.value, users.drawn + repetitions.drawn
    if not whole > 0:
        return []
    return [_share(sources, part, whole, drawn) for sources, part in {(USERS,): users, **_apart(between)}.items()]


def _apart(between: Mapping[Sources, _Part]) -> dict[tuple[str, ...], _Part]:
    """The variance of each source, or of several that no run tells apart; the smaller sets come first.

    A set that overlaps with a smaller one, without holding it, tells nothing. What the largest set has beyond its
    parts, if these are all of its sources, is what they bring only together.
    """
    largest = list(between)[-1]
    found: dict[Sources, _Part] = {}
    for sources, part in between.items():
        inside = {one: known for one, known in found.items() if one <= sources}
        rest = sources.difference(*inside)
        crossing = any(one & sources and not one <= sources for one in found)
        if (rest or sources == largest) and not crossing:
            found[rest] = part.less(list(inside.values()))
    return {tuple(sorted(one)): part for one, part in found.items()}


def _share(sources: tuple[str, ...], part: _Part, whole: float, drawn: Floats) -> Share:
    low, high = np.quantile(np.minimum(part.drawn / drawn, 1.0), (0.025, 0.975))
    return Share(sources, part.value, min(part.value / whole, 1.0), float(low), float(high), part.freedom)


def _of_repetitions(table: Floats, rng: np.random.Generator) -> _Part:
    """The variance of a repetition's mean, its cells included."""
    return _drawn(float(table.mean(axis=1).var(ddof=1)), len(table) - 1, rng)


def _of_users(run: Redrawn, rng: np.random.Generator) -> _Part:
    """The variance of the mean that other users would bring, without that of single cells."""
    repetitions, users = run.table.shape
    freedom = run.unequal or users - 1
    of_cells = float(variation(run.table).by_cell) / users / repetitions
    squares = _drawn(float(run.table.mean(axis=0).var(ddof=1)) / users, freedom, rng)
    return squares.less([_drawn(of_cells, freedom * (repetitions - 1), rng)])


def _drawn(value: float, freedom: float, rng: np.random.Generator) -> _Part:
    return _Part(value, freedom, value * freedom / rng.chisquare(freedom, _DRAWS))
