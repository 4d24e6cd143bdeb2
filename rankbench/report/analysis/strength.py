"""A certificate of strength for each row of a table: whether its solver was shown at its best, and if not, why.

A solver that is tuned or trained badly loses to anything. A row is certified if the settings that decide were tuned,
each chosen value has worse ones on both sides, the last trials brought nothing, the last steps of training neither, and
no trial failed. Only stored searches and training curves are looked at; the test part chooses nothing.
Experiments without `[tune]` have the settings that somebody gave them, which is said instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from statistics import fmean
from typing import Any

from rankbench.core.errors import UserError
from rankbench.experiments.usual_spaces import PENALTIES, untuned
from rankbench.names import Named, with_settings
from rankbench.planning.widening import best_place, outermost, value_of
from rankbench.records.results import Result
from rankbench.records.studies import Entry, Group, Study
from rankbench.report.analysis.evidence import GroupKey, key_of
from rankbench.report.study import cached_by_study
from rankbench.statistics.decisions import BETTER, OPEN, WORSE

CERTIFIED, FIXED = "certified", "fixed settings"
MARK = "†"
Side = tuple[GroupKey, str]  # a solver of a verdict: the key of its group, and its name

_MARGIN = 0.01  # of a value: what solvers may differ by and count as equal, unless an experiment says otherwise
_FLAT = _MARGIN / 2  # of a value: a smaller change counts as none
_NARROW = 30.0  # the ratio of the highest to the lowest penalty below which too few were tried
_ALIKE = 0.001  # of a value: trials whose values differ by less say nothing about a setting
_LAST = 0.25  # the share of the trials, and of the steps, at the end that should bring nothing
_FEWEST_TRIALS, _FEWEST_STEPS = 4, 4
_MOST = 0.5  # of the repetitions, above which a weakness is the solver's


@dataclass(frozen=True)
class Search:
    """The trials of a repetition of a group that ended well, and the result with the best trial's settings."""

    trials: tuple[Result, ...]
    chosen: Result

    @property
    def best(self) -> Result | None:
        """The trial with the best value."""
        finals = self.finals
        place = best_place(finals)
        return None if place is None else finals[place]

    @property
    def finals(self) -> tuple[Result, ...]:
        """The trials among which the best was chosen: of successive halving, those of the last rung."""
        last = max((trial.cell.rung for trial in self.trials), default=0)
        return tuple(trial for trial in self.trials if trial.cell.rung == last)

    def tried(self, name: str) -> set[Any]:
        """The values of a setting that were tried."""
        return {trial.cell.solver.setting(name) for trial in self.trials}


@cached_by_study
def strengths(study: Study) -> Mapping[GroupKey, tuple[str, ...]]:
    """By the key of each group: why its solver was not at its best; empty where it was, or nothing was tuned."""
    if study.experiment.tune is None:
        return {}
    trials = _by_group(study)
    return {key_of(group): tuple(_weaknesses(study, group, trials.get(key_of(group), {}))) for group in study.groups}


def told(study: Study, group: Group) -> str:
    """The strength of a row in words, for the column of that name."""
    if study.experiment.tune is None:
        return FIXED
    return "; ".join(strengths(study)[key_of(group)]) or CERTIFIED


def weaknesses(study: Study) -> list[str]:
    """A line for each solver that was not at its best, with the reasons."""
    found = strengths(study)
    weak = {group.solver.written: found[key_of(group)] for group in study.groups if found.get(key_of(group))}
    return [f"{MARK} {solver} was not shown at its best: {'; '.join(reasons)}" for solver, reasons in weak.items()]


def fair(study: Study, word: str, own: Side, rival: Side) -> tuple[str, str]:
    """The word of a verdict, and the reason if it is open instead, because the loser was not at its best."""
    if word not in (BETTER, WORSE):
        return word, ""
    key, name = rival if word == BETTER else own
    reasons = strengths(study).get(key)
    return (OPEN, f"{name} was not at its best: {reasons[0]}") if reasons else (word, "")


def _by_group(study: Study) -> dict[GroupKey, dict[int, list[Entry]]]:
    """The trials by the key of their group, and by repetition."""
    found: dict[GroupKey, dict[int, list[Entry]]] = {}
    for entry in study.trials:
        cell = entry.cell
        written = tuple((name, value) for name, value in cell.solver.settings if name not in cell.tuned)
        key = (*cell.place.whole.identity, cell.solver.base, written, cell.threads)
        found.setdefault(key, {}).setdefault(cell.place.repetition, []).append(entry)
    return found


def _weaknesses(study: Study, group: Group, trials: Mapping[int, list[Entry]]) -> Iterator[str]:
    """Everything that keeps a group from being certified."""
    if missing := untuned(group.solver, group.tuned):
        yield f"{' and '.join(missing)} {'was' if len(missing) == 1 else 'were'} not tuned"
    ended = {number: tuple(entry.result for entry in own if entry.result) for number, own in trials.items()}
    searches = [Search(ended.get(_searched(study, result), ()), result) for result in group.good]
    entries = [entry for own in trials.values() for entry in own if entry.result]
    if failed := sum(entry.good is None for entry in entries):
        yield f"{failed} of {len(entries)} trials did not end well"
    if group.tuned and searches:
        tune = study.experiment.tune
        assert tune is not None, "only tuned experiments have trials"
        yield from _of_settings(group, searches)
        if not tune.is_whole(group.solver.written):
            yield from _of_trials(searches)
    yield from _of_steps(group, searches)


def _searched(study: Study, result: Result) -> int:
    """The repetition whose trials chose the settings of a result."""
    tune = study.experiment.tune
    return 0 if tune is not None and tune.per == "split" else result.cell.place.repetition


