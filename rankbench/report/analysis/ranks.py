"""Solvers over the data sets of an experiment: average ranks (Demsar 2006), and what to expect of a new data set."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from rankbench.core.contract import Floats
from rankbench.core.texts import figure_text
from rankbench.records.cells import Measure
from rankbench.records.studies import Group, Study
from rankbench.report.analysis.evidence import limits_of, samples
from rankbench.report.render.labels import metric_labels, solver_labels
from rankbench.statistics import between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEWEST = 5  # data sets; fewer say next to nothing
_ROW = 0.17  # inches between the names of two solvers, and between two bars
_ASIDE = 0.035  # how far names stand beside the axis, as a share of its length


@dataclass(frozen=True)
class Ranks:
    """The average ranks of an experiment's solvers by one metric, 1 being the best, with the names for people."""

    metric: str
    better: str
    data_sets: int
    solvers: tuple[str, ...]  # the best first
    ranks: tuple[float, ...]
    alike: tuple[tuple[str, ...], ...]  # the largest runs of neighbours no two of which differ at 5 %
    reason: str  # why nothing can be told; empty where something can
    chances: tuple[tuple[float, float, float], ...]  # that the first is better than each other one on a new data set

    @property
    def text(self) -> str:
        """The ranks, which solvers a test distinguishes, and what to expect of a new data set, in a few sentences."""
        ranks = ", ".join(f"{name} {rank:.2f}" for name, rank in zip(self.solvers, self.ranks, strict=True))
        lines = [f"Average ranks by {self.metric} ({self.better} is better) over {self.data_sets} data sets: {ranks}"]
        alike = "; ".join(" and ".join(names) for names in self.alike) or "none"
        tested = f"Not distinguished by an exact test of all differences of average ranks at 5 %: {alike}"
        lines.append(self.reason[:1].upper() + self.reason[1:] if self.reason else tested)
        chances = [
            f"than {name} {chance:.2f} ({low:.2f} to {high:.2f})"
            for name, (chance, low, high) in zip(self.solvers[1:], self.chances, strict=True)
        ]
        lines.append(f"The chance that {self.solvers[0]} is better on a new data set: {', '.join(chances)}")
        return ". ".join(lines) + "."


def ranks(study: Study) -> Ranks | None:
    """The ranking by the metric of the experiment's figure; None unless there are five data sets or more.

    Data sets that differ only in the settings on the axis or in the panels of the figure count once, as do splits:
    their values are averaged, where every solver has one. A data set without such values does not count.
    """
    figure = study.experiment.figure
    measure = next((one for one in study.measures if one.label == figure.metric), study.measures[0])
    names = solver_labels(study)
    swept = (figure.x, *figure.by) if figure.kind in ("sweep", "growth") else ()
    solvers = list(dict.fromkeys(names[group.solver.written] for group in study.groups))
    found: dict[tuple[object, ...], dict[object, dict[str, Group]]] = {}
    for group in study.groups:
        if group.values(measure.label):
            fixed = tuple((key, value) for key, value in group.data.settings if key not in swept)
            places = found.setdefault((group.data.base, fixed), {})
            places.setdefault((group.place.identity, group.threads), {})[names[group.solver.written]] = group
    shared = ([own for own in places.values() if len(own) == len(solvers)] for places in found.values())
    whole = [places for places in shared if places]
    if len(whole) < _FEWEST or len(solvers) < 2:
        return None
    values = np.array([[_mean(places, name, measure.label) for places in whole] for name in solvers])
    return _ranked(study, measure, solvers, values, whole)


def _ranked(study: Study, measure: Measure, solvers: list[str], values: Floats, whole: list[list[dict[str, Group]]]
            ) -> Ranks:  # fmt: skip
    """The ranks of solvers x data sets, of each of which `whole` has the groups of the solvers in every place."""
    from rankbench.statistics.over_data import LEVEL, on_new_data, over_data  # noqa: PLC0415  slow to import

    tested = over_data(values, measure.better)
    average, likely = tested.ranks, tested.p
    order = sorted(range(len(solvers)), key=lambda place: (average[place], solvers[place]))
    best, pairs = order[0], len(solvers) * (len(solvers) - 1) // 2  # any of which could have been picked
    chances = []
    for other in order[1:]:
        apart = measure.sign * (values[best] - values[other])
        errors = [_error(study, measure, places, (solvers[best], solvers[other])) for places in whole]
        new = on_new_data(apart.tolist(), errors, pairs)
        chances.append((new.chance, new.chance_low, new.chance_high))
    names = tuple(solvers[place] for place in order)
    same = [[likely[one][other] >= LEVEL for other in order] for one in order]
    metric = metric_labels(study)[measure.label]
    return Ranks(metric, measure.better, len(whole), names, tuple(average[place] for place in order),
                 _alike(names, same), tested.reason, tuple(chances))  # fmt: skip


