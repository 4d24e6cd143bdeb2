"""One offline HTML page: every table and every figure, the plotting script embedded."""

import json
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs

from rankbench.metrics import RULES, metric
from rankbench.report.basis import bases
from rankbench.report.basis import described as described_basis
from rankbench.report.figures import COLOURS
from rankbench.report.series import Drawing, Line, drawing
from rankbench.report.tables import Sheet, Study, described, notes, sheet
from rankbench.report.trials import trial_sheet, trials

_MACHINE = ("cpu", "usable_cores", "memory_gib", "blas", "compiler", "python")


def page(studies: list[Study]) -> str:
    """The page about these studies."""
    template = Template(files("rankbench.report").joinpath("page.html").read_text(encoding="utf-8"))
    drawings = {study.name: drawn for study in studies if (drawn := drawing(study))}
    return template.substitute(
        script=get_plotlyjs(),
        summary=escape(_summary(studies)),
        contents="".join(_entry(study) for study in studies),
        sections="\n".join(_section(study, drawings.get(study.name)) for study in studies),
        machines=_machines(studies),
        figures=_script_safe({f"figure-{name}": _plotly(drawn) for name, drawn in drawings.items()}),
    )


def _summary(studies: list[Study]) -> str:
    results = [result for study in studies for _, result in study.cells]
    good = sum(1 for result in results if result and result.status == "ok")
    return f"{len(studies)} experiments, {good} of {len(results)} cells ended well."


def _entry(study: Study) -> str:
    title = escape(study.experiment["title"])
    return f'<li><a href="#{escape(study.name)}">{title}</a><br><span class="soft">{escape(study.name)}</span></li>'


def _section(study: Study, drawn: Drawing | None) -> str:
    experiment = study.experiment
    tall = " tall" if drawn and len(drawn.panels) > 3 else ""
    figure = f'<div class="figure{tall}" id="figure-{escape(study.name)}"></div>' if drawn else ""
    source = f"{study.name} · {study.definition['profile']} profile · {experiment['paper']}"
    return (
        f'<section id="{escape(study.name)}"><h2>{escape(experiment["title"])}</h2>'
        f'<p class="soft">{escape(source)}</p>'
        f'<p class="about">{escape(experiment["about"].strip())}</p>{_paragraphs(notes(study))}'
        f"{figure}{_table(sheet(study))}{_bases(study)}{_problems(study)}{_definitions(experiment['metrics'])}{_trials(study)}</section>"
    )


def _paragraphs(lines: Iterable[str]) -> str:
    return "".join(f'<p class="soft">{escape(line)}</p>' for line in lines)


def _table(table: Sheet) -> str:
    kinds = ["number" if numeric else "name" for numeric in table.numeric]
    head = "".join(f'<th class="{kind}">{escape(text)}</th>' for kind, text in zip(kinds, table.headings, strict=True))
    body, above = "", ""
    for line in table.written(_breakable, lambda text: f"<b>{_breakable(text)}</b>"):
        place = "" if line[0] == above else line[0]
        cells = "".join(
            f'<td class="{kind}">{text}</td>' for kind, text in zip(kinds, [place, *line[1:-1]], strict=False)
        )
        body += f'<tr{" class=new" if place else ""}>{cells}<td class="{line[-1]}">{line[-1]}</td></tr>'
        above = line[0]
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _breakable(text: str) -> str:
    """A long name may break where its parts do."""
    return escape(text).replace(",", ",<wbr>").replace("[", "<wbr>[")


def _problems(study: Study) -> str:
    lines = [f"<li>{escape(described(skip))}</li>" for skip in study.skips]
    for entry, result in study.cells:
        if result and result.status != "ok":
            place = f"{entry['data']}, {entry['split']}, {entry['solver']}, repetition {entry['repetition']}"
            lines.append(f"<li>{escape(place)}: <b>{result.status}</b>, {escape(result.reason or '')}</li>")
    return f"<details open><summary>Left out or failed</summary><ul>{''.join(lines)}</ul></details>" if lines else ""


def _bases(study: Study) -> str:
    """The strongest features of each basic ranking function, in words."""
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


def _definitions(names: Iterable[str]) -> str:
    entries = "".join(f"<dt>{escape(name)}</dt><dd>{escape(metric(name).formula)}</dd>" for name in names)
    return f"<details><summary>How the metrics are defined</summary><dl>{entries}</dl><p>{escape(RULES)}</p></details>"


def _machines(studies: list[Study]) -> str:
    found = {r.fingerprint: r.machine for study in studies for _, r in study.cells if r}
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in ("fingerprint", *_MACHINE))
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(_plain(value))}</td>" for value in (key, *(machine[n] for n in _MACHINE)))
        + "</tr>"
        for key, machine in found.items()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _script_safe(value: Any) -> str:
    """JSON that may stand inside a script element."""
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
        data += [_trace(line, drawn, suffix, place, number == 0) for place, line in enumerate(panel.lines)]
        names = [line.name for line in panel.lines]
        for line in panel.published:
            owner = names.index(line.owner)
            data.append(_published(_trace(line, drawn, suffix, owner, number == 0)))
        data += [_curve(_trace(line, drawn, suffix, -1, number == 0)) for line in panel.curves]
    return {"data": data, "layout": layout}


def _published(trace: dict[str, Any]) -> dict[str, Any]:
    """The same line, dashed and with open diamonds."""
    return trace | {
        "line": {**trace["line"], "dash": "dash"},
        "marker": {**trace["marker"], "symbol": "diamond-open", "size": 9},
    }


def _curve(trace: dict[str, Any]) -> dict[str, Any]:
    """The same line, dotted and without markers: nobody measured it."""
    return trace | {"mode": "lines", "line": {**trace["line"], "dash": "dot"}}


def _title(text: str, suffix: str) -> dict[str, Any]:
    place = {"xref": f"x{suffix} domain", "yref": f"y{suffix} domain", "x": 0.5, "y": 1.1}
    return {"text": text, "showarrow": False, "font": {"size": 11}, **place}


def _trace(line: Line, drawn: Drawing, suffix: str, place: int, first: bool) -> dict[str, Any]:
    error = {
        "type": "data",
        "symmetric": False,
        "array": line.above,
        "arrayminus": line.below,
    }
    colour = COLOURS[place % len(COLOURS)]
    kind = {"type": "bar"} if drawn.kind == "bars" else {"type": "scatter", "mode": "lines+markers"}
    look = (
        {"marker": {"color": colour}}
        if drawn.kind == "bars"
        else {"marker": {"color": colour}, "line": {"color": colour}}
    )
    place_of = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "legendgroup": line.name, "showlegend": first}
    return {**kind, "x": line.x, "y": line.y, "error_y": error, "name": line.name, **look, **place_of}
