"""Checks of a user's own metric: what it declares, its values, and what it makes of ties, missing scores and order."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankbench.checks.conduct import printed_by
from rankbench.checks.declared import not_kept
from rankbench.checks.findings import Finding, failed, not_applicable, passed
from rankbench.core.contract import Floats, OwnMetric

_USERS = 200
_ROUNDING = 1e-9
_SAYS_WHO = ("left out", "leaves out", "leave out", "NaN")


@dataclass(frozen=True, eq=False)
class Held:
    """The scores and ratings of one user's held-out items, as a metric gets them."""

    scores: Floats
    ratings: Floats


def _users() -> tuple[Held, ...]:
    """Users with one to forty items of tied ratings, and scores that are related to them and not tied."""
    rng = np.random.default_rng(11)
    sizes = [1, 1, 2, 2, 3, *rng.integers(3, 41, _USERS - 5)]
    ratings = [rng.integers(1, 6, size).astype(float) for size in sizes]
    ratings[5] = np.full(len(ratings[5]), 4.0)
    return tuple(Held(own + 1.5 * rng.standard_normal(len(own)), own) for own in ratings)


@dataclass(frozen=True, eq=False)
class Measured:
    """The metric that is checked, and the users that it is tried on."""

    record: OwnMetric
    users: tuple[Held, ...] = field(default_factory=_users)

    def of(self, change: Callable[[Held], Held] = lambda held: held) -> Floats:
        """The value of each user, whose scores or ratings are changed so."""
        return np.array([float(self.value(change(held))) for held in self.users])

    def value(self, held: Held) -> Any:
        """What the metric returns for a user; as in a run, the ratings cannot be written to."""
        ratings = held.ratings.copy()
        ratings.flags.writeable = False
        return self.record.of_user(held.scores.copy(), ratings)

    def mean(self, change: Callable[[Held], Held]) -> float:
        """The mean over the users that are not left out, after this change; NaN if all are."""
        found = self.of(change)
        return float(np.nanmean(found)) if np.isfinite(found).any() else np.nan

    def is_better(self, one: float, other: float) -> bool:
        """Whether the first value is better than the other by more than rounding."""
        ahead = one - other if self.record.better == "higher" else other - one
        return ahead > _ROUNDING * abs(other)


def declarations(subject: Measured) -> Finding:
    """Whether definition, direction, limits and version are of the right kind, and the class is a frozen dataclass."""
    name, metric = "declarations", subject.record
    if not isinstance(metric.definition, str) or not metric.definition.strip():
        return failed(name, f"definition is {metric.definition!r}", "say in words what the value is")
    if metric.better not in ("higher", "lower"):
        return failed(name, f"better is {metric.better!r}", "declare 'higher' or 'lower'")
    if not _are_limits(metric.limits):
        return failed(name, f"limits is {metric.limits!r}", "declare the lowest and the highest value: (0, 1)")
    if found := not_kept(metric):
        return found
    low, high = metric.limits
    return passed(name, f"{metric.better} is better, from {low:g} to {high:g}, version {metric.version}")


def values(subject: Measured) -> Finding:
    """Whether there is a real number for each user: one item or many, ratings all alike or not."""
    for held in subject.users:
        found = subject.value(held)
        if isinstance(found, str) or np.ndim(found) or not np.isrealobj(found) or found is None:
            shown = "an array" if np.ndim(found) else f"a {type(found).__name__}"
            problem = f"of a user with {len(held.ratings)} items, `of_user` returns {shown}"
            return failed("values", problem, "return one number, or NaN to leave the user out")
    kept = int((~np.isnan(subject.of())).sum())
    if not kept:
        return failed("values", "every user is left out", "return NaN only for users without a value")
    if kept == len(subject.users):
        return passed("values", f"a number for each of {kept} users")
    return passed("values", f"a number for {kept} of {len(subject.users)} users, the others are left out")


def limits(subject: Measured) -> Finding:
    """Whether all values keep the limits, of good scores and bad ones."""
    low, high = subject.record.limits
    for change in (lambda held: held, _perfect, _reversed, _alike):
        found = subject.of(change)
        wrong = found[(found < low - _ROUNDING) | (found > high + _ROUNDING) | np.isinf(found)]
        if len(wrong):
            remedy = "declare wider limits, with np.inf where there is none; a value is finite or NaN"
            return failed("limits", f"a value is {wrong[0]:g}, the limits are {low:g} and {high:g}", remedy)
    return passed("limits", f"all values are from {low:g} to {high:g}")


def definition(subject: Measured) -> Finding:
    """Whether the definition says which users are left out, if any are."""
    name, text = "definition", subject.record.definition
    out = int(np.isnan(subject.of()).sum())
    if out and not any(words in text for words in _SAYS_WHO):
        problem = f"it does not say who is left out, and {out} of {len(subject.users)} users are"
        return failed(name, problem, "add for example: left out: users whose held-out items are all rated alike")
    return passed(name, "says who is left out" if out else "no user is left out")


def direction(subject: Measured) -> Finding:
    """Whether scores equal to the ratings get a better value than the same scores with the sign turned around."""
    name = "direction"
    best, worst = subject.mean(_perfect), subject.mean(_reversed)
    if best == worst:
        return not_applicable(name, "the value does not depend on the order of the scores")
    seen = f"scores equal to the ratings get {best:.4g}, with the sign turned around {worst:.4g}"
    if not subject.is_better(best, worst):
        other = "lower" if subject.record.better == "higher" else "higher"
        return failed(name, seen, f"declare better = '{other}', or read a higher score as a better item")
    return passed(name, seen)


