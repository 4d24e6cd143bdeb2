"""The compiled kernels: arrays in, arrays out; each has its formulas in pyx/.

OpenMP is told, before any of them loads it, that threads which wait for the end of a round sleep: where other
programs run too, spinning threads take the cores from those that are waited for, and rounds get many times
slower. A value of OMP_WAIT_POLICY that is set already is kept.

A process that forks first ends its waiting threads: the new process would not have them, and wait for them for ever.
"""

import os
import sys

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before the next line, which loads OpenMP

try:
    from rankbench.kernels import build_info, level
    from rankbench.kernels.shared.parallel import end_threads
except ImportError as error:
    how = "install rankbench again; in a checkout: python -m pip install -e ."
    raise ImportError(f"the kernels of rankbench are not compiled for {sys.executable}: {how}") from error

LEVELS = level.usable(build_info.processor_has)  # the instruction sets that kernels can be imported with here
LEVEL = level.choose(LEVELS)  # the one of this process
level.enter(LEVEL)
os.register_at_fork(before=end_threads)
