"""A comparison as an anytime run: cheap solvers first, a verdict after each part, and an end when the time is up.

As long as solvers have not begun, no part takes more of the time that is left than an equal share of it for each of its
solvers; one that would goes on after all others. Without this, one slow search would keep all solvers behind it from
any verdict. The solvers that any other should beat are the first part, which may take all the time there is: so even a
short one ends with something to say.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from math import inf
from time import monotonic

import psutil

from rankbench.api.session import Session
from rankbench.execution.forecast import estimate
from rankbench.execution.run import Run, Tell, TimeIsUp
from rankbench.experiments import Experiment
from rankbench.experiments.usual_spaces import FLOORS
from rankbench.own_data.contestants import tiers
from rankbench.planning.materials import Materials
from rankbench.records.cells import Cell
from rankbench.records.studies import Study
from rankbench.report.render.answer import answer

_AT_ONCE = 2  # groups of cheap solvers whose repetitions all come before the solvers of the others
_ROWS_A_SECOND = 20_000 / 60  # of a data set, in the time that a comparison takes unless the user says otherwise
_SHORTEST, _LONGEST = 60.0, 1800.0
_MOST_JOBS = 8
_PAUSE = 2.0  # seconds between two verdicts so far, at least
_AT_THE_END = 4.0  # seconds of a comparison for its last verdict, the model and the report; a tenth of a shorter one


@dataclass(frozen=True)
class Part:
    """A part of a comparison: some solvers in one repetition."""

    repetition: int
    solvers: tuple[str, ...]

    def has(self, cell: Cell) -> bool:
        """Whether a cell or a trial belongs to it."""
        return cell.place.repetition == self.repetition and cell.solver.written in self.solvers


@dataclass(frozen=True)
class Finished:
    """What came of a comparison, and what is missing of it."""

    study: Study
    missing: str  # a sentence about the solvers that did not finish, and the time that they need; empty if all did


def cores() -> int:
    """How many trainings a comparison runs at a time, unless the user says otherwise: one on each core."""
    return min(psutil.cpu_count() or 1, _MOST_JOBS)


def usual_seconds(rows: int) -> float:
    """The seconds of a comparison on so many rows, unless the user says otherwise: a minute, or more for more rows."""
    return min(max(rows / _ROWS_A_SECOND, _SHORTEST), _LONGEST)


def parts(solvers: Sequence[str], repetitions: int) -> list[Part]:
    """The parts in their order: the first repetition of each cheap solver, their others, dear solvers one by one."""
    groups = tiers(solvers)
    floors = tuple(solver for solver in groups[0] if _is_floor(solver))
    others = tuple(solver for solver in groups[0] if solver not in floors)
    cheap, dear = (tuple(chain(*some)) for some in (groups[:_AT_ONCE], groups[_AT_ONCE:]))
    first = (floors, others, *((solver,) for solver in chain(*groups[1:_AT_ONCE])))
    found = [Part(0, some) for some in first if some]
    found += [Part(number, cheap) for number in range(1, repetitions)]
    return [*found, *(Part(number, (solver,)) for solver in dear for number in range(repetitions))]


def _is_floor(solver: str) -> bool:
    """Whether a solver is one of those that any other should beat."""
    return solver.partition("[")[0] in FLOORS


def compared(session: Session, experiment: Experiment, seconds: float | None, materials: Materials) -> Finished:
    """Run a comparison part by part within these seconds; verdicts so far are said, not more often than `_PAUSE`."""
    deadline = None if seconds is None else monotonic() + seconds - min(seconds / 10, _AT_THE_END)
    timed = replace(session, conditions=replace(session.conditions, deadline=deadline))
    run = timed.prepared(experiment, materials)
    return finished(timed, run)


def finished(session: Session, run: Run) -> Finished:
    """Run the parts of a prepared comparison until all are done or its deadline is over."""
    run.open()
    experiment, said, not_before = run.plan.experiment, "", -inf
    with suppress(TimeIsUp), session.display.progress(experiment.name, len(run.to_run)) as tell:
        for _ in _turns(run, tell, parts(experiment.solvers, experiment.repetitions)):
            if monotonic() < not_before:
                continue
            study = run.study()
            if (found := answer(study)) != said:  # the same again says nothing new
                done = sum(entry.result is not None for entry in study.entries)
                session.display.say(f"so far, {done} of {len(study.entries)} trainings: {found}.")
                said, not_before = found, monotonic() + _PAUSE
    return Finished(run.study(), _missing(run))


def _turns(run: Run, tell: Tell, listed: Sequence[Part]) -> Iterator[None]:
    """Run the parts in turn, and what is left of those that took more than their share of the time after all others."""
    slow: list[str] = []
    for number, each in enumerate(listed):
        part = replace(each, solvers=tuple(solver for solver in each.solvers if solver not in slow))
        if _is_pending(run, part):
            slow += _overdue(run, tell, part, _end_of_turn(run.conditions.deadline, part, listed[number + 1 :]))
            yield
    for part in (Part(each.repetition, (solver,)) for solver in slow for each in listed if solver in each.solvers):
        if _is_pending(run, part):
            run.execute(tell, part.has)
            yield


def _is_pending(run: Run, part: Part) -> bool:
    """Whether something of a part has still to run."""
    return any(map(part.has, run.to_run))


def _end_of_turn(deadline: float | None, part: Part, later: Sequence[Part]) -> float | None:
    """When a part has had its share of the time that is left, which it shares with solvers that have not begun."""
    waiting = sum(len(one.solvers) for one in later if one.repetition == 0)
    if deadline is None or not waiting or all(map(_is_floor, part.solvers)):
        return deadline
    left = deadline - monotonic()
    return deadline - left * waiting / (len(part.solvers) + waiting)


def _overdue(run: Run, tell: Tell, part: Part, until: float | None) -> list[str]:
    """Run a part until its turn ends; the solvers that have not come to its end by then."""
    given = run.conditions
    run.conditions = replace(given, deadline=until)
    try:
        run.execute(tell, part.has)
    except TimeIsUp:
        return [solver for solver in part.solvers if _is_pending(run, replace(part, solvers=(solver,)))]
    finally:
        run.conditions = given
    return []


def _missing(run: Run) -> str:
    """Which solvers did not finish, and about how long they would take, or at least, where a training was given up."""
    repetitions: dict[str, set[int]] = {}
    to_run = run.to_run
    for cell in to_run:
        repetitions.setdefault(cell.solver.written, set()).add(cell.place.repetition)
    if not repetitions:
        return ""
    names = ", ".join(f"{name} ({len(found)} of {run.plan.experiment.repetitions} repetitions left)"
                      for name, found in repetitions.items())  # fmt: skip
    seconds, unknown = estimate(run)
    words = f"{seconds:.2g} s" if seconds < 90 else f"{seconds / 60:.0f} min"
    least = "more than" if any(cell.key in run.given_up for cell in to_run) else "about"
    about = f"{least} {words}" if seconds else "an unknown time"
    rest = f", without {unknown} trials and trainings of unknown length" if seconds and unknown else ""
    return f"not finished in the time: {names}; to go: {about}{rest} (--time none, or a longer one, goes on)"
