"""Drawing figures with matplotlib as PDF and PNG, to be printed: one column wide, or two for several panels.

Lines differ in colour, marker and dashes, so that they can be told apart in grey. Equal results give equal files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import log10
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from PIL import Image  # comes with matplotlib

from rankbench.core.texts import figure_text
from rankbench.report.render.figures.drawings import Drawing, Line, Panel
from rankbench.report.render.figures.looks import BAR, COLOURS, DIAMOND, GREY, REFERENCES, Look, style
from rankbench.report.render.figures.ticks import set_places, set_ticks

_TONES = 128  # of a PNG: those of some ten colours with smooth edges
_ONE, _TWO = 3.5, 7.2  # inches: the width of one column and of two
_PLOT = 1.5  # inches of a panel of lines without its labels
_SHARED = "shared values"  # the label of all panels' values
_BELOW = 5.2  # heights of a line between a panel and its legend: room for the ticks and the label of its axis
_TOUCH = 0.012  # how far solvers at the same place are moved apart, as a share of the axis


def draw(drawing: Drawing, folder: Path, name: str) -> None:
    """Draw a figure and write name.pdf and name.png, without dates, so that equal results give equal files."""
    save(partial(figure_of, drawing), folder, name)


def save(make: Callable[[], Figure], folder: Path, name: str) -> None:
    """Write the figure that `make` draws as PDF and as PNG of 128 colours, a third of the bytes; without dates."""
    with matplotlib.rc_context(style()):
        figure = make()
        lay_out(figure)
        figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    picture.quantize(_TONES, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(folder / f"{name}.png")


def lay_out(figure: Figure) -> None:
    """Give everything its place; computing the layout is slow, so it is done once for all files."""
    if layout := figure.get_layout_engine():
        layout.execute(figure)
        figure.set_layout_engine("none")
        places = [axis.get_position() for axis in figure.axes]
        middle = (min(place.y0 for place in places) + max(place.y1 for place in places)) / 2
        for label in figure.findobj(lambda artist: artist.get_gid() == _SHARED):
            label.set(y=middle)  # beside the panels, not their legend


def figure_of(drawing: Drawing) -> Figure:
    """The figure of a drawing, laid out."""
    drawing = drawing.said(figure_text)
    places = _places(drawing)
    columns = _columns(drawing)
    rows = places[-1][0] + 1
    width = _ONE if columns == 1 else _TWO
    titles = [fill_lines(panel.title, _title_width(drawing, width)) for panel in drawing.panels]
    tall = _height(drawing, 1 + max(title.count("\n") for title in titles))
    figure = Figure(figsize=(width, rows * tall + (0.25 if drawing.kind == "bars" else 0)), layout="constrained")
    grid = figure.add_gridspec(rows, columns)
    looks = drawing.looks
    cells = [
        _draw_cell(figure, grid[places[number]], (panel, drawing), looks[number])
        for number, panel in enumerate(drawing.panels)
    ]
    if drawing.kind == "bars":
        _name_once(drawing.panels, cells, columns)
    _share_ranges(drawing.panels, cells)
    _add_legends(figure, drawing, cells)
    if drawing.kind != "bars" and not any(panel.values for panel in drawing.panels):
        named = fill_lines(drawing.y_label, rows * tall - 0.4)
        figure.supylabel(named, multialignment="center", gid=_SHARED)
    return figure


def _places(drawing: Drawing) -> list[tuple[int, int]]:
    """The row and column of each panel; the families of solvers on other data begin a row of their own."""
    columns = _columns(drawing)
    found: list[tuple[int, int]] = []
    before = drawing.panels[0].shares
    for panel in drawing.panels:
        row, column = found[-1] if found else (0, -1)
        full = column + 1 == columns or (drawing.in_families and panel.shares != before)
        found.append((row + 1, 0) if full else (row, column + 1))
        before = panel.shares
    return found


def _columns(drawing: Drawing) -> int:
    """How many panels stand side by side."""
    alike = [panel for panel in drawing.panels if panel.shares == drawing.panels[0].shares]
    return {1: 1, 2: 2, 4: 2}.get(len(alike if drawing.in_families else drawing.panels), 3)


def fill_lines(text: str, inches: float) -> str:
    """The text with each of its lines broken so that it fits into so many inches at the size of labels."""
    return "\n".join(fill(line, max(12, int(inches / 0.066))) for line in text.split("\n"))


def _title_width(drawing: Drawing, width: float) -> float:
    """The inches for the title of a panel."""
    columns = _columns(drawing)
    names = 1.5 / columns if drawing.kind == "bars" else 0.0
    return (width - 0.6) / columns - names


def _height(drawing: Drawing, title: int) -> float:
    """The height in inches of a row of panels with a title of so many lines, without the figure's legend."""
    most = max(len(panel.lines) for panel in drawing.panels)
    if drawing.kind == "bars":
        tallest = max(_beside(line).count("\n") + 1 for panel in drawing.panels for line in panel.lines)
        return 0.45 + max(0.21, 0.125 * tallest) * most + 0.14 * title
    own_legend = 0.14 * (most + 2) if drawing.in_families else 0.0
    return (2.7 if any(panel.gap for panel in drawing.panels) else 2.15) + own_legend + 0.14 * title


