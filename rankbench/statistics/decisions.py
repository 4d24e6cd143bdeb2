"""Which of several solvers is better, worse, equal within a margin or open, with at most 5 % of groups in error.

The best is found by the same data that judge it, so that each solver is compared with it at the level where, were all
alike, any would be called worse in 5 % of groups (Hsu's comparison with the best). Two solvers are such a group.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, nan

import numpy as np
from scipy.special import chdtri, ndtr

from rankbench.core.contract import Floats, Ints
from rankbench.core.errors import UserError
from rankbench.statistics.detectable import detectable
from rankbench.statistics.estimates import NO_USER, Z95, Estimate, apart, few_hits, reason_of, table_of
from rankbench.statistics.thresholds import levelled, shaped, thresholds
from rankbench.statistics.variation import Together, Variation, together

BETTER, WORSE, EQUAL, OPEN = "better", "worse", "equal", "open"
POWER = 0.8416212335729143  # a normal mean lies so many errors above a threshold that it exceeds with probability .8
DEFAULT_MARGIN = 0.01  # of the best mean
_DRAWS = 2000
_ROUNDING = 1e-12  # of a difference
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
    def settled_by(self) -> str:
        """In words what would settle an open verdict; empty for other verdicts, and where nobody knows."""
        several = self.difference.repetitions > 1  # of one nobody knows what others would change
        if self.word != OPEN or self.difference.users < 2:
            return ""
        counts = ((self.repetitions_needed, "repetitions"), (self.users_needed, "users"))
        found = " or ".join(f"{count:,} {name}" for count, name in counts if count)
        return found or (f"more than {_TRIED[-1]} repetitions" if several else "")


@dataclass(frozen=True)
class Ranked:
    """The decisions on the solvers of a group, in the order given."""

    decisions: tuple[Decision, ...]
    tiers: tuple[tuple[int, ...], ...]  # the best first; inside one no solver is distinguished from its best
    first: tuple[tuple[float, float, float], ...]  # the chance to come first in a new draw, with its 95 % interval
    best: int  # -1 if no solver has values


def ranked(
    values: Floats,
    better: str,
    margin: float | None = None,
    weights: Floats | None = None,
    limits: tuple[float, float] | None = None,
    seed: int = 0,
) -> Ranked:
    """The verdicts on solvers x repetitions x users; `better` is `higher` or `lower`, `margin` what counts as equal.

    Without a margin it is a hundredth of the best mean.
    """
    decisions = [undecided(NO_USER, margin or 0.0)] * len(values)
    first = [(nan, 0.0, 1.0)] * len(values)
    group = _group(values, better, margin, weights, limits)
    if group is None:
        return Ranked(tuple(decisions), (), tuple(first), -1)
    means, known, deviates = group.together.means, group.known, group.pairs.normal_deviate()
    bar, closer = thresholds(group.together, seed)
    best = int(means.argmax())
    for place, solver in enumerate(known):
        rival = best if place != best else _second(means)
        if rival >= 0:
            pair = _pair(group.pairs, place, rival)
            found = _decision(pair, deviates[place, rival], bar, closer, group.margin, group.reason)
            decisions[solver] = replace(found, rival=known[rival])
        else:
            decisions[solver] = undecided("there is no other solver", group.margin)
    decisions[known[best]] = _of_best(
        decisions[known[best]], [decisions[place] for place in known if place != known[best]]
    )
    for place, chance in enumerate(_first(group.together, group.pairs, seed)):
        first[known[place]] = chance
    tiers = in_tiers(means, deviates, bar)
    return Ranked(
        tuple(decisions), tuple(tuple(known[place] for place in tier) for tier in tiers), tuple(first), known[best]
    )


def words(
    values: Floats, better: str, margin: float | None = None, limits: tuple[float, float] | None = None, seed: int = 0
) -> list[str]:
    """The words of `ranked` alone, which are found much faster than all that it says beside them."""
    found = [OPEN] * len(values)
    group = _group(values, better, margin, None, limits)
    if group is None or len(group.known) < 2:
        return found
    means = group.together.means
    bar, closer = thresholds(group.together, seed)
    best = int(means.argmax())
    pairs = _pair(group.pairs, np.arange(len(means)), best)
    reach, near = (pairs.reach(each) if pairs.users > 1 else np.full(len(means), inf) for each in (bar, closer))
    for place, solver in enumerate(group.known):
        found[solver] = _word(float(pairs.mean[place]), float(reach[place]), float(near[place]), group.margin)
    found[group.known[best]] = _best_word({found[solver] for solver in group.known if solver != group.known[best]})
    return found


def pairwise(
    values: Floats,
    better: str,
    margin: float | None = None,
    weights: Floats | None = None,
    limits: tuple[float, float] | None = None,
    seed: int = 0,
    families: int = 1,
) -> dict[tuple[int, int], Decision]:
    """The decision on each solver against each one before it, at a family-wise error rate of 5 %.

    `families` is the number of groups that share these 5 %.
    """
    group = _group(values, better, margin, weights, limits)
    places = [(two, one) for two in range(len(values)) for one in range(two)]
    if group is None:
        return {pair: replace(undecided(NO_USER, margin or 0.0), rival=pair[1]) for pair in places}
    bar, closer = thresholds(group.together, seed, every=True, families=families)
    own, deviates = {solver: place for place, solver in enumerate(group.known)}, group.pairs.normal_deviate()
    found = {}
    for two, one in places:
        if one in own and two in own:
            pair, z = _pair(group.pairs, own[two], own[one]), deviates[own[two], own[one]]
            found[two, one] = replace(_decision(pair, z, bar, closer, group.margin, group.reason), rival=one)
        else:
            found[two, one] = replace(undecided(NO_USER, group.margin), rival=one)
    return found


@dataclass(frozen=True, eq=False)
class _Group:
    """Solvers with values on common users: how they vary together, and how each differs from each."""

    known: list[int]
    together: Together
    pairs: Variation
    margin: float
    reason: str


def _group(values: Floats, better: str, margin: float | None, weights: Floats | None,
           limits: tuple[float, float] | None) -> _Group | None:  # fmt: skip
    """The solvers that have values, on the users for whom all of them have one; None where there are none."""
    if margin is not None and not margin >= 0:
        raise UserError(f"margin={margin:g} is out of range: must be at least 0")
    if values.ndim != 3 or better not in ("higher", "lower"):
        raise UserError(
            f"verdicts on values of {values.ndim} dimensions, {better!r} being better",
            remedy="pass solvers x repetitions x users, and higher or lower",
        )
    known = [place for place in range(len(values)) if np.isfinite(values[place]).any()]
    whole = np.isfinite(values[known]).all(axis=0)  # a user counts where all solvers have a value
    kept = np.where(whole, values[known], nan)
    own = None if weights is None else np.broadcast_to(weights, values.shape)[known]
    table, lost, unequal = table_of(kept * (1.0 if better == "higher" else -1.0), own)
    if not known or not table.size:
        return None
    found = together(table, unequal)
    pairs = few_hits(found.differences(), apart(kept, limits))
    margin = margin if margin is not None else DEFAULT_MARGIN * abs(float(found.means.max()))
    return _Group(known, found, pairs, margin, reason_of(pairs, lost, float(np.nanmax(np.abs(kept)))))


def foreseen(values: Floats, better: str, counts: Sequence[int], weights: Floats | None = None,
             limits: tuple[float, float] | None = None) -> list[float]:  # fmt: skip
    """For each number of repetitions, the difference from the best that a typical solver would show with .8.

    It takes several measured repetitions to know what they change; of one the answer is infinite.
    """
    group = _group(values, better, None, weights, limits)
    if group is None or group.together.repetitions < 2 or len(group.known) < 2:
        return [inf] * len(counts)
    bar, _ = thresholds(group.together)
    best = int(group.together.means.argmax())
    pairs = [_median_unbiased(_pair(group.pairs, place, best)) for place in range(len(group.known)) if place != best]
    return [float(np.median([detectable(pair.at(pair.users, count), bar) for pair in pairs])) for count in counts]


def _median_unbiased(pair: Variation) -> Variation:
    """The same with a variance by repetition that is as often too large as too small: of few it is mostly too small."""
    freedom = int(pair.degrees)
    return replace(pair, by_repetition=pair.by_repetition * freedom / float(chdtri(freedom, 0.5)))


def _pair(pairs: Variation, one: int | Ints, other: int | Ints) -> Variation:
    """The variation of one solver's difference from another, or of several."""
    parts = ("mean", "by_user", "by_repetition", "by_cell", "freedom")
    return replace(pairs, **{name: getattr(pairs, name)[one, other] for name in parts})


