"""How the cost of each solver grows along the axis of a figure: seconds and memory by size, and their exponents."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean

from rankbench.experiments.costs import Growth
from rankbench.names import Named, show, show_value
from rankbench.records.results import Result
from rankbench.records.studies import Group, Study
from rankbench.report.render.labels import axis_label, solver_labels
from rankbench.report.render.tables import DISTURBED, Sheet, csv_text
from rankbench.statistics.powers import UNKNOWN, Ends, exponent, exponent_above_base

COLUMNS = tuple(
    "experiment axis data solver smallest largest sizes seconds seconds_low seconds_high "
    "seconds_theory_low seconds_theory_high memory memory_low memory_high memory_theory_low memory_theory_high "
    "disturbed why".split()
)
LEGEND = (
    "The exponents are fitted by least squares of the logarithms of seconds, and of the memory that is added from one "
    "size to the next, with Student's 95 % interval. Seconds are those of the whole training, all to the same number "
    "of steps. `no`: the interval excludes the theory's exponents."
)

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
    """The course of every solver that ended well and has a place on the axis, in the order of the experiment."""
    axis = axis_of(study)
    names = _line_names(study, axis)
    found: dict[tuple[str, str], list[Group]] = {}
    for group in study.groups:
        if group.good and axis.holds(group) and not (axis.name == THREADS and _beyond_cores(group)):
            where = f"{axis.without(group.data, 'data')} {axis.without(group.split, 'split')}"
            found.setdefault((where, names[group.solver.written]), []).append(group)
    placed = {line: sorted(members, key=axis.place) for line, members in found.items()}
    return [
        _course(study, (name, _named(study, members[0]) or where), axis, members)
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

    def holds(self, group: Group) -> bool:
        """Whether a group has a number on the axis."""
        return not self.part or type(getattr(group, self.part).setting(self.name)) in (int, float)

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


def _off_axis(named: Named, axis: str) -> Named:
    """The name without the setting on the axis, so that the names of all sizes are the same."""
    given = tuple((key, value) for key, value in named.given if key != axis)
    return replace(named, given=given, written=show(named.name, dict(given)))


def _beyond_cores(group: Group) -> bool:
    """Whether more threads ran than there were cores, which says nothing about threads."""
    return any(result.machine.usable_cores < group.threads for result in group.good)


def _course(study: Study, names: tuple[str, str], axis: Axis, ordered: list[Group]) -> Course:
    """The course through these groups, which are in their order along the axis."""
    results = [result for group in ordered for result in group.good]
    alike = len({result.machine.fingerprint for result in results}) == 1
    return Course(
        *names,
        ordered[0].solver,
        tuple(map(axis.place, ordered)),
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
    fitting = (
        one
        for one in study.experiment.growth
        if group.solver.fits(one.solver) and (one.data is None or group.data.fits(one.data))
    )
    return next(fitting, None)


def exponent_sheet(study: Study) -> Sheet | None:
    """A line for each solver: its exponents of seconds and of memory, beside the theory's; None in other figures."""
    found = _shown_courses(study)
    if not found:
        return None
    several = len({course.where for course in found}) > 1
    of = axis_label(study, study.experiment.figure.x)
    costs = ("theory", "95 %", "agrees")
    return Sheet(
        headings=(
            *(["data"] if several else []), "solver", of, "seconds", *costs, "memory", *costs, "why",
        ),
        numeric=(*([False] if several else []), False, False, True, True, True, False, True, True, True, False, False),
        lines=tuple(_exponent_line(course, several) for course in found),
    )  # fmt: skip


def exponents_to_csv(study: Study) -> str:
    """The same as CSV with the columns `COLUMNS` in this order, with all digits."""
    return csv_text(COLUMNS, (_csv_line(study, course) for course in _shown_courses(study)))


def _csv_line(study: Study, course: Course) -> tuple[object, ...]:
    theory = course.theory
    about = (study.name, study.experiment.figure.x, course.where, course.solver.name)
    ends = (course.sizes[0], course.sizes[-1], len(course.sizes))
    time, space = (found.columns if found else UNKNOWN for found in (course.time, course.memory))
    seconds = (*time, *((theory and theory.seconds) or ("", "")))
    memory = (*space, *((theory and theory.memory) or ("", "")))
    return (*about, *ends, *seconds, *memory, course.disturbed, theory.why if theory else "")


def _shown_courses(study: Study) -> list[Course]:
    return courses(study) if study.experiment.figure.kind == "growth" else []


def _exponent_line(course: Course, several: bool) -> tuple[str, ...]:
    theory = course.theory
    mark = DISTURBED if course.disturbed and course.time else ""
    return (
        *([course.where] if several else []),
        course.name,
        f"{show_value(course.sizes[0])} to {show_value(course.sizes[-1])}",
        *_against(course.time, theory.seconds if theory else (), mark),
        *_against(course.memory, theory.memory if theory else ()),
        theory.why if theory else "",
    )


def _against(found: Ends | None, theory: tuple[float, ...], mark: str = "") -> tuple[str, str, str, str]:
    """The fitted exponent, the theory's, the interval, and whether it excludes the theory's."""
    expected = " to ".join(f"{end:g}" for end in dict.fromkeys(theory))
    if found is None:
        return "", expected, "", ""
    interval = f"{found.low:.2f} to {found.high:.2f}" if found.bounded else ""
    agrees = ("no" if found.excludes(*theory) else "yes") if theory and found.bounded else ""
    return f"{found.value:.2f}{mark}", expected, interval, agrees