def _draw_cell(figure: Figure, cell: Any, what: tuple[Panel, Drawing], looks: Mapping[str, int]) -> list[Axes]:
    """Draw a panel on its axes: one, or two if its axis of values is broken."""
    panel, drawing = what
    dots = drawing.kind == "bars"
    axes = [figure.add_subplot(place) for place in (_halves(cell, dots) if panel.gap else (cell,))]
    width = _title_width(drawing, figure.get_figwidth())
    for axis in axes:
        (_draw_dots if dots else _draw_lines)(axis, panel, drawing, looks)
    axes[0].set_title(fill_lines(panel.title, width))
    if dots:
        axes[0].set_xlabel(fill_lines(panel.values or drawing.y_label, width + 0.3))
    else:
        axes[-1].set_xlabel(fill_lines(drawing.x_label, width))
        axes[0].set_ylabel(fill_lines(panel.values, _PLOT), multialignment="center")
    if panel.gap:
        _break(axes, panel, dots)
    return axes


def _halves(cell: Any, dots: bool) -> tuple[Any, Any]:
    """The two halves of a panel's place for an axis of values that is broken."""
    inner = cell.subgridspec(1, 2, wspace=0.05) if dots else cell.subgridspec(2, 1, hspace=0.05)
    return inner[0], inner[1]


def _draw_lines(axis: Axes, panel: Panel, drawing: Drawing, looks: Mapping[str, int]) -> None:
    """Draw a panel of curves, a sweep or speed-ups."""
    _set_scales(axis, panel, drawing)
    for line in panel.context:
        axis.plot(line.x, line.y, color=GREY, lw=0.7, zorder=1)
    for number, line in enumerate(panel.curves):
        axis.plot(line.x, line.y, color=COLOURS[-1], ls=REFERENCES[number % 3], lw=1, label=line.name, zorder=1.5)
    banded = drawing.kind == "curve"
    apart = None if banded else _Apart(panel, drawing)
    for line in panel.lines:
        look = Look(looks[line.name])
        x = apart.of(line) if apart else line.x
        axis.plot(x, line.y, color=look.colour, ls=look.dashes, marker=look.marker, label=line.name, zorder=3)
        if banded and line.spreads:
            axis.fill_between(x, line.low, line.high, color=look.colour, alpha=0.15, linewidth=0)
        else:
            _whiskers(axis, replace(line, x=x), look.colour)
    for line in panel.beside:
        look = Look(looks[line.owner])
        x = apart.of(line) if apart else line.x
        dashes = "" if drawing.kind == "speedup" else look.dashes
        marker = BAR if line.is_bound else DIAMOND
        axis.plot(x, line.y, color=look.colour, ls=dashes, lw=0.7, label=line.name, **marker)
        _whiskers(axis, replace(line, x=x), look.colour)


