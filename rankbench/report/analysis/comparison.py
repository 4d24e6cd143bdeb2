"""Solvers compared two by two, user by user: those of one experiment, or the same ones in two results folders."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations

import numpy as np

from rankbench.core.errors import UserError
from rankbench.records.cells import DataSplit, Measure
from rankbench.records.studies import Group, Study
from rankbench.report.analysis.evidence import by_place, key_of, samples
from rankbench.report.render.tables import Sheet, csv_text
from rankbench.report.study import mean_seconds
from rankbench.statistics import Contrast, Sample, contrasts
from rankbench.statistics.permutation import holm
from rankbench.statistics.verdicts import ALPHA

Side = tuple[Group, str, Sample]  # a group, the name that it is shown by, and its values by one metric
SAME, UNSEEN, BETTER, WORSE = "same values", "no difference seen", "better", "worse"


@dataclass(frozen=True)
class Comparison:
    """The second of two runs against the first one, by one metric on one data set."""

    experiment: str
    place: DataSplit
    first: str
    second: str
    metric: str
    one: float  # the mean of the first
    other: float
    difference: float  # of the second from the first, over the users that both count
    low: float
    high: float
    p: float  # adjusted for all comparisons of this metric on this data set
    effect: float  # that difference over the standard deviation of the users' differences, with its 95 % interval
    effect_low: float
    effect_high: float
    wins: int  # users for whom the second is better
    ties: int
    losses: int
    speed: float | None  # seconds of the first over those of the second, on one kind of machine
    verdict: str = ""

    @property
    def data(self) -> str:
        """The data set as the user wrote it."""
        return self.place.data.written

    @property
    def split(self) -> str:
        """The split as the user wrote it."""
        return self.place.split.written

    @property
    def record(self) -> dict[str, object]:
        """The columns of the CSV with their values, data and split as texts."""
        return {name: getattr(self, name) for name in COLUMNS}


COLUMNS = tuple(
    column for field in fields(Comparison) for column in (("data", "split") if field.name == "place" else (field.name,))
)


def within(study: Study) -> list[Comparison]:
    """Each two solvers of an experiment on the same data and split."""
    found: list[Comparison] = []
    for here in by_place(study.groups).values():
        members = [(group, samples(study, group)) for group in here]
        for measure in study.measures:
            known = [(group, _name(group), own[measure.label]) for group, own in members if measure.label in own]
            found += _compared(study, measure, list(combinations(known, 2)))
    return found


def between(one: Study, other: Study, names: tuple[str, str]) -> list[Comparison]:
    """Each solver that two stored runs of an experiment have in common; the names say which run is which."""
    if one.seed != other.seed:
        raise UserError(
            f"two runs of {one.name} have no split in common: their seeds are {one.seed} and {other.seed}",
            remedy="run one of them again with the other's --seed",
        )
    theirs = {(group.place.identity, key_of(group)): group for group in other.groups}
    pairs = [
        (group, theirs[known], samples(one, group), samples(other, theirs[known]))
        for group in one.groups
        if (known := (group.place.identity, key_of(group))) in theirs
    ]
    for group, match, *_ in pairs:
        _check_splits(one.name, group, match, names)
    found: list[Comparison] = []
    for measure in one.measures:
        label = measure.label
        for place in dict.fromkeys(group.place.identity for group, *_ in pairs):
            here = [
                ((group, f"{_name(group)} in {names[0]}", own[label]),
                 (match, f"{_name(match)} in {names[1]}", other_own[label]))
                for group, match, own, other_own in pairs
                if group.place.identity == place and label in own and label in other_own
            ]  # fmt: skip
            found += _compared(one, measure, here)
    return found


def _check_splits(experiment: str, one: Group, other: Group, names: tuple[str, str]) -> None:
    """Raise an error if a repetition has other rows in the two runs, or if no repetition is in both."""
    splits, others = ({result.cell.place.repetition: result.cell.split_hash for result in group.good}
                      for group in (one, other))  # fmt: skip
    common = splits.keys() & others.keys()
    if splits and others and (not common or any(splits[number] != others[number] for number in common)):
        raise UserError(
            f"{names[0]} and {names[1]} have no split of {experiment} in common: {one.split.written} of "
            f"{one.data.written} has other rows in each, or other repetitions",
            remedy="run one of them again with the same data",
        )


def sheet_of(found: Sequence[Comparison]) -> Sheet:
    """The comparisons as people read them, those that differ in bold; with the split where there are several."""
    several = len({one.place.split.identity for one in found}) > 1
    where = ("data", "split") if several else ("data",)
    headings = (*where, "metric", "first", "second", "difference", "95 %", "p", "effect", "win / tie / loss", "speed",
                "the second is")  # fmt: skip
    lines = tuple(
        (
            *(getattr(one, name) for name in where), one.metric,
            f"{one.first}: {one.one:.4f}", f"{one.second}: {one.other:.4f}",
            f"{one.difference:+.4f}", f"{one.low:+.4f} to {one.high:+.4f}", f"{one.p:.3f}",
            f"{one.effect:+.2f} ({one.effect_low:+.2f} to {one.effect_high:+.2f})",
            f"{one.wins} / {one.ties} / {one.losses}", "" if one.speed is None else f"{one.speed:.2f} x", one.verdict,
        )
        for one in found
    )  # fmt: skip
    numeric = tuple(heading in ("difference", "p", "effect", "speed") for heading in headings)
    bold = frozenset((line, len(headings) - 1) for line, one in enumerate(found) if one.verdict in (BETTER, WORSE))
    return Sheet(headings, numeric, lines, bold)


def to_csv(found: Iterable[Comparison]) -> str:
    """One row per comparison, with all digits."""
    return csv_text(COLUMNS, (["" if value is None else value for value in one.record.values()] for one in found))


def _name(group: Group) -> str:
    return group.solver.written


def _compared(study: Study, measure: Measure, pairs: Sequence[tuple[Side, Side]]) -> list[Comparison]:
    """The comparison of each pair on one data set, with p-values adjusted for their number."""
    found = contrasts([(other[2], one[2]) for one, other in pairs])
    adjusted = holm(np.array([one.p for one in found])).tolist()
    lines = [_comparison(study, measure, pair, one) for pair, one in zip(pairs, found, strict=True)]
    return [replace(one, p=p, verdict=_verdict(one, p)) for one, p in zip(lines, adjusted, strict=True)]


def _comparison(study: Study, measure: Measure, pair: tuple[Side, Side], found: Contrast) -> Comparison:
    """The comparison of two groups, its p-value and its verdict not adjusted yet."""
    (one, first, own), (other, second, other_own) = pair
    wins, losses = (found.wins, found.losses) if measure.sign > 0 else (found.losses, found.wins)
    seconds = [mean_seconds(group) for group in (one, other)]
    machines = {result.machine.fingerprint for group in (one, other) for result in group.good}
    speed = seconds[0] / seconds[1] if seconds[0] and seconds[1] and len(machines) == 1 else None
    return Comparison(
        study.name, one.place, first, second, measure.label, own.mean(), other_own.mean(),
        found.difference, found.low, found.high, found.p, found.effect, found.effect_low, found.effect_high,
        wins, found.ties, losses, speed,
        verdict=BETTER if found.difference * measure.sign > 0 else WORSE if found.difference else SAME,
    )  # fmt: skip


def _verdict(one: Comparison, p: float) -> str:
    if one.ties and not one.wins + one.losses:
        return SAME
    return one.verdict if p < ALPHA else UNSEEN
