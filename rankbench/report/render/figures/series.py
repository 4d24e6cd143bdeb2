"""The content of an experiment's figure: from its results to panels of lines, whatever library draws them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, isnan, log10
from statistics import fmean, pstdev

from rankbench.records.studies import Group, Study
from rankbench.report.analysis.evidence import by_place, verdict_of
from rankbench.report.analysis.families import split_by_family, split_by_rivals
from rankbench.report.analysis.published import Beside, beside
from rankbench.report.render.figures.drawings import BOUND, CROWDED, Drawing, Line, Panel
from rankbench.report.render.figures.growth import growth
from rankbench.report.render.labels import (
    axis_label,
    capital,
    class_title,
    data_labels,
    data_title,
    metric_axis,
    place_label,
    setting_label,
    solver_labels,
)
from rankbench.report.study import bound_of, setting_of, speed_ups
from rankbench.statistics import Verdict

_DECADES = 1.5  # positive numbers that span more than this get a logarithmic axis
_CURVE_DECADES = {  # training curves of errors sooner, as they fall fast and then differ little; those that rise never
    "lower": 0.6,
    "higher": inf,
}
_FLAT = 0.12  # lines that share less than this part of an axis, far from the others, get a part of their own
_APART = 0.08  # of the axis: lines that are nearer to the others than this are not far from them
_INTERVAL = "95 % interval"
_DIFFERENCE = "95 % interval of the difference from the best"


@dataclass(frozen=True)
class _Question:
    """What is drawn: the groups that ended well, by one metric, with the names of their solvers."""

    study: Study
    good: tuple[Group, ...]
    label: str
    names: Mapping[str, str]
    over_users: bool  # whether the spread is the interval of the mean, not the range over repetitions

    def name(self, group: Group) -> str:
        """The name of a group's solver."""
        names = self.names
        return names[group.solver.written]

    def extended(self, line: Line, x: float, group: Group) -> Line:
        """The line with the group's value at x, if it has one."""
        values = group.values(self.label)
        if not values:
            return line
        found = verdict_of(self.study, group, self.label) if self.over_users else None
        ends = self._interval(found, fmean(values)) if found else (min(values), max(values))
        return line.at(x, fmean(values), *ends)

    def _interval(self, found: Verdict, mean: float) -> tuple[float, float]:
        """The interval of the difference from the best, laid at a solver's mean; the best one has none.

        A solver without another one has that of its mean.
        """
        if found.alone:
            return found.mean.low, found.mean.high
        if found.best:
            return mean, mean
        sign = next(measure.sign for measure in self.study.measures if measure.label == self.label)
        apart = found.decision.difference.times(sign)
        return mean + apart.low - apart.mean, mean + apart.high - apart.mean

    def best_of(self, members: Iterable[Group]) -> float | None:
        """The best mean of several solvers, from which the intervals of the others are drawn; None without these."""
        known = [(group, verdict_of(self.study, group, self.label)) for group in members] if self.over_users else []
        best = (group for group, found in known if found and found.best and not found.alone)
        return next((fmean(group.values(self.label)) for group in best), None)


def drawings(study: Study) -> dict[str, Drawing]:
    """The figure by each metric that it can show, its own metric first; a figure of costs has only one."""
    several = not study.experiment.figure.is_of_costs
    labels = [own_metric(study), *(measure.label for measure in study.measures if several)]
    found = ((label, drawing(study, label)) for label in dict.fromkeys(labels))
    return {label: drawn for label, drawn in found if drawn}


def own_metric(study: Study) -> str:
    """The metric that the experiment's figure shows."""
    return study.experiment.figure.metric or study.measures[0].label


