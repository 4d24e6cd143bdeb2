"""The parts of a text about an experiment, as records that every form of the report is written from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rankbench.report.render.facts import Fact
from rankbench.report.render.figures.drawings import Drawing
from rankbench.report.render.tables import Sheet


@dataclass(frozen=True)
class Heading:
    """What an experiment is called, and which run of it is shown: its profile and seed."""

    name: str
    title: str
    run: tuple[str, ...]


@dataclass(frozen=True)
class Prose:
    """A text of paragraphs, lists (`- `) and tables (`|`) under a title, which may be empty."""

    text: str
    title: str = ""


@dataclass(frozen=True)
class Notes:
    """Lines that a reader must know beside the numbers."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table under its title, with how to read it; what it says decides how a page shows it."""

    title: str
    sheet: Sheet
    says: str = "all"  # `answer`, `published`, `costs`, `trials` or `all`
    legend: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Chart:
    """The experiment's figure: the file that has it, and its drawing by each metric, if there is one."""

    title: str
    file: str
    drawings: Mapping[str, Drawing] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """A figure in a file, with what it shows in words; a page shows the drawing, or the words where there is none."""

    title: str
    file: str
    alternative: str
    words: tuple[str, ...] = ()
    draw: Callable[[], str] | None = None  # as SVG, which is slow


@dataclass(frozen=True)
class Facts:
    """How the numbers were made."""

    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Problems:
    """What was skipped or is broken, and the cells that did not end well as (cell, status, reason)."""

    skipped: tuple[str, ...]
    failed: tuple[str, ...]
    cells: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Definitions:
    """What the numbers mean: a line for each metric, then the rules that all share."""

    lines: tuple[str, ...]


Block = Heading | Prose | Notes | Table | Chart | Picture | Facts | Problems | Definitions
