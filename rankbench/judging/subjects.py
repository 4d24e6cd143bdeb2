"""What a judged run is to tables and pages: a truth in place of a data set, a run in place of a solver."""

from dataclasses import dataclass
from math import nan
from typing import Any, ClassVar

from rankbench.names import Named
from rankbench.names.grammar import show
from rankbench.records.cells import JUDGED, RUN


@dataclass(frozen=True)
class GivenTruth:
    """The truth that runs are judged by."""

    name: str
    origin: ClassVar[None] = None  # nothing is known of where it comes from


@dataclass(frozen=True)
class GivenRun:
    """A run that another tool wrote."""

    learns_from: ClassVar[tuple[type, ...]] = ()
    needs_features: ClassVar[bool] = False


@dataclass(frozen=True)
class GivenLists:
    """The lists as they are: nothing is split off here."""

    title: ClassVar[str] = "lists as given"


@dataclass(frozen=True)
class GivenMetric:
    """A metric by the convention of a tool, evaluated when the run was judged."""

    name: str
    definition: str
    better: ClassVar[str] = "higher"
    limits: ClassVar[tuple[float, float]] = (0.0, 1.0)
    version: ClassVar[int] = 1

    def of_user(self, scores: Any, relevances: Any) -> float:
        """No value: the values were stored when the run was judged."""
        return nan


def truth_named(name: str, digest: str) -> Named:
    """A truth under this name, known by the digest of its rows."""
    identity = f"truth:sha256-{digest}"
    return Named(name, f"truth:{name}", (), (("name", name),), identity, identity, f"{JUDGED}:GivenTruth")


def run_named(name: str) -> Named:
    """A run under this name."""
    return Named(name, f"{RUN}{name}", (), (), f"{RUN}{name}", f"{RUN}{name}", f"{JUDGED}:GivenRun")


def lists_named() -> Named:
    """The place of a split."""
    return Named("given", "given", (), (), "given", "given", f"{JUDGED}:GivenLists")


def metric_named(label: str, definition: str) -> Named:
    """A metric under this label, known by its definition."""
    settings = (("name", label), ("definition", definition))
    identity = show(f"judged:{label}", {"definition": definition})
    return Named(label, f"judged:{label}", (), settings, f"judged:{label}", identity, f"{JUDGED}:GivenMetric")
