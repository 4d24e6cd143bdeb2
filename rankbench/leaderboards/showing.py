"""Leaderboards for the eye: a figure of intervals, a figure of wins, and a page of tables and figures."""

from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rankbench.core.texts import figure_text
from rankbench.report.render.figures.looks import COLOURS, style
from rankbench.report.render.page.markup import part, templates
from rankbench.report.render.tables import Sheet

if TYPE_CHECKING:
    import pandas

_MOST = 80  # items of a figure
_ROW = 0.16  # inches of an item
_NO_DATE: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
_CUT = 36  # letters of an item's name


def intervals_figure(frame: "pandas.DataFrame", axis: str) -> Figure:
    """The scores with their intervals, from the best item to the worst, coloured by tier."""
    frame = frame.head(_MOST)
    places = np.arange(len(frame))[::-1]
    with matplotlib.rc_context(style()):
        figure = Figure((3.5, 0.7 + _ROW * len(frame)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        tiers = frame["tier"] if "tier" in frame else np.ones(len(frame))
        colours = [COLOURS[(int(tier) - 1) % len(COLOURS)] for tier in tiers]
        if "low" in frame:
            axes.hlines(places, frame["low"], frame["high"], colors=colours, linewidth=1.2)
        axes.scatter(frame["score"], places, c=colours, s=12, zorder=3)
        axes.set_yticks(places, [_short(name) for name in frame["item"]])
        axes.set_ylim(-0.7, len(frame) - 0.3)
        axes.set_xlabel(axis)
        axes.grid(visible=False, axis="y")
    return figure


def wins_figure(wins: "pandas.DataFrame") -> Figure:
    """The share of comparisons that a row's item won against a column's; white where there are none."""
    won = wins.to_numpy()[:_MOST, :_MOST]
    both = won + won.T
    shares = np.divide(won, both, out=np.full_like(won, np.nan), where=both > 0)
    names = [_short(name) for name in wins.index[:_MOST]]
    with matplotlib.rc_context(style() | {"axes.grid": False}):
        side = 1.6 + 0.14 * len(names)
        figure = Figure((side + 0.4, side), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        image = axes.imshow(shares, cmap="PuOr", vmin=0, vmax=1)
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(length=0, labelsize=6)
        figure.colorbar(image, ax=axes, shrink=0.6, label="share won by the row")
    return figure


def page(title: str, boards: Mapping[str, Any], tables: Mapping[str, Sheet]) -> str:
    """A page in one file: for each leaderboard its remarks, table and figures, then other tables."""
    figures = {name: _figures(board) for name, board in boards.items()}
    found = templates().get_template("leaderboard.html")
    return found.render(title=title, boards=boards, figures=figures, most=_MOST, tables=tables, style=part("page.css"))


def _figures(board: Any) -> dict[str, str]:
    """The figures of a leaderboard, whose module imports this one, as SVG by what they show."""
    drawn = {
        "Scores with their 95 % intervals, by tier": board.plot(),
        "Share of comparisons that the row's item won against the column's": board.plot_wins(),
    }
    return {title: written(figure, "svg").decode() for title, figure in drawn.items()}


def _short(name: object) -> str:
    text = figure_text(str(name))
    return text if len(text) <= _CUT else f"{text[: _CUT - 1]}…"


def written(figure: Figure, kind: str) -> bytes:
    """A figure as png, pdf or svg; equal figures give equal bytes."""
    out = BytesIO()
    with matplotlib.rc_context(style()):
        figure.savefig(out, format=kind, metadata=_NO_DATE.get(kind))
    return out.getvalue()
