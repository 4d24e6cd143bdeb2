"""The rows of a table: measured and published numbers with their intervals, a row for each group and metric."""

from dataclasses import dataclass, field, replace
from math import isfinite
from statistics import fmean, pstdev
from typing import Any

from rankbench.experiments import PER_STEP, TIMES
from rankbench.names import show_settings
from rankbench.names.grammar import written
from rankbench.records.cells import Skip
from rankbench.records.studies import Group, Study
from rankbench.report.analysis import strength
from rankbench.report.analysis.evidence import key_of, verdict_of
from rankbench.report.analysis.published import (
    Beside,
    beside,
    is_variant,
    joined,
    joined_settings,
    without_measurement,
)
from rankbench.report.render.labels import place_columns
from rankbench.report.study import (
    bound_of,
    cached_by_study,
    mean_of,
    mean_seconds,
    settings_of,
    speed_ups,
    varies_threads,
)

COLUMNS = tuple(
    "experiment data split solver settings metric published measured sd n seconds peak_mb determinism status "
    "users left_out unscored published_on computed prepare load low high verdict rival difference difference_low "
    "difference_high margin p chance first tier strength".split()
)
_FEW = 3  # up to this many repetitions, the chosen settings are listed one by one


@dataclass(frozen=True)
class Pace:
    """How a number of threads changes the time of a solver; None where it is unknown."""

    threads: int
    speed_up: float | None  # of a step, without the set-up
    overall: float | None  # of the whole training, with the set-up
    bound: float | None  # of the speed-up, by the schedule
    published: float | None  # speed-up
    published_seconds: float | None


@dataclass(frozen=True)
class Row:
    """A row of `table --csv`; scripts rely on these names."""

    experiment: str
    data: str
    split: str
    solver: str
    settings: str
    metric: str
    published: float | None = None
    measured: float | None = None
    sd: float | None = None
    n: int = 0
    seconds: float | None = None
    peak_mb: float | None = None
    determinism: str = ""
    status: str = "skipped"
    users: float | None = None  # users that the metric counts, mean over repetitions
    left_out: float | None = None  # users that the metric does not count
    unscored: float | None = None  # share of held-out pairs that the model gives no score
    published_on: str = ""  # the data set that the published number was measured on
    computed: float | None = None  # a reference number that follows from a formula and is not published
    prepare: float | None = None  # seconds to make the view that the solver learns from
    load: float | None = None  # cores that other processes used meanwhile
    low: float | None = None  # the 95 % interval of the mean
    high: float | None = None
    verdict: str = ""  # against the best other solver: better, worse, equal or open
    rival: str = ""  # that solver
    difference: float | None = None  # from its mean, with an interval of 95 % for all solvers of the group together
    difference_low: float | None = None
    difference_high: float | None = None
    margin: float | None = None  # a difference below this counts as none
    p: float | None = None  # of the difference, for the group together
    chance: float | None = None  # to be better than the rival in a new draw
    first: float | None = None  # the chance to be the best of all in a new draw
    tier: int | None = None  # 1: not distinguished from the best, 2: behind those, and so on
    strength: str = ""  # whether the solver was shown at its best: certified, why not, or that its settings are fixed
    group: Group | None = field(default=None, compare=False, repr=False)  # from here on not in the CSV
    shown: tuple[str, ...] = ()  # data, the split where the study has several, and solver as the user wrote them
    chosen: str = ""  # the settings that tuning chose, for people
    published_sd: float | None = None
    elsewhere: bool = False  # the published number was measured on other data
    variant: bool = False  # another solver is the reproduction of the published number
    pace: Pace | None = None  # if threads vary
    step: float | None = None  # seconds per step, where the experiment has published ones
    published_step: float | None = None
    gap: float | None = None  # the largest gap of a repetition, relative to its objective
    disturbed: bool = False
    weak: bool = False  # its solver was not shown at its best
    best: bool = False  # its mean is the best one
    bold: bool = False  # not worse than the best, by several repetitions
    settled_by: str = ""  # what would settle an open verdict
    reason: str = ""  # what limits the interval, or why there is no verdict


@cached_by_study
def rows(study: Study) -> tuple[Row, ...]:
    """The rows of a study: one for every group and metric, then the skipped parts."""
    found: list[Row] = []
    for group in study.groups:
        row = _row(study, group)
        found += [_measured_row(row, study, group, measure.label) for measure in study.measures]
    return (*found, *(row for skip in study.skips for row in _skipped_rows(study, skip)))


def _row(study: Study, group: Group) -> Row:
    """A row with the fields that all metrics of a group share."""
    settings = joined_settings(group)
    pace = _pace_of(study, group) if varies_threads(study) else None
    step, published_step = _per_step(study, group)
    good = group.good
    return Row(
        experiment=study.name,
        data=group.data.full,
        split=group.split.full,
        solver=group.solver.name,
        settings=show_settings({**settings, "threads": group.threads} if pace else settings),
        metric="",
        seconds=mean_seconds(group) if good else None,
        peak_mb=mean_of(result.peak_mb for result in good),
        determinism=group.determinism.value,
        status=group.status,
        unscored=mean_of(result.unscored for result in good),
        prepare=mean_of(result.prepare for result in good),
        load=mean_of(result.load for result in good),
        group=group,
        shown=(*place_columns(study, group.place), group.solver.written),
        chosen=_chosen(study, group),
        pace=pace,
        step=step,
        published_step=published_step,
        gap=max((gap for result in good if (gap := result.relative_gap) is not None), default=None),
        disturbed=any(result.disturbed for result in good),
        strength=strength.told(study, group),
        weak=bool(strength.strengths(study).get(key_of(group))),
    )


