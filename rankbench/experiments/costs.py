"""What an experiment says about costs: how they should grow along an axis, and which solvers are rivals."""

from dataclasses import dataclass
from typing import Annotated

from rankbench.core.errors import UserError
from rankbench.names import Checked, Limits, Pattern

_MOST = 10.0  # an exponent above this is a mistake


@dataclass(frozen=True)
class Growth(Checked):
    """How the cost of a solver should grow along the axis of a figure of growth: with which power of it, and why.

    Where a cost is a sum of terms that grow differently, the exponent lies between two ends: `seconds = [0, 1]`.
    """

    solver: Pattern
    seconds: tuple[float, ...] = ()  # the lowest and the highest exponent of the training time; empty: unknown
    memory: tuple[float, ...] = ()  # of the memory that the training takes
    why: str = ""
    data: Pattern | None = None  # the data that this is true of; None: all of the experiment

    def __post_init__(self) -> None:
        super().__post_init__()
        read_patterns(self, "solver", "data")
        for name in ("seconds", "memory"):
            object.__setattr__(self, name, _exponents(name, getattr(self, name)))
        if not self.seconds and not self.memory:
            raise UserError(f"{self.solver} has no exponent", subject="Growth", remedy="give seconds, memory or both")


@dataclass(frozen=True)
class Rivals(Checked):
    """A solver of rankbench and one of another package for the same task, whose seconds are compared."""

    ours: Pattern
    peer: Pattern
    metric: str = ""  # the quality beside the seconds; empty: the experiment's first metric
    steps: Annotated[int, Limits(low=0, high=1000)] = 1  # of ours for one of the peer's; 0: no number does its work

    def __post_init__(self) -> None:
        super().__post_init__()
        read_patterns(self, "ours", "peer")


def _exponents(name: str, value: object) -> tuple[float, ...]:
    """The ends of an exponent, of which a single number is both."""
    numbers = value if isinstance(value, list | tuple) else [value, value]
    good = all(isinstance(one, int | float) and type(one) is not bool and abs(one) <= _MOST for one in numbers)
    if not good or len(numbers) not in (0, 2) or list(numbers) != sorted(numbers):
        problem = f"{name}={value!r} must be an exponent like 1, or its lowest and highest value like [0, 1]"
        raise UserError(problem, subject="Growth")
    return tuple(map(float, numbers))


def read_patterns(record: object, *names: str) -> None:
    """Read these fields as patterns, or as several patterns, where they are still texts."""
    for name in names:
        found = getattr(record, name)
        if isinstance(found, str):
            object.__setattr__(record, name, Pattern.read(found))
        elif isinstance(found, tuple):
            several = tuple(Pattern.read(one) if isinstance(one, str) else one for one in found)
            object.__setattr__(record, name, several)
