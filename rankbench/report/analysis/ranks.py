"""Solvers over the data sets of an experiment: average ranks and a critical-difference diagram (Demsar 2006)."""

import io
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from rankbench.records.studies import Study
from rankbench.report.render.labels import metric_labels, solver_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rankbench.statistics.across import Ranking

_ROW = 0.17  # inches between the names of two solvers, and between two bars
_ASIDE = 0.035  # how far names stand beside the axis, as a share of its length


@dataclass(frozen=True)
class Ranks:
    """The ranking of an experiment's solvers by one metric, with the names for people."""

    metric: str
    better: str
    data_sets: int
    ranking: "Ranking"

    @property
    def text(self) -> str:
        """The ranks, the tests, and which solvers they do not tell apart, in a few sentences."""
        found = self.ranking
        ranks = ", ".join(f"{name} {rank:.2f}" for name, rank in zip(found.solvers, found.ranks, strict=True))
        lines = [f"Average ranks by {self.metric} ({self.better} is better) over {self.data_sets} data sets: {ranks}"]
        if not isnan(found.p):
            lines.append(
                f"Friedman's test that all solvers are alike: chi square {found.statistic:.2f}, p = {found.p:.2g}"
            )
        alike = "; ".join(" and ".join(names) for names in found.alike) or "none"
        test = "Wilcoxon's signed-rank test at 5 %, adjusted by Holm's method"
        return ". ".join([*lines, f"Not told apart by {test}: {alike}"]) + "."


def ranks(study: Study) -> Ranks | None:
    """The ranking by the metric of the experiment's figure; None unless there are five data sets or more.

    Data sets that differ only in the settings on the axis or in the panels of the figure count once, as do splits:
    their values are averaged. A data set counts if every solver has a value on it.
    """
    from rankbench.statistics.across import FEWEST, ranking  # noqa: PLC0415  SciPy's statistics are slow to import

    figure = study.experiment.figure
    measure = next((one for one in study.measures if one.label == figure.metric), study.measures[0])
    values: dict[tuple[object, ...], dict[str, list[float]]] = {}
    names = solver_labels(study)
    swept = (figure.x, *figure.by) if figure.kind in ("sweep", "growth") else ()
    for group in study.groups:
        fixed = tuple((key, value) for key, value in group.data.settings if key not in swept)
        own = values.setdefault((group.data.base, fixed), {})
        own.setdefault(names[group.solver.written], []).extend(group.values(measure.label))
    solvers = list(dict.fromkeys(name for own in values.values() for name in own))
    whole = [own for own in values.values() if all(own.get(name) for name in solvers)]
    if len(whole) < FEWEST or len(solvers) < 2:
        return None
    table = {name: [fmean(own[name]) for own in whole] for name in solvers}
    metric = metric_labels(study)[measure.label]
    return Ranks(metric, measure.better, len(whole), ranking(table, measure.better))


def draw_ranks(found: Ranks, folder: Path, name: str) -> None:
    """Write name.pdf and name.png: the critical-difference diagram."""
    import matplotlib  # noqa: PLC0415  slow to import

    from rankbench.report.render.figures import save, style  # noqa: PLC0415

    with matplotlib.rc_context(style()):
        save(diagram(found), folder, name)


def ranks_svg(found: Ranks) -> str:
    """The critical-difference diagram as an SVG element for an HTML page, whose letters are drawn as shapes."""
    import matplotlib  # noqa: PLC0415  slow to import

    from rankbench.report.render.figures import style  # noqa: PLC0415

    out = io.StringIO()
    with matplotlib.rc_context(style()):
        diagram(found).savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()[out.getvalue().index("<svg") :]


def diagram(found: Ranks) -> "Figure":
    """The critical-difference diagram: solvers at their average ranks, with bars over those not told apart."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    count, bars = len(found.ranking.solvers), len(found.ranking.alike)
    depth = 1 + bars + (count + 1) // 2
    figure = Figure(figsize=(3.5, 0.7 + _ROW * depth), layout="constrained")
    axis = figure.subplots()
    axis.set_axis_off()
    axis.set(xlim=(1, count), ylim=(-depth, 1.6))
    axis.set_title(f"average rank by {found.metric}\nbars join solvers that are not told apart at 5 %")
    axis.plot([1, count], [0, 0], color="k", lw=0.8, clip_on=False)
    for tick in range(1, count + 1):
        axis.plot([tick, tick], [0, 0.25], color="k", lw=0.8, clip_on=False)
        axis.text(tick, 0.4, str(tick), ha="center", va="bottom", fontsize=7)
    _draw_solvers(axis, found.ranking)
    return figure


def _draw_solvers(axis: "Axes", ranked: "Ranking") -> None:
    """Draw a line from each solver's rank to its name, the better half on the left, and the bars."""
    count, bars = len(ranked.solvers), len(ranked.alike)
    left = (count + 1) // 2
    places = dict(zip(ranked.solvers, ranked.ranks, strict=True))
    for number, (name, rank) in enumerate(places.items()):
        first = number < left
        level = -(1 + bars + (number if first else count - 1 - number))
        end = 1 - _ASIDE * (count - 1) if first else count + _ASIDE * (count - 1)
        axis.plot([rank, rank, end], [0, level, level], color="k", lw=0.7, clip_on=False)
        text = f"{name} ({rank:.2f})" if first else f"({rank:.2f}) {name}"
        axis.text(end, level, f" {text} ", ha="right" if first else "left", va="center", fontsize=7)
    for number, names in enumerate(ranked.alike):
        ends = (places[names[0]] - 0.05, places[names[-1]] + 0.05)
        axis.plot(ends, [-0.6 - number] * 2, color="k", lw=2.5, solid_capstyle="butt", clip_on=False)