def _mean(places: Iterable[dict[str, Group]], solver: str, label: str) -> float:
    """The mean of a solver over the repetitions in all these places."""
    return fmean(value for own in places for value in own[solver].values(label))


def _error(study: Study, measure: Measure, places: Iterable[dict[str, Group]], pair: tuple[str, str]) -> float:
    """The standard error of the difference of two solvers on one data set; 0 where nothing is known of its users."""
    found = []
    for groups in places:
        own = [samples(study, groups[name]).get(measure.label) for name in pair]
        if own[0] and own[1]:
            decided = between({0: own[0], 1: own[1]}, measure.better, limits=limits_of(measure))
            found.append(decided[1, 0].difference.error)
    known = [error for error in found if not isnan(error)]
    return fmean(known) if known else 0.0


def _alike(solvers: Sequence[str], same: Sequence[Sequence[bool]]) -> tuple[tuple[str, ...], ...]:
    """The runs of neighbouring ranks that are not distinguishable, none of them part of another."""
    found: list[tuple[int, int]] = []
    for first in range(len(solvers)):
        end = first + 1
        while end < len(solvers) and all(same[end][other] for other in range(first, end)):
            end += 1
        if end - first > 1 and not any(end <= last for _, last in found):
            found.append((first, end))
    return tuple(tuple(solvers[first:end]) for first, end in found)


def draw_ranks(found: Ranks, folder: Path, name: str) -> None:
    """Write name.pdf and name.png: the critical-difference diagram."""
    from rankbench.report.render.figures.plots import save  # noqa: PLC0415  matplotlib is slow to import

    save(partial(diagram, found), folder, name)


def ranks_svg(found: Ranks) -> str:
    """The critical-difference diagram as an SVG element for an HTML page, whose letters are drawn as shapes."""
    import matplotlib  # noqa: PLC0415  slow to import

    from rankbench.report.render.figures.looks import style  # noqa: PLC0415

    out = io.StringIO()
    with matplotlib.rc_context(style()):
        diagram(found).savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()[out.getvalue().index("<svg") :]


def diagram(found: Ranks) -> "Figure":
    """The critical-difference diagram: solvers at their average ranks, and bars over those not distinguished."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    count, bars = len(found.solvers), len(found.alike)
    depth = 1 + bars + (count + 1) // 2
    figure = Figure(figsize=(3.5, 0.7 + _ROW * depth), layout="constrained")
    axis = figure.subplots()
    axis.set_axis_off()
    axis.set(xlim=(1, count), ylim=(-depth, 1.6))
    joined = "bars join solvers that a test at 5 % does not distinguish"
    axis.set_title(f"average rank by {figure_text(found.metric)}\n{joined}")
    axis.plot([1, count], [0, 0], color="k", lw=0.8, clip_on=False)
    for tick in range(1, count + 1):
        axis.plot([tick, tick], [0, 0.25], color="k", lw=0.8, clip_on=False)
        axis.text(tick, 0.4, str(tick), ha="center", va="bottom", fontsize=7)
    _draw_solvers(axis, found)
    return figure


def _draw_solvers(axis: "Axes", ranked: Ranks) -> None:
    """Draw a line from each solver's rank to its name, the better half on the left, and the bars."""
    count, bars = len(ranked.solvers), len(ranked.alike)
    left = (count + 1) // 2
    places = dict(zip(ranked.solvers, ranked.ranks, strict=True))
    for number, (name, rank) in enumerate(places.items()):
        first = number < left
        level = -(1 + bars + (number if first else count - 1 - number))
        end = 1 - _ASIDE * (count - 1) if first else count + _ASIDE * (count - 1)
        axis.plot([rank, rank, end], [0, level, level], color="k", lw=0.7, clip_on=False)
        said = figure_text(name)
        text = f"{said} ({rank:.2f})" if first else f"({rank:.2f}) {said}"
        axis.text(end, level, f" {text} ", ha="right" if first else "left", va="center", fontsize=7)
    for number, names in enumerate(ranked.alike):
        ends = (places[names[0]] - 0.05, places[names[-1]] + 0.05)
        axis.plot(ends, [-0.6 - number] * 2, color="k", lw=2.5, solid_capstyle="butt", clip_on=False)
