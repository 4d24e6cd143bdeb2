"""What measured numbers say of the published ones beside them: a verdict on each, and their counts by paper."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from math import nan, sqrt
from statistics import stdev

import numpy as np

from rankbench.records.studies import Study
from rankbench.report.analysis.evidence import verdict_of
from rankbench.report.render.labels import data_title, place_headings
from rankbench.report.render.tables import Sheet, difference_text, measured_text, published_text
from rankbench.report.rows import Row, rows
from rankbench.statistics.reproduced import Ours, Printed, Reproduction, reproduced


class Finding(StrEnum):
    """The verdict on a published number, in the words of the tables."""

    AGREES = "agrees"  # on the paper's data at its size: no further apart than the spreads of both explain, at 5 %
    HIGHER = "higher"  # the measured number is higher than they explain
    LOWER = "lower"
    UNDECIDED = "undecided"  # neither side's spread is known
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
    alike = (entry.value for entry in study.experiment.published if entry.metric == row.metric)
    digits = max(len(np.format_float_positional(value, trim="0").partition(".")[2]) for value in alike)  # of 2e-05: 5
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
    return difference_text(row.measured - row.published)


TOTAL = "all papers"


@dataclass(frozen=True)
class Score:
    """The published numbers of a paper, counted by what the measured numbers beside them say: see `Finding`."""

    paper: str
    published: int = 0
    agrees: int = 0
    higher: int = 0
    lower: int = 0
    undecided: int = 0
    variant: int = 0
    smaller: int = 0
    elsewhere: int = 0
    missing: int = 0

    def __add__(self, other: "Score") -> "Score":
        """The counts of both, under the name of this one."""
        counts = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self) if f.name != "paper"}
        return Score(self.paper, **counts)


_HEADINGS = {
    "published": "published",
    "lower": "lower",
    "higher": "higher",
    "undecided": "undecided",
    "agrees": "agrees",
    "variant": "of variants",
    "smaller": "at a smaller size",
    "elsewhere": "on other data",
    "missing": "not measured",
}


def score_of(study: Study) -> Score | None:
    """The score of an experiment, under the name of its paper; None where no number is published."""
    found = (finding(study, row).name.lower() for row in rows(study) if row.published is not None)
    scores = [Score("", 1, **{name: 1}) for name in found]
    return sum(scores, Score(study.experiment.origin)) if scores else None


def added(scores: Iterable[Score | None]) -> list[Score]:
    """The score of each paper that published a number, then their sum; empty where no number is published."""
    found: dict[str, Score] = {}
    for score in filter(None, scores):
        found[score.paper] = found.get(score.paper, Score(score.paper)) + score
    return [*found.values(), sum(found.values(), Score(TOTAL))] if found else []


def score_sheet(scores: Sequence[Score]) -> Sheet:
    """The scores as a table; columns in which nothing is counted are left out."""
    shown = [name for name in _HEADINGS if name == "published" or any(getattr(score, name) for score in scores)]
    return Sheet(
        headings=("paper", *(_HEADINGS[name] for name in shown)),
        numeric=(False, *(True for _ in shown)),
        lines=tuple((score.paper, *(str(getattr(score, name)) for name in shown)) for score in scores),
    )


def in_words(scores: Sequence[Score]) -> str:
    """The sum of the scores in one sentence."""
    total = scores[-1]
    judged = total.agrees + total.higher + total.lower + total.undecided
    rest = {
        "at a smaller size than the papers'": total.smaller,
        "on other data": total.elsewhere,
        "beside variants of a reproduction": total.variant,
        "not measured": total.missing,
    }
    parts = [f"{count} {what}" for what, count in rest.items() if count]
    if judged:
        own = f"{total.lower} lower, {total.higher} higher"
        own += f", {total.undecided} undecided" if total.undecided else ""
        own += f", {total.agrees} agree within the spreads of both"
        parts.insert(0, f"{judged} on the papers' own data at their own size ({own})")
    return f"{total.published} published numbers: {', '.join(parts)}."
