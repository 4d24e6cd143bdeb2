"""What an experiment says about costs: how they should grow along an axis, and which solvers are rivals."""

from dataclasses import dataclass
from typing import Annotated

from rankbench.errors import UserError
from rankbench.names import Limits, Pattern, check

_Exponent = Annotated[float, Limits(low=-10, high=10)]


@dataclass(frozen=True)
class Growth:
    """How the cost of a solver should grow along the axis of a figure of growth: with which power of it, and why."""

    solver: Pattern
    seconds: _Exponent | None = None  # of the training
    memory: _Exponent | None = None  # that the training takes
    why: str = ""

    def __post_init__(self) -> None:
        check(self)
        _read(self, "solver")
        if self.seconds is None and self.memory is None:
            raise UserError(f"{self.solver} has no exponent", subject="Growth", remedy="give seconds, memory or both")


@dataclass(frozen=True)
class Rivals:
    """A solver of rankbench and one of another package for the same task, whose seconds are compared."""

    ours: Pattern
    peer: Pattern

    def __post_init__(self) -> None:
        check(self)
        _read(self, "ours", "peer")


def _read(record: object, *names: str) -> None:
    """Read these fields as patterns, where they are still texts."""
    for name in names:
        if isinstance(text := getattr(record, name), str):
            object.__setattr__(record, name, Pattern.read(text))
