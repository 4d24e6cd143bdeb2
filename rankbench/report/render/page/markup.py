"""The parts of the page as HTML: tables that sort, the switches of a figure, lists."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from rankbench.records.studies import Study
from rankbench.report.analysis.verdicts import Finding
from rankbench.report.render.facts import Fact
from rankbench.report.render.labels import data_labels, metric_labels, solver_labels, split_labels
from rankbench.report.render.page.plots import Key
from rankbench.report.render.tables import Sheet

_MANY = 6  # lines of a fact that are shown without being asked for
_LONG = 20  # characters of a heading that needs room
Labels = Mapping[str, str]  # the name for people, by the text that an experiment has


def labels_of(study: Study) -> Labels:
    """The names for people of all that the tables of a study name."""
    return {**data_labels(study), **split_labels(study), **metric_labels(study), **solver_labels(study)}


def table(sheet: Sheet, about: str, labels: Labels | None = None, links: Mapping[str, str] | None = None) -> str:
    """A table whose columns can be sorted, in a box that scrolls by itself; `links` leads from texts to places."""
    names = labels or {}
    head = "".join(_heading(text, numeric) for text, numeric in zip(sheet.headings, sheet.numeric, strict=True))
    body, above = "", ""
    for number, (line, solver) in enumerate(zip(sheet.lines, sheet.solvers or [""] * len(sheet.lines), strict=True)):
        cells = [_linked(_named(text, solver, names), (links or {}).get(text, "")) for text in line]
        bold = (f"<b>{text}</b>" if (number, column) in sheet.best else text for column, text in enumerate(cells))
        same = ' class="same"' if line[0] == above else ""
        owner = f' data-solver="{escape(names.get(solver, solver))}"' if solver else ""
        body += f"<tr{same}{owner}>{_cells(sheet, line, list(bold))}</tr>"
        above = line[0]
    return (
        f'<div class="wide" role="region" aria-label="{escape(about)}" tabindex="0"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def switches(keys: Iterable[Key]) -> str:
    """A switch for each solver and each other kind of line of a figure, which is its legend too."""
    return "".join(
        f'<label class="switch"><input type="checkbox" checked value="{escape(key.name)}">'
        f'<span class="sign" aria-hidden="true" style="--colour: {key.colour}">{key.sign}</span>{breakable(key.name)}'
        "</label>"
        for key in keys
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


def blocks(text: str) -> str:
    """Text in paragraphs, lists (`- `) and tables (`|`), which empty lines part from each other."""
    return "".join(map(_block, re.split(r"\n\s*\n", text.strip())))


def _block(text: str) -> str:
    if text.startswith("|"):
        lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines()]
        rows = (
            "".join(f"<td>{prose(cell)}</td>" for cell in line) for line in lines if set("".join(line)) - set("-: ")
        )
        return f'<div class="wide"><table><tbody>{"".join(f"<tr>{row}</tr>" for row in rows)}</tbody></table></div>'
    if text.startswith("- "):
        return bullets(prose(item) for item in re.split(r"(?:^|\n)- ", text)[1:])
    return f"<p>{prose(text)}</p>"


def prose(text: str) -> str:
    """Escaped text in which a part between backticks is code."""
    parts = escape(text).split("`")
    coded = [f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts)]
    return "".join(coded) if len(parts) % 2 else escape(text)


def breakable(text: str) -> str:
    """Escaped text in which a long name may break after a comma or before a bracket."""
    return escape(text).replace(",", ",<wbr>").replace("[", "<wbr>[")


def _heading(text: str, numeric: bool) -> str:
    kind = ("number" if numeric else "name") + (" long" if len(text) > _LONG else "")
    return f'<th class="{kind}" scope="col" aria-sort="none"><button type="button">{escape(text)}</button></th>'


def _cells(sheet: Sheet, line: Sequence[str], cells: Sequence[str]) -> str:
    """The cells of a line; the first is wrapped, because it is hidden where it repeats the one above."""
    shown = zip(sheet.headings, sheet.numeric, line, [f"<span>{cells[0]}</span>", *cells[1:]], strict=True)
    return "".join(f'<td class="{_kind(heading, numeric, text)}">{cell}</td>' for heading, numeric, text, cell in shown)


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
