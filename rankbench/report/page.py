"""The HTML page of the report: every table and figure, with the plotting script embedded, readable offline."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs

from rankbench.harness.records import Result, Study
from rankbench.metrics import RULES
from rankbench.report.figures import COLOURS
from rankbench.report.ranking_functions import bases
from rankbench.report.ranking_functions import described as described_basis
from rankbench.report.scoreboard import in_words, score_sheet, scoreboard
from rankbench.report.sections import Section
from rankbench.report.series import Drawing, Line
from rankbench.report.tables import Sheet, notes, sheet
from rankbench.report.trials import trial_sheet, trials


def page(sections: Sequence[Section]) -> str:
    """The HTML page about these experiments."""
    template = Template(files("rankbench.report").joinpath("page.html").read_text(encoding="utf-8"))
    studies = [section.study for section in sections]
    drawings = {section.name: section.drawing for section in sections if section.drawing}
    return template.substitute(
        script=get_plotlyjs(),
        summary=escape(_summary(studies)),
        scores=_scores(studies),
        contents="".join(map(_contents, sections)),
        sections="\n".join(map(_section, sections)),
        machines=_machines(studies),
        figures=_script_safe({f"figure-{name}": _plotly(drawn) for name, drawn in drawings.items()}),
    )


def _summary(studies: Sequence[Study]) -> str:
    entries = [entry for study in studies for entry in study.entries]
    good = sum(1 for entry in entries if entry.good)
    return f"{len(studies)} experiments, {good} of {len(entries)} cells ended well."


def _scores(studies: Sequence[Study]) -> str:
    """The scoreboard over all published numbers; empty where there is none."""
    scores = scoreboard(studies)
    return f"<p>{escape(in_words(scores))}</p>{_table(score_sheet(scores))}" if scores else ""


def _contents(section: Section) -> str:
    """A line of the table of contents."""
    name, title = escape(section.name), escape(section.study.experiment.title)
    return f'<li><a href="#{name}">{title}</a><br><span class="soft">{name}</span></li>'


def _section(section: Section) -> str:
    study, drawn, name = section.study, section.drawing, escape(section.name)
    experiment = study.experiment
    tall = " tall" if drawn and len(drawn.panels) > 3 else ""
    figure = f'<div class="figure{tall}" id="figure-{name}"></div>' if drawn else ""
    seed = f" · seed {study.seed}" if study.seed else ""
    source = f"{section.name} · {study.profile} profile{seed} · {experiment.paper}"
    head = (
        f'<section id="{name}"><h2>{escape(experiment.title)}</h2>'
        f'<p class="soft">{escape(source)}</p><p class="about">{escape(experiment.about.strip())}</p>'
    )
    if section.problem:
        return f"{head}{_paragraphs([section.problem])}</section>"
    parts = (_table(sheet(study)), _bases(study), _problems(study), _definitions(study), _trials(study))
    return f"{head}{_paragraphs(notes(study))}{figure}{''.join(parts)}</section>"


def _paragraphs(lines: Iterable[str]) -> str:
    return "".join(f'<p class="soft">{escape(line)}</p>' for line in lines)


def _table(table: Sheet) -> str:
    kinds = ["number" if numeric else "name" for numeric in table.numeric]
    head = "".join(f'<th class="{kind}">{escape(text)}</th>' for kind, text in zip(kinds, table.headings, strict=True))
    body, above = "", ""
    for line in table.written(_breakable, lambda text: f"<b>{_breakable(text)}</b>"):
        first = "" if line[0] == above else line[0]
        shown = zip(table.headings, kinds, [first, *line[1:]], strict=True)
        cells = "".join(
            f'<td class="{text if heading == "status" else kind}">{text}</td>' for heading, kind, text in shown
        )
        body += f"<tr{' class=new' if first else ''}>{cells}</tr>"
        above = line[0]
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _breakable(text: str) -> str:
    """Escaped text in which a long name may break after a comma or before a bracket."""
    return escape(text).replace(",", ",<wbr>").replace("[", "<wbr>[")


def _problems(study: Study) -> str:
    """The list of skipped parts and of cells that did not end well."""
    lines = [f"<li>{escape(skip.text)}</li>" for skip in study.skips]
    for entry in study.entries:
        if entry.status not in ("ok", "pending"):
            status = f"<b>{escape(entry.status)}</b>, {escape(entry.reason)}"
            lines.append(f"<li>{escape(entry.cell.label)}: {status}</li>")
    return f"<details open><summary>Left out or failed</summary><ul>{''.join(lines)}</ul></details>" if lines else ""


def _bases(study: Study) -> str:
    """Lists of the strongest features of each basic ranking function."""
    return "".join(
        f"<details open><summary>Basic ranking functions of {escape(basis.solver)} on {escape(basis.data)}</summary>"
        f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in described_basis(basis))}</ul></details>"
        for basis in bases(study)
    )


def _trials(study: Study) -> str:
    if not study.trials:
        return ""
    table = _table(trial_sheet(trials(study)))
    return f"<details><summary>All trials of the tuning ({len(study.trials)})</summary>{table}</details>"


def _definitions(study: Study) -> str:
    entries = "".join(f"<dt>{escape(one.label)}</dt><dd>{escape(one.formula)}</dd>" for one in study.measures)
    return f"<details><summary>How the metrics are defined</summary><dl>{entries}</dl><p>{escape(RULES)}</p></details>"


def _machines(studies: Sequence[Study]) -> str:
    """The table of machines: a line for each machine and set of versions, with the date of its last result."""
    results = sorted((result for study in studies for result in study.results), key=lambda result: result.finished)
    found = {result.machine: result for result in results}
    head = "".join(f"<th>{escape(name)}</th>" for name in _machine_of(None))
    lines = ("".join(f"<td>{escape(text)}</td>" for text in _machine_of(result).values()) for result in found.values())
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _machine_of(result: Result | None) -> dict[str, str]:
    """A result's machine as texts by heading; without a result the texts are empty."""
    names = ("fingerprint", "cpu", "cores", "memory GiB", "BLAS", "compiler", "Python", "NumPy", "SciPy")
    headings = (*names, "rankbench", "commit", "kernels", "last result")
    if result is None:
        return dict.fromkeys(headings, "")
    of = result.machine
    values = (of.fingerprint, of.cpu, of.usable_cores, of.memory_gib, ", ".join(of.blas), of.compiler, of.python)
    versions = (of.version("numpy"), of.version("scipy"), of.version("rankbench"), of.git or "", of.kernels)
    return dict(zip(headings, map(str, (*values, *versions, result.finished[:10])), strict=True))