def _draw_dots(axis: Axes, panel: Panel, drawing: Drawing, looks: Mapping[str, int]) -> None:
    """Draw a panel with a row for each solver: its value, its interval, and the published value."""
    if drawing.log_y:
        axis.set_xscale("log")
    if panel.best is not None:
        axis.axvline(panel.best, color=COLOURS[-1], lw=0.7, ls="--", zorder=0.5)
    for line in panel.lines:
        look = Look(looks[line.name])
        axis.plot(line.y, line.x, color=look.colour, ls="", marker=look.marker, label=line.name)
        _whiskers(axis, line, look.colour, across=True)
    for line in panel.beside:
        look = Look(looks[line.owner])
        x = tuple(place + 0.28 for place in line.x)
        axis.plot(line.y, x, color=look.colour, ls="", label=line.name, **DIAMOND)
        _whiskers(axis, replace(line, x=x), look.colour, across=True)
    places = [line.x[0] for line in panel.lines]
    axis.set_yticks(places, [_beside(line) for line in panel.lines])
    axis.set_ylim(max(places) + 0.6, min(places) - 0.6)
    axis.tick_params(axis="y", length=0)
    narrow = (len(drawing.panels) > 2) + (panel.gap is not None)
    set_ticks(axis.xaxis, drawing.log_y, (5, 3, 1)[narrow])


def _beside(line: Line) -> str:
    """The name of a line as it stands beside an axis."""
    return fill(line.name, 28)


def _whiskers(axis: Axes, line: Line, colour: str, across: bool = False) -> None:
    """Draw the intervals of a line without caps, upwards or across; nothing where it has no spread."""
    if line.spreads:
        x, y = (line.y, line.x) if across else (line.x, line.y)
        ends: Any = {"xerr" if across else "yerr": [line.below, line.above]}
        axis.errorbar(x, y, **ends, fmt="none", ecolor=colour, elinewidth=0.9)


class _Apart:
    """Moves the points of a panel's solvers a little apart, where they would lie behind each other."""

    def __init__(self, panel: Panel, drawing: Drawing) -> None:
        self.order = {line.name: number for number, line in enumerate(panel.lines)}
        found = [x for line in panel.lines for x in line.x]
        self.log = drawing.log_x
        span = log10(max(found) / min(found)) if self.log else max(found) - min(found)
        self.step = span * _TOUCH * (2 if drawing.kind == "speedup" else 1)

    def of(self, line: Line) -> tuple[float, ...]:
        """The places of a line's points."""
        place = self.order[line.owner or line.name] - (len(self.order) - 1) / 2
        return tuple(x * 10 ** (place * self.step) if self.log else x + place * self.step for x in line.x)


def _set_scales(axis: Axes, panel: Panel, drawing: Drawing) -> None:
    """Set the scales and ticks of a panel of lines."""
    if drawing.log_x:
        axis.set_xscale("log")
    if drawing.log_y:
        axis.set_yscale("log")
    places = sorted({x for line in panel.lines for x in line.x})
    if drawing.kind == "curve":
        set_ticks(axis.xaxis, drawing.log_x, 5)
    else:
        set_places(axis.xaxis, places)
    set_ticks(axis.yaxis, drawing.log_y, 5)


def _break(axes: Sequence[Axes], panel: Panel, dots: bool) -> None:
    """Give each of two axes its side of the gap, and mark where the axis is broken."""
    found = [value for line in panel.all_lines for value in (*line.y, *line.low, *line.high)]
    low, high = panel.gap or (0.0, 0.0)
    below = [value for value in found if value <= low]
    above = [value for value in found if value >= high]
    first, second = axes if dots else reversed(axes)
    middle = (low + high) / 2
    for axis, own, inner in ((first, below, min), (second, above, max)):
        edge = 0.08 * (max(own) - min(own)) or 0.05 * abs(own[0])
        ends = (min(own) - edge, max(own) + edge)
        limits = (ends[0], inner(ends[1], middle)) if axis is first else (inner(ends[0], middle), ends[1])
        (axis.set_xlim if dots else axis.set_ylim)(*limits)
        for line in list(axis.lines):  # a marker just beyond the edge would show in part
            values = np.asarray(line.get_xdata() if dots else line.get_ydata())
            if not limits[0] <= values[0] <= limits[1]:
                line.remove()
    mark: Any = {"marker": [(-1, -0.6), (1, 0.6)], "markersize": 6, "ls": "none", "color": "k", "mew": 0.7}
    if dots:
        for text in (first.xaxis.label, first.title):  # in the middle of both
            text.set_x(1.02)
        second.tick_params(axis="y", labelleft=False)
        second.spines[["left"]].set_visible(False)
    else:
        second.tick_params(axis="x", labelbottom=False, length=0)
        second.spines[["bottom"]].set_visible(False)
    second.set_xlabel("")
    for axis, (x, y) in ((first, (1, 0) if dots else (0, 1)), (second, (0, 0))):
        axis.plot([x], [y], transform=axis.transAxes, clip_on=False, **mark)