def drawing(study: Study, metric: str = "") -> Drawing | None:
    """The content of the experiment's figure, or None if there are no results to draw.

    It has the panels of the figure's own metric, and those of its other ones after them. A single metric may be asked
    for instead; reference lines belong to the figure's own.
    """
    if study.experiment.figure.kind == "growth":
        return growth(study)
    labels = (metric,) if metric else (own_metric(study), *study.experiment.figure.others)
    found = [(label, drawn) for label in labels if (drawn := _by_metric(study, label))]
    if len(found) < 2:
        return found[0][1] if found else None
    panels = tuple(
        replace(panel, values=metric_axis(study, label), shares=panel.shares and label)
        for label, drawn in found
        for panel in drawn.panels
    )
    spreads = dict.fromkeys(drawn.spread for _, drawn in found if drawn.spread)
    all_log = all(drawn.log_y for _, drawn in found)
    return replace(found[0][1], panels=panels, log_y=all_log, spread=" or ".join(spreads))


def _by_metric(study: Study, label: str) -> Drawing | None:
    """The figure by one metric, or None if there are no results to draw."""
    wanted = study.experiment.figure
    ended = tuple(group for group in study.groups if group.good)
    good = tuple(group for group in ended if wanted.shows(group.solver, group.data)) or ended
    question = _Question(study, good, label, solver_labels(study), _over_users(study, good, label))
    make = {"curve": _curves, "sweep": _sweeps, "bars": _dots, "speedup": _speed_ups}[wanted.kind]
    panels = [panel for panel in make(question) if any(line.x for line in panel.lines)]
    if not panels:
        return None
    if wanted.kind in ("curve", "speedup"):
        panels = [part for panel in panels for part in _in_families(question, panel, wanted.kind == "speedup")]
    better = next((measure.better for measure in study.measures if measure.label == label), "higher")
    if wanted.kind in ("sweep", "bars"):
        panels = [replace(panel, gap=_gap(panel)) for panel in panels]
    broken, faster = any(panel.gap for panel in panels), wanted.kind == "speedup"
    decades = _CURVE_DECADES[better] if wanted.kind == "curve" else _DECADES
    return Drawing(
        wanted.kind,
        "" if wanted.kind == "bars" else axis_label(study, "threads" if faster else wanted.x),
        "speed-up\n(higher is better)" if faster else metric_axis(study, label),
        "higher" if faster else better,
        tuple(panels),
        log_x=_log_x(study, panels),
        log_y=not faster and not broken and _wide(panels, decades),
        spread=_spread(question, panels),
    )


def _over_users(study: Study, good: Iterable[Group], label: str) -> bool:
    """Whether the figure shows intervals over users: the last models' values are drawn, and all have an interval."""
    if study.experiment.figure.kind not in ("sweep", "bars"):
        return False
    verdicts = [verdict_of(study, group, label) for group in good if group.values(label)]
    found = [one.mean if one.alone else one.decision.difference for one in verdicts if one is not None]
    return len(found) == len(verdicts) and all(one.high - one.low < inf for one in found)


def _spread(question: _Question, panels: Iterable[Panel]) -> str:
    """What low and high of the lines are."""
    if not any(line.spreads for panel in panels for line in panel.lines):
        return ""
    most = max(len(group.good) for group in question.good)
    if not question.over_users:
        return f"smallest to largest of {most} repetitions"
    verdicts = [verdict_of(question.study, group, question.label) for group in question.good]
    alone = all(one.alone for one in verdicts if one is not None)
    line = " (dashed line)" if any(panel.best is not None for panel in panels) else ""
    return _INTERVAL if alone else f"{_DIFFERENCE}{line}"


def _log_x(study: Study, panels: Sequence[Panel]) -> bool:
    """Whether the horizontal axis is logarithmic: for seconds and threads, and values that grow by a factor."""
    figure = study.experiment.figure
    if figure.kind in ("bars", "speedup"):
        return figure.kind == "speedup"
    if figure.kind == "curve":
        return figure.x == "seconds"
    found = sorted({x for panel in panels for line in panel.lines for x in line.x})
    if len(found) < 3 or found[0] <= 0 or found[-1] < 4 * found[0]:
        return False
    steps, factors = ([b - a for a, b in pairwise(values)] for values in (found, list(map(log10, found))))
    return pstdev(factors) / fmean(factors) < pstdev(steps) / fmean(steps)


