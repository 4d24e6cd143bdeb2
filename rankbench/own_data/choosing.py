"""From the facts about a data set to an experiment that suits it: the split, metrics, solvers and search spaces.

Every solver that is tuned gets the same number of trials, which end by the same rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Annotated

from rankbench.core.errors import UserError
from rankbench.data.splits import SPLITS
from rankbench.experiments.usual_spaces import Ranges, Size, usual_space
from rankbench.names import Checked, Limits, Named, checking
from rankbench.own_data import REPETITIONS
from rankbench.own_data.contestants import contestants
from rankbench.own_data.facts import Facts
from rankbench.solvers import SOLVERS

STEPS = 100  # of a training, at most
PATIENCE = 5  # steps of a trial without a better value on its validation part, after which it ends
TRIALS = 8  # of each solver that is tuned, before its ranges widen
_LEAST_ROWS = 5  # of a data set: with a fifth of them held out, one row tests
_ENOUGH = 0.5  # of the users should be tested
_TESTED = 8  # rows of a user, of which a fifth is two, the fewest that can be compared
_TUNED = 10  # rows of a user, of which a fifth of the four fifths that train is two as well
_MOST_DRAWN = 5_000_000  # comparisons that are drawn from positives, at most
_OF_POSITIVES = ("ndcg@10[candidates=catalogue]", "recall@10[candidates=catalogue,relevant=any]")
_SCALE = 10.0  # the highest rating for which the gain 2^rating - 1 is of use


@dataclass(frozen=True)
class Wishes(Checked):
    """What the user has said about a comparison; what is empty or None is chosen from the data."""

    solvers: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    split: str = ""
    trials: Annotated[int, checking.TRIALS] | None = None
    repetitions: Annotated[int, checking.REPETITIONS] = REPETITIONS
    seed: Annotated[int, Limits(low=0)] = 0
    margin: Annotated[float, Limits(above=0, below=inf)] | None = None  # below it solvers are equal in the first metric


@dataclass(frozen=True)
class Protocol:
    """A split with the metrics that suit it and the split that cuts validation parts, and why it was chosen."""

    split: str
    metrics: tuple[str, ...]
    validation: str
    why: str


@dataclass(frozen=True)
class Choice:
    """Everything that an experiment on a user's own data needs, with the reasons."""

    data: Named
    facts: Facts
    protocol: Protocol
    solvers: tuple[str, ...]  # the cheapest first
    left_out: tuple[str, ...]  # why other solvers do not take part
    spaces: Mapping[str, Ranges]  # by solver; empty where nothing is tuned
    trials: int
    repetitions: int
    margin: float | None = None

    @property
    def is_tuned(self) -> bool:
        """Whether anything is chosen on validation parts."""
        return any(self.spaces.values())


def choose(data: Named, facts: Facts, wishes: Wishes) -> Choice:
    """The experiment that suits the data, as far as the user has not said otherwise."""
    if facts.rows < _LEAST_ROWS:
        rows = "1 row" if facts.rows == 1 else f"{facts.rows} rows"
        raise UserError(f"{data.written} has {rows}: too few to train and to test on", remedy="give more data")
    protocol = protocol_of(facts, wishes)
    found = contestants(facts, wishes.solvers, protocol.split.startswith("binary"))
    spaces = {solver: space_of(solver, facts, protocol) for solver in found.solvers}
    trials = TRIALS if wishes.trials is None else wishes.trials
    return Choice(
        data, facts, protocol, found.solvers, found.left_out, spaces, trials, wishes.repetitions, wishes.margin
    )


def protocol_of(facts: Facts, wishes: Wishes) -> Protocol:
    """The split and metrics: the user's own, else what suits the data."""
    usual = _USUAL_PROTOCOLS[facts.kind](facts)
    is_binary = wishes.split.startswith("binary")  # which tests on items that are all rated alike
    metrics = wishes.metrics or (_OF_POSITIVES if is_binary else usual.metrics)
    if not wishes.split:
        return Protocol(usual.split, metrics, usual.validation, usual.why)
    validation = "again" if is_binary else "entries[test=0.2]"
    return Protocol(wishes.split, metrics, validation, "the split asked for")


def _of_ratings(facts: Facts) -> Protocol:
    """For ratings: a fifth of each user's is held out, or half where a fifth has too few ratings to compare."""
    usual = ("ndcg@10", "pairwise-error") if 0 <= facts.low and facts.high <= _SCALE else ("kendall", "pairwise-error")
    if facts.share_with(_TESTED) >= _ENOUGH:
        validation = "per-user[test=0.2]" if facts.share_with(_TUNED) >= _ENOUGH else "per-user[test=0.4]"
        tested = f"{facts.share_with(_TESTED):.0%} of the users have two or more held out, which can be compared"
        why = f"a fifth of each user's ratings, drawn at random, is held out, and four fifths train; {tested}"
        return Protocol("per-user[test=0.2]", usual, validation, why)
    if facts.share_with(3) > 0:
        why = "most users have few ratings: half of each user's are held out, of three or more at least two to compare"
        return Protocol("per-user[test=0.5]", usual[-1:], "per-user[test=0.5]", why)
    why = "no user has three ratings: half of all ratings are held out"
    return Protocol("entries[test=0.5]", usual[-1:], "entries[test=0.5]", why)


def _of_positives(facts: Facts) -> Protocol:
    """For items without ratings: the user's items against random others."""
    draws = min(20 * facts.typical, 1000, max(10, _MOST_DRAWN // max(1, facts.users)))
    why = "there is no order among a user's items: a tenth of them is held out, and must be found among all other items"
    return Protocol(f"binary[C={draws}]", _OF_POSITIVES, "again", why)


def _of_comparisons(facts: Facts) -> Protocol:
    """For comparisons: a fifth of each user's, or of all where users have few."""
    name = "per-user[test=0.2]" if facts.share_with(3) >= _ENOUGH else "entries[test=0.2]"
    whose = "each user's comparisons" if name.startswith("per-user") else "all comparisons, as most users have few,"
    return Protocol(name, ("pairwise-error",), name, f"a fifth of {whose} is held out")


_USUAL_PROTOCOLS = {"ratings": _of_ratings, "positives": _of_positives, "comparisons": _of_comparisons}


def space_of(solver: str, facts: Facts, protocol: Protocol) -> Ranges:
    """What is tuned of a solver: its penalty and the length of its vectors, around what suits the number of rows."""
    return usual_space(SOLVERS.resolve(solver), _size(facts, protocol))


def _size(facts: Facts, protocol: Protocol) -> Size:
    """What the ranges of settings depend on: above all, how many comparisons a typical user has in training."""
    n = facts.typical
    if facts.kind == "comparisons":
        return Size(facts.users, facts.items, n)
    if facts.kind == "positives":
        return Size(facts.users, facts.items, 20 * n, (0.01, 1.0))
    trained = _trained(protocol.split, n)
    return Size(facts.users, facts.items, trained * (trained - 1) / 2)


def _trained(split: str, rows: int) -> int:
    """How many of so many rows of a user a split trains on, as far as its name tells; else four fifths."""
    named = SPLITS.resolve(split)
    if named.name == "n-per-user":
        return int(named.setting("n"))
    held_out = named.setting("test")
    return round(rows * (1 - held_out if isinstance(held_out, float) else 0.8))
