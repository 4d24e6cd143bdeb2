"""Which solvers take part in a comparison on a user's own data, in order of their cost, and why others do not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rankbench.data.views import Ratings, accepted
from rankbench.experiments.usual_spaces import FLOORS
from rankbench.own_data.facts import Facts
from rankbench.solvers import SOLVERS

_TIERS = (  # by what a step costs on the same data, the cheapest first
    (*FLOORS, "mf", "bpr", "item-knn", "rp3beta", "ease", "ials", "softmax"),
    ("slim", "sgd", "altsvm", "rmc", "smc", "frsvm", "imc", "mprank", "ranksvm-joint", "ranksvm-var"),
    ("robirank", "sqlrank", "fm", "svrank", "ranksvm-separate", "rankboost"),
    ("convex-erm", "cofirank", "ranksvm-nuclear"),
    ("lcr",),
)
_USUAL_TIER = 1  # of a solver of the user's own
_AT_BEST = {"bpr": "bpr[biases=true]"}  # what a solver is called whose default lacks what it is used with
_IN_CATALOGUE = {  # what a solver is called where all ratings are alike
    "robirank": "robirank[among=catalogue]",
    "sqlrank": "sqlrank[unrated=3]",
}
_WHICH_RATED = ("bpr", "item-knn", "rp3beta", "ease", "ials", "softmax", "slim")  # which items were rated, and not how
_OF_VALUES = ("mf", "rmc", "smc", "cofirank", "imc", "mprank", "svrank", "rankboost")  # nothing without an order
_OF_ORDERS = "rmc"  # it learns from partial orders
_QUADRATIC = ("ease", "slim")  # in the number of items
_MOST_ITEMS = 5000
_MOST_PAIRS = 50_000_000  # comparisons that are listed for a solver


@dataclass(frozen=True)
class Contestants:
    """The solvers that take part, the cheapest first, and why others do not: a reason for several of them."""

    solvers: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def contestants(facts: Facts, asked: Sequence[str], draws: bool = True) -> Contestants:
    """The solvers asked for and the floors that they should beat, else all that can learn from the data.

    `draws` says whether the split draws comparisons where the ratings have no order.
    """
    reasons = {name: _against(name, facts, draws) for tier in _TIERS for name in tier}
    if asked:
        floors = (name for name in FLOORS if not reasons[name])
        return Contestants(tuple(dict.fromkeys((*floors, *asked))))
    names = _AT_BEST | (_IN_CATALOGUE if facts.kind == "positives" else {})
    solvers = tuple(names.get(name, name) for name, reason in reasons.items() if not reason)
    return Contestants(solvers, tuple(_told(reasons)))


def tiers(solvers: Sequence[str]) -> list[tuple[str, ...]]:
    """The solvers in groups of about the same cost, the cheapest first."""
    numbers = {text: tier_of(text) for text in solvers}
    return [tuple(text for text in solvers if numbers[text] == tier) for tier in sorted(set(numbers.values()))]


def tier_of(solver: str) -> int:
    """The number of the group of solvers of about the same cost, 0 for the cheapest."""
    name = solver.partition("[")[0]
    return next((number for number, tier in enumerate(_TIERS) if name in tier), _USUAL_TIER)


def _against(name: str, facts: Facts, draws: bool) -> str:
    """Why a solver does not take part; empty if it does."""
    solver: Any = SOLVERS.find(name)
    kind, kinds = facts.kind, accepted(solver)
    lists_pairs = Ratings not in kinds
    reasons = {
        "need item features (features=FILE in brackets)": solver.needs_features and not facts.features,
        "need ratings": kind == "comparisons" and kinds == (Ratings,),
        "need comparisons without a contradiction such as a > b > c > a": facts.cyclic and name == _OF_ORDERS,
        "learn which items were rated, and not how": kind == "ratings" and name in _WHICH_RATED,
        "fit the values of ratings, which are alike here": kind == "positives" and name in _OF_VALUES,
        "learn from comparisons, which only --split binary draws here": kind == "positives"
        and lists_pairs
        and not draws,
        f"are quadratic in the items, {facts.items:,} here": name in _QUADRATIC and facts.items > _MOST_ITEMS,
        f"list up to {facts.pairs:,} comparisons; --split n-per-user[n=50] has fewer": (
            kind == "ratings" and lists_pairs and facts.pairs > _MOST_PAIRS
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _told(reasons: dict[str, str]) -> Iterator[str]:
    """A line for each reason with the solvers that it keeps out."""
    for reason in dict.fromkeys(filter(None, reasons.values())):
        yield f"{', '.join(name for name, own in reasons.items() if own == reason)} {reason}"
