"""What the templates of the page ask for: tables as lines of cells, names that may break, prose, figures as JSON."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from rankbench.core.texts import address, html, html_lines, inert, inert_lines
from rankbench.records.studies import Study
from rankbench.report.analysis.verdicts import Finding
from rankbench.report.render.blocks import Block, Table
from rankbench.report.render.figures.drawings import Drawing
from rankbench.report.render.labels import data_labels, metric_labels, solver_labels, split_labels
from rankbench.report.render.page.plots import Key, about, caption, figure_of, height_of, keys_of
from rankbench.report.render.tables import Sheet

_MACROS: Mapping[type, str] = {Table: "table_of"}  # the others have the name of their block
_STRESSED = re.compile(r"(?<![\w*])\*(?=[^*]*\w)([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])")
Labels = Mapping[str, str]  # the name for people, by the text that an experiment has


@dataclass(frozen=True)
class PageCell:
    """A cell of a table: its class, its text, the name that people see, and the exact name below that."""

    kind: str
    text: str
    name: str
    exact: str
    bold: bool


@dataclass(frozen=True)
class PageLine:
    """A line of a table: whether its first cell repeats the one above, the solver that it belongs to, its cells."""

    same: bool
    owner: str
    cells: tuple[PageCell, ...]


@dataclass(frozen=True)
class Plot:
    """A figure for the page: its legend, the room that it takes, its first words and caption, what is drawn as JSON."""

    keys: tuple[Key, ...]
    panels: int
    height: str
    about: str
    caption: str
    json: str


@cache
def templates() -> Environment:
    """The templates of the page; all text is escaped, without control characters, unless a template says otherwise."""
    found = Environment(
        loader=FunctionLoader(part), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=_finalized,
    )  # fmt: skip
    filters = (headings, lines, paragraphs, prose, breakable, plot, address)
    found.filters |= {one.__name__: one for one in filters} | {"b64": lambda text: b64encode(text.encode()).decode()}
    return found


def part(name: str) -> str:
    """The text of a template, of the style sheet or of the script."""
    return files("rankbench.report.render.page").joinpath(name).read_text(encoding="utf-8")


def rendered(name: str, *what: object) -> str:
    """What a macro of the blocks makes of these arguments."""
    return str(getattr(templates().get_template("blocks.html").module, name)(*what))


def article(name: str, study: Study, blocks: Iterable[Block]) -> str:
    """An experiment as HTML, from its blocks."""
    labels = {**data_labels(study), **split_labels(study), **metric_labels(study), **solver_labels(study)}
    of = {"title": study.experiment.title, "labels": labels}
    parts = (rendered(_MACROS.get(type(block), type(block).__name__.lower()), block, of) for block in blocks)
    return f'<article id="{html(name)}">{"".join(parts)}</article>'


def headings(sheet: Sheet) -> list[tuple[str, bool]]:
    """The headings of a table, with whether their columns are numbers."""
    return list(zip(sheet.headings, sheet.numeric, strict=True))


def lines(sheet: Sheet, labels: Labels) -> Iterator[PageLine]:
    """The lines of a table, with names for people in place of the exact ones."""
    above = ""
    for number, (line, solver) in enumerate(zip(sheet.lines, sheet.solvers or [""] * len(sheet.lines), strict=True)):
        cells = (
            PageCell(_kind(*of, text), text, *_named(text, solver, labels), (number, column) in sheet.best)
            for column, (of, text) in enumerate(zip(headings(sheet), line, strict=True))
        )
        yield PageLine(line[0] == above, labels.get(solver, solver), tuple(cells))
        above = line[0]


def paragraphs(text: str) -> Iterator[tuple[str, Any]]:
    """The paragraphs, lists (`- `) and tables (`|`) of a text, which empty lines part from each other."""
    for block in re.split(r"\n\s*\n", text.strip()):
        if block.startswith("|"):
            cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
            yield "table", [line for line in cells if set("".join(line)) - set("-: ")]
        elif block.startswith("- "):
            yield "list", re.split(r"(?:^|\n)- ", block)[1:]
        else:
            yield "text", block


def prose(text: str) -> Markup:
    """Escaped text with parts between backticks as code, and between asterisks with stress, at the start as bold."""
    escaped = re.sub(r"^\*([^*\s][^*]*)\*", r"<b>\1</b>", html_lines(text))
    parts = escaped.split("`") if escaped.count("`") % 2 == 0 else [escaped]
    return Markup("".join(
        f"<code>{part}</code>" if number % 2 else _STRESSED.sub(r"<em>\1</em>", part)
        for number, part in enumerate(parts)
    ))  # fmt: skip


def breakable(text: str) -> Markup:
    """Escaped text in which a long name may break after a comma or before a bracket."""
    return Markup(html(text).replace(",", ",<wbr>").replace("[", "<wbr>["))


def plot(drawn: Mapping[str, Drawing]) -> Plot:
    """The figure of an experiment by each metric."""
    drawn = {inert(label): one.said(inert_lines) for label, one in drawn.items()}
    keys = keys_of(drawn.values())
    figures = {label: figure_of(one, keys) for label, one in drawn.items()}
    safe = json.dumps(figures, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    panels, height = max(len(one.panels) for one in drawn.values()), max(map(height_of, drawn.values()))
    first = next(iter(drawn.values()))
    return Plot(tuple(keys.values()), panels, f"{height:g}", about(first), caption(first), safe)


def _finalized(value: object) -> object:
    """What a template prints of a value: of a plain text, one line without control characters."""
    return inert(value) if type(value) is str else value


def _kind(heading: str, numeric: bool, text: str) -> str:
    """The class of a cell: of a status and of a verdict it is the word itself."""
    if heading == "status":
        return text
    if heading == "verdict":
        return next((verdict.name.lower() for verdict in Finding if text.startswith(verdict)), "name")
    return "number" if numeric else "name"


def _named(text: str, solver: str, labels: Labels) -> tuple[str, str]:
    """A text's name for people and its exact one, if they differ; a solver's text may have a remark behind."""
    known = next((one for one in (text, solver) if one and one in labels and text.startswith(one)), "")
    name = labels.get(known, "")
    return (text, "") if name in ("", known) else (name + text.removeprefix(known), known)