def _name_once(panels: Sequence[Panel], cells: Sequence[list[Axes]], columns: int) -> None:
    """Name the solvers only in the first panel of a row, if the others have the same, and the metric in the last."""
    names = [[line.name for line in panel.lines] for panel in panels]
    for number, axes in enumerate(cells):
        if number % columns and names[number] == names[number - number % columns]:
            axes[0].tick_params(axis="y", labelleft=False)
        if number + columns < len(cells) and not panels[number].values:
            axes[0].set_xlabel("")


def _share_ranges(panels: Sequence[Panel], cells: Sequence[list[Axes]]) -> None:
    """Give panels that are to be compared the same ranges."""
    for shares in dict.fromkeys(panel.shares for panel in panels if panel.shares):
        alike = [axes for panel, axes in zip(panels, cells, strict=True) if panel.shares == shares]
        if len(alike) > 1 and all(len(axes) == 1 for axes in alike):
            ends = [axes[0].get_xlim() + axes[0].get_ylim() for axes in alike]
            lefts, rights, lows, highs = zip(*ends, strict=True)
            for axes in alike:
                axes[0].set(xlim=(min(lefts), max(rights)), ylim=(min(lows), max(highs)))


def _add_legends(figure: Figure, drawing: Drawing, cells: Sequence[list[Axes]]) -> None:
    """Add the legend of the figure, and of each panel if the panels have different solvers."""
    solvers: dict[str, Artist] = {}
    for panel, axes, looks in zip(drawing.panels, cells, drawing.looks, strict=True):
        own = {line.name: _handle(Look(looks[line.name])) for line in panel.lines}
        if drawing.in_families:
            axes[-1].legend(own.values(), own, loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=_BELOW)
        elif drawing.kind != "bars":
            solvers |= own
    named = solvers | _explained(drawing)
    if len(named) == 1 and solvers and len(drawing.panels) == 1:
        cells[0][0].set_title(f"{cells[0][0].get_title()}\n{next(iter(named))}")
    elif named:
        _add_legend(figure, named)


def _handle(look: Look) -> Line2D:
    return Line2D([], [], color=look.colour, ls=look.dashes, marker=look.marker)


def _explained(drawing: Drawing) -> dict[str, Artist]:
    """Handles of what is not a solver: spreads, published numbers, reference lines and grey lines."""
    found: dict[str, Artist] = {}
    if drawing.spread and drawing.kind == "curve":
        found[f"band: {drawing.spread}"] = Patch(color=COLOURS[-1], alpha=0.25, linewidth=0)
    elif drawing.spread:
        upright = drawing.kind != "bars"
        found[drawing.spread] = Line2D([], [], color=COLOURS[-1], ls="none", marker="|" if upright else "_", ms=9)
    for panel in drawing.panels:
        for line in panel.beside:
            joined = "-" if len(line.x) > 1 and drawing.kind in ("sweep", "curve") else ""
            marker = BAR if line.is_bound else DIAMOND
            found.setdefault(line.what, Line2D([], [], color=COLOURS[-1], ls=joined, lw=0.7, **marker))
        for number, line in enumerate(panel.curves):
            found.setdefault(line.name, Line2D([], [], color=COLOURS[-1], ls=REFERENCES[number % 3]))
    if drawing.in_families:
        found |= {"solvers of the other panels": Line2D([], [], color=GREY, lw=0.7)}
    return found


def _add_legend(figure: Figure, named: dict[str, Artist]) -> None:
    """Add a legend below the panels in as many columns as fit, and make the figure taller by it."""
    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    for columns in range(min(len(named), 4), 0, -1):
        legend = figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=columns)
        size = legend.get_window_extent(renderer)
        if size.width <= figure.get_figwidth() * figure.dpi * 0.98 or columns == 1:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + size.height / figure.dpi)
