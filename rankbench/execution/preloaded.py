"""What the fork server imports before it forks, so that no cell's process takes the time to load it itself."""

import codecs
import gc
import importlib
import sys

from rankbench.core import blas
from rankbench.execution import variables
from rankbench.solvers import SOLVERS

variables.restore()
_SOLVERS = [entry.partition(":")[0] for entry in SOLVERS.entries.values()]

for _module in ("rankbench.execution.supervisor", "multiprocessing.popen_forkserver", *_SOLVERS):
    importlib.import_module(_module)
for _encoding in ("ascii", "cp437"):  # of the names in zip files, as which models are stored
    codecs.lookup(_encoding)
blas.loaded(len(sys.modules))
gc.freeze()  # else a collection in a cell would copy every page that its process shares with the server
