"""Which of several solvers is better, worse, equal within a margin or open, with at most 5 % of groups in error.

The best is found by the same data that judge it, so that each solver is compared with it at the level where, were all
alike, any would be called worse in 5 % of groups (Hsu's comparison with the best). Two solvers are such a group.
"""

from dataclasses import dataclass, replace
from math import ceil, inf, nan

import numpy as np
from scipy.special import ndtr

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.statistics.estimates import HERE, NO_USER, Estimate, few_hits, rare, reason_of, scope_of, table_of
from rankbench.statistics.variation import Together, Variation, student, together

BETTER, WORSE, EQUAL, OPEN = "better", "worse", "equal", "open"
POWER = 0.8416212335729143  # a normal mean lies so many errors above a threshold that it exceeds with probability .8
_DRAWS = 4000
_TRIED = (3, 5, 7, 10, 15, 20, 30, 50, 100)  # repetitions that could settle an open verdict


@dataclass(frozen=True)
class Decision:
    """What is said of one solver against the best other one, with the margin and what would settle an open verdict."""

    word: str  # better, worse, equal, open
    rival: int  # the other solver's place in the group; -1 without one
    difference: Estimate  # from the rival, positive where this solver is better; 95 % for the group as a whole
    margin: float
    p: float  # two-sided, for the group as a whole
    chance: float  # that it beats the rival in a new draw of users, split and start
    chance_low: float
    chance_high: float
    detectable: float  # the difference that this design would show with a probability of .8
    users_needed: int | None  # with these repetitions; None where no number of users would settle it
    repetitions_needed: int | None  # with these users; None where a hundred would not settle it
    reason: str = ""

    @property
    def text(self) -> str:
        """The decision in one sentence."""
        what = f"{self.word} within {self.margin:g}" if self.word == EQUAL else self.word
        parts = [f"{what} {self.difference.scope}"]
        if self.word == OPEN:
            needed = [f"{count} {name}" for count, name in
                      ((self.users_needed, "users"), (self.repetitions_needed, "repetitions")) if count]  # fmt: skip
            parts.append(" or ".join(needed) + " would settle it" if needed else "nothing at hand would settle it")
        return "; ".join([*parts, self.reason] if self.reason else parts)


@dataclass(frozen=True)
class Ranked:
    """The decisions on the solvers of a group, in the order given."""

    decisions: tuple[Decision, ...]
    tiers: tuple[tuple[int, ...], ...]  # the best first; inside one no solver is told from its best
    first: tuple[tuple[float, float, float], ...]  # the chance to come first in a new draw, with its 95 % interval
    best: int  # -1 if no solver has values


def ranked(values: Floats, better: str, margin: float, weights: Floats | None = None, limits: tuple[float, float] | None
           = None, overlap: float = 0.0, seed: int = 0) -> Ranked:  # fmt: skip
    """The verdicts on solvers x repetitions x users; `better` is `higher` or `lower`, `margin` what counts as equal."""
    if values.ndim != 3 or not margin >= 0 or better not in ("higher", "lower"):
        raise UserError(
            f"verdicts on values of {values.ndim} dimensions, with the margin {margin} and {better!r} as the direction",
            remedy="pass solvers x repetitions x users, a margin of zero or more, and higher or lower",
        )
    known = [place for place in range(len(values)) if np.isfinite(values[place]).any()]
    whole = np.isfinite(values[known]).all(axis=0)  # a user counts where all solvers have a value
    kept = np.where(whole, values[known], nan)
    table, lost = table_of(kept * (1.0 if better == "higher" else -1.0), weights)
    decisions = [_undecided(NO_USER, margin)] * len(values)
    first = [(nan, 0.0, 1.0)] * len(values)
    if not known or not table.size:
        return Ranked(tuple(decisions), (), tuple(first), -1)
    group = together(table, overlap)
    pairs = few_hits(group.differences(), rare(kept, limits), limits)
    bar, closer = thresholds(group, seed)
    best = int(group.means.argmax())
    reason = reason_of(pairs, lost, float(np.nanmax(np.abs(kept))))
    tiers = _tiers(group.means, pairs.normal_deviate(), bar)
    for place, solver in enumerate(known):
        rival = best if place != best else _second(group.means)
        if rival >= 0:
            found = _decision(_pair(pairs, place, rival), bar, closer, margin, reason, place == best)
            decisions[solver] = replace(found, rival=known[rival])
        else:
            decisions[solver] = _undecided("there is no other solver", margin)
    decisions[known[best]] = _of_best(
        decisions[known[best]], [decisions[place] for place in known if place != known[best]]
    )
    for place, chance in enumerate(_first(group, seed)):
        first[known[place]] = chance
    return Ranked(
        tuple(decisions), tuple(tuple(known[place] for place in tier) for tier in tiers), tuple(first), known[best]
    )


