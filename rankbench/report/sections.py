"""An experiment as a section of the report."""

from dataclasses import dataclass

from rankbench.harness.records import Study
from rankbench.report.series import Drawing


@dataclass(frozen=True)
class Section:
    """An experiment in the report: its study, the name of its files, its figure, and what could not be drawn."""

    study: Study
    name: str
    drawing: Drawing | None = None
    problem: str = ""
