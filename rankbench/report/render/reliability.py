"""A reliability diagram: how often the item with the higher score won, against the chance that it was given."""

from collections.abc import Sequence

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rankbench.metrics.reliability import Bin
from rankbench.report.render.figures.looks import COLOURS, style

_EDGE = {"color": COLOURS[-1], "linewidth": 0.8, "linestyle": (0, (4, 2))}


def reliability_figure(bins: Sequence[Bin]) -> Figure:
    """The bins with the intervals of their shares; on the broken line every chance comes true. Below: their sizes."""
    chances, shares = np.array([one.chance for one in bins]), np.array([one.share for one in bins])
    ends = np.array([[one.share - one.share_low, one.share_high - one.share] for one in bins]).T
    with matplotlib.rc_context(style()):
        figure = Figure((3.5, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        above, below = figure.subplots(2, sharex=True, height_ratios=(4, 1))
        above.plot([0.5, 1], [0.5, 1], **_EDGE)
        above.errorbar(chances, shares, ends, color=COLOURS[0], marker="o", markersize=4, linewidth=1.2, capsize=2)
        above.set_ylabel("share that it won")
        below.bar(
            [(one.low + one.high) / 2 for one in bins], [one.comparisons for one in bins],
            [0.9 * (one.high - one.low) for one in bins], color=COLOURS[0],
        )  # fmt: skip
        below.set_ylabel("comparisons")
        below.set_xlabel("chance of the item with the higher score")
        below.set_xlim(0.48, 1.02)
    return figure
