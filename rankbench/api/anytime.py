"""A comparison as an anytime run: cheap solvers first, a verdict after each part, and an end when the time is up."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic

import psutil

from rankbench.api.session import Session
from rankbench.execution.run import Run, TimeIsUp
from rankbench.experiments import Experiment
from rankbench.own_data.contestants import tiers
from rankbench.planning.materials import Materials
from rankbench.records.cells import Cell
from rankbench.records.studies import Study
from rankbench.report.render.answer import answer

_AT_ONCE = 2  # groups of cheap solvers whose repetitions all come before the solvers of the next group
_ROWS_A_SECOND = 20_000 / 60  # of a data set, in the time that a comparison takes unless the user says otherwise
_SHORTEST, _LONGEST = 60.0, 1800.0
_MOST_JOBS = 8


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
    """The parts in their order: the first repetition of the cheapest solvers, all others of cheap ones, dear ones."""
    by_cost = tiers(solvers)
    cheap = tuple(solver for tier in by_cost[:_AT_ONCE] for solver in tier)
    found = [Part(0, tier) for tier in by_cost[:_AT_ONCE]]
    found += [Part(repetition, cheap) for repetition in range(1, repetitions)]
    return [*found, *(Part(number, tier) for tier in by_cost[_AT_ONCE:] for number in range(repetitions))]


def compared(session: Session, experiment: Experiment, seconds: float | None, materials: Materials) -> Finished:
    """Run a comparison part by part within these seconds; the verdict so far is said after each part."""
    deadline = None if seconds is None else monotonic() + seconds
    timed = replace(session, conditions=replace(session.conditions, deadline=deadline))
    run = timed.prepared(experiment, materials)
    return finished(timed, run)


def finished(session: Session, run: Run) -> Finished:
    """Run the parts of a prepared comparison until all are done or its deadline is over."""
    run.open()
    experiment = run.plan.experiment
    total, said = len(run.to_run), ""
    try:
        with session.display.progress(experiment.name, total) as tell:
            for part in _pending(run, parts(experiment.solvers, experiment.repetitions)):
                run.execute(tell, part.has)
                if (found := answer(run.study())) != said:  # the same sentence again says nothing new
                    session.display.say(f"so far, {_done(run.study())}: {found}.")
                    said = found
    except TimeIsUp:
        pass
    return Finished(run.study(), _missing(run))


def _pending(run: Run, listed: Sequence[Part]) -> Iterator[Part]:
    """The parts of which something has still to run."""
    return (part for part in listed if any(map(part.has, run.to_run)))


def _done(study: Study) -> str:
    """How much of a study is done, in words."""
    good = sum(entry.result is not None for entry in study.entries)
    return f"{good} of {len(study.entries)} trainings"


def _missing(run: Run) -> str:
    """Which solvers did not finish, and about how long they would take."""
    repetitions: dict[str, set[int]] = {}
    for cell in run.to_run:
        repetitions.setdefault(cell.solver.written, set()).add(cell.place.repetition)
    if not repetitions:
        return ""
    names = ", ".join(f"{name} ({len(found)} of {run.plan.experiment.repetitions} repetitions)"
                      for name, found in repetitions.items())  # fmt: skip
    seconds, unknown = run.estimate()
    more = f"{'more than' if unknown else 'about'} {_words(seconds / run.conditions.jobs)}" if seconds else "more time"
    return f"not finished in the time: {names}; {more} would finish them (--time none, or a longer one, goes on)"


def _words(seconds: float) -> str:
    """A duration in words."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