def _decision(pair: Variation, z: float, bar: float, closer: float, margin: float, reason: str) -> Decision:
    """The decision on one difference, the solver's from its rival, by its normal deviate and the group's thresholds."""
    mean = float(pair.mean)
    reach, near = (float(pair.reach(each)) if pair.users > 1 else inf for each in (bar, closer))
    word = _word(mean, reach, near, margin)
    if reach <= _ROUNDING * abs(mean):
        reason = "the same values for every user" if mean == 0 else "the same difference for every user"
    share, error = float(pair.repetition_share), float(pair.error)
    ends, counts = (mean - reach, mean + reach), (pair.users, pair.repetitions)
    difference = Estimate(mean, *ends, error, *counts, share, reason, pair.unequal)
    p = min(1.0, 2 * float(ndtr(-z * Z95 / bar)))
    needed = _needed(pair, bar, closer, margin) if word == OPEN else (None, None)
    return Decision(word, -1, difference, margin, p, *_chance(pair, reach), detectable(pair, bar), *needed, reason)


def _word(mean: float, reach: float, near: float, margin: float) -> str:
    """The word for a difference with its intervals at the group's two thresholds."""
    if abs(mean) + near < margin or mean == reach == 0:
        return EQUAL
    if abs(mean) > reach:
        return BETTER if mean > 0 else WORSE
    return OPEN


