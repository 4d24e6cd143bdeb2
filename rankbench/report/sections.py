"""The sections of the report, one about each experiment, and the papers that they belong to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rankbench.core.errors import safe
from rankbench.records.studies import Study
from rankbench.report.analysis.ranks import Ranks
from rankbench.report.render.series import Drawing


@dataclass(frozen=True)
class Section:
    """One experiment's section: its study, the name of its files, its figures, and a problem if drawing failed."""

    study: Study
    name: str
    drawing: Drawing | None = None
    problem: str = ""
    ranks: Ranks | None = None  # over data sets, if there are enough

    def __post_init__(self) -> None:
        object.__setattr__(self, "problem", safe(self.problem))


def by_paper(sections: Sequence[Section]) -> Mapping[str, list[Section]]:
    """The sections grouped by paper, which is the first word of their names."""
    papers: dict[str, list[Section]] = {}
    for one in sections:
        papers.setdefault(one.name.partition("-")[0], []).append(one)
    return papers