def _script_safe(value: object) -> str:
    """JSON that is safe inside an HTML script element."""
    return json.dumps(value).replace("</", "<\\/")


def _plotly(drawn: Drawing) -> dict[str, Any]:
    """The drawing as plotly's data and layout; panels side by side, three to a line."""
    columns = min(len(drawn.panels), 3)
    lines = -(-len(drawn.panels) // columns)
    layout: dict[str, Any] = {
        "grid": {"rows": lines, "columns": columns, "pattern": "independent"},
        "margin": {"l": 60, "r": 15, "t": 40, "b": 50},
        "legend": {"orientation": "h", "y": -0.2 / lines},
        "annotations": [],
        "barmode": "group",
    }
    data = []
    for number, panel in enumerate(drawn.panels):
        suffix = str(number + 1) if number else ""
        x_axis: dict[str, Any] = {"title": {"text": drawn.x_label}}
        if drawn.log_x:
            x_axis |= {"type": "log", "dtick": 1}
        if drawn.kind == "bars":
            x_axis |= {"showticklabels": False, "showgrid": False}
        layout |= {f"xaxis{suffix}": x_axis}
        layout[f"yaxis{suffix}"] = {
            "title": {"text": drawn.y_label.replace("\n", "<br>") if number % columns == 0 else ""}
        }
        layout["annotations"].append(_title(panel.title, suffix))
        data += [_trace(line, drawn, suffix, index, number == 0) for index, line in enumerate(panel.lines)]
        names = [line.name for line in panel.lines]
        for line in panel.beside:
            owner = names.index(line.owner)
            data.append(_published(_trace(line, drawn, suffix, owner, number == 0)))
        data += [_curve(_trace(line, drawn, suffix, -1, number == 0)) for line in panel.curves]
    return {"data": data, "layout": layout}


def _published(trace: dict[str, Any]) -> dict[str, Any]:
    """A plotly trace made dashed with open diamonds, for published numbers."""
    return trace | {
        "line": {**trace["line"], "dash": "dash"},
        "marker": {**trace["marker"], "symbol": "diamond-open", "size": 9},
    }


def _curve(trace: dict[str, Any]) -> dict[str, Any]:
    """A plotly trace made dotted without markers, for a reference line."""
    return trace | {"mode": "lines", "line": {**trace["line"], "dash": "dot"}}


def _title(text: str, suffix: str) -> dict[str, Any]:
    middle = {"xref": f"x{suffix} domain", "yref": f"y{suffix} domain", "x": 0.5, "y": 1.1}
    return {"text": text, "showarrow": False, "font": {"size": 11}, **middle}


def _trace(line: Line, drawn: Drawing, suffix: str, index: int, first: bool) -> dict[str, Any]:
    error = {
        "type": "data",
        "symmetric": False,
        "array": line.above,
        "arrayminus": line.below,
    }
    colour = COLOURS[index % len(COLOURS)]
    kind = {"type": "bar"} if drawn.kind == "bars" else {"type": "scatter", "mode": "lines+markers"}
    look = (
        {"marker": {"color": colour}}
        if drawn.kind == "bars"
        else {"marker": {"color": colour}, "line": {"color": colour}}
    )
    axes = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "legendgroup": line.name, "showlegend": first}
    return {**kind, "x": line.x, "y": line.y, "error_y": error, "name": line.name, **look, **axes}
