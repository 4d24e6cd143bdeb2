"""What a figure shows, before anybody draws it: panels of named lines with their spread."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from rankbench.metrics import metric
from rankbench.report.tables import Group, Study, bound_of, groups, rows, speed_ups
from rankbench.specs import Spec, parse, show_settings

_LONG = 40  # letters beside an axis


@dataclass(frozen=True)
class Line:
    """One solver's points; low and high are the least and greatest repetition."""

    name: str
    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]

    @property
    def owner(self) -> str:
        """The line that this one is drawn beside, in its colour."""
        return self.name.removesuffix(", published").removesuffix(", bound")

    @property
    def below(self) -> list[float]:
        """How far the least repetition lies under the mean."""
        return [y - low for y, low in zip(self.y, self.low, strict=True)]

    @property
    def above(self) -> list[float]:
        """How far the greatest repetition lies over the mean."""
        return [high - y for y, high in zip(self.y, self.high, strict=True)]


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    lines: list[Line]
    published: list[Line] = field(default_factory=list)  # or bounds: dashed, in their solver's colour
    curves: list[Line] = field(default_factory=list)  # measured by nobody


@dataclass(frozen=True)
class Drawing:
    """A figure: its kind, its axes, its panels."""

    kind: str
    x_label: str
    y_label: str
    better: str
    panels: list[Panel]
    log_x: bool = False


def drawing(study: Study) -> Drawing | None:
    """What the experiment's figure shows, None where nothing was measured yet."""
    wanted = study.experiment["figure"]
    name = wanted["metric"] or study.experiment["metrics"][0]
    good = [group for group in groups(study) if group.good]
    if not good:
        return None
    if wanted["kind"] == "speedup":
        found = _speed_ups(study, good)
        return Drawing("speedup", "threads", "speed-up (higher is better)", "higher", found) if found else None
    make = {"curve": _curves, "sweep": _sweeps, "bars": _bars}[wanted["kind"]]
    panels = make(study, good, name, wanted["x"])
    better = metric(name).better
    log_x = wanted["kind"] == "curve" and wanted["x"] == "seconds"
    return Drawing(wanted["kind"], _axis(wanted), _labelled(name, better), better, panels, log_x)


def _labelled(name: str, better: str) -> str:
    """A metric beside an axis, its settings on a line of their own where both together are too long for it."""
    label = f"{name} ({better} is better)"
    base, bracket, settings = name.partition("[")
    return label if len(label) <= _LONG or not bracket else f"{base} ({better} is better)\n{bracket}{settings}"


def _names(found: list[Group]) -> dict[str, str]:
    """For each solver, as somebody wrote it, the shortest name that tells it from the others."""
    written = list(dict.fromkeys(group.shown[1] for group in found))
    specs = {text: parse(text) for text in written}
    return {
        text: _name(spec, [other for other in specs.values() if other.name == spec.name])
        for text, spec in specs.items()
    }


def _name(spec: Spec, namesakes: list[Spec]) -> str:
    telling = {k: v for k, v in spec.settings.items() if any(other.settings.get(k) != v for other in namesakes)}
    return f"{spec.name} {show_settings(telling)}".strip()


def _curves(study: Study, good: list[Group], name: str, x: str) -> list[Panel]:
    names = _names(good)
    panels: dict[str, Panel] = {}
    for group in good:
        panel = panels.setdefault(group.place, Panel(_short(group.shown[0]), []))
        panel.lines.append(_curve(names[group.shown[1]], group, name, x))
    return list(panels.values())


def _curve(label: str, group: Group, name: str, x: str) -> Line:
    """The mean over repetitions, checkpoint by checkpoint, as far as every repetition came."""
    points = list(zip(*(result.curve for result in group.good), strict=False))
    values = [[point["metrics"][name] for point in column] for column in points]
    places = [fmean(point[x] for point in column) for column in points]
    return Line(label, places, [fmean(v) for v in values], [min(v) for v in values], [max(v) for v in values])


