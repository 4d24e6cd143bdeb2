"""BLAS has one thread within the context, and as many as before outside."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy, scipy.linalg.blas
from threadpoolctl import threadpool_info
from rankbench.core.blas import one_blas_thread

def threads():
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}

with one_blas_thread():
    within = threads()
print(within, threads())
"""


@pytest.mark.slow
def test_blas_has_one_thread_within_the_context_alone():
    told = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", PROGRAM], env=told, capture_output=True, text=True, check=True)
    assert found.stdout == "{1} {2}\n"