def _best_word(others: set[str]) -> str:
    """The word for the best solver, by those of the others."""
    return BETTER if others == {WORSE} else OPEN if OPEN in others else EQUAL


def _of_best(found: Decision, others: list[Decision]) -> Decision:
    """What is said of the best: better if all others are worse, open if one is, with what would settle all of them."""
    if not others:
        return found
    word = _best_word({each.word for each in others})
    still = [each for each in others if each.word == OPEN]
    users, repetitions = ([each.users_needed for each in still], [each.repetitions_needed for each in still])
    return replace(found, word=word, users_needed=_largest(users), repetitions_needed=_largest(repetitions))


def _largest(counts: Sequence[int | None]) -> int | None:
    """The largest of these numbers; None where there is none, or one of them is not known."""
    known = [count for count in counts if count is not None]
    return max(known) if known and len(known) == len(counts) else None


def _chance(pair: Variation, reach: float) -> tuple[float, float, float]:
    """The chance that the difference is positive in a new draw of as many users and one repetition, with its interval.

    The interval covers that of the mean, and the error of the spread of new draws, by that of a logarithm.
    """
    one, mean = pair.at(pair.users, 1), float(pair.mean)
    anew = float(one.error)
    if not anew or not np.isfinite(reach):
        sure = 0.5 if mean == 0 or not np.isfinite(reach) else float(mean > 0)
        return (sure, 0.0, 1.0) if not np.isfinite(reach) else (sure, sure, sure)
    both = float(np.hypot(anew, pair.error))
    alone = pair.repetitions > 1 and float(pair.by_repetition) > 0
    spread = Z95 / (2 * (int(pair.degrees) if alone else pair.of_users)) ** 0.5
    moved = float(np.hypot(Z95 * pair.error, spread * mean))
    return float(ndtr(mean / both)), float(ndtr((mean - moved) / anew)), float(ndtr((mean + moved) / anew))


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
    tried = [count for count in _TRIED if count > pair.repetitions > 1]  # one says nothing of others
    enough = bisect_left(tried, True, key=lambda count: detectable(pair.at(pair.users, count), z) <= room)
    return users, tried[enough] if enough < len(tried) else None


