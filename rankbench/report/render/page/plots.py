"""A figure for plotly: its traces, its axes and the texts that describe it, as JSON for the page."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from math import isfinite
from textwrap import wrap
from typing import Any

from rankbench.report.render.figures.drawings import Drawing, Line, Panel
from rankbench.report.render.figures.looks import COLOURS

_DIGITS = 6  # of a number in a figure, more than a screen can show
_PLACES = 8  # values along an axis that each get a tick
_NAME = 24  # characters of a name beside an axis before it is broken
_AXIS = 36  # characters along an axis or above a panel before they are broken
_SYMBOLS = (  # of plotly, and as a letter
    ("circle", "●"), ("square", "■"), ("triangle-up", "▲"), ("triangle-down", "▼"),
    ("cross", "✚"), ("x", "✖"), ("star", "★"), ("pentagon", "⬟"),
)  # fmt: skip
_KINDS = {"curve": "Curves", "sweep": "Lines", "bars": "Points", "speedup": "Lines", "growth": "Lines"}


@dataclass(frozen=True)
class Key:
    """One entry of a legend: what it names, its colour, and its sign as a letter and for plotly."""

    name: str
    colour: str
    sign: str
    symbol: str = ""


def keys_of(drawings: Iterable[Drawing]) -> dict[str, Key]:
    """The legend of these figures by name: a solver looks the same in all panels and by all metrics."""
    panels = [panel for drawn in drawings for panel in drawn.panels]
    names = dict.fromkeys(line.name for panel in panels for line in panel.lines)
    found = {}
    for number, name in enumerate(names):
        symbol, sign = _SYMBOLS[(number + number // len(_SYMBOLS)) % len(_SYMBOLS)]
        found[name] = Key(name, COLOURS[number % (len(COLOURS) - 1)], sign, symbol)
    beside = [line for panel in panels for line in panel.beside]
    found |= {line.what: Key(line.what, COLOURS[-1], "–" if line.is_bound else "◇") for line in beside}
    return found | {line.name: Key(line.name, COLOURS[-1], "┄") for panel in panels for line in panel.curves}


def figure_of(drawn: Drawing, keys: Mapping[str, Key]) -> dict[str, Any]:
    """The drawing as plotly's traces and layout; the page arranges the panels by the width that there is."""
    layout: dict[str, Any] = {"annotations": [], "shapes": [], "showlegend": False}
    traces: list[dict[str, Any]] = []
    shared: dict[str, str] = {}
    for number, panel in enumerate(drawn.panels):
        suffix = str(number + 1) if number else ""
        places, values = ("y", "x") if drawn.kind == "bars" else ("x", "y")
        layout[f"{places}axis{suffix}"] = _axis_of_places(drawn, panel)
        layout[f"{values}axis{suffix}"] = _axis_of_values(
            drawn, panel, shared.setdefault(panel.shares, f"{values}{suffix}")
        )
        if not panel.shares or shared[panel.shares] == f"{values}{suffix}":
            layout[f"{values}axis{suffix}"].pop("matches")
        layout["annotations"].append(_title(panel.title, suffix))
        if panel.best is not None:
            layout["shapes"].append(_line_at(panel.best, suffix))
        traces += [trace | {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"} for trace in _traces(drawn, panel, keys)]
    return {"data": traces, "layout": layout, "about": about(drawn), "caption": caption(drawn)}


def height_of(drawn: Drawing) -> float:
    """The height of a panel, in the heights of a line of text."""
    title = max(_count(panel.title, _AXIS) for panel in drawn.panels)
    if drawn.kind != "bars":
        return 18 + title
    name = max(_count(line.name, _NAME) for panel in drawn.panels for line in panel.lines)
    return 5 + title + max(1.9, 1.1 * name) * max(len(panel.lines) for panel in drawn.panels)


def about(drawn: Drawing) -> str:
    """The figure in words, for readers who do not see it."""
    across = f" by {drawn.x_label}" if drawn.x_label else ""
    panels = "; ".join(
        f"{panel.title}: {', '.join(line.name for line in (*panel.lines, *panel.beside, *panel.curves))}"
        for panel in drawn.panels
    )
    y_label = drawn.y_label.replace("\n", " ")
    return f"{_KINDS[drawn.kind]} of {y_label}{across}. {panels}. The tables of this experiment have the numbers."


def caption(drawn: Drawing) -> str:
    """What a reader of the figure must know beside its legend."""
    spread = f"Whiskers: {drawn.spread}." if drawn.spread else ""
    grey = "Grey: the solvers of the other panels." if drawn.in_families else ""
    return " ".join(filter(None, (spread, grey)))


def _traces(drawn: Drawing, panel: Panel, keys: Mapping[str, Key]) -> Iterator[dict[str, Any]]:
    """The traces of a panel, those behind the others first; `meta` names the switches that all must be on."""
    for line in panel.context:
        look = {"line": {"color": "#9aa0a8", "width": 0.8}, "opacity": 0.6, "hoverinfo": "skip"}
        yield _trace(line, drawn) | {"mode": "lines", "meta": [line.name]} | look
    for line in panel.curves:
        yield _trace(line, drawn) | {
            "mode": "lines", "meta": [line.name], "line": {"color": keys[line.name].colour, "dash": "dot"},
        }  # fmt: skip
    for line in panel.lines:
        key = keys[line.name]
        marker = {"color": key.colour, "symbol": key.symbol, "size": 9 if drawn.kind == "bars" else 6}
        yield _trace(line, drawn) | _spread(line, drawn) | {
            "mode": _mode(drawn), "meta": [line.name], "marker": marker, "line": {"color": key.colour, "width": 1.6},
        }  # fmt: skip
    for line in panel.beside:
        colour = keys[line.owner].colour
        symbol = "line-ew-open" if line.is_bound else "diamond-open"
        marker = {"color": colour, "symbol": symbol, "size": 9}
        yield _trace(line, drawn) | _spread(line, drawn) | {
            "mode": _mode(drawn), "meta": [line.owner, line.what], "marker": marker,
            "line": {"color": colour, "width": 1, "dash": "dot"},
        }  # fmt: skip


def _line_at(best: float, suffix: str) -> dict[str, Any]:
    """A dashed line across a panel of points, at the best mean."""
    ends = {"x0": _short((best,))[0], "x1": _short((best,))[0], "y0": 0, "y1": 1}
    look = {"color": COLOURS[-1], "width": 1, "dash": "dash"}
    return {"type": "line", "xref": f"x{suffix}", "yref": f"y{suffix} domain", "layer": "below", "line": look, **ends}


def _mode(drawn: Drawing) -> str:
    return "markers" if drawn.kind == "bars" else "lines+markers"


def _trace(line: Line, drawn: Drawing) -> dict[str, Any]:
    """The points of a line; a figure of points has its values across."""
    places, values = _short(line.x), _short(line.y)
    x, y = (values, places) if drawn.kind == "bars" else (places, values)
    return {"type": "scatter", "name": _text(line.name), "x": x, "y": y}


def _spread(line: Line, drawn: Drawing) -> dict[str, Any]:
    """The whiskers of a line; nothing where it has no spread."""
    if not line.spreads:
        return {}
    ends = {"array": _short(line.above), "arrayminus": _short(line.below)}
    across = "error_x" if drawn.kind == "bars" else "error_y"
    return {across: {"type": "data", "symmetric": False, "thickness": 1, "width": 0, **ends}}


def _axis_of_places(drawn: Drawing, panel: Panel) -> dict[str, Any]:
    """The axis of the solvers in a figure of points, else of what the lines go along."""
    if drawn.kind == "bars":
        places = [line.x[0] for line in panel.lines]
        names = [_broken(line.name, _NAME) for line in panel.lines]
        ends = [max(places) + 0.6, min(places) - 0.6]
        return {"tickvals": places, "ticktext": names, "range": ends, "showgrid": False, "zeroline": False}
    axis: dict[str, Any] = {"title": {"text": _text(drawn.x_label)}}
    places = sorted({x for line in panel.lines for x in line.x})
    if drawn.kind != "curve" and len(places) <= _PLACES:
        axis |= {"tickvals": places, "ticktext": [f"{place:g}" for place in places]}
    return axis | ({"type": "log"} if drawn.log_x else {})


def _axis_of_values(drawn: Drawing, panel: Panel, like: str) -> dict[str, Any]:
    """The axis of the metric, which has the same range as the axis `like`."""
    title = {"text": _broken(panel.values or drawn.y_label, _AXIS)}
    axis: dict[str, Any] = {"title": title, "matches": like, "zeroline": False}
    return axis | ({"type": "log"} if drawn.log_y else {})


def _title(text: str, suffix: str) -> dict[str, Any]:
    middle = {"xref": f"x{suffix} domain", "yref": f"y{suffix} domain", "x": 0.5, "y": 1, "yanchor": "bottom"}
    return {"text": _broken(text, _AXIS), "showarrow": False, **middle}


def _text(text: str) -> str:
    """A text for plotly, which reads HTML."""
    return escape(text, quote=False).replace("\n", "<br>")


def _broken(text: str, most: int) -> str:
    """A text for plotly whose lines are broken after so many characters."""
    return "<br>".join(_text(part) for line in text.split("\n") for part in wrap(line, most))


def _count(text: str, most: int) -> int:
    """How many lines a text for plotly has."""
    return _broken(text, most).count("<br>") + 1


def _short(values: Iterable[float]) -> list[float | None]:
    """The numbers with few digits, so that the page stays small; None for what is no number."""
    return [float(f"{value:.{_DIGITS}g}") if isfinite(value) else None for value in values]
