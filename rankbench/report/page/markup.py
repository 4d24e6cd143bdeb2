"""The parts of the page as HTML: tables that sort, the switches of a figure, lists."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from rankbench.harness.records import Study
from rankbench.report.facts import Fact
from rankbench.report.findings import Finding
from rankbench.report.labels import metric_labels, solver_labels
from rankbench.report.tables import Sheet, place_labels

_MANY = 6  # lines of a fact that are shown without being asked for
Labels = Mapping[str, str]  # the name for people, by the text that an experiment has


def labels_of(study: Study) -> Labels:
    """The names for people of all that the tables of a study name."""
    return {**place_labels(study), **metric_labels(study), **solver_labels(study)}


def table(sheet: Sheet, about: str, labels: Labels | None = None, links: Mapping[str, str] | None = None) -> str:
    """A table whose columns can be sorted, in a box that scrolls by itself; `links` leads from texts to places."""
    names = labels or {}
    head = "".join(_heading(text, numeric, names) for text, numeric in zip(sheet.headings, sheet.numeric, strict=True))
    shown = [
        [_linked(_named(text, solver, names), (links or {}).get(text, "")) for text in line]
        for line, solver in zip(sheet.lines, sheet.solvers or [""] * len(sheet.lines), strict=True)
    ]
    for line, column in sheet.best:
        shown[line][column] = f"<b>{shown[line][column]}</b>"
    body = "".join(_row(sheet, number, cells, names) for number, cells in enumerate(shown))
    return (
        f'<div class="wide" role="region" aria-label="{escape(about)}" tabindex="0"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def switches(legend: Iterable[tuple[str, str, str]]) -> str:
    """A switch for each solver and each other line of a figure, with its colour and style, as a legend."""
    return "".join(
        f'<label class="switch"><input type="checkbox" checked value="{escape(name)}">'
        f'<span class="swatch {style}" style="--colour: {colour}"></span>{breakable(name)}</label>'
        for name, colour, style in legend
    )


def options(texts: Sequence[str], labels: Labels) -> str:
    """The options of a selection, named for people."""
    return "".join(f'<option value="{escape(text)}">{escape(labels.get(text, text))}</option>' for text in texts)


def fact_list(found: Iterable[Fact]) -> str:
    """Facts as a list of definitions; a fact of many lines is folded."""
    return f'<dl class="facts">{"".join(map(_fact, found))}</dl>'


def _fact(fact: Fact) -> str:
    lines = "".join(f"<div>{breakable(line)}</div>" for line in fact.lines)
    shown = lines if len(fact.lines) <= _MANY else folded(f"{len(fact.lines)} lines", lines)
    return f"<dt>{escape(fact.name)}</dt><dd>{shown}</dd>"


def folded(title: str, content: str, open_: bool = False) -> str:
    """Content under a title that opens and closes it."""
    return f"<details{' open' if open_ else ''}><summary>{escape(title)}</summary>{content}</details>"


def bullets(lines: Iterable[str]) -> str:
    """A list of lines that are HTML already."""
    return f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"


def prose(text: str) -> str:
    """Escaped text in which a part between backticks is code."""
    parts = escape(text).split("`")
    coded = [f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts)]
    return "".join(coded) if len(parts) % 2 else escape(text)


def breakable(text: str) -> str:
    """Escaped text in which a long name may break after a comma or before a bracket."""
    return escape(text).replace(",", ",<wbr>").replace("[", "<wbr>[")


def _heading(text: str, numeric: bool, labels: Labels) -> str:
    kind, name = "number" if numeric else "name", labels.get(text, text)
    exact = f' title="{escape(text)}"' if text != name else ""
    return f'<th class="{kind}" scope="col" aria-sort="none"><button type="button"{exact}>{escape(name)}</button></th>'


def _row(sheet: Sheet, number: int, cells: Sequence[str], labels: Labels) -> str:
    """A line of a table; a repeated first cell is only marked, since sorting may part it from the one above."""
    line = sheet.lines[number]
    same = number > 0 and sheet.lines[number - 1][0] == line[0]
    solver = labels.get(sheet.solvers[number], "") if sheet.solvers else ""
    attributes = (' class="same"' if same else "") + (f' data-solver="{escape(solver)}"' if solver else "")
    shown = zip(sheet.headings, sheet.numeric, line, [f"<span>{cells[0]}</span>", *cells[1:]], strict=True)
    body = "".join(f'<td class="{_kind(heading, numeric, text)}">{cell}</td>' for heading, numeric, text, cell in shown)
    return f"<tr{attributes}>{body}</tr>"


def _kind(heading: str, numeric: bool, text: str) -> str:
    """The class of a cell: of a status and of a verdict it is the word itself."""
    if heading == "status":
        return escape(text)
    if heading == "verdict":
        return next(verdict.name.lower() for verdict in Finding if text.startswith(verdict))
    return "number" if numeric else "name"


def _named(text: str, solver: str, labels: Labels) -> str:
    """A text with its name for people above it, where it has another one; a solver's text may have a remark behind."""
    known = next((one for one in (text, solver) if one and one in labels and text.startswith(one)), "")
    name = labels.get(known, "")
    if name in ("", known):
        return breakable(text)
    rest = text.removeprefix(known)
    return f'{escape(name)}{escape(rest)} <small class="exact">{breakable(known)}</small>'


def _linked(content: str, target: str) -> str:
    return f'<a href="{escape(target)}">{content}</a>' if target else content