def thresholds(group: Together, seed: int = 0) -> tuple[float, float]:
    """How many standard errors behind the best one any of these solvers is in 5 and in 10 % of groups, all alike."""
    of_repetitions = group.common * (1 / group.repetitions + group.overlap)  # few of them tell no solvers apart in this
    covariances = group.by_user + of_repetitions * np.eye(len(group.means))
    drawn = _drawn(np.random.default_rng(seed), covariances, _DRAWS)
    own = np.diag(covariances)
    errors = np.sqrt(np.maximum(own[:, None] + own - 2 * covariances, 0.0))
    best = drawn.argmax(axis=1)
    behind = drawn.max(axis=1)[:, None] - drawn
    ratios = np.divide(behind, errors[best], out=np.zeros_like(behind), where=errors[best] > 1e-7 * np.sqrt(own.max()))
    bar, closer = np.quantile(ratios.max(axis=1), (0.95, 0.90))
    return max(float(bar), 1.959964), max(float(closer), 1.644854)


def detectable(pair: Variation, bar: float) -> float:
    """The difference that is seen with a probability of .8, where `bar` standard errors are asked for.

    The variances are taken for the true ones; those that a repetition of the whole would estimate are drawn from them.
    """
    if pair.users < 2:
        return inf
    rng, more, between = np.random.default_rng(0), pair.users - 1, pair.freedom or pair.repetitions - 1
    squared = float(pair.by_user) * rng.chisquare(more, _DRAWS) / more * student(more, bar) ** 2
    if pair.repetitions > 1:
        of_cell = float(pair.by_cell) / pair.users / pair.repetitions
        alone = pair.repetitions - 1  # the larger of a pair's own estimate and of all pairs' counts
        shares = [rng.chisquare(freedom, _DRAWS) / freedom for freedom in {between, alone}]
        drawn = (float(pair.by_repetition) + of_cell) * np.max(shares, axis=0) - of_cell
        squared += np.maximum(drawn, 0.0) * student(between, bar) ** 2
    return float(np.quantile(np.sqrt(squared) + float(pair.error) * rng.standard_normal(_DRAWS), 0.8))


def _pair(pairs: Variation, one: int, other: int) -> Variation:
    """The variation of one solver's difference from another."""
    mean, by_user, by_repetition, by_cell = (
        each[one, other] for each in (pairs.mean, pairs.by_user, pairs.by_repetition, pairs.by_cell)
    )
    return replace(pairs, mean=mean, by_user=by_user, by_repetition=by_repetition, by_cell=by_cell)


def _decision(pair: Variation, bar: float, closer: float, margin: float, reason: str, best: bool) -> Decision:
    """The decision on one difference, the solver's from its rival, by the group's thresholds."""
    mean, z = float(pair.mean), float(pair.normal_deviate())
    reach, near = (float(pair.reach(each)) if pair.users > 1 else inf for each in (bar, closer))
    word = EQUAL if abs(mean) + near < margin or mean == reach == 0 else OPEN
    if word == OPEN and z > bar:
        word = BETTER if mean > 0 else WORSE
    if reach == 0:
        reason = "the same values for every user" if mean == 0 else "the same difference for every user"
    share, error = float(pair.repetition_share), float(pair.error)
    difference = Estimate(mean, mean - reach, mean + reach, error, pair.users, pair.repetitions, share,
                          scope_of(pair), reason)  # fmt: skip
    p = min(1.0, 2 * float(ndtr(-z * 1.959964 / bar)))
    needed = _needed(pair, bar, closer, margin) if word == OPEN else (None, None)
    return Decision(word, -1, difference, margin, p, *_chance(pair, reach), detectable(pair, bar), *needed, reason)


