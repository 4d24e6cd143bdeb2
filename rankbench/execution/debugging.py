"""Running one cell in this process, without isolation or limits: for a debugger, and for a profile."""

import cProfile
import pstats
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rankbench.core.errors import UserError
from rankbench.core.temporary import own_folder
from rankbench.execution.worker import Ended, Task, work
from rankbench.experiments import Budget, Experiment
from rankbench.metrics import metric
from rankbench.planning.materials import Materials
from rankbench.planning.plan import plan
from rankbench.records.cells import Cell, Selection
from rankbench.records.results import Point

_SHOWN = 15  # functions of a profile


@dataclass(frozen=True)
class Function:
    """A function in a profile: where it stands, how often it was called, its own seconds and those with its calls."""

    name: str
    calls: int
    own: float
    total: float


def cell_of(solver: str, data: str, split: str, measure: str, steps: int) -> tuple[Cell, Materials]:
    """The cell of one training, and the materials that have its split."""
    experiment = Experiment(
        name="check",
        title=f"{solver} on {data}",
        about="One training in this process.",
        data=(data,),
        splits=(split,),
        solvers=(solver,),
        metrics=(metric(measure).label,),
        repetitions=1,
        budget=Budget(steps=steps),
    )
    materials = Materials(0)
    made = plan(experiment, Selection(), materials)
    if not made.cells:
        raise UserError(made.skips[0].text)
    return made.cells[0], materials


def run_here(cell: Cell, materials: Materials) -> tuple[list[Point], Ended]:
    """Train and evaluate a cell in this process; an exception of the solver goes on to the caller."""
    points: list[Point] = []
    with _task(cell, materials) as task:
        return points, work(points.append, task)


def profiled(cell: Cell, materials: Materials) -> tuple[list[Point], list[Function]]:
    """The points of a cell that was run here, and the functions that took most time of their own, longest first."""
    profile, points = cProfile.Profile(), list[Point]()
    with _task(cell, materials) as task:
        profile.runcall(work, points.append, task)
    table = pstats.Stats(profile).get_stats_profile().func_profiles
    found = [
        Function(
            _place(name, one.file_name, one.line_number), int(one.ncalls.partition("/")[0]), one.tottime, one.cumtime
        )
        for name, one in table.items()
    ]
    return points, sorted(found, key=lambda one: -one.own)[:_SHOWN]


@contextmanager
def _task(cell: Cell, materials: Materials) -> Iterator[Task]:
    """The task of a cell, with its split in a file."""
    with TemporaryDirectory(dir=own_folder()) as folder:
        path = Path(folder) / "split.npz"
        materials.write(cell.place, path)
        yield Task(cell, path)


def _place(name: str, file: str, line: int) -> str:
    """A function with the last two parts of its file's path."""
    return name if file == "~" else f"{'/'.join(Path(file).parts[-2:])}:{line} {name}"
