"""What the fork server imports before it forks, so that no cell's process takes the time to load it itself."""

import codecs
import importlib
import multiprocessing.popen_forkserver  # which multiprocessing imports in every process that the server forks
import sys

from rankbench import blas
from rankbench.harness import keeper
from rankbench.solvers import SOLVERS

__all__ = ["keeper", "multiprocessing"]

for _entry in SOLVERS.entries.values():
    importlib.import_module(_entry.partition(":")[0])
for _name in ("ascii", "cp437"):  # of the names in zip files, as which splits are stored
    codecs.lookup(_name)
blas.loaded(len(sys.modules))
