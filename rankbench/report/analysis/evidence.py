"""What the values for each user say about the solvers of a study: intervals, paired tests, and what could be seen."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from rankbench.arrays.npz import Arrays
from rankbench.core.contract import Floats
from rankbench.data import drawn_anew
from rankbench.records.cells import DataSplit, Measure
from rankbench.records.results import pairs_of
from rankbench.records.store import values_of
from rankbench.records.studies import Group, Study
from rankbench.report.study import cached_by_study
from rankbench.statistics import Sample, Verdict, verdicts

GroupKey = tuple[object, ...]


@dataclass(frozen=True)
class Evidence:
    """The verdicts on the solvers that share a data set, a split and a metric."""

    place: DataSplit
    label: str
    verdicts: Mapping[GroupKey, Verdict]

    @property
    def tells(self) -> bool:
        """Whether any solver can be told from the best one."""
        return any(not verdict.bold for verdict in self.verdicts.values())

    @property
    def users(self) -> int:
        """How many users the comparison rests on."""
        return min(verdict.interval.users for verdict in self.verdicts.values())

    @property
    def detectable(self) -> float | None:
        """The difference from the best solver that these users would show, for a typical solver of the group."""
        found = [verdict.against_best.detectable for verdict in self.verdicts.values() if verdict.against_best]
        known = [value for value in found if np.isfinite(value) and value > 0]
        return median(known) if known else None


@cached_by_study
def evidence(study: Study) -> Mapping[tuple[tuple[str, str], str], Evidence]:
    """The evidence for each data set with split and each metric, where values for each user are stored."""
    found = (one for members in by_place(study.groups).values() for one in _of_place(study, members))
    return {(one.place.identity, one.label): one for one in found}


def verdict_of(study: Study, group: Group, label: str) -> Verdict | None:
    """The verdict on a group by one metric; None where nothing is known of its users."""
    found = evidence(study).get((group.place.identity, label))
    return found.verdicts.get(key_of(group)) if found else None


def samples(study: Study, group: Group) -> dict[str, Sample]:
    """The sample of each metric of a group, by the metric's label, where values for each user are stored."""
    if not study.cells:
        return {}
    folder = Path(study.cells)
    stored = {one.cell.place.repetition: values_of(folder, one.cell, one.counted) for one in group.good}
    known = {repetition: arrays for repetition, arrays in stored.items() if arrays}
    found = ((measure.label, _sample(known, measure)) for measure in study.measures)
    return {label: replace(sample, anew=drawn_anew(group.data)) for label, sample in found if sample}


def by_place(groups: Iterable[Group]) -> dict[tuple[str, str], list[Group]]:
    """The groups of each data set with a split, in their order, by the identities of both."""
    found: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        found.setdefault(group.place.identity, []).append(group)
    return found


def key_of(group: Group) -> GroupKey:
    """The key of a group: its solver with the settings as written, and the number of threads."""
    return (*group.key, group.threads)


def _of_place(study: Study, members: Sequence[Group]) -> Iterator[Evidence]:
    """The evidence of each metric on one data set and split."""
    known = {key_of(group): samples(study, group) for group in members}
    for measure in study.measures:
        own = {key: of_group[measure.label] for key, of_group in known.items() if measure.label in of_group}
        if own:
            yield Evidence(members[0].place, measure.label, verdicts(own, measure.better))


def _sample(arrays: Mapping[int, Arrays], measure: Measure) -> Sample | None:
    """The sample of one metric; None where a repetition lacks it, or has other users than the first."""
    label, name = measure.label, pairs_of(measure.label)
    values = {number: stored[label] for number, stored in arrays.items() if label in stored}
    pairs = {number: arrays[number][name] for number in values if name in arrays[number]}
    if not values or len({len(one) for one in values.values()}) > 1:
        return None
    if not pairs:
        averages_pairs = measure.source is None and measure.record.settings.average == "pairs"
        return None if averages_pairs else Sample.of(values)
    return Sample.of({number: _unscaled(values[number], pairs[number]) for number in values}, pairs)


def _unscaled(values: Floats, pairs: Floats) -> Floats:
    """The value of each user, where stored values are scaled so that their plain mean is the average over pairs."""
    counted = ~np.isnan(values)
    share = counted.sum() / max(1.0, pairs[counted].sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        unscaled: Floats = np.where(counted, values / (pairs * share), np.nan)
    return unscaled
