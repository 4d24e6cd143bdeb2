"""Which differences more repetitions would show, judging by those that are stored, and how long they take."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from statistics import fmean

from rankbench.records.cells import DataSplit
from rankbench.records.studies import Group, Study
from rankbench.report.analysis.evidence import by_place, limits_of, samples
from rankbench.report.render.labels import place_text
from rankbench.report.render.tables import Placed, columns_of
from rankbench.statistics import power


@dataclass(frozen=True)
class Power(Placed):
    """What so many repetitions would show by one metric on one data set and split."""

    place: DataSplit
    metric: str
    users: int
    repetitions: int
    difference: float  # from the best, that would show with a probability of .8; infinite where nothing is known
    seconds: float  # of so many repetitions, one cell after the other


COLUMNS = columns_of(Power)


def powers(study: Study, repetitions: Sequence[int]) -> list[Power]:
    """What these numbers of repetitions would show, for each data set with split and each metric."""
    found = []
    for members in by_place(study.groups).values():
        known = [samples(study, group) for group in members]
        seconds = _seconds(study, members)
        for measure in study.measures:
            own = {place: one[measure.label] for place, one in enumerate(known) if measure.label in one}
            users = max((sample.values.shape[1] for sample in own.values()), default=0)
            differences = (
                power(own, measure.better, repetitions, limits_of(measure)) if own else [inf] * len(repetitions)
            )
            found += [Power(members[0].place, measure.label, users, count, difference, seconds * count)
                      for count, difference in zip(repetitions, differences, strict=True)]  # fmt: skip
    return found


def in_words(study: Study, repetitions: Sequence[int]) -> Iterator[str]:
    """A line for each data set with split and each metric; one line where nothing is known."""
    found = powers(study, repetitions)
    if not any(isfinite(one.difference) for one in found):
        yield f"{study.name}: which differences would show is not known; two stored repetitions (-r 2) say it"
        return
    for first in range(0, len(found), len(repetitions)):
        row = found[first : first + len(repetitions)]
        parts = [f"{one.repetitions} repetitions, {one.seconds:.0f} s: {one.difference:.2g}" for one in row]
        if isfinite(row[0].difference):
            where = f"{place_text(study, row[0].place)}, {row[0].metric}"
            yield f"{where}: differences that would show with a probability of .8: {', '.join(parts)}"


def _seconds(study: Study, members: Sequence[Group]) -> float:
    """The mean seconds of a repetition of these solvers, with its trials."""
    found: dict[int, float] = {}
    place = members[0].place.identity
    for entry in (*study.entries, *study.trials):
        if entry.result and entry.cell.place.whole.identity == place:
            number = entry.cell.place.repetition
            found[number] = found.get(number, 0.0) + entry.result.wall
    return fmean(found.values()) if found else 0.0