def _sweeps(study: Study, good: list[Group], name: str, x: str) -> list[Panel]:
    """Each solver's measure against a setting of the data or the split; a panel for each value of those to part by."""
    names = _names(good)
    table = {(row.data, row.solver, row.settings): row.published for row in rows(study) if row.metric == name}
    parts: dict[str, list[Group]] = {}
    for group in good:
        own = {setting: f"{_setting(group, setting):g}" for setting in study.experiment["figure"].get("by", ())}
        parts.setdefault(show_settings(own), []).append(group)
    return [_swept(study, part, members, names, table, (name, x)) for part, members in parts.items()]


def _swept(
    study: Study, part: str, members: list[Group], names: dict[str, str], table: Mapping[Any, Any], of: tuple[str, str]
) -> Panel:
    """One panel of a sweep, with the curves that belong there."""
    name, x = of
    lines: dict[str, Line] = {}
    published: dict[str, Line] = {}
    for group in members:
        place = _setting(group, x)
        label = names[group.shown[1]]
        values = [result.metrics[name] for result in group.good]
        _add(lines.setdefault(label, Line(label, [], [], [], [])), place, values)
        if (value := table.get((group.place, group.solver, show_settings(group.settings)))) is not None:
            _add(published.setdefault(label, Line(f"{label}, published", [], [], [], [])), place, [value])
    data = ", ".join(dict.fromkeys(parse(group.data).name for group in members))
    return Panel(_short(part or data), list(lines.values()), list(published.values()), _beside(study, part))


def _beside(study: Study, part: str) -> list[Line]:
    """What is to be drawn in this part of the figure, though nobody measured it."""
    own = parse(f"part[{part}]").settings
    return [
        Line(curve["name"], curve["x"], curve["y"], curve["y"], curve["y"])
        for curve in study.experiment["figure"].get("curves", ())
        if parse(f"part[{curve['part']}]").settings.items() <= own.items()
    ]


def _bars(study: Study, good: list[Group], name: str, x: str) -> list[Panel]:
    """One panel per data set and split; each solver is a bar at its own place."""
    names = _names(good)
    panels: dict[str, Panel] = {}
    for group in good:
        panel = panels.setdefault(group.place, Panel(_short(group.shown[0]), []))
        line = Line(names[group.shown[1]], [], [], [], [])
        _add(line, len(panel.lines), [result.metrics[name] for result in group.good])
        panel.lines.append(line)
    return list(panels.values())


def _speed_ups(study: Study, good: list[Group]) -> list[Panel]:
    """One panel per data set; each solver's speed-up against its threads, and beside it what its schedule allows."""
    names = _names(good)
    panels: dict[str, Panel] = {}
    lines: dict[tuple[str, str], Line] = {}
    for group in good:
        panel, label = panels.setdefault(group.place, Panel(_short(group.shown[0]), [])), names[group.shown[1]]
        if found := speed_ups(study, group):
            _add(_line_of(lines, panel.lines, group.place, label), group.threads, found)
            if (bound := bound_of(group)) is not None:
                _add(_line_of(lines, panel.published, group.place, f"{label}, bound"), group.threads, [bound])
    return [panel for panel in panels.values() if panel.lines]


def _line_of(known: dict[tuple[str, str], Line], among: list[Line], place: str, label: str) -> Line:
    """The line of this name in this place, a new one where there is none yet."""
    if (place, label) not in known:
        known[place, label] = Line(label, [], [], [], [])
        among.append(known[place, label])
    return known[place, label]


def _short(text: str) -> str:
    """A title that fits above its axes."""
    return text if len(text) <= 48 else f"{text[:45]}..."


def _setting(group: Group, x: str) -> float:
    """The value of a setting of the group's split or data set."""
    for text in (group.split, group.data):
        if x in (settings := parse(text).settings):
            return float(settings[x])
    return 0.0


def _add(line: Line, x: float, values: list[float]) -> None:
    line.x.append(x)
    line.y.append(fmean(values))
    line.low.append(min(values))
    line.high.append(max(values))


def _axis(wanted: Mapping[str, Any]) -> str:
    if wanted["kind"] == "bars":
        return ""
    return str({"seconds": "training seconds"}.get(wanted["x"], wanted["x"]))
