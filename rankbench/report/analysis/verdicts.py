"""What a measured number says of the published number beside it: the table of them, and the verdict on each."""

from enum import StrEnum
from math import nan, sqrt
from statistics import stdev

from rankbench.records.studies import Study
from rankbench.report.analysis.evidence import verdict_of
from rankbench.report.render.labels import data_title, place_headings
from rankbench.report.render.tables import Sheet, measured_text, published_text
from rankbench.report.rows import Row, rows
from rankbench.statistics.reproduced import Ours, Printed, Reproduction, reproduced


class Finding(StrEnum):
    """The verdict on a published number, in the words of the tables."""

    AGREES = "agrees"  # on the paper's data at its size: no further apart than the spreads of both explain, at 5 %
    HIGHER = "higher"  # the measured number is higher than they explain
    LOWER = "lower"
    UNTOLD = "cannot be told"  # neither side's spread is known
    VARIANT = "variant"  # another solver of the experiment is the reproduction of this number
    SMALLER = "smaller size"  # measured at a smaller size than the paper's, in the quick profile
    ELSEWHERE = "other data"  # measured on other data than the paper's
    MISSING = "not measured"  # not measured yet, or the solver failed


def finding(study: Study, row: Row) -> Finding:
    """The verdict on the published number of a row."""
    if row.measured is None or row.published is None or row.group is None:
        return Finding.MISSING
    if row.elsewhere:
        return Finding.ELSEWHERE
    if row.variant:
        return Finding.VARIANT
    if study.profile != "full":
        return Finding.SMALLER
    return Finding(reproduction(study, row).word)


def reproduction(study: Study, row: Row) -> Reproduction:
    """What the spreads of both sides say of a measured number beside a published one."""
    assert row.group is not None and row.measured is not None and row.published is not None, "both are known"
    values = row.group.values(row.metric)
    found = verdict_of(study, row.group, row.metric)
    spread = stdev(values) if len(values) > 1 else nan
    mean = found.mean if found else None
    error, freedom = (mean.error, mean.freedom) if mean else (spread / sqrt(len(values)), len(values) - 1)
    digits = max(len(str(entry.value).partition(".")[2]) for entry in study.experiment.published
                 if entry.metric == row.metric)  # fmt: skip
    # A paper's number with a spread has as many repetitions as its experiment here; one without is one draw.
    repetitions = study.experiment.repetitions if row.published_sd is not None else 1
    printed = Printed(row.published, digits, row.published_sd, repetitions)
    return reproduced(Ours(row.measured, error, freedom, len(values), spread), printed)


def published_sheet(study: Study) -> Sheet | None:
    """Each published number beside the measured one, with the verdict; None where nothing is published."""
    found = [row for row in rows(study) if row.published is not None]
    if not found:
        return None
    where = place_headings(study)
    found.sort(key=lambda row: row.variant)
    return Sheet(
        headings=(*where, "solver", "metric", "published", "measured", "difference", "expected", "verdict"),
        numeric=(*(False for _ in where), False, False, True, True, True, True, False),
        lines=tuple(_line(study, row) for row in found),
        best=frozenset((number, len(where) + 3) for number, row in enumerate(found) if row.bold),
        solvers=tuple(row.shown[-1] for row in found),
    )


def _line(study: Study, row: Row) -> tuple[str, ...]:
    verdict = finding(study, row)
    where = f" than {data_title(row.published_on)}" if verdict is Finding.ELSEWHERE else ""
    numbers = (published_text(row), measured_text(row), _difference(row), _expected(study, row, verdict))
    return (*row.shown, row.metric, *numbers, f"{verdict}{where}")


def _expected(study: Study, row: Row, verdict: Finding) -> str:
    """How far apart the two numbers may be by the spreads of both; empty where they are not compared."""
    if verdict not in (Finding.AGREES, Finding.HIGHER, Finding.LOWER):
        return ""
    return f"up to {reproduction(study, row).reach:.4f}"


def _difference(row: Row) -> str:
    """How far the measured number lies above the published one."""
    if row.measured is None or row.published is None:
        return ""
    return f"{row.measured - row.published:+.4f}".replace("-", "−")
