"""How often intervals and verdicts err on values drawn with a known truth: lines of tables, in percent."""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

import numpy as np

from rankbench.core.contract import Floats
from rankbench.statistics.decisions import EQUAL, WORSE, words
from rankbench.statistics.detectable import detectable
from rankbench.statistics.estimates import Estimate, difference_of_users, mean_of_users
from rankbench.statistics.thresholds import thresholds
from rankbench.statistics.variation import Together, Variation

Drawn = tuple[Floats, Floats | None]  # values of solvers x repetitions x users, and weights
Family = Callable[[np.random.Generator, int, int, int], Drawn]
USERS, REPETITIONS, SOLVERS = (20, 100, 1000), (1, 3, 5, 10), (2, 5, 10, 20)
TRUE = {"average": 0.0, "rate of .05": 0.05, "ratio of sums": 0.0, "heavy tails": 0.0}
_RATES = (0.0, 1.0)


def effects(rng: np.random.Generator, solvers: int, repetitions: int, users: int, repetition: float = 1.5) -> Floats:
    """Crossed normal effects of users, of users by solver, of cells and, unless there is one, of repetitions by solver.

    That of repetitions is in units of the users' standard error, as what trained models show is about 1.6.
    """
    found = rng.normal(size=users) + rng.normal(0, 0.7, (solvers, 1, users))
    found = found + rng.normal(0, 0.7, (solvers, repetitions, users))
    if repetitions > 1:
        found += rng.normal(0, 0.3 / users**0.5, (repetitions, 1)) + rng.normal(
            0, repetition / users**0.5, (solvers, repetitions, 1)
        )
    return np.asarray(found)


def average(rng: np.random.Generator, solvers: int, repetitions: int, users: int) -> Drawn:
    """Values as those of an average over users."""
    return effects(rng, solvers, repetitions, users), None


def rate(rng: np.random.Generator, solvers: int, repetitions: int, users: int) -> Drawn:
    """Hits and misses, of which a twentieth are hits; users differ in how often they are hit."""
    chance = rng.beta(1.0, 19.0, users)
    return (rng.random((solvers, repetitions, users)) < chance).astype(float), None


def ratio(rng: np.random.Generator, solvers: int, repetitions: int, users: int) -> Drawn:
    """Values with numbers of pairs that differ widely between users."""
    return effects(rng, solvers, repetitions, users), np.ceil(rng.lognormal(3, 0.7, users))


def heavy(rng: np.random.Generator, solvers: int, repetitions: int, users: int) -> Drawn:
    """Values with users of Student's distribution with three degrees of freedom."""
    return effects(rng, solvers, repetitions, users) + rng.standard_t(3, (solvers, 1, users)), None


FAMILIES: dict[str, Family] = {"average": average, "rate of .05": rate, "ratio of sums": ratio, "heavy tails": heavy}


def coverage(redraws: int, seed: int) -> Iterator[Sequence[str]]:
    """Percent of intervals that hold the truth: of a mean and of a difference, per family, users and repetitions."""
    for name, family in FAMILIES.items():
        limits = _RATES if family is rate else None
        for users in USERS:
            cells = []
            for repetitions in REPETITIONS:
                rng, held = np.random.default_rng((seed, users, repetitions, len(name))), np.zeros(2)
                for _ in range(redraws):
                    values, weights = family(rng, 2, repetitions, users)
                    mean = mean_of_users(values[0], weights, limits)
                    difference = difference_of_users(values[0], values[1], weights, limits)
                    held += (_holds(mean, TRUE[name]), _holds(difference, 0.0))
                cells.append(" / ".join(f"{100 * share:.1f}" for share in held / redraws))
            yield [name, str(users), *cells]


def groups(redraws: int, seed: int) -> Iterator[Sequence[str]]:
    """Percent of groups of equal solvers in which any is called worse, by how many there are."""
    for solvers in SOLVERS:
        for users in (100, 1000):
            shares = []
            for repetitions in REPETITIONS[:3]:
                rng = np.random.default_rng((seed, solvers, users, repetitions))
                wrong = [_any_worse(effects(rng, solvers, repetitions, users)) for _ in range(redraws)]
                shares.append(f"{100 * fmean(wrong):.1f}")
            yield [str(solvers), str(users), *shares]


def equals(redraws: int, seed: int) -> Iterator[Sequence[str]]:
    """Percent of pairs called equal that are exactly a margin apart, by margins in standard errors of users."""
    for users in (20, 100, 1000):
        shares = []
        for repetitions in REPETITIONS:
            rng, wrong = np.random.default_rng((seed, users, repetitions)), 0
            margin = 6 / users**0.5
            for _ in range(redraws):
                values = effects(rng, 2, repetitions, users)
                values[1] += margin
                wrong += words(values, "higher", margin)[0] == EQUAL
            shares.append(f"{100 * wrong / redraws:.1f}")
        yield [str(users), *shares]


def powers(redraws: int, seed: int) -> Iterator[Sequence[str]]:
    """Percent of rivals found worse that lie behind by the difference said to show with a probability of .8."""
    for rivals in (1, 4, 9):
        shares = []
        for repetitions in REPETITIONS:
            rng = np.random.default_rng((seed, rivals, repetitions))
            alike = np.eye(1 + rivals)
            bar = thresholds(Together(np.zeros(1 + rivals), alike, 0 * alike, 0 * alike, 100, repetitions))[0]
            planted, seen = detectable(_truth(repetitions, 100, rivals), bar), []
            for _ in range(redraws):
                values = effects(rng, 1 + rivals, repetitions, 100)
                values[0] += planted
                seen += [word == WORSE for word in words(values, "higher", 0.0)[1:]]
            shares.append(f"{100 * fmean(seen):.1f}")
        yield [str(rivals), *shares]


def _truth(repetitions: int, users: int, rivals: int) -> Variation:
    """The true variation of the difference of two solvers of `effects`."""
    of_cell = 2 * 0.7**2
    by_user = np.array((2 * 0.7**2 + (of_cell if repetitions == 1 else 0.0)) / users)
    by_repetition = np.array((2 * 1.5**2 + of_cell) / users / repetitions if repetitions > 1 else 0.0)
    none, freedom = np.array(0.0), (repetitions - 1) * rivals
    return Variation(none, by_user, by_repetition, np.array(of_cell), none, users, repetitions, freedom, freedom)


def _holds(found: Estimate, true: float) -> bool:
    return found.low <= true <= found.high


def _any_worse(values: Floats) -> bool:
    return WORSE in words(values, "higher", 0.0)
