"""What a measured number says of the published number beside it: the table of them, and the verdict on each."""

from enum import StrEnum

from rankbench.records.studies import Study
from rankbench.report.render.labels import data_title, place_headings
from rankbench.report.render.tables import Sheet, interval_text, measured_text, published_text
from rankbench.report.rows import Row, rows


class Finding(StrEnum):
    """The verdict on a published number, in the words of the tables."""

    INSIDE = "inside the interval"  # on the paper's data at its size: it lies in the measured 95 % interval
    BETTER = "better"  # the measured interval lies on the better side of the published number
    WORSE = "worse"
    SMALLER = "smaller size"  # measured at a smaller size than the paper's, in the quick profile
    ELSEWHERE = "other data"  # measured on other data than the paper's
    UNJUDGED = "no interval"  # measured without an interval, because no values for users are stored
    MISSING = "not measured"  # not measured yet, or the solver failed


def finding(study: Study, row: Row) -> Finding:
    """The verdict on the published number of a row."""
    if row.measured is None or row.published is None:
        return Finding.MISSING
    if row.elsewhere:
        return Finding.ELSEWHERE
    if study.profile != "full":
        return Finding.SMALLER
    if row.low is None or row.high is None:
        return Finding.UNJUDGED
    if row.low <= row.published <= row.high:
        return Finding.INSIDE
    signs = {measure.label: measure.sign for measure in study.measures}
    return Finding.BETTER if (row.measured - row.published) * signs[row.metric] > 0 else Finding.WORSE


def published_sheet(study: Study) -> Sheet | None:
    """Each published number beside the measured one, with the verdict; None where nothing is published."""
    found = [row for row in rows(study) if row.published is not None]
    if not found:
        return None
    where = place_headings(study)
    return Sheet(
        headings=(*where, "solver", "metric", "published", "measured", "difference", "95 %", "verdict"),
        numeric=(*(False for _ in where), False, False, True, True, True, True, False),
        lines=tuple(_line(study, row) for row in found),
        best=frozenset((number, len(where) + 3) for number, row in enumerate(found) if row.bold),
        solvers=tuple(row.shown[-1] for row in found),
    )


def _line(study: Study, row: Row) -> tuple[str, ...]:
    verdict = finding(study, row)
    where = f" than {data_title(row.published_on)}" if verdict is Finding.ELSEWHERE else ""
    numbers = (published_text(row), measured_text(row), _difference(row), interval_text(row))
    return (*row.shown, row.metric, *numbers, f"{verdict}{where}")


def _difference(row: Row) -> str:
    """How far the measured number lies above the published one."""
    if row.measured is None or row.published is None:
        return ""
    return f"{row.measured - row.published:+.4f}".replace("-", "−")
