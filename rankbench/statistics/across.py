"""Solvers over many data sets: average ranks, Friedman's test, and which solvers cannot be told apart (Demsar 2006)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.statistics.permutation import holm

FEWEST = 5  # data sets; with fewer, ranks say next to nothing


@dataclass(frozen=True)
class Ranking:
    """Average ranks over data sets, 1 being the best, with the tests that belong to them."""

    solvers: tuple[str, ...]  # by average rank, the best first
    ranks: tuple[float, ...]
    statistic: float  # Friedman's chi square
    p: float
    pairs: Mapping[tuple[str, str], float]  # Wilcoxon's signed-rank test of two solvers, adjusted by Holm's method
    alike: tuple[tuple[str, ...], ...]  # the largest runs of neighbours no two of which differ at 5 %


def ranking(values: Mapping[str, Sequence[float]], better: str) -> Ranking:
    """The ranking of solvers by one value per data set, in the same order of data sets for all solvers."""
    names = list(values)
    table = np.array([values[name] for name in names], np.float64)
    if table.ndim != 2 or len(names) < 2 or table.shape[1] < FEWEST or not np.isfinite(table).all():
        raise UserError(f"a ranking needs at least two solvers and {FEWEST} data sets, with a value for each")
    ranks = stats.rankdata(-table if better == "higher" else table, axis=0).mean(axis=1)
    order = sorted(range(len(names)), key=lambda place: (ranks[place], names[place]))
    statistic, p = _friedman(table)
    pairs = _pairs(names, table)
    solvers = tuple(names[place] for place in order)
    return Ranking(solvers, tuple(float(ranks[place]) for place in order), statistic, p, pairs, _alike(solvers, pairs))


def _friedman(table: Floats) -> tuple[float, float]:
    """Friedman's test of all solvers being alike; of two solvers Wilcoxon's test says the same."""
    if len(table) < 3 or (table == table[0]).all():
        return (0.0, 1.0) if (table == table[0]).all() else (float("nan"), float("nan"))
    found = stats.friedmanchisquare(*table)
    return float(found.statistic), float(found.pvalue)


def _pairs(names: Sequence[str], table: Floats) -> dict[tuple[str, str], float]:
    """The adjusted p-value of each pair of solvers, in both orders."""
    pairs = list(combinations(range(len(names)), 2))
    raw = np.array([_wilcoxon(table[one] - table[other]) for one, other in pairs])
    found: dict[tuple[str, str], float] = {}
    for (one, other), p in zip(pairs, holm(raw).tolist(), strict=True):
        found[names[one], names[other]] = found[names[other], names[one]] = p
    return found


def _wilcoxon(differences: Floats) -> float:
    """The p-value of Wilcoxon's signed-rank test; 1 where nothing differs."""
    if not differences.any():
        return 1.0
    return float(stats.wilcoxon(differences, zero_method="zsplit").pvalue)


def _alike(solvers: Sequence[str], pairs: Mapping[tuple[str, str], float]) -> tuple[tuple[str, ...], ...]:
    """The runs of neighbouring ranks that are not distinguishable, none of them part of another."""
    found: list[tuple[int, int]] = []
    for first in range(len(solvers)):
        end = first + 1
        while end < len(solvers) and all(pairs[solvers[end], solvers[other]] >= 0.05 for other in range(first, end)):
            end += 1
        if end - first > 1 and not any(end <= last for _, last in found):
            found.append((first, end))
    return tuple(tuple(solvers[first:end]) for first, end in found)
