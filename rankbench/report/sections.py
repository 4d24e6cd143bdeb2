"""The sections of the report, one about each experiment, what is kept of each, and the papers that they belong to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rankbench.core.texts import safe
from rankbench.records.studies import Study
from rankbench.report.analysis.costs import Duration
from rankbench.report.analysis.ranks import Ranks
from rankbench.report.analysis.verdicts import Score
from rankbench.report.render.figures.drawings import Drawing


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


@dataclass(frozen=True)
class MachineUse:
    """A machine with its versions: in a line, as the row of a table, and when it ended its first and last result."""

    identity: str
    line: str
    row: tuple[str, ...]
    first: str
    last: str


@dataclass(frozen=True)
class Piece:
    """What the report keeps of one experiment, so that it need not be made again: its texts, and what is counted."""

    name: str
    origin: str
    title: str
    answer: str
    problem: str  # why it is not shown whole
    markdown: str
    differences: str  # in Markdown; empty if there are none to tell
    html: str
    cells: int
    good: int
    score: Score | None
    duration: Duration | None
    machines: tuple[MachineUse, ...]


def machines(pieces: Sequence[Piece]) -> list[MachineUse]:
    """Each machine and set of versions that any of the pieces was made on, with its first and last result of all."""
    found: dict[str, MachineUse] = {}
    for use in (use for piece in pieces for use in piece.machines):
        other = found.get(use.identity, use)
        found[use.identity] = replace(use, first=min(use.first, other.first), last=max(use.last, other.last))
    return list(found.values())


def by_paper(pieces: Sequence[Piece]) -> Mapping[str, list[Piece]]:
    """The pieces grouped by paper, which is the first word of their names."""
    papers: dict[str, list[Piece]] = {}
    for one in pieces:
        papers.setdefault(one.name.partition("-")[0] or one.name, []).append(one)
    return papers