def _wide(panels: Iterable[Panel], decades: float) -> bool:
    """Whether the values are positive and span more powers of ten than this."""
    measured = [value for panel in panels for line in panel.lines for value in (*line.y, *line.low, *line.high)]
    found = [*measured, *(y for panel in panels for line in panel.all_lines for y in line.y)]
    return min(found) > 0 and log10(max(found) / min(found)) > decades


def _gap(panel: Panel) -> tuple[float, float] | None:
    """Where the axis of a panel is broken, since lines of two solvers or more would lie flat, far from the others."""
    lines = [line for line in panel.all_lines if line.x]
    ends = sorted((min(*line.y, *line.low), max(*line.y, *line.high), line.owner or line.name) for line in lines)
    low, high = ends[0][0], max(end for _, end, _ in ends)
    reached, best = -inf, None
    for number, (start, end, _) in enumerate(ends):
        apart = start - reached
        flat = ((reached - low, ends[:number]), (high - start, ends[number:]))
        for span, side in flat if apart > _APART * (high - low) and number else ():
            if len({solver for _, _, solver in side}) > 1 and 0 < span < min(_FLAT * (high - low), apart):
                best = (reached, start)
        reached = max(reached, end)
    return best


def _by_place(question: _Question) -> list[tuple[str, list[Group]]]:
    """The groups of each data set and split, with the title of their panel."""
    study = question.study
    places = by_place(question.good).values()
    return [(capital(place_label(study, members[0].place)), members) for members in places]


def _curves(question: _Question) -> list[Panel]:
    return [
        Panel(
            title,
            lines := tuple(_curve(question, group) for group in members),
            _published(question, question.label, zip(members, (line.x[-1:] for line in lines), strict=True)),
        )
        for title, members in _by_place(question)
    ]


def _curve(question: _Question, group: Group) -> Line:
    """The mean training curve over repetitions, up to the last step that all repetitions reached."""
    line = Line(question.name(group))
    seconds = question.study.experiment.figure.x == "seconds"
    for points in zip(*(result.curve for result in group.good), strict=False):
        values = [result.value_at(point, question.label) for result, point in zip(group.good, points, strict=True)]
        known = [value for value in values if not isnan(value)]
        if known:
            x = fmean(point.seconds if seconds else point.step for point in points)
            line = line.at(x, fmean(known), min(known), max(known))
    return line


def _sweeps(question: _Question) -> list[Panel]:
    """Each solver's metric against a setting of the data or the split, in a panel for each of the other settings."""
    figure = question.study.experiment.figure
    parts: dict[tuple[object, ...], list[Group]] = {}
    for group in question.good:
        own = tuple((key, setting_of(group, key)) for key in figure.by)
        fixed = tuple((key, value) for key, value in group.data.settings if key not in (figure.x, *figure.by))
        parts.setdefault((own, group.data.name, fixed, group.split.name), []).append(group)
    return [_swept(question, members) for members in parts.values()]


def _swept(question: _Question, members: Sequence[Group]) -> Panel:
    """One panel of a sweep, with its reference lines."""
    study, figure = question.study, question.study.experiment.figure
    lines: dict[str, Line] = {}
    for group in members:
        name = question.name(group)
        lines[name] = question.extended(lines.get(name, Line(name)), setting_of(group, figure.x), group)
    curves = _reference_lines(question, members) if question.label == own_metric(study) else ()
    parts = [setting_label(study, key, setting_of(members[0], key)) for key in figure.by]
    places = ((group, (setting_of(group, figure.x),)) for group in members if group.values(question.label))
    found = _published(question, question.label, places)
    measured = tuple(line.ascending() for line in lines.values())
    return Panel(capital(", ".join(parts) or _data_of(study, members)), measured, found, curves, shares="all")


def _data_of(study: Study, members: Sequence[Group]) -> str:
    """What the data of these groups are called, which may differ in the setting on the axis."""
    texts = {group.data.written for group in members}
    return data_labels(study)[texts.pop()] if len(texts) == 1 else class_title(members[0].data)