def _second(means: Floats) -> int:
    """The place of the second best; -1 if there is none."""
    return int(np.argsort(-means, kind="stable")[1]) if len(means) > 1 else -1


def in_tiers(means: Floats, deviates: Floats, bar: float) -> list[tuple[int, ...]]:
    """The solvers in tiers: those not told from the best, then from the best of the rest, and so on."""
    rest, found = [int(place) for place in np.argsort(-means, kind="stable")], []
    while rest:
        tier = tuple(place for place in rest if place == rest[0] or deviates[rest[0], place] <= bar)
        found.append(tier)
        rest = [place for place in rest if place not in tier]
    return found


def _first(group: Together, pairs: Variation, seed: int, outer: int = 200, inner: int = 200
           ) -> list[tuple[float, float, float]]:  # fmt: skip
    """Each solver's chance to come first in a new draw of users and one repetition, with its 95 % interval."""
    rng, k = np.random.default_rng(seed), len(group.means)
    if group.users < 2:
        return [(1 / k, 0.0, 1.0)] * k
    noise = [
        shaped(rng.standard_normal((size, k)), group.covariances(count))
        for count, size in ((group.repetitions, outer), (1, inner))
    ]
    drawn = group.means + noise[0][:, None] + noise[1]
    tops = drawn == drawn.max(axis=2, keepdims=True)  # equal ones share the place
    shares = (tops / tops.sum(axis=2, keepdims=True)).mean(axis=(0, 1))
    found = []
    for place, (low, high) in enumerate(_first_within(group, pairs, seed)):
        share = float(shares[place])
        found.append((share, min(low, share), max(high, share)))
    return found


def _first_within(group: Together, pairs: Variation, seed: int) -> list[tuple[float, float]]:
    """The intervals of the chances to come first: where each solver's differences from all others have their ends.

    The chance rises with every one of them. Their intervals cover, as that of the chance to beat one rival, the error
    of the spread of new draws too. All differences end on one side together where it is the solver's own mean that is
    off; so these hold the true chance in 93 to 100 % of cases, with one to ten repetitions and three or ten solvers.
    """
    varied = (pairs.repetitions > 1) & (pairs.by_repetition > 0)
    spread = Z95 / np.sqrt(2 * np.where(varied, pairs.degrees, pairs.of_users))
    moved = np.hypot(pairs.reach(Z95), spread * pairs.mean)
    anew = levelled(group.by_user, group.of_users) + levelled(group.by_repetition, group.repetitions - 1)
    noise = shaped(np.random.default_rng(seed).standard_normal((_DRAWS, len(group.means))), anew)
    found = []
    for place, behind in enumerate(moved):
        apart = np.delete(noise[:, [place]] - noise, place, axis=1)
        low, high = (np.delete(pairs.mean[place] + side * behind, place) for side in (-1, 1))
        found.append((float((apart + low > 0).all(axis=1).mean()), float((apart + high >= 0).all(axis=1).mean())))
    return found


def undecided(reason: str, margin: float) -> Decision:
    """The open decision where there is nothing to compare."""
    nothing = Estimate(nan, -inf, inf, nan, 0, 0, 0.0, reason)
    return Decision(OPEN, -1, nothing, margin, 1.0, 0.5, 0.0, 1.0, inf, None, None, reason)
