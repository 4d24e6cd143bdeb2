"""How the cost of each solver grows along the axis of a figure: its seconds and memory by size, and their exponents."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean

from rankbench.experiments.costs import Growth
from rankbench.names import Named, show
from rankbench.records.results import Result
from rankbench.records.studies import Group, Study
from rankbench.report.render.labels import solver_labels
from rankbench.statistics.powers import Ends, exponent, exponent_above_base

THREADS = "threads"  # the axis of a figure of growth that is no setting
_PARTS = ("data", "split", "solver")  # whose settings may be on the axis, in the order in which they are looked at
_LEAST_MB = 2.0  # from one size to the next: less is within the error of measuring


@dataclass(frozen=True)
class Course:
    """The costs of one solver at each size along the axis, ascending; one number for each repetition."""

    name: str  # for people, without the setting on the axis
    where: str  # the data set and the split, without the setting on the axis, or the data's name at the smallest size
    solver: Named  # as at the first size
    sizes: tuple[float, ...]
    seconds: tuple[tuple[float, ...], ...]
    megabytes: tuple[tuple[float, ...], ...]  # at the peak of the training, the whole process
    disturbed: bool
    theory: Growth | None

    @property
    def time(self) -> Ends | None:
        """The exponent of the seconds; None if there are not two sizes with times that can be compared."""
        measured = ((size, found) for size, found in zip(self.sizes, self.seconds, strict=True) if found and all(found))
        known = {size: geometric_mean(found) for size, found in measured}
        return exponent(list(known), list(known.values()))

    @property
    def memory(self) -> Ends | None:
        """The exponent of the memory that grows; None if too little of it does.

        What a process takes for Python and its libraries does not grow, and is not known for each solver.
        """
        known = {size: fmean(found) for size, found in zip(self.sizes, self.megabytes, strict=True) if found}
        return exponent_above_base(list(known), list(known.values()), _LEAST_MB)


def courses(study: Study) -> list[Course]:
    """The course of every solver that ended well, in the order of the experiment."""
    axis = axis_of(study)
    names = _line_names(study, axis)
    found: dict[tuple[str, str], list[Group]] = {}
    for group in study.groups:
        if group.good and not (axis.name == THREADS and _beyond_cores(group)):
            where = f"{axis.without(group.data, 'data')} {axis.without(group.split, 'split')}"
            found.setdefault((where, names[group.solver.written]), []).append(group)
    placed = {line: _ascending(members, axis) for line, members in found.items()}
    return [
        _course(study, (name, _named(study, members[0][1]) or where), members)
        for (where, name), members in placed.items()
    ]


def _named(study: Study, smallest: Group) -> str:
    """The name that the experiment gives to the data at the smallest size; empty where it gives none."""
    return "" if study.has_several_splits else study.experiment.names.data.get(smallest.data.written, "")


@dataclass(frozen=True)
class Axis:
    """The axis of growth: the number of threads, or a setting of the data, of the split or of the solvers."""

    name: str
    part: str  # whose setting it is: data, split or solver; empty for threads

    def place(self, group: Group) -> float:
        """Where a group lies on the axis."""
        return float(getattr(group, self.part).setting(self.name) if self.part else group.threads)

    def without(self, named: Named, part: str) -> str:
        """The text of the data set, split or solver without the setting on the axis."""
        return _off_axis(named, self.name).written if part == self.part else named.written


def axis_of(study: Study) -> Axis:
    """The axis of a study's figure of growth.

    Data and solvers may both have a setting of its name, as `rank`: the axis is the first that has several numbers.
    """
    name = study.experiment.figure.x
    if name == THREADS:
        return Axis(name, "")
    every = study.groups
    values = {part: {getattr(group, part).setting(name) for group in every} for part in _PARTS}
    counts = {part: sum(type(one) in (int, float) for one in found) for part, found in values.items()}
    return Axis(name, max(_PARTS, key=lambda part: min(counts[part], 2)))


def _line_names(study: Study, axis: Axis) -> Mapping[str, str]:
    """The name of each solver by its text as written; those that differ in the axis alone have the same name."""
    if axis.part != "solver":
        return solver_labels(study)
    plain = [replace(entry.cell, solver=_off_axis(entry.cell.solver, axis.name)) for entry in study.entries]
    found = solver_labels(replace(study, plan=replace(study.plan, planned=tuple(plain), skips=()), by_key={}))
    texts = {entry.cell.solver.written: cell.solver.written for entry, cell in zip(study.entries, plain, strict=True)}
    return {text: found[short] for text, short in texts.items()}


def _ascending(members: Iterable[Group], axis: Axis) -> list[tuple[float, Group]]:
    """The groups with their places on the axis, in their order."""
    return sorted(((axis.place(group), group) for group in members), key=lambda placed: placed[0])


def _off_axis(named: Named, axis: str) -> Named:
    """The name without the setting on the axis, so that the names of all sizes are the same."""
    given = tuple((key, value) for key, value in named.given if key != axis)
    return replace(named, given=given, written=show(named.name, dict(given)))


def _beyond_cores(group: Group) -> bool:
    """Whether more threads ran than there were cores, which says nothing about threads."""
    return any(result.machine.usable_cores < group.threads for result in group.good)


def _course(study: Study, names: tuple[str, str], placed: list[tuple[float, Group]]) -> Course:
    ordered = [group for _, group in placed]
    results = [result for group in ordered for result in group.good]
    alike = len({result.machine.fingerprint for result in results}) == 1
    return Course(
        *names,
        ordered[0].solver,
        tuple(place for place, _ in placed),
        tuple(_seconds(group.good) if alike else () for group in ordered),
        tuple(tuple(one.peak_mb for one in group.good if one.peak_mb is not None) for group in ordered),
        any(result.disturbed for result in results),
        _theory(study, ordered[0]),
    )


def _seconds(results: Iterable[Result]) -> tuple[float, ...]:
    """The seconds of these trainings; none if other cells of the run disturbed one of them."""
    found = list(results)
    return () if any(one.contended for one in found) else tuple(one.seconds or 0.0 for one in found)


def _theory(study: Study, group: Group) -> Growth | None:
    """What the experiment says of this solver on this data: the first entry that fits them."""
    solver, data = dict(group.solver.settings), dict(group.data.settings)
    fitting = (
        one
        for one in study.experiment.growth
        if one.solver.fits(group.solver.names, solver) and (one.data is None or one.data.fits(group.data.names, data))
    )
    return next(fitting, None)
