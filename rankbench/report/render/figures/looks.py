"""How lines look in figures: colours, markers and dashes by which they can be told apart, in grey too; and fonts."""

from dataclasses import dataclass
from typing import Any

COLOURS = (  # those of Okabe and Ito, but for yellow and black, and a violet; the last is for reference lines
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5d3a9b", "#7f6000", "#4a4e57",
)  # fmt: skip
MARKERS = ("o", "s", "^", "v", "P", "X", "*", "p", "<", ">")  # diamonds are for published numbers
DIAMOND: dict[str, Any] = {"marker": "D", "mfc": "white"}
BAR: dict[str, Any] = {"marker": "_", "ms": 9, "mew": 1.2}  # of bounds
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)),
    (0, (8, 1.5, 2, 1.5)), (0, (2.5, 2.5)),
)  # fmt: skip
REFERENCES: tuple[Any, ...] = ((0, (1, 2)), (0, (4, 2, 1, 2)), (0, (7, 3)))  # dashes of lines that are not measured
GREY = "#c9ccd1"
_SMALL = 7  # points: the size of most text
_STYLE: Any = {
    "figure.dpi": 200,  # the layout depends on it, so it is that of the files
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.titley": 1.0,  # no ticks are above a panel, so matplotlib need not look for room between them and the title
    "xtick.labelsize": _SMALL,
    "ytick.labelsize": _SMALL,
    "legend.fontsize": _SMALL,
    "figure.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.color": "#e4e6ea",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "lines.linewidth": 1.1,
    "lines.markersize": 4,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.labelspacing": 0.3,
    "legend.columnspacing": 1.2,
    "pdf.fonttype": 42,
    "svg.hashsalt": "rankbench",
}


@dataclass(frozen=True)
class Look:
    """How a line looks: its number decides colour, marker and dashes."""

    number: int

    @property
    def colour(self) -> str:
        """One of the colours for solvers."""
        return COLOURS[self.number % (len(COLOURS) - 1)]

    @property
    def marker(self) -> str:
        """One of the markers for measured values."""
        return MARKERS[self.number % len(MARKERS)]

    @property
    def dashes(self) -> Any:
        """A pattern of dashes; beyond the last colour, the patterns go with other colours."""
        return DASHES[(self.number + self.number // len(MARKERS)) % len(DASHES)]


def style() -> Any:
    """The matplotlib settings of all figures."""
    return dict(_STYLE)
