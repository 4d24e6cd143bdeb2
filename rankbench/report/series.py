"""What a figure shows, before anybody draws it: panels of named lines with their spread."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from rankbench.metrics import metric
from rankbench.report.tables import Group, Study, groups, rows
from rankbench.specs import parse, show_settings


@dataclass(frozen=True)
class Line:
    """One solver's points; low and high are the least and greatest repetition."""

    name: str
    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    lines: list[Line]
    published: list[Line] = field(default_factory=list)


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
    make = {"curve": _curves, "sweep": _sweeps, "bars": _bars}[wanted["kind"]]
    panels = make(study, good, name, wanted["x"])
    better = metric(name).better
    log_x = wanted["kind"] == "curve" and wanted["x"] == "seconds"
    return Drawing(wanted["kind"], _axis(wanted), f"{name} ({better} is better)", better, panels, log_x)


def short_names(found: list[Group]) -> dict[str, str]:
    """For each group's label the shortest name that tells its solver from the others."""
    by_solver: dict[str, dict[str, Mapping[str, Any]]] = {}
    for group in found:
        by_solver.setdefault(group.solver, {})[group.label] = group.settings
    return {
        label: _short_name(solver, settings, list(namesakes.values()))
        for solver, namesakes in by_solver.items()
        for label, settings in namesakes.items()
    }


def _short_name(solver: str, settings: Mapping[str, Any], namesakes: list[Mapping[str, Any]]) -> str:
    telling = {key: value for key, value in settings.items() if any(other[key] != value for other in namesakes)}
    return f"{solver} {show_settings(telling)}".strip()


def _curves(study: Study, good: list[Group], name: str, x: str) -> list[Panel]:
    names = short_names(good)
    panels: dict[str, Panel] = {}
    for group in good:
        panel = panels.setdefault(group.place, Panel(short_place(group.place), []))
        panel.lines.append(_curve(names[group.label], group, name, x))
    return list(panels.values())


def _curve(label: str, group: Group, name: str, x: str) -> Line:
    """The mean over repetitions, checkpoint by checkpoint, as far as every repetition came."""
    points = list(zip(*(result.curve for result in group.good), strict=False))
    values = [[point["metrics"][name] for point in column] for column in points]
    places = [fmean(point[x] for point in column) for column in points]
    return Line(label, places, [fmean(v) for v in values], [min(v) for v in values], [max(v) for v in values])


def _sweeps(study: Study, good: list[Group], name: str, x: str) -> list[Panel]:
    """One panel; each solver's measure against a setting of the data or the split."""
    names = short_names(good)
    lines: dict[str, Line] = {}
    published: dict[str, Line] = {}
    table = {(row.data, row.solver, row.settings): row.published for row in rows(study) if row.metric == name}
    for group in good:
        place = _setting(group, x)
        values = [result.metrics[name] for result in group.good]
        label = names[group.label]
        _add(lines.setdefault(label, Line(label, [], [], [], [])), place, values)
        if (value := table.get((group.place, group.solver, show_settings(group.settings)))) is not None:
            _add(published.setdefault(label, Line(f"{label}, published", [], [], [], [])), place, [value])
    return [Panel("", list(lines.values()), list(published.values()))]


def _bars(study: Study, good: list[Group], name: str, x: str) -> list[Panel]:
    """One panel per data set and split; each solver is a bar at its own place."""
    names = short_names(good)
    panels: dict[str, Panel] = {}
    for group in good:
        panel = panels.setdefault(group.place, Panel(short_place(group.place), []))
        line = Line(names[group.label], [], [], [], [])
        _add(line, len(panel.lines), [result.metrics[name] for result in group.good])
        panel.lines.append(line)
    return list(panels.values())


def short_place(place: str) -> str:
    """A data set's name and the settings that fit on a line."""
    return place if len(place) <= 60 else place.replace("[", " ").replace("]", "")[:57] + "..."


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
    return {"seconds": "training seconds", "step": "step"}.get(wanted["x"], wanted["x"])
