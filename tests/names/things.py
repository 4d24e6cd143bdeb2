"""Small classes with names, a registry of them, and a user's own file."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from rankbench.names import Limits, Registry, check


@dataclass(frozen=True)
class Bare:
    """No settings at all."""


@dataclass(frozen=True)
class Shaped:
    """A record whose first field has few values."""

    kind: Literal["red", "dark-green"]
    size: Annotated[int, Limits(low=1)] = 5

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Filed:
    """A record whose first field is a path, and that may have another file."""

    path: str
    labels: str | None = None
    size: int = 5
    paths: ClassVar[tuple[str, ...]] = ("path", "labels")


@dataclass(frozen=True)
class Numbered:
    """A record whose first field is a number."""

    level: Annotated[float, Limits(above=0)]


@dataclass(frozen=True)
class Optional:
    """A record whose first field may be none."""

    level: int | None = None


THINGS = Registry(
    "thing",
    {
        **{f"{name}:": f"{__name__}:{name.title()}" for name in ("shaped", "filed", "numbered", "optional")},
        "bare": f"{__name__}:Bare",
        "argued:": f"{__name__}:Bare",
    },
    "rankbench.things",
    "rankbench list things",
)

OWN_FILE = """
from dataclasses import dataclass
from typing import ClassVar
from rankbench import Determinism, Ratings
from rankbench.names import check

@dataclass(frozen=True)
class Undeclared:
    rank: int = 3
    def __post_init__(self):
        check(self)

@dataclass(frozen=True)
class Mine(Undeclared):
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1
    def steps(self, train, rng, threads=1):
        yield

class Plain:
    pass

def function():
    pass
"""
