"""From the facts about a data set to an experiment that suits it: the split, metrics, solvers and search spaces.

Every solver that is tuned gets the same number of trials, and with a time budget every training gets the same time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import floor, log10
from typing import Any

from rankbench.core.errors import UserError
from rankbench.experiments.spaces import Range
from rankbench.names import Named
from rankbench.own_data import REPETITIONS
from rankbench.own_data.facts import Facts
from rankbench.solvers import SOLVERS

Ranges = Mapping[str, Range]  # to try for each tuned setting
STEPS = 20  # of a training without a time budget
TRIALS = 8  # of each solver that is tuned
OVERHEAD = 0.3  # seconds to start and evaluate a training, which are taken from a time budget first
_LIMIT = 600.0  # seconds of a training without a time budget, at most
_LEAST_LIMIT, _PATIENCE = 10.0, 4.0  # with one: so many seconds, and so many times its share
_LEAST_ROWS = 5  # of a data set: with a fifth of them held out, one row tests
_LARGEST_RANK = 10  # the usual one of solvers with factors
_OF_RANK = ("mf", "bpr", "sgd", "altsvm", "frsvm")
_LEAST_SECONDS = 0.05  # of a training
_ENOUGH = 0.75  # of the users should be kept by a split that leaves users out
_PER_USER = (50, 20, 10, 5)  # ratings per user to train on
_MOST_DRAWN = 5_000_000  # comparisons that are drawn from positives, at most
_SCALE = 10.0  # the highest rating for which the gain 2^rating - 1 is of use
_FLOORS = ("random", "popularity", "global")  # what any other solver should beat
_USUAL = {
    "ratings": (*_FLOORS, "mf", "sgd", "altsvm"),
    "positives": (*_FLOORS, "bpr", "sgd", "altsvm"),
    "comparisons": ("random", "global", "sgd", "altsvm"),
}
_MOST_ITEMS = 5000  # for EASE, which inverts a matrix of items x items


@dataclass(frozen=True)
class Wishes:
    """What the user has said about a comparison; what is empty or None is chosen from the data."""

    solvers: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    split: str = ""
    seconds: float | None = None  # for the whole comparison
    trials: int | None = None
    repetitions: int = REPETITIONS
    jobs: int = 1
    seed: int = 0
    margin: float | None = None  # solvers that differ by less in the first metric are equal


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
    solvers: tuple[str, ...]
    spaces: Mapping[str, Ranges]  # by solver; empty where nothing is tuned
    trials: int
    repetitions: int
    seconds: float | None  # of each training; None: a number of steps
    jobs: int  # trainings at a time
    margin: float | None = None

    @property
    def trainings(self) -> int:
        """How many trainings there are: the trials, and one more for each solver and repetition."""
        tuned = sum(bool(space) for space in self.spaces.values())
        return self.repetitions * (len(self.solvers) + tuned * self.trials)

    @property
    def limit(self) -> float:
        """The seconds after which a training is ended that does not come to the end of a step."""
        return _LIMIT if self.seconds is None else _LEAST_LIMIT + _PATIENCE * self.seconds

    def within(self, wishes: Wishes) -> "Choice":
        """The choice with the time that the user has given, divided equally over all trainings."""
        if wishes.seconds is None:
            return self
        share = wishes.seconds * wishes.jobs / self.trainings - OVERHEAD
        return replace(self, seconds=_two_digits(max(_LEAST_SECONDS, share)))


def choose(data: Named, facts: Facts, wishes: Wishes) -> Choice:
    """The experiment that suits the data, as far as the user has not said otherwise."""
    if facts.rows < _LEAST_ROWS:
        rows = "1 row" if facts.rows == 1 else f"{facts.rows} rows"
        raise UserError(f"{data.written} has {rows}: too few to train and to test on", remedy="give more data")
    protocol = protocol_of(facts, wishes)
    solvers = _solvers(facts, wishes)
    spaces = {solver: space_of(solver, facts, protocol) for solver in solvers}
    trials = TRIALS if wishes.trials is None else wishes.trials
    choice = Choice(
        data, facts, protocol, solvers, spaces, trials, wishes.repetitions, None, wishes.jobs, wishes.margin
    )
    return choice.within(wishes)


def protocol_of(facts: Facts, wishes: Wishes) -> Protocol:
    """The split and metrics: the user's own, else what suits the data."""
    usual = _USUAL_PROTOCOLS[facts.kind](facts)
    metrics = wishes.metrics or usual.metrics
    if not wishes.split:
        return Protocol(usual.split, metrics, usual.validation, usual.why)
    validation = "again" if wishes.split.startswith("binary") else "entries[test=0.2]"
    return Protocol(wishes.split, metrics, validation, "the split asked for")


