"""A figure for plotly: its traces, its axes and the text that describes it, as JSON for the page."""

from collections.abc import Iterable, Mapping
from html import escape
from math import isfinite
from typing import Any

from rankbench.report.figures import COLOURS
from rankbench.report.series import Drawing, Line, Panel

_DIGITS = 6  # of a number in a figure, more than a screen can show
_STYLES = ("solid", "dash", "dot")  # of measured numbers, of published ones, and of reference lines
_KINDS = {"curve": "Curves", "sweep": "Lines", "bars": "Bars", "speedup": "Lines"}


def figure_of(drawn: Drawing, colours: Mapping[str, str]) -> dict[str, Any]:
    """The drawing as plotly's traces and layout; the page arranges the panels by the width that there is."""
    layout: dict[str, Any] = {"annotations": [], "barmode": "overlay", "showlegend": False}
    traces: list[dict[str, Any]] = []
    for number, panel in enumerate(drawn.panels):
        suffix = str(number + 1) if number else ""
        layout[f"xaxis{suffix}"] = _x_axis(drawn)
        layout[f"yaxis{suffix}"] = {"title": {"text": _text(drawn.y_label)}, "automargin": True}
        layout["annotations"].append(_title(panel.title, suffix))
        traces += [trace | {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"} for trace in _traces(drawn, panel, colours)]
    return {"data": traces, "layout": layout, "about": about(drawn)}


def colours_of(drawings: Iterable[Drawing]) -> dict[str, str]:
    """A colour for each solver in these figures, by its name: the same in all panels and for all metrics."""
    names = dict.fromkeys(line.name for drawn in drawings for panel in drawn.panels for line in panel.lines)
    return {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}


def legend(drawings: Iterable[Drawing], colours: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """The name, the colour and the style of each line in these figures; solvers first, reference lines last."""
    panels = (panel for drawn in drawings for panel in drawn.panels)
    found = {
        line.name: (line.name, colour, style) for panel in panels for line, colour, style in _styled(panel, colours)
    }
    return sorted(found.values(), key=lambda one: _STYLES.index(one[2]))


def about(drawn: Drawing) -> str:
    """The figure in a sentence, for readers who do not see it."""
    across = f" by {drawn.x_label}" if drawn.x_label else ""
    panels = "; ".join(
        f"{panel.title}: {', '.join(line.name for line in (*panel.lines, *panel.beside, *panel.curves))}"
        for panel in drawn.panels
    )
    y_label = drawn.y_label.replace("\n", " ")
    return f"{_KINDS[drawn.kind]} of {y_label}{across}. {panels}. The tables of this experiment have the numbers."


def _traces(drawn: Drawing, panel: Panel, colours: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    for line, colour, style in _styled(panel, colours):
        yield {**_trace(line, drawn), **_LOOKS[drawn.kind == "bars", style](colour)}


def _styled(panel: Panel, colours: Mapping[str, str]) -> list[tuple[Line, str, str]]:
    """Every line of a panel with its colour and style; published numbers have the colour of their solver."""
    solid, dash, dot = _STYLES
    return [
        *((line, colours[line.name], solid) for line in panel.lines),
        *((line, colours[line.owner], dash) for line in panel.beside),
        *((line, COLOURS[-1], dot) for line in panel.curves),
    ]


def _trace(line: Line, drawn: Drawing) -> dict[str, Any]:
    """What all traces have; `meta` says which switches of the page show it."""
    trace: dict[str, Any] = {
        "type": "bar" if drawn.kind == "bars" else "scatter",
        "x": _short(line.x),
        "y": _short(line.y),
        "name": _text(line.name),
        "meta": [line.name, line.owner or line.name],
    }
    if any(line.above) or any(line.below):
        spread = {"array": _short(line.above), "arrayminus": _short(line.below)}
        trace["error_y"] = {"type": "data", "symmetric": False, "thickness": 1, "width": 3, **spread}
    return trace


def _bar(colour: str) -> Mapping[str, Any]:
    return {"marker": {"color": colour}, "width": 0.7}


def _line(colour: str) -> Mapping[str, Any]:
    return {"mode": "lines+markers", "line": {"color": colour}, "marker": {"color": colour, "size": 5}}


def _published(colour: str) -> Mapping[str, Any]:
    marker = {"color": colour, "symbol": "diamond-open", "size": 9}
    return {"mode": "lines+markers", "line": {"color": colour, "dash": "dash"}, "marker": marker}


def _reference(colour: str) -> Mapping[str, Any]:
    return {"mode": "lines", "line": {"color": colour, "dash": "dot"}}


_LOOKS = {
    (True, "solid"): _bar,
    (False, "solid"): _line,
    (False, "dash"): _published,
    (False, "dot"): _reference,
}


def _x_axis(drawn: Drawing) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": {"text": _text(drawn.x_label)}}
    if drawn.log_x:
        axis |= {"type": "log", "dtick": 1}
    if drawn.kind == "bars":
        axis |= {"showticklabels": False, "showgrid": False, "zeroline": False}
    return axis


def _title(text: str, suffix: str) -> dict[str, Any]:
    middle = {"xref": f"x{suffix} domain", "yref": f"y{suffix} domain", "x": 0.5, "y": 1, "yanchor": "bottom"}
    return {"text": _text(text), "showarrow": False, **middle}


def _text(text: str) -> str:
    """A text for plotly, which reads HTML."""
    return escape(text, quote=False).replace("\n", "<br>")


def _short(values: Iterable[float]) -> list[float | None]:
    """The numbers with few digits, so that the page stays small; None for what is no number."""
    return [float(f"{value:.{_DIGITS}g}") if isfinite(value) else None for value in values]
