"""The section of the report about one experiment."""

from dataclasses import dataclass

from rankbench.harness.records import Study
from rankbench.report.ranks import Ranks
from rankbench.report.series import Drawing


@dataclass(frozen=True)
class Section:
    """One experiment's section: its study, the name of its files, its figures, and a problem if drawing failed."""

    study: Study
    name: str
    drawing: Drawing | None = None
    problem: str = ""
    ranks: Ranks | None = None  # over data sets, if there are enough
