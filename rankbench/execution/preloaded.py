"""What the fork server does first, to save each cell's process the time: it imports all, and runs a made-up cell."""

import codecs
import gc
import importlib
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from rankbench.core import blas
from rankbench.data.splits import Split
from rankbench.data.views import Ratings
from rankbench.execution import variables
from rankbench.execution.worker import Ended, Task, work
from rankbench.experiments import Budget
from rankbench.metrics import metric
from rankbench.names import Named
from rankbench.records.cells import Cell, Measure, Place
from rankbench.solvers import SOLVERS


def rehearse() -> Ended:
    """Train and evaluate a small made-up model as the process of a cell does, and return what that would send.

    What runs for the first time fills caches, and in a forked process it also copies the memory that it writes to.
    """
    solver, made_up = SOLVERS.resolve("mf[rank=2]"), Named("", "", (), (), "", "", "")
    cell = Cell(
        place=Place(made_up, made_up, 0),
        split_hash="",
        seed=0,
        solver=solver,
        version=solver.record.version,
        determinism=solver.record.determinism,
        measures=(Measure.of(metric("ndcg@10")),),
        budget=Budget(steps=2),
        every=1,
        objective=True,
        threads=1,
    )
    users, items = np.divmod(np.arange(64), 8)
    ratings = Ratings.from_triples(users, items, users * items % 5.0)
    trained = (ratings.users + ratings.items) % 2 == 0
    split = Split(ratings.where(trained), ratings.where(~trained))
    return work(lambda point: None, Task(cell, Path()), lambda path: split)


variables.restore()
_SOLVERS = [entry.partition(":")[0] for entry in SOLVERS.entries.values()]

for _module in ("rankbench.execution.supervisor", "multiprocessing.popen_forkserver", *_SOLVERS):
    importlib.import_module(_module)
for _encoding in ("ascii", "cp437"):  # of the names in zip files, as which models are stored
    codecs.lookup(_encoding)
blas.loaded(len(sys.modules))
if sys.platform == "linux":  # some BLAS of other systems are lost in a process that is forked after they were called
    with suppress(Exception):  # what fails here fails in the cells, too, which tell of it
        rehearse()
gc.freeze()  # else a collection in a cell would copy every page that its process shares with the server
