"""The section of the report about one experiment."""

from dataclasses import dataclass

from rankbench.errors import safe
from rankbench.harness.records import Study
from rankbench.report.series import Drawing


@dataclass(frozen=True)
class Section:
    """One experiment's section: its study, the name of its files, its figure, and a problem if drawing failed."""

    study: Study
    name: str
    drawing: Drawing | None = None
    problem: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "problem", safe(self.problem))
