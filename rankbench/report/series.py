"""The content of a figure, independent of the plotting library: panels of named lines with their spread."""

from dataclasses import dataclass, replace
from math import isnan
from statistics import fmean

from rankbench.experiments import Figure
from rankbench.harness.records import Group, Study
from rankbench.names import Named, show_settings
from rankbench.report.published import beside
from rankbench.report.study import bound_of, groups, setting_of, several_splits, speed_ups

_LONG = 40  # characters that fit beside an axis


@dataclass(frozen=True)
class Line:
    """One solver's points; y is the mean over repetitions, low and high are the smallest and largest value."""

    name: str
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    owner: str = ""  # name of the line with the same colour, for published numbers and bounds

    @property
    def below(self) -> list[float]:
        """How far the smallest value lies below the mean, point by point."""
        return [y - low for y, low in zip(self.y, self.low, strict=True)]

    @property
    def above(self) -> list[float]:
        """How far the largest value lies above the mean, point by point."""
        return [high - y for y, high in zip(self.y, self.high, strict=True)]

    def at(self, x: float, values: list[float]) -> "Line":
        """The line with one more point at x: the mean, smallest and largest of these values."""
        return replace(
            self,
            x=(*self.x, x),
            y=(*self.y, fmean(values)),
            low=(*self.low, min(values)),
            high=(*self.high, max(values)),
        )


@dataclass(frozen=True)
class Panel:
    """One panel of a figure: its title and the lines in it."""

    title: str
    lines: tuple[Line, ...]
    beside: tuple[Line, ...] = ()  # published or computed numbers, or bounds: dashed, in their solver's colour
    curves: tuple[Line, ...] = ()  # reference lines that are not measured


@dataclass(frozen=True)
class Drawing:
    """A figure: its kind, axis labels and panels."""

    kind: str
    x_label: str
    y_label: str
    better: str
    panels: tuple[Panel, ...]
    log_x: bool = False


def drawings(study: Study) -> dict[str, Drawing]:
    """The figure by each metric that it can show, its own metric first; a figure of speed-ups has only one."""
    several = study.experiment.figure.kind != "speedup"
    labels = [_own_metric(study), *(measure.label for measure in study.measures if several)]
    found = ((label, drawing(study, label)) for label in dict.fromkeys(labels))
    return {label: drawn for label, drawn in found if drawn}


def drawing(study: Study, metric: str = "") -> Drawing | None:
    """The content of the experiment's figure, or None if there are no results to draw.

    Another metric than the figure's own may be asked for; reference lines belong to the figure's own.
    """
    wanted = study.experiment.figure
    good = [group for group in groups(study) if group.good]
    if not good:
        return None
    if wanted.kind == "speedup":
        found = _speed_ups(study, good)
        return Drawing("speedup", "threads", "speed-up (higher is better)", "higher", found) if found else None
    label = metric or _own_metric(study)
    make = {"curve": _curves, "sweep": _sweeps, "bars": _bars}[wanted.kind]
    panels = tuple(panel for panel in make(study, good, label) if any(line.x for line in panel.lines))
    if not panels:
        return None
    better = next((measure.better for measure in study.measures if measure.label == label), "higher")
    log_x = wanted.kind == "curve" and wanted.x == "seconds"
    return Drawing(wanted.kind, _axis(wanted), _labelled(label, better), better, panels, log_x)


def _own_metric(study: Study) -> str:
    return study.experiment.figure.metric or study.measures[0].label


def _labelled(name: str, better: str) -> str:
    """An axis label for a metric; the metric's settings go on a second line if the label is long."""
    label = f"{name} ({better} is better)"
    base, bracket, settings = name.partition("[")
    return label if len(label) <= _LONG or not bracket else f"{base} ({better} is better)\n{bracket}{settings}"


def _names(found: list[Group]) -> dict[str, str]:
    """For each solver's text, the shortest name that is unique among the solvers."""
    solvers = {group.solver.written: group.solver for group in found}
    return {
        text: _name(solver, [other for other in solvers.values() if other.name == solver.name])
        for text, solver in solvers.items()
    }


def _name(solver: Named, namesakes: list[Named]) -> str:
    others = [dict(other.given) for other in namesakes]
    telling = {name: value for name, value in solver.given if any(other.get(name) != value for other in others)}
    return f"{solver.name} {show_settings(telling)}".strip()


