"""The settings of each solver that tuning should choose, with ranges around what suits data of a size.

They are what somebody who knows a solver would tune first: its penalty, that of its biases, and the length of its
vectors if it has some; and the step of `bpr`. Steps of other solvers are not: ranges widen, and at a step far too large
trainings diverge, which marks a search.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, log10
from typing import Any

from rankbench.core.errors import UserError
from rankbench.experiments.spaces import Range
from rankbench.names import Named
from rankbench.solvers import SOLVERS

Ranges = Mapping[str, Range]  # to try for each tuned setting

FLOORS = ("random", "popularity", "global")  # solvers that know nothing of single users: what any other should beat
_SHORTEST, _LONGEST = 2, 32  # vectors; the widening of ranges goes beyond where longer ones are better
_OF_PAIRS = ("global", "sgd", "altsvm", "lcr", "fm")  # their objectives are sums over comparisons
_CAPACITY = ("rank", "neighbours")  # settings that say how much a model can hold
PENALTIES = ("lam", "C", "share")  # settings that hold a model back
_AROUND: Mapping[str, Ranges] = {
    "mf": {"lam": Range(0.3, 100.0, "log"), "biases": Range(0.3, 100.0, "log")},
    "bpr": {"lam": Range(0.001, 0.3, "log"), "step": Range(0.01, 0.3, "log")},
    "frsvm": {"C": Range(1e-4, 10.0, "log")},
    "rmc": {"share": Range(0.01, 0.8, "log")},
    "smc": {"share": Range(0.01, 0.8, "log")},
    "convex-erm": {"lam": Range(0.03, 10.0, "log")},
    "cofirank": {"lam": Range(0.3, 300.0, "log")},
    "robirank": {"lam": Range(0.01, 30.0, "log")},
    "ials": {"lam": Range(1e-4, 0.1, "log"), "unrated": Range(0.003, 1.0, "log")},
    "sqlrank": {"lam": Range(0.1, 100.0, "log")},
    "softmax": {"lam": Range(3e-4, 0.1, "log")},
    "ease": {"lam": Range(3.0, 3000.0, "log")},
    "slim": {"l1": Range(0.1, 30.0, "log"), "lam": Range(1.0, 1000.0, "log")},
    "rp3beta": {
        "neighbours": Range(5, 300, "log"),
        "alpha": Range(0.3, 2.0),
        "beta": Range(0.0, 1.0),
    },
    "item-knn": {"neighbours": Range(5, 300, "log"), "shrink": Range(1.0, 300.0, "log")},
}


@dataclass(frozen=True)
class Size:
    """What the ranges of settings depend on."""

    users: int
    items: int
    pairs: float  # comparisons of a typical user in training
    shares: tuple[float, float] = (0.05, 10.0)  # of these comparisons, from which penalties of their sums are tried

    @property
    def longest(self) -> int:
        """The longest vectors to try at first, shorter than the sides of the matrix."""
        return max(_SHORTEST + 1, min(_LONGEST, min(self.users, self.items) // 4))


def usual_space(solver: Named, size: Size) -> Ranges:
    """The ranges to try for a solver; a setting that the user has written stays as it is."""
    given = dict(solver.given)
    found = _penalty(solver, size) | _length(solver, size)
    return {name: values for name, values in found.items() if name not in given}


def untuned(solver: Named, tuned: tuple[str, ...]) -> list[str]:
    """The settings that should have been tuned and were not: the capacity of a model, and its penalty."""
    values = dict(solver.settings)
    fixed = [name for name in _CAPACITY if values.get(name) is not None and name not in tuned]
    penalties = [name for name in PENALTIES if values.get(name) is not None]
    return [*fixed, *(penalties[:1] if penalties and not set(PENALTIES) & set(tuned) else [])]


def _penalty(solver: Named, size: Size) -> dict[str, Range]:
    """The range of a solver's penalty: in proportion to the comparisons where its objective is a sum over them."""
    if solver.name in _OF_PAIRS:
        low, high = (_two_digits(max(1.0, size.pairs) * share) for share in size.shares)
        return {"lam": Range(low, high, "log")}
    return dict(_AROUND.get(solver.name) or _around_default(solver))


def _length(solver: Named, size: Size) -> dict[str, Range]:
    """The range of the length of a solver's vectors, if it has some."""
    is_built_in = solver.name in SOLVERS.entries
    rank = dict(solver.settings).get("rank")
    if not is_built_in or not isinstance(rank, int):
        return {}
    return {"rank": Range(_SHORTEST, size.longest, "log")}


def _around_default(solver: Named) -> Ranges:
    """The penalty of any other solver: a hundredth to a hundred times its default."""
    for name in PENALTIES:
        value: Any = dict(solver.settings).get(name)
        if isinstance(value, float) and value > 0:
            ends = _two_digits(value / 100), _two_digits(value * 100)
            return {name: Range(*ends, "log")} if all(_allows(solver, name, end) for end in ends) else {}
    return {}


def _allows(solver: Named, name: str, value: object) -> bool:
    """Whether a solver takes this value of a setting."""
    try:
        SOLVERS.resolve(solver.written, {name: value})
    except UserError:
        return False
    return True


def _two_digits(value: float) -> float:
    """The value, which is positive, rounded to two digits."""
    return round(value, 1 - floor(log10(abs(value))))
