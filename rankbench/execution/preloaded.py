"""What the fork server does before it forks, to save each cell's process the time: it imports all, and rehearses."""

import codecs
import gc
import importlib
import pickle
import sys
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np

from rankbench import metrics
from rankbench.core import blas
from rankbench.data.splits import Split
from rankbench.data.views import Ratings
from rankbench.execution import variables
from rankbench.execution.worker import Ended, Task, work
from rankbench.experiments import Budget
from rankbench.names import Named
from rankbench.records.cells import Cell, Measure, Place
from rankbench.records.results import Point
from rankbench.solvers import SOLVERS


def made_up() -> tuple[Task, Split]:
    """The task of a small cell, and its split."""
    solver, nothing = SOLVERS.resolve("mf[rank=2]"), Named("", "", (), (), "", "", "")
    cell = Cell(
        place=Place(nothing, nothing, 0),
        split_hash="",
        seed=0,
        solver=solver,
        version=solver.record.version,
        determinism=solver.record.determinism,
        measures=(Measure.of(metrics.metric("ndcg@10")),),
        budget=Budget(steps=2),
        every=1,
        objective=True,
        threads=1,
    )
    users, items = np.divmod(np.arange(64), 8)
    ratings = Ratings.from_triples(users, items, users * items % 5.0)
    trained = (ratings.users + ratings.items) % 2 == 0
    return Task(cell, Path()), Split(ratings.where(trained), ratings.where(~trained))


def rehearse(task: Task, split: Split) -> Ended:
    """Run a task here as a cell's process does: what runs for the first time takes longer.

    In a forked process it also copies the memory that it writes to.
    """

    def send(message: Point | Ended) -> None:
        ForkingPickler.dumps(message)

    ended = work(send, pickle.loads(pickle.dumps(task)), lambda _: split)
    send(ended)
    return ended


variables.restore()
_SOLVERS = [entry.partition(":")[0] for entry in SOLVERS.entries.values()]

for _module in ("rankbench.execution.supervisor", "multiprocessing.popen_forkserver", *_SOLVERS):
    importlib.import_module(_module)
for _encoding in ("ascii", "cp437"):  # of the names in zip files, as which models are stored
    codecs.lookup(_encoding)
blas.loaded(len(sys.modules))
if sys.platform == "linux":  # some BLAS of other systems are lost in a process that is forked after they were called
    with suppress(Exception):  # what fails here fails in the cells, too, which tell of it
        rehearse(*made_up())
gc.freeze()  # else a collection in a cell would copy every page that its process shares with the server