def _by_place(study: Study, good: list[Group]) -> list[tuple[str, list[Group]]]:
    """The groups of each data set and split, with the title of their panel."""
    several = several_splits(study)
    found: dict[tuple[str, str], tuple[str, list[Group]]] = {}
    for group in good:
        split = f" {group.split.written}" if several else ""
        key = (group.data.identity, group.split.identity)
        found.setdefault(key, (_short(f"{group.data.written}{split}"), []))[1].append(group)
    return list(found.values())


def _curves(study: Study, good: list[Group], label: str) -> list[Panel]:
    names, x = _names(good), study.experiment.figure.x
    return [
        Panel(title, tuple(_curve(names[group.solver.written], group, label, x) for group in members))
        for title, members in _by_place(study, good)
    ]


def _curve(name: str, group: Group, label: str, x: str) -> Line:
    """The mean training curve over repetitions, up to the last step that all repetitions reached."""
    line = Line(name)
    for points in zip(*(result.curve for result in group.good), strict=False):
        values = [result.value_at(point, label) for result, point in zip(group.good, points, strict=True)]
        known = [value for value in values if not isnan(value)]
        if known:
            line = line.at(fmean(point.seconds if x == "seconds" else point.step for point in points), known)
    return line


def _sweeps(study: Study, good: list[Group], label: str) -> list[Panel]:
    """Each solver's metric against a setting of the data or the split; one panel per value of the settings in `by`."""
    names = _names(good)
    parts: dict[str, list[Group]] = {}
    for group in good:
        own = {setting: f"{setting_of(group, setting):g}" for setting in study.experiment.figure.by}
        parts.setdefault(show_settings(own), []).append(group)
    return [_swept(study, part, members, names, label) for part, members in parts.items()]


def _swept(study: Study, part: str, members: list[Group], names: dict[str, str], label: str) -> Panel:
    """One panel of a sweep, with its reference lines."""
    figure = study.experiment.figure
    lines: dict[str, Line] = {}
    others: dict[str, Line] = {}
    for group in members:
        x, name = setting_of(group, figure.x), names[group.solver.written]
        lines.setdefault(name, Line(name))
        if values := group.values(label):
            lines[name] = lines[name].at(x, values)
        if number := beside(study, group, label):
            title = f"{name}, {number.heading}"
            others[title] = others.get(title, Line(title, owner=name)).at(x, [number.value])
    data = ", ".join(dict.fromkeys(group.data.name for group in members))
    curves = tuple(
        Line(curve.name, curve.x, curve.y, curve.y, curve.y)
        for curve in figure.curves
        if label == _own_metric(study) and all(f"{setting_of(members[0], key):g}" == value for key, value in curve.part)
    )
    return Panel(_short(part or data), tuple(lines.values()), tuple(others.values()), curves)


def _bars(study: Study, good: list[Group], label: str) -> list[Panel]:
    """One panel per data set and split; each solver is a bar of its own."""
    names = _names(good)
    panels = []
    for title, members in _by_place(study, good):
        measured = [(names[group.solver.written], values) for group in members if (values := group.values(label))]
        lines = (Line(name).at(number, values) for number, (name, values) in enumerate(measured))
        panels.append(Panel(title, tuple(lines)))
    return panels


def _speed_ups(study: Study, good: list[Group]) -> tuple[Panel, ...]:
    """One panel per data set, with each solver's speed-up and its upper bound against the number of threads."""
    names = _names(good)
    panels = []
    for title, members in _by_place(study, good):
        lines: dict[str, Line] = {}
        bounds: dict[str, Line] = {}
        for group in members:
            name = names[group.solver.written]
            if found := speed_ups(study, group):
                lines[name] = lines.get(name, Line(name)).at(group.threads, found)
                if (bound := bound_of(group)) is not None:
                    known = bounds.get(name, Line(f"{name}, bound", owner=name))
                    bounds[name] = known.at(group.threads, [bound])
        panels.append(Panel(title, tuple(lines.values()), tuple(bounds.values())))
    return tuple(panel for panel in panels if panel.lines)


def _short(text: str) -> str:
    """A title cut to the length that fits above a panel."""
    return text if len(text) <= 48 else f"{text[:45]}..."


def _axis(wanted: Figure) -> str:
    if wanted.kind == "bars":
        return ""
    return {"seconds": "training seconds"}.get(wanted.x, wanted.x)