def _dots(question: _Question) -> list[Panel]:
    """One panel per data set and split; each solver is a point of its own, at its number."""
    panels = []
    for title, members in _by_place(question):
        named = ((float(number), group, Line(question.name(group))) for number, group in enumerate(members))
        lines = [question.extended(line, place, group) for place, group, line in named]
        found = _published(question, question.label, zip(members, (line.x for line in lines), strict=True))
        best = question.best_of(members)
        panels.append(Panel(title, tuple(line for line in lines if line.x), found, best=best))
    return panels


def _published(question: _Question, label: str, places: Iterable[tuple[Group, tuple[float, ...]]]) -> tuple[Line, ...]:
    """The published and computed numbers for these groups, each at the given x; none where there is no x."""
    found: dict[tuple[str, str], Line] = {}
    for group, x in places:
        if x and (number := beside(question.study, group, label)):
            owner, what = question.name(group), _heading(number)
            line = found.get((owner, what), Line(f"{owner}, {what}", owner=owner, what=what))
            sd = number.sd or 0.0
            found[owner, what] = line.at(x[0], number.value, number.value - sd, number.value + sd)
    return tuple(line.ascending() for line in found.values())


def _heading(number: Beside) -> str:
    """What a reference number is, with the name for people of the data set that it belongs to."""
    return f"published on {data_title(number.on)}" if number.elsewhere and not number.computed else number.heading


def _speed_ups(question: _Question) -> list[Panel]:
    """One panel per data set, with each solver's speed-up and its upper bound against the number of threads."""
    panels = []
    for title, members in _by_place(question):
        lines: dict[str, Line] = {}
        bounds: dict[str, Line] = {}
        for group in members:
            name, threads = question.name(group), group.threads
            if found := speed_ups(question.study, group):
                lines[name] = lines.get(name, Line(name)).at(threads, fmean(found), min(found), max(found))
                if (bound := bound_of(group)) is not None:
                    known = bounds.get(name, Line(f"{name}, bound", owner=name, what=BOUND))
                    bounds[name] = known.at(threads, bound)
        counts = tuple(sorted({float(group.threads) for group in members}))
        ideal = Line("one per thread", counts, tuple(x / counts[0] for x in counts), counts, counts)
        places = ((group, (group.threads,)) for group in members if question.name(group) in lines)
        numbers = (*bounds.values(), *_published(question, "speed-up", places))
        curves = (ideal, *_reference_lines(question, members))
        panels.append(Panel(title, tuple(lines.values()), numbers, curves, shares=title))
    return panels


def _reference_lines(question: _Question, members: Sequence[Group]) -> tuple[Line, ...]:
    """The figure's reference lines that belong to the panel of these groups."""
    return tuple(
        Line(curve.name, curve.x, curve.y, curve.y, curve.y)
        for curve in question.study.experiment.figure.curves
        if all(f"{setting_of(members[0], key):g}" == value for key, value in curve.part)
    )


def _in_families(question: _Question, panel: Panel, always: bool) -> list[Panel]:
    """The panel in parts, each with a family of solvers, if it is crowded (or always)."""
    if len(panel.lines) <= CROWDED and not always:
        return [panel]
    solvers = {question.name(group): group.solver for group in question.good}
    shown, rivals = [solvers[line.name] for line in panel.lines], question.study.experiment.rivals
    families = split_by_rivals(shown, rivals) if rivals else split_by_family(shown)
    if len(families) < 2:
        return [panel]
    names = {solver.written: name for name, solver in solvers.items()}
    parts = []
    for title, members in families:
        own = {names[solver.written] for solver in members}
        parts.append(
            replace(
                panel,
                title=f"{panel.title}: {title}",
                lines=tuple(line for line in panel.lines if line.name in own),
                beside=tuple(line for line in panel.beside if line.owner in own),
                context=tuple(line for line in panel.lines if line.name not in own),
                shares=panel.shares or panel.title,
            )
        )
    return parts