def _of_settings(group: Group, searches: Sequence[Search]) -> Iterator[str]:
    """The settings whose chosen value is the outermost one that was tried, so that a better one may lie beyond."""
    if all(map(_are_alike, searches)):
        yield "all its trials are alike, so that nothing was chosen"
    for name in group.tuned:
        known = [search for search in searches if search.best]
        ends = [end for search in known if (end := _end(search, name))]
        if known and all(len(search.tried(name)) == 1 for search in known):
            yield f"only one value of {name} was tried"
        elif len(ends) > _MOST * len(known):
            yield f"{name} is at the {ends[0]} end of what was tried in {len(ends)} of {len(known)} searches"
        elif name in PENALTIES and all(_is_narrow(search, name) for search in known):
            yield f"{name} was tried within less than a factor of {_NARROW:g}"


def _are_alike(search: Search) -> bool:
    """Whether there are several trials, whose values hardly differ, although training them changed something."""
    if search.best is None or search.best.chosen_budget.steps == 0:  # the start is the best that the solver can do
        return False
    values = [value for result in search.finals if (value := value_of(result)) is not None]
    return len(values) >= _FEWEST_TRIALS and max(values) - min(values) <= _ALIKE * abs(max(values))


def _end(search: Search, name: str) -> str:
    """At which end of the values tried the chosen one lies, in a word; empty if at none that matters."""
    best = search.best
    assert best is not None, "only searches with a best trial are asked"
    if not all(map(_is_number, search.tried(name))):
        return ""
    cells = [result.cell for result in search.trials]
    for side in outermost(best.cell, cells, name):
        if not _is_limit(best.cell.solver, name, side) and not _is_level(search, best, name, side):
            return "lowest" if side < 0 else "highest"
    return ""


def _is_narrow(search: Search, name: str) -> bool:
    """Whether the values tried of a penalty are so close to each other that they hardly differ."""
    tried = search.tried(name)
    return all(map(_is_number, tried)) and max(tried) < _NARROW * min(tried)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_limit(solver: Named, name: str, side: int) -> bool:
    """Whether a solver takes no value beyond the one it has."""
    own: Any = solver.setting(name)
    try:
        with_settings(solver, {name: own + side if isinstance(own, int) else own * 1.001**side})
    except UserError:
        return True
    return False


def _is_level(search: Search, best: Result, name: str, side: int) -> bool:
    """Whether the next value inwards is about as good, so that the ones beyond promise nothing."""
    own, top = best.cell.solver.setting(name), value_of(best)
    inwards = (result for result in search.finals if side * result.cell.solver.setting(name) < side * own)
    inner = [value for result in inwards if (value := value_of(result)) is not None]
    return bool(inner) and top is not None and top - max(inner) <= _FLAT / 2 * abs(top) and not _are_alike(search)


def _of_trials(searches: Sequence[Search]) -> Iterator[str]:
    """Whether the last trials still brought something, or there are too few to tell."""
    fewest = min(len(search.trials) for search in searches)
    if fewest < _FEWEST_TRIALS:
        yield f"it had {fewest} trial{'' if fewest == 1 else 's'}, too few to tell whether more would bring something"
        return
    gains = [_gain(search) for search in searches]
    if fmean(gains) > _MARGIN:
        yield f"its last trials still brought {fmean(gains):.1%}"


def _gain(search: Search) -> float:
    """What the last quarter of the trials brought, relative to the best value; 0 if none came before them."""
    values = [-inf if (value := value_of(result)) is None else value for result in search.finals]
    before, best = max(values[: len(values) - max(1, round(_LAST * len(values)))], default=-inf), max(values)
    return (best - before) / abs(best) if isfinite(before) and best else 0.0


def _of_steps(group: Group, searches: Sequence[Search]) -> Iterator[str]:
    """Whether the last steps of training still changed something, or there are too few to tell."""
    found = [reason for search in searches if (reason := _unsettled(search))]
    if found and len(found) > _MOST * len(group.good):
        yield f"{found[0]} ({len(found)} of {len(group.good)} repetitions)" if len(group.good) > 1 else found[0]


def _unsettled(search: Search) -> str:
    """Why a training is not seen to have converged; empty if it is."""
    judged = _with_patience(search) or search.chosen
    steps, budget = judged.curve[-1].step, judged.cell.budget
    if judged.stopped == "solver" or ((budget.patience or budget.tolerance) and _ended_early(judged)):
        return ""
    if steps < _FEWEST_STEPS:
        return f"it took {steps} step{'' if steps == 1 else 's'}, too few to tell whether more would change it"
    measure = judged.cell.measures[0]
    points = [(point.step, judged.value_at(point, measure.label)) for point in judged.curve]
    before = [value for step, value in points if _FEWEST_STEPS / 2 <= step <= (1 - _LAST) * steps]
    if not before:
        return "it was evaluated at its end alone, which does not tell whether more steps would change it"
    change = abs(points[-1][1] - before[-1]) / max(abs(points[-1][1]), 1e-12)
    return f"its last quarter of {steps} steps still changed {measure.label} by {change:.1%}" if change > _FLAT else ""


def _with_patience(search: Search) -> Result | None:
    """The best trial of a search whose trials end by patience, and whose steps the solver then took."""
    best = search.best
    return best if best is not None and best.cell.budget.patience is not None else None


def _ended_early(result: Result) -> bool:
    """Whether a training ended before its budget of steps or seconds did."""
    budget, last = result.cell.budget, result.curve[-1]
    return (budget.steps is None or last.step < budget.steps) and (
        budget.seconds is None or last.seconds < budget.seconds
    )
