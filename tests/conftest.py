"""Settings for all tests: full assertion messages from the inherited solver tests, no hypothesis deadlines.

BLAS has one thread, and threads of kernels sleep while they wait, unless the environment says otherwise: several test
processes on as many cores would wait for each other's threads. The half million objects of the collected tests stay as
long as they run, so that Python's garbage collector, which takes half a second to look at them, need not look at them.
"""

import gc
import os

import coverage
import pytest
from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported, which the tests do
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when the first kernel is imported
pytest.register_assert_rewrite("solvers.contract")
settings.register_profile("rankbench", deadline=None)
settings.load_profile("rankbench")


gc.disable()  # until the tests are collected


def pytest_collection_finish() -> None:
    """Collect garbage again, but not among what there is already."""
    gc.enable()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Save what coverage has measured, if it does: xdist kills a worker that takes long to do so when it exits."""
    if running := coverage.Coverage.current():
        running.save()
