"""Solvers compared two by two: those of one experiment, or the same ones in two results folders."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rankbench.core.errors import UserError
from rankbench.records.cells import DataSplit, Measure
from rankbench.records.studies import Group, Study
from rankbench.report.analysis.evidence import by_place, key_of, limits_of, samples, scope_of
from rankbench.report.analysis.strength import fair
from rankbench.report.render.tables import Placed, Sheet, columns_of, csv_text
from rankbench.report.study import mean_seconds
from rankbench.statistics import Sample, shared_by
from rankbench.statistics import between as of_pairs
from rankbench.statistics.decisions import BETTER, EQUAL, OPEN, WORSE, Decision

Side = tuple[Group, str, Sample]  # a group, the name that it is shown by, and its values by one metric


@dataclass(frozen=True)
class Comparison(Placed):
    """The second of two runs against the first one, by one metric on one data set."""

    experiment: str
    place: DataSplit
    first: str
    second: str
    metric: str
    one: float  # the mean of the first
    other: float
    difference: float  # of the second from the first, over the users and repetitions that both have
    low: float  # the interval of 95 % for all comparisons of this metric on this data set together
    high: float
    p: float  # for all of them together too
    verdict: str  # on the second: better, worse, equal or open
    margin: float  # a difference below this counts as none
    chance: float  # that the second is better in a new draw, with its 95 % interval
    chance_low: float
    chance_high: float
    wins: int  # users for whom the second is better
    ties: int
    losses: int
    users: int
    repetitions: int
    scope: str  # what the verdict speaks of
    settled_by: str  # what would settle an open verdict
    reason: str  # what limits the verdict
    speed: float | None  # seconds of the first over those of the second, on one kind of machine

    @property
    def said(self) -> str:
        """The verdict in words, with the margin or what would settle it."""
        if self.verdict == EQUAL:
            return f"equal within {self.margin:.2g}"
        more = self.settled_by or self.reason
        return f"open: {more}" if self.verdict == OPEN and more else self.verdict


COLUMNS = columns_of(Comparison)


def within(study: Study, margin: float | None = None) -> list[Comparison]:
    """Each two solvers of an experiment on the same data and split; a margin replaces those of the experiment."""
    found: list[Comparison] = []
    for here in by_place(study.groups).values():
        members = [(group, samples(study, group)) for group in here]
        for measure in study.measures:
            known = {key_of(group): (group, group.solver.written, own[measure.label]) for group, own in members
                     if measure.label in own}  # fmt: skip
            if len(known) > 1:
                own = {key: sample for key, (_, _, sample) in known.items()}
                decided = of_pairs(own, measure.better, _margin(study, measure, margin), limits_of(measure))
                pairs = list(combinations(known, 2))
                sides = [(known[one], known[two]) for one, two in pairs]
                found += _compared(study, measure, sides, [decided[two, one] for one, two in pairs])
    return found


def _margin(study: Study, measure: Measure, given: float | None) -> float | None:
    return study.experiment.margin(measure.label) if given is None else given


def between(one: Study, other: Study, names: tuple[str, str], margin: float | None = None) -> list[Comparison]:
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
                ((group, f"{group.solver.written} in {names[0]}", own[label]),
                 (match, f"{match.solver.written} in {names[1]}", other_own[label]))
                for group, match, own, other_own in pairs
                if group.place.identity == place and label in own and label in other_own
            ]  # fmt: skip
            decided = [
                of_pairs({False: own, True: later}, measure.better, _margin(one, measure, margin), limits_of(measure),
                         families=len(here))[True, False]
                for (_, _, own), (_, _, later) in here
            ]  # fmt: skip
            found += _compared(one, measure, here, decided)
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
    headings = (*where, "metric", "first", "second", "difference", "95 %", "p", "chance", "win / tie / loss", "speed",
                "the second is")  # fmt: skip
    lines = tuple(
        (
            *(getattr(one, name) for name in where), one.metric,
            f"{one.first}: {one.one:.4f}", f"{one.second}: {one.other:.4f}",
            f"{one.difference:+z.4f}", f"{one.low:+z.4f} to {one.high:+z.4f}", p_text(one.p),
            f"{one.chance:.2f} ({one.chance_low:.2f} to {one.chance_high:.2f})",
            f"{one.wins} / {one.ties} / {one.losses}", "" if one.speed is None else f"{one.speed:.2f} x", one.said,
        )
        for one in found
    )  # fmt: skip
    numeric = tuple(heading in ("difference", "p", "speed") for heading in headings)
    bold = frozenset((line, len(headings) - 1) for line, one in enumerate(found) if one.verdict in (BETTER, WORSE))
    return Sheet(headings, numeric, lines, bold)


def p_text(p: float) -> str:
    """A p-value as people read it: none is zero."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def to_csv(found: Iterable[Comparison]) -> str:
    """One row per comparison, with all digits."""
    return csv_text(COLUMNS, (one.record.values() for one in found))


def _compared(study: Study, measure: Measure, pairs: Sequence[tuple[Side, Side]], found: Sequence[Decision]
              ) -> Iterator[Comparison]:  # fmt: skip
    """The comparison of each pair with its decision, which is on the second one."""
    for ((one, first, own), (other, second, other_own)), decision in zip(pairs, found, strict=True):
        wins, ties, losses = _counted(own, other_own, measure.sign)
        apart = decision.difference.times(measure.sign)
        word, why = fair(study, decision.word, (key_of(other), second), (key_of(one), first))
        seconds = [mean_seconds(group) for group in (one, other)]
        machines = {result.machine.fingerprint for group in (one, other) for result in group.good}
        speed = seconds[0] / seconds[1] if seconds[0] and seconds[1] and len(machines) == 1 else None
        yield Comparison(
            study.name, one.place, first, second, measure.label, own.mean(), other_own.mean(),
            apart.mean, apart.low, apart.high, decision.p, word, decision.margin, decision.chance,
            decision.chance_low, decision.chance_high, wins, ties, losses, apart.users, apart.repetitions,
            scope_of((one, other), shared_by((own, other_own))), "" if why else decision.settled_by,
            why or decision.reason, speed,
        )  # fmt: skip


def _counted(one: Sample, other: Sample, sign: float) -> tuple[int, int, int]:
    """For how many users the second one is better, as good and worse, by the mean over the common repetitions."""
    shared = shared_by((one, other))
    if not shared:
        return 0, 0, 0
    apart = sign * (other.only(shared).values - one.only(shared).values)
    apart = np.nanmean(apart[:, ~np.isnan(apart).all(axis=0)], axis=0)
    return int((apart > 0).sum()), int((apart == 0).sum()), int((apart < 0).sum())
