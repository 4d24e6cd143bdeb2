"""Drawing figures with matplotlib as PDF and PNG; equal results give equal files."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rankbench.report.series import Drawing, Panel

COLOURS = (  # the last colour is for reference lines
    "#0b62a4", "#d1495b", "#3c8d5a", "#8f5cb5", "#c98a1b", "#17a2b8", "#e377a2", "#8a6d3b", "#7aa80c", "#4a4e57",
)  # fmt: skip
_DASHES = (":", "-.", "--")  # line styles of reference lines
_STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e6ea",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "rankbench",
}


def draw(drawing: Drawing, folder: Path, name: str) -> None:
    """Draw a figure and write name.pdf and name.png, without dates, so that equal results give equal files."""
    with matplotlib.rc_context(style()):
        save(_figure(drawing), folder, name)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as PDF and as PNG, without dates."""
    if layout := figure.get_layout_engine():
        layout.execute(figure)
        figure.set_layout_engine("none")  # computing the layout is slow, so do it once for both files
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
    figure.savefig(folder / f"{name}.png", dpi=160, metadata={"Software": None})


def style() -> Any:
    """The matplotlib settings of all figures."""
    return dict(_STYLE)


def _figure(drawing: Drawing) -> Figure:
    columns = min(len(drawing.panels), 3)
    lines = -(-len(drawing.panels) // columns)
    least = 6.4 if drawing.kind == "speedup" else 4.6  # inches; a speed-up figure has long names
    first = drawing.panels[0]
    names = len(first.lines) + len(first.beside) + len(first.curves)
    legend = 0.17 * (names // (3 if columns > 1 else 2))  # inches for the rows of the legend
    figure = Figure(figsize=(max(least, 3.4 * columns), 3.0 * lines + legend), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, sharey=drawing.kind != "curve").ravel()
    for panel, axis in zip(drawing.panels, axes, strict=False):
        _draw_panel(axis, panel, drawing)
    for axis in axes[len(drawing.panels) :]:
        axis.set_visible(False)
    for axis in axes[::columns]:
        axis.set_ylabel(drawing.y_label, fontsize=7 if "\n" in drawing.y_label else None)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(len(labels), 3 if columns > 1 else 2), fontsize=8
    )
    return figure


def _draw_panel(axis: Axes, panel: Panel, drawing: Drawing) -> None:
    for number, line in enumerate(panel.lines):
        colour = COLOURS[number % len(COLOURS)]
        if drawing.kind == "bars":
            axis.bar(line.x, line.y, yerr=[line.below, line.above], width=0.7, color=colour, label=line.name, capsize=3)
        else:
            axis.plot(line.x, line.y, color=colour, marker="o", markersize=3, label=line.name)
            axis.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
    for line in panel.beside:
        owner = [own.name for own in panel.lines].index(line.owner)
        axis.plot(
            line.x, line.y, color=COLOURS[owner % len(COLOURS)], ls="--", marker="D", mfc="white", label=line.name
        )
    for number, line in enumerate(panel.curves):
        axis.plot(line.x, line.y, color=COLOURS[-1], ls=_DASHES[number % len(_DASHES)], lw=1, label=line.name)
    if drawing.kind == "bars":
        axis.set_xticks([])
    if drawing.kind == "speedup":
        axis.set_xticks(panel.lines[0].x)
    if drawing.log_x:
        axis.set_xscale("log")
    axis.set_title(panel.title, fontsize=8)
    axis.set_xlabel(drawing.x_label)