def _of_ratings(facts: Facts) -> Protocol:
    """For ratings: as many ratings per user to train on as most users can spare, else a share of each user's."""
    usual = ("ndcg@10", "pairwise-error") if 0 <= facts.low and facts.high <= _SCALE else ("kendall", "pairwise-error")
    for n in _PER_USER:
        least = min(n, 10)
        if facts.share_with(n + least) >= _ENOUGH:
            kept = f"{facts.share_with(n + least):.0%} of the users have the {n + least} ratings that it needs"
            validation = "entries[test=0.2]" if n > least else "entries[test=0.4]"
            why = f"{n} random ratings of each user train, the rest test; {kept}; per-user[test=0.2] trains on more"
            return Protocol(f"n-per-user[n={n},least={least}]", usual, validation, why)
    if facts.share_with(3) > 0:
        why = "most users have few ratings: half of each user's are held out, of three or more at least two to compare"
        return Protocol("per-user[test=0.5]", usual[-1:], "per-user[test=0.5]", why)
    why = "no user has three ratings: half of all ratings are held out"
    return Protocol("entries[test=0.5]", usual[-1:], "entries[test=0.5]", why)


def _of_positives(facts: Facts) -> Protocol:
    """For items without ratings: the user's items against random others."""
    draws = min(20 * facts.typical, 1000, max(10, _MOST_DRAWN // max(1, facts.users)))
    metrics = ("ndcg@10[candidates=catalogue]", "recall@10[candidates=catalogue,relevant=any]")
    why = "there is no order among a user's items: a tenth of them is held out, and must be found among all other items"
    return Protocol(f"binary[C={draws}]", metrics, "again", why)


def _of_comparisons(facts: Facts) -> Protocol:
    """For comparisons: a fifth of each user's, or of all where users have few."""
    name = "per-user[test=0.2]" if facts.share_with(3) >= _ENOUGH else "entries[test=0.2]"
    whose = "each user's comparisons" if name.startswith("per-user") else "all comparisons, as most users have few,"
    return Protocol(name, ("pairwise-error",), name, f"a fifth of {whose} is held out")


_USUAL_PROTOCOLS = {"ratings": _of_ratings, "positives": _of_positives, "comparisons": _of_comparisons}


def _solvers(facts: Facts, wishes: Wishes) -> tuple[str, ...]:
    """The solvers: those asked for and the floor that they should beat, else the sensible ones for the data."""
    usual = _USUAL[facts.kind]
    if not wishes.solvers:
        if facts.kind == "positives":
            more = ("ease",) if facts.items <= _MOST_ITEMS else ()
        else:
            more = ("frsvm",) if facts.features else ()
        return tuple(_of_rank(name, facts) for name in (*usual, *more))
    floors = [name for name in _FLOORS if name in usual]
    return tuple(dict.fromkeys((*floors, *wishes.solvers)))


def _of_rank(solver: str, facts: Facts) -> str:
    """The solver with a rank that suits small data: factors must be shorter than the sides of the matrix."""
    rank = min(_LARGEST_RANK, max(1, max(facts.users, facts.items) // 4))
    return f"{solver}[rank={rank}]" if solver in _OF_RANK and rank < _LARGEST_RANK else solver


def space_of(solver: str, facts: Facts, protocol: Protocol) -> Ranges:
    """What is tuned of a solver: its penalty, around what suits the number of rows; nothing if it has none.

    A setting that the user has written stays as it is.
    """
    named = SOLVERS.resolve(solver)
    given = dict(named.given)
    usual: Ranges = {"lam": _penalties(facts, protocol)} if named.name in _OF_PAIRS else _AROUND.get(named.name, {})
    found = usual or _around_default(named)
    return {name: values for name, values in found.items() if name not in given}


_OF_PAIRS = ("global", "sgd", "altsvm")  # their objectives are sums over comparisons
_AROUND: Mapping[str, Ranges] = {
    "mf": {"lam": Range(0.3, 100.0, "log")},
    "bpr": {"lam": Range(0.001, 0.3, "log")},
    "frsvm": {"C": Range(1e-4, 10.0, "log")},
}


def _penalties(facts: Facts, protocol: Protocol) -> Range:
    """Penalties for an objective that is a sum over comparisons: in proportion to the comparisons of a user."""
    n = facts.typical
    if facts.kind == "comparisons":
        pairs, shares = n, (0.05, 10.0)
    elif facts.kind == "positives":
        pairs, shares = 20 * n, (0.01, 1.0)
    else:
        trained = next((int(n) for n in _PER_USER if f"[n={n}," in protocol.split), max(2, n))
        pairs, shares = trained * (trained - 1) // 2, (0.05, 10.0)
    low, high = (_two_digits(max(1, pairs) * share) for share in shares)
    return Range(low, high, "log")


def _around_default(named: Named) -> Ranges:
    """The penalty of any other solver, if it has one called lam: a hundredth to a hundred times its default."""
    value: Any = dict(named.settings).get("lam")
    if not isinstance(value, float) or value <= 0:
        return {}
    ends = _two_digits(value / 100), _two_digits(value * 100)
    try:
        for end in ends:
            SOLVERS.resolve(named.written, {"lam": end})
    except UserError:
        return {}  # the solver allows a smaller range
    return {"lam": Range(*ends, "log")}


def _two_digits(value: float) -> float:
    """The value, which is positive, rounded to two digits."""
    return round(value, 1 - floor(log10(abs(value))))