def _per_step(study: Study, group: Group) -> tuple[float | None, float | None]:
    """Seconds per step, measured and published; None for both where the experiment has no published ones."""
    if all(entry.metric != PER_STEP for entry in study.experiment.published):
        return None, None
    published, seconds = beside(study, group, PER_STEP), mean_seconds(group)
    steps = fmean(result.curve[-1].step for result in group.good) if group.good else 0
    return seconds / steps if seconds is not None and steps else None, published.value if published else None


def _measured_row(row: Row, study: Study, group: Group, label: str) -> Row:
    """The row of one metric."""
    values = group.values(label)
    counted = [found for result in group.good if (found := result.counted_by(label))]
    row = replace(
        row,
        metric=label,
        measured=fmean(values) if values else None,
        sd=_spread(values),
        n=len(values),
        users=mean_of(found.users for found in counted),
        left_out=mean_of(found.left_out for found in counted),
    )
    row = replace(row, variant=is_variant(study, group, label))
    return _with_number(_with_verdict(row, study, group, label), beside(study, group, label))


def _with_verdict(row: Row, study: Study, group: Group, label: str) -> Row:
    """The row with what the values for each user say of the measured number."""
    found = verdict_of(study, group, label)
    if found is None:
        return row
    row = replace(row, low=_finite(found.mean.low), high=_finite(found.mean.high), reason=found.mean.reason)
    if found.alone:
        return row
    decision = found.decision
    signs = {measure.label: measure.sign for measure in study.measures}
    apart = decision.difference.times(signs[label])
    rival = _rival_of(study, group, found.rival)
    word, why = strength.fair(study, decision.word, (key_of(group), group.solver.written), rival)
    return replace(
        row,
        verdict=word,
        rival=rival[1],
        difference=_finite(apart.mean),
        difference_low=_finite(apart.low),
        difference_high=_finite(apart.high),
        margin=decision.margin,
        p=decision.p,
        chance=decision.chance,
        first=_finite(found.first[0]),
        tier=found.tier or None,
        best=found.best,
        bold=found.bold,
        settled_by="" if why else decision.settled_by,
        reason=why or decision.reason,
    )


def _rival_of(study: Study, beside: Group, key: object) -> strength.Side:
    """The solver with this key in the same place: its key and its name; both are empty without one."""
    here = (group for group in study.groups if group.place.identity == beside.place.identity)
    return next(((key_of(group), group.solver.written) for group in here if key_of(group) == key), ((), ""))


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _spread(values: list[float]) -> float | None:
    """The standard deviation between repetitions: 0 for one repetition, None for none."""
    return pstdev(values) if len(values) > 1 else 0.0 if values else None


def _pace_of(study: Study, group: Group) -> Pace:
    """The threads of a group, with its mean speed-ups, their bound, and what was published of them."""
    numbers = (beside(study, group, what) for what in TIMES)
    return Pace(
        group.threads,
        mean_of(speed_ups(study, group)),
        mean_of(speed_ups(study, group, setting_up=True)),
        bound_of(group),
        *(number.value if number else None for number in numbers),
    )


def _with_number(row: Row, found: Beside | None) -> Row:
    """The row with the reference number added: a published one with its data set, or a computed one."""
    if found is None:
        return row
    if found.computed:
        return replace(row, computed=found.value)
    return replace(row, published=found.value, published_sd=found.sd, published_on=found.on, elsewhere=found.elsewhere)


def _skipped_rows(study: Study, skip: Skip) -> list[Row]:
    """A row for a skipped part, and one for each number that was published on a data set that is not at hand."""
    data = skip.data
    if skip.split or skip.failed or not (published := without_measurement(study, data)):
        return [_skipped_row(study, skip)]
    paces = {str(entry.solver): entry.value for entry in published if entry.metric == PER_STEP}
    return [_skipped_row(study, skip)] + [
        Row(
            study.name,
            data.written,
            split,
            str(entry.solver),
            settings="",
            metric=entry.metric,
            published=entry.value,
            published_sd=entry.sd,
            published_on=data.written,
            published_step=paces.get(str(entry.solver)),
            shown=_shown(study, data.written, split, str(entry.solver)),
        )
        for entry in published
        if entry.metric != PER_STEP
        for split in [str(entry.split or "")]
    ]


def _skipped_row(study: Study, skip: Skip) -> Row:
    split = skip.split.written if skip.split else ""
    solver, settings = "", ""
    if skip.solver:
        solver, settings = skip.solver.name, show_settings(dict(skip.solver.given))
    shown = _shown(study, skip.data.written, split, skip.solver.written if skip.solver else "all solvers")
    status = "failed" if skip.failed else "skipped"
    return Row(study.name, skip.data.written, split, solver, settings, metric="", status=status, shown=shown)


def _shown(study: Study, data: str, split: str, solver: str) -> tuple[str, ...]:
    """The columns that name a row in a table, from texts."""
    return (data, split, solver) if study.has_several_splits else (data, solver)


def _chosen(study: Study, group: Group) -> str:
    """The settings that tuning chose, as text: a value per repetition, or their range."""
    if study.experiment.tune is None:
        return ""
    values = settings_of(group)
    chosen = [f"{name}={_brief(values[name])}" for name in group.tuned if name in values]
    if study.experiment.budget.patience is not None and group.good:
        chosen.append(f"steps={_brief([result.cell.budget.steps for result in group.good])}")
    return ", ".join(chosen) or "nothing to tune"


def _brief(values: list[Any]) -> str:
    """The values of a setting over repetitions as short text: one by one if few, else their range."""
    found = list(dict.fromkeys(values))
    if len(found) == 1 or len(values) <= _FEW:
        return written(joined(values)).replace("|", " / ")
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in found):
        return f"{written(min(found))}..{written(max(found))}"
    return " / ".join(map(written, found))