def _of_best(found: Decision, others: list[Decision]) -> Decision:
    """What is said of the best: better if all others are worse, equal if none is open and one is equal."""
    words = {each.word for each in others}
    if not words:
        return found
    word = BETTER if words == {WORSE} else OPEN if OPEN in words else EQUAL
    nearest = next((each for each in others if each.word == OPEN), found)
    return replace(found, word=word, users_needed=nearest.users_needed, repetitions_needed=nearest.repetitions_needed)


def _chance(pair: Variation, reach: float) -> tuple[float, float, float]:
    """The chance that the difference is positive in a new draw of as many users and one repetition, with its ends."""
    one, mean = pair.at(pair.users, 1), float(pair.mean)
    anew = float(one.error)
    if not anew or not np.isfinite(reach):
        sure = 0.5 if mean == 0 or not np.isfinite(reach) else float(mean > 0)
        return (sure, 0.0, 1.0) if not np.isfinite(reach) else (sure, sure, sure)
    both = float(np.hypot(anew, pair.error))
    return float(ndtr(mean / both)), float(ndtr((mean - reach) / anew)), float(ndtr((mean + reach) / anew))


def _needed(pair: Variation, bar: float, closer: float, margin: float) -> tuple[int | None, int | None]:
    """The users and the repetitions that would settle an open verdict with a probability of .8, were its mean true."""
    if pair.users < 2:
        return None, None
    size = abs(float(pair.mean))
    z, room = (bar, size) if size >= margin - size else (closer, margin - size)
    if room <= 0:
        return None, None
    fixed = detectable(replace(pair, by_user=np.zeros_like(pair.mean)), z)
    moving = float(np.sqrt(pair.by_user)) * (z + POWER)
    users = ceil(pair.users * moving**2 / (room**2 - fixed**2)) if fixed < room else None
    tried = (count for count in _TRIED if count > pair.repetitions)
    repetitions = next((count for count in tried if detectable(pair.at(pair.users, count), z) <= room), None)
    return users, repetitions if pair.repetitions > 1 else max(repetitions or 0, 3)


def _second(means: Floats) -> int:
    """The place of the second best; -1 if there is none."""
    return int(np.argsort(-means, kind="stable")[1]) if len(means) > 1 else -1


def _tiers(means: Floats, deviates: Floats, bar: float) -> list[tuple[int, ...]]:
    """The solvers in tiers: those not told from the best, then from the best of the rest, and so on."""
    rest, found = [int(place) for place in np.argsort(-means, kind="stable")], []
    while rest:
        tier = tuple(place for place in rest if place == rest[0] or deviates[rest[0], place] <= bar)
        found.append(tier)
        rest = [place for place in rest if place not in tier]
    return found


def _first(group: Together, seed: int, outer: int = 200, inner: int = 200) -> list[tuple[float, float, float]]:
    """Each solver's chance to come first in a new draw of users and one repetition, with its 95 % interval."""
    rng, k = np.random.default_rng(seed), len(group.means)
    noise = [_drawn(rng, group.covariances(count), size) for count, size in ((group.repetitions, outer), (1, inner))]
    drawn = group.means + noise[0][:, None] + noise[1]
    tops = drawn == drawn.max(axis=2, keepdims=True)  # equal ones share the place
    shares = (tops / tops.sum(axis=2, keepdims=True)).mean(axis=1)
    low, high = np.quantile(shares, (0.025, 0.975), axis=0)
    return [(float(shares[:, place].mean()), float(low[place]), float(high[place])) for place in range(k)]


def _drawn(rng: np.random.Generator, covariances: Floats, size: int) -> Floats:
    """Normal draws with these covariances, size x solvers."""
    values, vectors = np.linalg.eigh(covariances)
    scaled = rng.standard_normal((size, len(values))) * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(scaled @ vectors.T)


def _undecided(reason: str, margin: float) -> Decision:
    """The open decision where there is nothing to compare."""
    nothing = Estimate(nan, -inf, inf, nan, 0, 0, 0.0, HERE, reason)
    return Decision(OPEN, -1, nothing, margin, 1.0, 0.5, 0.0, 1.0, inf, None, None, reason)
