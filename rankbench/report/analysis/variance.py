"""Which share of the variance users, splits, search and start bring, as far as stored runs tell them apart."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rankbench.records.cells import SOURCES, DataSplit
from rankbench.records.studies import Group, Study
from rankbench.report.analysis.evidence import GroupKey, evidence, key_of, samples
from rankbench.report.render.labels import joined
from rankbench.report.render.tables import Placed, Sheet, columns_of, csv_text
from rankbench.report.study import cached_by_study, redrawn
from rankbench.statistics import Sample
from rankbench.statistics.estimates import table_of
from rankbench.statistics.sources import USERS, Redrawn, Share, Sources, shares
from rankbench.statistics.variation import freedom_of_squares

LEGEND = (
    "Shares of the variance that a number of one repetition has in new draws: of the mean, and of the difference from "
    "the best other solver. Each share is estimated by itself, with the interval of 95 % and the degrees of freedom "
    "of its variance; those of few repetitions need not add up to 100 %. Sources that no stored run tells apart stand "
    "together: `rankbench run NAME --redraw start` redraws the start alone, and so it is with splits and search. "
    "*together* is what all of them bring beyond what each one brings alone."
)
_ORDER = (USERS, *SOURCES)


@dataclass(frozen=True)
class SourceShare(Placed):
    """The share of one source, or of several that no run tells apart, in the variance of a number."""

    place: DataSplit
    metric: str
    solver: str
    of: str  # `mean`, or the difference from which solver
    source: str
    share: float
    low: float
    high: float
    variance: float
    freedom: float
    users: int
    repetitions: int  # of the run shown


COLUMNS = columns_of(SourceShare)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The sample of a solver by one metric in one run, and what the repetitions of this run draw anew."""

    sources: Sources
    sample: Sample


Key = tuple[tuple[str, str], GroupKey]
Drawn = Mapping[tuple[Key, str], _Drawn]  # by the solver in its place, and the metric


@cached_by_study
def shares_of(study: Study) -> list[SourceShare]:
    """The shares for each data set with split, metric and solver; those of differences after those of the mean.

    There are none where no solver has values for users in two repetitions.
    """
    runs = [_groups(run) for run in (study, *redrawn(study))]
    names = {(group.place.identity, key_of(group)): group.solver.written for group in study.groups}
    found: list[SourceShare] = []
    for one in evidence(study).values():
        for key, verdict in one.verdicts.items():
            here = (one.place.identity, key)
            found += _of(one.place, one.label, names[here], "mean", [_mean(run, here, one.label) for run in runs])
            for rival in (each for each in names if each == (one.place.identity, verdict.rival)):
                both = [_difference(run, here, rival, one.label) for run in runs]
                found += _of(one.place, one.label, names[here], f"difference from {names[rival]}", both)
    return found


def share_sheet(found: Iterable[SourceShare]) -> Sheet:
    """The shares as people read them, in percent."""
    headings = ("data", "split", "metric", "solver", "variance of the", "source", "share", "95 %", "degrees")
    lines = tuple(
        (
            one.data, one.split, one.metric, one.solver, one.of, one.source,
            f"{100 * one.share:.0f} %", f"{100 * one.low:.0f} to {100 * one.high:.0f} %",
            f"{one.freedom:.3g}" if one.variance else "",
        )
        for one in found
    )  # fmt: skip
    return Sheet(headings, tuple(name in ("share", "degrees") for name in headings), lines)


def shares_to_csv(found: Iterable[SourceShare]) -> str:
    """One row per share, with all digits."""
    return csv_text(COLUMNS, (one.record.values() for one in found))


def _groups(run: Study) -> Drawn:
    """The samples of each group of a run."""
    return {
        ((group.place.identity, key_of(group)), label): _Drawn(_sources(run, group), sample)
        for group in run.groups
        for label, sample in samples(run, group).items()
    }


def _sources(run: Study, group: Group) -> Sources:
    """What the repetitions of a group draw anew."""
    hashes, tune = {result.cell.split_hash for result in group.good}, run.experiment.tune
    fixed = set(run.plan.held)
    if len(hashes) == 1 and "" not in hashes:
        fixed.add("splits")
    if not group.tuned or tune is None or tune.per == "split":
        fixed.add("search")
    return frozenset(SOURCES) - fixed


def _mean(run: Drawn, key: Key, label: str) -> Redrawn | None:
    """The table of a solver's means in a run; None where it has none."""
    own = run.get((key, label))
    if own is None:
        return None
    values, weights = own.sample.values, own.sample.weights
    return Redrawn(own.sources, table_of(values, weights)[0], freedom_of_squares(values, weights))


def _difference(run: Drawn, key: Key, rival: Key, label: str) -> Redrawn | None:
    """The table of a solver's differences from its rival, on the repetitions and users that both have."""
    two = [run[each, label] for each in (key, rival) if (each, label) in run]
    known = [one.sample for one in two]
    shared = tuple(number for number in known[0].repetitions if number in known[-1].repetitions) if known else ()
    if len(known) < 2 or not shared or known[0].values.shape[1] != known[1].values.shape[1]:
        return None
    values, weights = (np.stack([getattr(one.only(shared), name) for one in known]) for name in ("values", "weights"))
    values = np.where(np.isnan(values).any(axis=0), np.nan, values)
    table, freedom = table_of(values, weights)[0], freedom_of_squares(values, weights)
    return Redrawn(two[0].sources | two[1].sources, np.asarray(table[0] - table[1]), freedom)


def _of(place: DataSplit, metric: str, solver: str, of: str, runs: list[Redrawn | None]) -> Iterator[SourceShare]:
    known = [run for run in runs if run is not None]
    for one in sorted(shares(known), key=_place_of):
        repetitions, users = known[0].table.shape
        yield SourceShare(
            place, metric, solver, of, _named(one.sources), one.share, one.low, one.high, one.variance, one.freedom,
            users, repetitions,
        )  # fmt: skip


def _place_of(share: Share) -> int:
    """The place of a share in its table: users, splits, search, start, and what they bring together."""
    return min((_ORDER.index(source) for source in share.sources), default=len(_ORDER))


def _named(sources: tuple[str, ...]) -> str:
    """The sources in words."""
    return joined([source for source in _ORDER if source in sources] or ["together"])
