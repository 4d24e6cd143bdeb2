"""The table of fitted exponents beside those of the theory."""

from rankbench.names import show_value
from rankbench.records.studies import Study
from rankbench.report.analysis.growth import Course, courses
from rankbench.report.render.labels import axis_label
from rankbench.report.render.tables import DISTURBED, Sheet, csv_text
from rankbench.statistics.powers import UNKNOWN, Ends

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


def exponent_sheet(study: Study) -> Sheet | None:
    """A line for each solver: its exponents of seconds and of memory, beside the theory's; None in other figures."""
    found = _courses(study)
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
        lines=tuple(_line(course, several) for course in found),
        best=frozenset(),
    )  # fmt: skip


def exponents_to_csv(study: Study) -> str:
    """The same as CSV with the columns `COLUMNS` in this order, with all digits."""
    return csv_text(COLUMNS, (_csv_line(study, course) for course in _courses(study)))


def _csv_line(study: Study, course: Course) -> tuple[object, ...]:
    theory = course.theory
    about = (study.name, study.experiment.figure.x, course.where, course.solver.name)
    ends = (course.sizes[0], course.sizes[-1], len(course.sizes))
    time, space = (found.columns if found else UNKNOWN for found in (course.time, course.memory))
    seconds = (*time, *((theory and theory.seconds) or ("", "")))
    memory = (*space, *((theory and theory.memory) or ("", "")))
    return (*about, *ends, *seconds, *memory, course.disturbed, theory.why if theory else "")


def _courses(study: Study) -> list[Course]:
    return courses(study) if study.experiment.figure.kind == "growth" else []


def _line(course: Course, several: bool) -> tuple[str, ...]:
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
