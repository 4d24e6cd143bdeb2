"""The figure of how seconds and memory grow: a line for each solver against the size of the data."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from rankbench.records.studies import Study
from rankbench.report.analysis.families import split_by_input
from rankbench.report.analysis.growth import Course, courses
from rankbench.report.render.figures.drawings import CROWDED, Drawing, Line, Panel
from rankbench.report.render.labels import axis_label, capital


def growth(study: Study) -> Drawing | None:
    """The solvers' seconds and memory against the axis, on logarithmic axes; None if there are no results to draw."""
    found = [course for course in courses(study) if study.experiment.figure.shows(course.solver)] or courses(study)
    seconds = _of_costs(found, [course.seconds for course in found], "training (s)\n(lower is better)")
    memory = _of_costs(found, [course.megabytes for course in found], "peak memory (MB)\n(lower is better)")
    panels = (*seconds, *memory)
    if not panels:
        return None
    most = max(len(one) for course in found for one in course.seconds)
    spread = (
        f"smallest to largest of {most} repetitions"
        if any(line.spreads for one in panels for line in one.lines)
        else ""
    )
    x_label = axis_label(study, study.experiment.figure.x)
    return Drawing("growth", x_label, "seconds and memory", "lower", panels, log_x=True, log_y=True, spread=spread)


def _of_costs(found: Sequence[Course], costs: Sequence[tuple[tuple[float, ...], ...]], label: str) -> list[Panel]:
    """The panels of one kind of cost: one for each data set, or if it is crowded for each family of solvers."""
    by_place: dict[str, dict[str, tuple[Course, Line]]] = {}
    for course, each in zip(found, costs, strict=True):
        line = Line(course.name)
        for size, values in zip(course.sizes, each, strict=True):
            if size > 0 and values and min(values) > 0:  # else it has no logarithm
                line = line.at(size, fmean(values), min(values), max(values))
        if line.x:
            by_place.setdefault(course.where, {})[course.name] = (course, line)
    what, several = capital(label.partition(" (")[0]), len(by_place) > 1
    titles = {where: f"{what}, {where}" if several else what for where in by_place}
    return [panel for where, lines in by_place.items() for panel in _by_input(titles[where], lines, label)]


def _by_input(title: str, lines: Mapping[str, tuple[Course, Line]], label: str) -> list[Panel]:
    """The lines of a data set in one panel, or in one for each family of solvers with the others in grey."""
    whole = Panel(title, tuple(line for _, line in lines.values()), values=label, shares=title)
    if len(lines) <= CROWDED:
        return [whole]
    of = {course.solver.written: line for course, line in lines.values()}
    return [
        replace(
            whole,
            title=f"{title}: {family}",
            lines=tuple(of[solver.written] for solver in members),
            context=tuple(line for text, line in of.items() if text not in {one.written for one in members}),
        )
        for family, members in split_by_input([course.solver for course, _ in lines.values()])
    ]
