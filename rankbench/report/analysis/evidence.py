"""What the values of users and repetitions say of the solvers of a study: intervals, verdicts, what could be seen."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from rankbench.arrays.npz import Arrays
from rankbench.core.contract import Floats
from rankbench.data import drawn_anew
from rankbench.names.user_files import is_from_file
from rankbench.records.cells import DataSplit, Measure
from rankbench.records.results import pairs_of
from rankbench.records.store import values_of
from rankbench.records.studies import Group, Study
from rankbench.report.study import cached_by_study
from rankbench.statistics import Sample, Verdict, compared_on, verdicts
from rankbench.statistics.decisions import OPEN

GroupKey = tuple[object, ...]


@dataclass(frozen=True)
class Evidence:
    """The verdicts on the solvers that share a data set, a split and a metric."""

    place: DataSplit
    label: str
    scope: str  # what the verdicts speak of
    verdicts: Mapping[GroupKey, Verdict]

    @property
    def open(self) -> Mapping[GroupKey, Verdict]:
        """The solvers other than the best that are neither better, worse nor equal."""
        return {key: one for key, one in self.verdicts.items() if one.decision.word == OPEN and not one.best}

    @property
    def users(self) -> int:
        """How many users the comparison rests on."""
        return min((one.mean.users for one in self.verdicts.values()), default=0)

    @property
    def repetitions(self) -> int:
        """How many repetitions the comparison rests on."""
        return max((one.decision.difference.repetitions for one in self.verdicts.values()), default=0)

    @property
    def margin(self) -> float:
        """A difference below this counts as none."""
        return max((one.decision.margin for one in self.verdicts.values()), default=0.0)

    @property
    def detectable(self) -> float | None:
        """The difference from the best solver that would show with a probability of .8, for a typical solver."""
        found = [one.decision.detectable for one in self.verdicts.values() if not one.best]
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
    return {label: sample for label, sample in found if sample}


def by_place(groups: Iterable[Group]) -> dict[tuple[str, str], list[Group]]:
    """The groups of each data set with a split, in their order, by the identities of both."""
    found: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        found.setdefault(group.place.identity, []).append(group)
    return found


def key_of(group: Group) -> GroupKey:
    """The key of a group: its solver with the settings as written, and the number of threads."""
    return (*group.key, group.threads)


def scope_of(groups: Iterable[Group], repetitions: Collection[int]) -> str:
    """What differs between the repetitions that these groups are compared on, and thus what a verdict speaks of."""
    results = [result for group in groups for result in group.good if result.cell.place.repetition in repetitions]
    if len(repetitions) < 2:
        return "with these runs" if any(result.cell.is_judged for result in results) else "on this split"
    alike = {result.cell.split_hash for result in results}
    held = {source for result in results for source in result.cell.place.held}
    if len(alike) == 1 and "" not in alike:
        return "with new searches on this split" if "start" in held else "with new starts on this split"
    if drawn_anew(results[0].cell.place.data):
        return "on new data of this kind" + (", with the same start" if "start" in held else "")
    return "on new splits" if "start" in held else "on new splits and starts"


def _of_place(study: Study, members: Sequence[Group]) -> Iterator[Evidence]:
    """The evidence of each metric on one data set and split."""
    known = {key_of(group): samples(study, group) for group in members}
    for measure in study.measures:
        own = {key: of_group[measure.label] for key, of_group in known.items() if measure.label in of_group}
        if own:
            margin, limits = study.experiment.margin(measure.label), limits_of(measure)
            found, scope = verdicts(own, measure.better, margin, limits), scope_of(members, compared_on(own))
            yield Evidence(members[0].place, measure.label, scope, found)


def limits_of(measure: Measure) -> tuple[float, float] | None:
    """The limits of a metric's values; None where they have none, or where only a user's own file would say."""
    own = measure.source is not None and is_from_file(measure.source.home)
    low, high = (-np.inf, np.inf) if own else measure.record.limits
    return (low, high) if np.isfinite(low) and np.isfinite(high) else None


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
