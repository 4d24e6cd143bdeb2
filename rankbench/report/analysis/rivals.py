"""Solvers of rankbench beside those of other packages for the same task: seconds in pairs, and quality beside them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rankbench.experiments.costs import Rivals
from rankbench.names import Pattern
from rankbench.records.cells import Measure
from rankbench.records.results import Result
from rankbench.records.studies import Group, Study
from rankbench.report.analysis.evidence import by_place
from rankbench.report.render.labels import metric_labels, place_label, solver_labels
from rankbench.report.render.tables import DISTURBED, Sheet, csv_text
from rankbench.report.study import pace_of
from rankbench.statistics.powers import UNKNOWN, mean_of, ratio_of

COLUMNS = tuple(
    "experiment data ours peer metric repetitions ours_value ours_low ours_high peer_value peer_low peer_high "
    "ours_seconds peer_seconds ratio ratio_low ratio_high equal_ratio equal_low equal_high disturbed left_out".split()
)
LEGEND = (
    "`±` is half of Student's 95 % interval over repetitions. A ratio is the peer's seconds over those of rankbench, "
    "taken within each repetition, whose cells run one after the other; the ratios' mean is geometric. Above 1 "
    "rankbench is faster. *Times as fast* compares the seconds of as many steps as do the same work, without the "
    "set-up, or the whole training where one of the two has no steps; it is empty where no number of steps does the "
    "same work. *At equal quality* the seconds are those until the first evaluated model that is at least as good as "
    "the worse of the two last ones, so that nobody wins by stopping early; it is empty where a first model is as good "
    "already."
)


@dataclass(frozen=True)
class Side:
    """One of two rivals on one data set: its name, and its value of the metric and seconds in each repetition."""

    name: str
    values: tuple[float, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Match:
    """Two rivals on one data set; their ratios of seconds are empty if one of them was not measured."""

    where: str
    metric: str  # its label
    ours: Side
    peer: Side
    ratios: tuple[float, ...] = ()
    equal: tuple[float, ...] = ()  # to equal quality
    disturbed: bool = False
    left_out: str = ""  # why one of them was not measured


def matches(study: Study) -> list[Match]:
    """Every pair of rivals on every data set, in the order of the experiment."""
    if not study.experiment.rivals or not study.measures:
        return []
    return [
        _match(study, place_label(study, members[0].place), rivals, members)
        for members in by_place(study.groups).values()
        for rivals in study.experiment.rivals
    ]


def rival_sheet(study: Study) -> Sheet | None:
    """A line for each two rivals on each data set; None if the experiment names no rivals."""
    found = matches(study)
    if not found:
        return None
    costs = ("times as fast", "95 %", "at equal quality", "95 %")
    return Sheet(
        headings=(
            "data",
            "metric",
            "rankbench",
            "its value",
            "seconds",
            "peer",
            "its value",
            "seconds",
            *costs,
            "left out",
        ),
        numeric=(False, False, False, True, True, False, True, True, *(True for _ in costs), False),
        lines=tuple(_line(match, metric_labels(study)) for match in found),
    )


def losses(study: Study) -> str:
    """Where our solvers are behind their rivals by the means, in quality and in seconds to equal quality.

    Empty if the study names no rivals, or nothing was measured of them.
    """
    found = [one for one in matches(study) if one.ours.values and one.peer.values]
    signs, labels = {measure.label: measure.sign for measure in study.measures}, metric_labels(study)
    worse: dict[str, dict[str, list[str]]] = {}
    slower: dict[str, list[str]] = {}
    for one in found:
        pair = f"{one.ours.name} beside {one.peer.name}"
        ours, peer = (round(mean_of(side.values).value, 4) for side in (one.ours, one.peer))  # as the table shows them
        if signs[one.metric] * (ours - peer) < 0:
            worse.setdefault(labels[one.metric], {}).setdefault(pair, []).append(one.where)
        if one.equal and (times := ratio_of(one.equal).value) < 1:
            slower.setdefault(pair, []).append(f"{times:.2f} on {one.where}")
    told = [f"- {name}: {_listed(pairs)}" for name, pairs in worse.items()]
    told += [f"- speed, the peer's seconds to equal quality over ours: {_listed(slower)}"] if slower else []
    return ("\n".join(told) or "Nowhere, by the means.") if found else ""


def _listed(pairs: Mapping[str, Iterable[str]]) -> str:
    return "; ".join(f"{pair} ({', '.join(where)})" for pair, where in pairs.items())


def rivals_to_csv(study: Study) -> str:
    """The same as CSV with the columns `COLUMNS` in this order, with all digits."""
    return csv_text(COLUMNS, (_csv_line(study, one) for one in matches(study)))


def _csv_line(study: Study, one: Match) -> tuple[object, ...]:
    sides = (one.ours, one.peer)
    values = (end for side in sides for end in (mean_of(side.values).columns if side.values else UNKNOWN))
    seconds = (mean_of(side.seconds).value if side.seconds else "" for side in sides)
    ratios = (end for found in (one.ratios, one.equal) for end in (ratio_of(found).columns if found else UNKNOWN))
    about = (study.name, one.where, one.ours.name, one.peer.name, one.metric, len(one.ratios))
    return (*about, *values, *seconds, *ratios, one.disturbed, one.left_out)


def _match(study: Study, where: str, rivals: Rivals, found: list[Group]) -> Match:
    measure = next((one for one in study.measures if one.label == rivals.metric), study.measures[0])
    ours, peer = (_of(pattern, found) for pattern in (rivals.ours, rivals.peer))
    sides = (_side(study, rivals.ours, ours, measure), _side(study, rivals.peer, peer, measure))
    if not ours or not peer:
        missing = rivals.peer if ours else rivals.ours
        return Match(where, measure.label, *sides, left_out=_why_not(study, missing, found))
    pairs = _pairs(ours, peer)
    speeds = (_speed(one, other, rivals.steps) for one, other in pairs)
    equal = (_ratio(*_to_equal_quality(one, other, measure)) for one, other in pairs)
    return Match(
        where,
        measure.label,
        *sides,
        ratios=tuple(one for one in speeds if one),
        equal=tuple(one for one in equal if one),
        disturbed=any(result.disturbed for pair in pairs for result in pair),
        left_out="" if pairs else "no repetition of both ended well and undisturbed by other cells",
    )


def _of(pattern: Pattern, members: Iterable[Group]) -> Group | None:
    """The group of a rival, if any of its repetitions ended well."""
    return next((group for group in members if group.good and group.solver.fits(pattern)), None)


def _side(study: Study, pattern: Pattern, group: Group | None, measure: Measure) -> Side:
    """A rival with what was measured of it."""
    names = solver_labels(study)
    solvers = [*(entry.cell.solver for entry in study.entries), *(skip.solver for skip in study.skips if skip.solver)]
    name = next((names[solver.written] for solver in solvers if solver.fits(pattern)), str(pattern))
    good = group.good if group else ()
    values = tuple(group.values(measure.label)) if group else ()
    return Side(name, values, tuple(one.seconds or 0.0 for one in good if not one.contended))


def _pairs(ours: Group, peer: Group) -> list[tuple[Result, Result]]:
    """The results of both in each repetition in which their times can be compared."""
    others = {result.cell.place.repetition: result for result in peer.good if not result.contended}
    pairs = [(one, others.get(one.cell.place.repetition)) for one in ours.good if not one.contended]
    return [(one, two) for one, two in pairs if two and one.machine.fingerprint == two.machine.fingerprint]


def _speed(ours: Result, peer: Result, steps: int) -> float | None:
    """How many times as fast ours is: by the seconds of a step, or of the training if one has a single model."""
    paces = pace_of(ours), pace_of(peer)
    if not all(paces) and min(len(ours.curve), len(peer.curve)) == 1:
        return _ratio(ours.seconds, peer.seconds)
    return _ratio(steps * (paces[0] or 0.0), paces[1])


def _ratio(ours: float | None, peer: float | None) -> float | None:
    return peer / ours if ours and peer else None


def _to_equal_quality(ours: Result, peer: Result, measure: Measure) -> tuple[float | None, float | None]:
    """The seconds of both until a model as good as the worse of their last ones."""
    target = min(measure.sign * one.value(measure.label) for one in (ours, peer))
    one, two = (_reached(result, measure, target) for result in (ours, peer))
    return one, two


def _reached(result: Result, measure: Measure, target: float) -> float | None:
    """The seconds until the first evaluated model with at least this value, where higher is better.

    None if the start of the training is as good already: then the training has not made it so.
    """
    reached = [measure.sign * result.value_at(point, measure.label) >= target for point in result.curve]
    if not any(reached) or (reached[0] and len(reached) > 1):
        return None
    return result.curve[reached.index(True)].seconds


def _why_not(study: Study, pattern: Pattern, members: Iterable[Group]) -> str:
    """Why a rival was not measured beside these groups."""
    places = {group.place.identity for group in members}
    for skip in study.skips:
        here = skip.split is None or (skip.data.identity, skip.split.identity) in places
        if skip.solver and here and skip.solver.fits(pattern):
            return f"{skip.reason}; to get it: {skip.remedy}" if skip.remedy else skip.reason
    failed = (one for group in members if group.solver.fits(pattern) for one in group.entries if one.reason)
    entry = next(failed, None)
    return f"{pattern} {entry.status}: {entry.reason}" if entry else f"{pattern} has not run"


def _line(match: Match, metrics: Mapping[str, str]) -> tuple[str, ...]:
    mark = DISTURBED if match.disturbed else ""
    sides = [
        (side.name, _with_half(side.values, 4), _with_half(side.seconds, 3) + (mark if side.seconds else ""))
        for side in (match.ours, match.peer)
    ]
    ratios = (*_times(match.ratios), *_times(match.equal))
    return (match.where, metrics[match.metric], *sides[0], *sides[1], *ratios, match.left_out)


def _with_half(values: tuple[float, ...], digits: int) -> str:
    """The mean with half of its interval."""
    if not values:
        return ""
    found = mean_of(values)
    return f"{found.value:.{digits}f}" + (f" ± {found.high - found.value:.{digits}f}" if found.bounded else "")


def _times(ratios: tuple[float, ...]) -> tuple[str, str]:
    if not ratios:
        return "", ""
    found = ratio_of(ratios)
    return f"{found.value:.2f}", f"{found.low:.2f} to {found.high:.2f}" if found.bounded else ""
