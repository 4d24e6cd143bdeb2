"""A stored plan beside the one that its experiment makes now: what was left out, added or changed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from rankbench import experiments
from rankbench.checks.findings import Finding, failed, not_applicable
from rankbench.core.errors import UserError
from rankbench.planning.materials import Materials
from rankbench.planning.plan import plan
from rankbench.planning.tuning import settled
from rankbench.records.cells import SOURCES, Cell, Selection, Skip
from rankbench.records.plans import Plan, Search
from rankbench.records.results import Result
from rankbench.records.studies import Study

_PART = "accept a part of an experiment, or one with other settings, with --partial"


@dataclass(frozen=True)
class Planned:
    """What planning the experiment again gives: its searches, and what differs from the stored plan."""

    searches: tuple[Search, ...]
    findings: tuple[Finding, ...]
    left_out: tuple[Finding, ...]  # what a run of a part of the experiment explains
    cells: Mapping[str, Cell]  # by key, the cells and trials that the experiment makes here


def planned_again(study: Study, materials: Materials) -> Planned:
    """Plan a study's experiment again, with the settings that the stored trials decide, and compare."""
    stored = study.plan
    if study.is_judged:
        why = "other tools wrote these runs: rankbench judge prints the same numbers from the same files"
        return Planned((), (not_applicable("cells", why),), (), {})
    problems: list[str] = []
    made = list(_made_again(stored, study.by_key, materials, problems))
    skips = list(dict.fromkeys(skip for one in made for skip in one.skips))
    here = [cell for cell in stored.everything if made and not any(skip.covers(cell.parts) for skip in skips)]
    fresh = {cell.key: cell for one in made for cell in one.everything}
    away = [cell for cell in stored.everything if cell not in here]
    findings = [*_of_measures(stored, made), *_of_cells(here, fresh), *_of_failures(stored, made)]
    return Planned(
        searches=tuple(search for one in made for search in one.searches),
        findings=(*findings, *_not_here(away, skips, problems)),
        left_out=(*_of_experiment(stored), *_missing(stored, fresh.values()), *_of_skips(stored, skips, made)),
        cells=fresh,
    )


def _not_here(cells: Iterable[Cell], skips: Sequence[Skip], problems: Sequence[str]) -> Iterator[Finding]:
    """What cannot be run again on this machine, by its reason; `problems` are those of planning."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        reasons = (skip.text for skip in skips if skip.covers(cell.parts))
        found.setdefault(next(reasons, "; ".join(problems)), []).append(cell)
    for reason, members in found.items():
        yield not_applicable("cells", f"{len(members)} cannot be run again here: {reason}")


def _made_again(
    stored: Plan, by_key: Mapping[str, Result], materials: Materials, problems: list[str]
) -> Iterator[Plan]:
    """The plan of the stored experiment for each number of threads that it was run with, or why it cannot be made."""
    asked = (*(Skip(cell.place.data, cell.place.split, cell.solver, "") for cell in stored.planned), *stored.skips)
    repetitions = max((cell.place.repetition + 1 for cell in stored.planned), default=None)
    for threads in [1] if stored.experiment.threads else dict.fromkeys(cell.threads for cell in stored.planned):
        selection = Selection(
            solvers=_with_others(stored.experiment.solvers, [one.solver.written for one in asked if one.solver]),
            data=_with_others(stored.experiment.data, [one.data.written for one in asked]),
            repetitions=repetitions,
            seed=stored.seed,
            threads=threads,
            full=stored.profile == "full",
            redraw=tuple(source for source in SOURCES if source not in stored.held),
        )
        try:
            found = plan(stored.experiment, selection, materials)
        except UserError as error:
            problems.append(str(error))
            continue
        yield settled(found, lambda cell: by_key.get(cell.key))


def _with_others(own: tuple[str, ...], stored: Sequence[str]) -> tuple[str, ...]:
    """The experiment's own names, and those that were run besides; none stands for its own alone."""
    others = dict.fromkeys(name for name in stored if name not in own)
    return (*own, *others) if others else ()


def _of_measures(stored: Plan, made: Sequence[Plan]) -> Iterator[Finding]:
    if any(one.measures != stored.measures for one in made):
        yield failed("plan", "its metrics are not those of its experiment", "")


def _of_cells(stored: Sequence[Cell], fresh: Mapping[str, Cell]) -> Iterator[Finding]:
    """The stored cells that the experiment does not make so, with the first part that differs."""
    by_slot = {cell.slot: cell for cell in fresh.values()}
    for cell in stored:
        like = fresh.get(cell.key) or by_slot.get(cell.slot)
        if like is None:
            yield failed("plan", f"{cell.label} is no cell of its experiment", "")
        elif like.key != cell.key:
            now, then = like.content, cell.content
            parts = [name for name in then if then[name] != now.get(name)]
            yield failed("plan", f"{cell.label} has another {', '.join(parts)} than its experiment makes now", "")
        elif like != cell and not cell.place.data.is_own_file:
            parts = [one.name for one in fields(Cell) if getattr(like, one.name) != getattr(cell, one.name)]
            yield failed(
                "plan", f"{cell.label} is described otherwise than its experiment does: {', '.join(parts)}", ""
            )


def _of_skips(stored: Plan, skips: Sequence[Skip], made: Sequence[Plan]) -> Iterator[Finding]:
    """What the stored plan says was skipped, and its experiment does not skip here, or for another reason."""
    for skip in stored.skips if made else ():
        reasons = [one.text for one in skips if _part(one) == _part(skip)]
        if not reasons:
            yield failed("plan", f"its experiment does not skip here: {skip.text}", _PART)
        elif skip.text not in reasons:
            yield not_applicable("plan", f"it says {skip.text}, and its experiment here {reasons[0]}")


def _part(skip: Skip) -> tuple[object, ...]:
    """What a skip leaves out, and whether that is an error."""
    split, solver = skip.split and skip.split.identity, skip.solver and skip.solver.base
    return skip.data.identity, split, solver, skip.failed


def _of_failures(stored: Plan, made: Sequence[Plan]) -> Iterator[Finding]:
    """The cells that are said to have no settings, where the stored trials do not say so."""
    now = {slot: reason for one in made for slot, reason in one.reasons.items()}
    for failure in stored.failures if made else ():
        if now.get(failure.cell.slot) != failure.reason:
            yield failed("plan", f"{failure.cell.label} is said to have failed in its trials, which do not say so", "")


def _of_experiment(stored: Plan) -> Iterator[Finding]:
    """In which fields the stored experiment is not the one of the package or of the user's file."""
    own = stored.experiment
    try:
        if own.source and not Path(own.source).is_file():
            raise UserError("its file is not here")
        known = experiments.load(own.source or own.name, stored.profile == "full")
    except UserError:
        where = "the file that it was read from is not here" if own.source else "the package has none of this name"
        yield not_applicable("experiment", f"its settings are taken as they are stored: {where}")
        return
    if parts := [one.name for one in fields(own) if getattr(own, one.name) != getattr(known, one.name)]:
        yield failed("experiment", f"it is not the one of {own.source or 'the package'} in: {', '.join(parts)}", _PART)


def _missing(stored: Plan, fresh: Iterable[Cell]) -> Iterator[Finding]:
    """How many cells and trials of the experiment the stored plan does not have, with the first of them."""
    known = {cell.slot for cell in stored.everything}
    missing = [cell for cell in fresh if cell.slot not in known]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield failed("plan", f"it leaves out {missing[0].label}{more}", _PART)


def without_part(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings of a part of an experiment, once it is accepted as one."""
    return tuple(replace(one, outcome="not applicable", remedy="") for one in findings)