def order_of_items(subject: Measured) -> Finding:
    """Whether the order in which a user's items stand is without meaning, where no scores are tied."""
    name = "order of items"
    if (user := _differing(subject, lambda held: held)) is not None:
        problem = f"the value changes with the order of the items, as for one of {len(user.ratings)} items"
        return failed(name, problem, "sort by the scores, and keep scores[i] and ratings[i] together")
    return passed(name, "without meaning")


def ties(subject: Measured) -> Finding:
    """Whether items of equal score are treated alike, whatever their order in the data."""
    if (user := _differing(subject, _rounded)) is not None:
        problem = f"with tied scores the value depends on the order in the data, as for {len(user.ratings)} items"
        remedy = "take the expected value over all orders of tied items, or count tied items together"
        return failed("ties", problem, remedy)
    return passed("ties", "items of equal score are treated alike")


def constant_scores(subject: Measured) -> Finding:
    """Whether a model that scores all items alike gets less than the best value."""
    name = "constant scores"
    best, none, worst = map(subject.mean, (_perfect, _alike, _reversed))
    if best == worst:
        return not_applicable(name, "the value does not depend on the order of the scores")
    if np.isnan(none):
        return passed(name, "every user is left out")
    if not subject.is_better(best, none):
        remedy = "let a pair with tied scores count one half, and average over the orders of tied items"
        return failed(name, f"a model that scores all items alike gets the best value, {none:.4g}", remedy)
    return passed(name, f"a model that scores all items alike gets {none:.4g}, the best is {best:.4g}")


def missing_scores(subject: Measured) -> Finding:
    """Whether an item without a score (NaN) stands behind all others, or the user is left out."""
    name = "missing scores"
    for lost in (_first_lost, _all_lost):
        bare = Measured(subject.record, tuple(map(lost, subject.users)))
        found, expected = bare.of(), bare.of(_behind)
        wrong = ~(np.isnan(found) | _close(found, expected))
        if wrong.any():
            user = int(np.flatnonzero(wrong)[0])
            problem = f"an item without a score (NaN) does not stand behind all others: {found[user]:.4g} in place of "
            remedy = "start with scores = np.where(np.isnan(scores), -np.inf, scores), or return NaN"
            return failed(name, f"{problem}{expected[user]:.4g}", remedy)
    return passed(name, "such items stand behind all others, or the user is left out")


def writing(subject: Measured) -> Finding:
    """Whether the scores are the same after they were measured; the ratings cannot be written to."""
    for held in subject.users:
        scores, ratings = held.scores.copy(), held.ratings.copy()
        ratings.flags.writeable = False
        subject.record.of_user(scores, ratings)
        if scores.tobytes() != held.scores.tobytes():
            return failed("writing", "`of_user` changes the scores that it is given", "copy them first: scores.copy()")
    return passed("writing", "scores and ratings stay as they were")


def repeating(subject: Measured) -> Finding:
    """Whether a user's value is the same again, and whatever users were measured before."""
    forward = subject.of()
    backward = Measured(subject.record, subject.users[::-1]).of()[::-1]
    if forward.tobytes() != backward.tobytes() or forward.tobytes() != subject.of().tobytes():
        remedy = "compute from scores and ratings alone: draw nothing, and keep nothing between two users"
        return failed("repeating", "a user gets another value the second time", remedy)
    return passed("repeating", "the same values again, and in another order of users")


def silence(subject: Measured) -> Finding:
    """Whether measuring prints nothing."""
    if text := printed_by(subject.of):
        return failed("silence", f"measuring prints {text!r}", "print nothing: it is called for every user")
    return passed("silence", "measuring prints nothing")


def _are_limits(found: object) -> bool:
    """Whether these are two numbers, the lower one first."""
    if not isinstance(found, tuple) or len(found) != 2:
        return False
    return all(isinstance(one, int | float) and not isinstance(one, bool) for one in found) and found[0] < found[1]


def _differing(subject: Measured, change: Callable[[Held], Held]) -> Held | None:
    """The first user whose value changes if the items are put in another order, after this change; None if none is."""
    rng = np.random.default_rng(5)
    for held in map(change, subject.users):
        value = float(subject.value(held))
        for order in (np.arange(len(held.ratings))[::-1], rng.permutation(len(held.ratings))):
            if not _close(value, float(subject.value(Held(held.scores[order], held.ratings[order])))):
                return held
    return None


def _close(one: Any, other: Any) -> Any:
    return np.isclose(one, other, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True)


def _perfect(held: Held) -> Held:
    return Held(held.ratings.copy(), held.ratings)


def _reversed(held: Held) -> Held:
    return Held(-held.ratings, held.ratings)


def _alike(held: Held) -> Held:
    return Held(np.zeros(len(held.ratings)), held.ratings)


def _rounded(held: Held) -> Held:
    return Held(np.round(held.scores / 2), held.ratings)


def _first_lost(held: Held) -> Held:
    """Without the score of the first item."""
    return Held(np.where(np.arange(len(held.scores)) == 0, np.nan, held.scores), held.ratings)


def _all_lost(held: Held) -> Held:
    return Held(np.full(len(held.scores), np.nan), held.ratings)


def _behind(held: Held) -> Held:
    """With a score below all others for the items that have none."""
    known = held.scores[~np.isnan(held.scores)]
    return Held(np.where(np.isnan(held.scores), (known.min() if len(known) else 0.0) - 1.0, held.scores), held.ratings)
