"""The figure of an experiment: its kind, what it shows, and its reference lines."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rankbench.core.errors import UserError, refuse_unknown
from rankbench.experiments.costs import read_patterns
from rankbench.names import Checked, Named, Pattern, Settings
from rankbench.names.grammar import read_settings


@dataclass(frozen=True)
class Curve(Checked):
    """A reference line in a figure that is not measured, for example a theoretical curve or the noise level."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    part: Settings = ()  # the panel it belongs to, written `rank=2`; empty: every panel

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.part, str):
            object.__setattr__(self, "part", tuple(read_settings(self.part).items()))
        for name, values in (("x", self.x), ("y", self.y)):
            numbers = isinstance(values, list | tuple) and all(type(value) in (int, float) for value in values)
            if not numbers or not values:
                problem = f"{name} of {self.name!r} must be a list of numbers that is not empty"
                raise UserError(problem, subject="Curve")
            object.__setattr__(self, name, tuple(map(float, values)))
        if len(self.x) != len(self.y):
            problem = f"{self.name!r} has {len(self.x)} numbers in x and {len(self.y)} in y: give the same number"
            raise UserError(problem, subject="Curve")


@dataclass(frozen=True)
class Figure(Checked):
    """The figure of an experiment: how its results are drawn."""

    kind: Literal["curve", "sweep", "bars", "speedup", "growth"] = "bars"
    metric: str = ""  # empty: the experiment's first metric
    x: str = "seconds"  # curve: seconds or step; sweep: a setting of the data or the split; growth: also of the solvers
    by: tuple[str, ...] = ()  # sweep: settings with one panel per value
    curves: tuple[Curve, ...] = ()  # sweep and speedup: reference lines
    others: tuple[str, ...] = ()  # further metrics, each with panels of its own
    solvers: tuple[Pattern, ...] = ()  # those that are drawn; empty: all. The tables have all of them
    data: tuple[Pattern, ...] = ()  # likewise

    def __post_init__(self) -> None:
        super().__post_init__()
        read_patterns(self, "solvers", "data")
        if self.by and self.kind != "sweep":
            raise UserError(f"by needs kind=sweep, not kind={self.kind}", subject="Figure")
        if self.curves and self.kind not in ("sweep", "speedup"):
            raise UserError(f"curves need kind=sweep or kind=speedup, not kind={self.kind}", subject="Figure")

    @property
    def is_of_costs(self) -> bool:
        """Whether it shows what solvers cost, and not how good their models are."""
        return self.kind in ("speedup", "growth")

    def shows(self, solver: Named, data: Named | None = None) -> bool:
        """Whether a solver is drawn, on this data set if one is given."""
        chosen = ((self.solvers, solver), *([(self.data, data)] if data else []))
        return all(not patterns or any(map(named.fits, patterns)) for patterns, named in chosen)


def check_shown(file: str, figure: Figure, known: Mapping[str, Mapping[str, str]]) -> None:
    """Raise an error if a figure is to show a solver or data that the experiment has in neither profile."""
    for kind, patterns in (("solvers", figure.solvers), ("data", figure.data)):
        names = {text.partition("[")[0] for text in known[kind]}
        refuse_unknown(f"name in {file}: [figure] {kind}", (pattern.name for pattern in patterns), names)
