"""How long cells will take by the clock: a driver's way of handing them out, played through with their seconds."""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapreplace
from statistics import median

from rankbench.execution.run import Run
from rankbench.records.cells import Cell

HANDING = 0.005  # seconds that a driver takes to hand out a cell and to store its result


@dataclass(frozen=True)
class Job:
    """A cell to run: its key, how long it takes, the trial that it starts from, and whether it is alone on its node."""

    key: str
    seconds: float
    before: str | None = None
    alone: bool = False


def clock_seconds(jobs: Iterable[Job], places: int, nodes: int = 1, handing: float = HANDING) -> float:
    """The seconds until all jobs have ended that begin in this order on so many places of so many nodes.

    A job begins when a place is free. One that starts from another waits for it, and those after it wait with it. Jobs
    that run alone on their nodes wait for all before them, and all after them wait for them.
    """
    free, alone = [0.0] * places, False  # when each place is free again, as a heap
    ends: dict[str | None, float] = {}
    now = 0.0
    for job in jobs:
        if job.alone != alone:
            free, alone = [max(free)] * (nodes if job.alone else places), job.alone
        now = max(now + handing, ends.get(job.before, 0.0) + handing, free[0])
        ends[job.key] = now + job.seconds
        heapreplace(free, ends[job.key])
    return max(free)


def estimate(run: Run) -> tuple[float, int]:
    """The seconds until all pending cells of a run will have ended, and how many of them these seconds leave out.

    So many run at a time as `jobs` says. A cell is taken to last as long as the stored ones of its solver did, and as
    long as it had when it was given up; left out are those of which neither is known.
    """
    walls: dict[str, list[float]] = {}
    for cell in (*run.plan.cells, *run.plan.trials):
        if result := run.result(cell):
            walls.setdefault(cell.solver.base, []).append(result.wall)
    usual = {base: median(seconds) for base, seconds in walls.items()}
    seconds, unknown = 0.0, len(run.to_run)
    for cells in (run.pending_trials, (*run.pending, *run.plan.undecided)):
        known = {cell.key: max(usual.get(cell.solver.base, 0.0), run.given_up.get(cell.key, 0.0)) for cell in cells}
        jobs = [_job(run, cell, known[cell.key]) for cell in cells if known[cell.key]]
        seconds += clock_seconds(jobs, run.conditions.jobs)
        unknown -= len(jobs)
    return seconds, unknown


def _job(run: Run, cell: Cell, seconds: float) -> Job:
    before = run.paths.before(cell)
    return Job(cell.key, seconds, before.key if before else None, run.runs_alone(cell))
