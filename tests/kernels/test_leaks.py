"""A thousand fits of each solver in one process leave no more memory in use than two hundred."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers import OWN_SOLVERS

HERE = Path(__file__).parents[1]
MEGABYTE = 1 << 20
PROGRAM = """
import gc, sys, tracemalloc
from itertools import islice
import numpy as np
from rankbench.data.views import Ratings, offer
from rankbench.core.blas import one_blas_thread
from rankbench.solvers import SOLVERS
from rankbench.core.streams import stream

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

def fit(seed):
    for step in islice(solver.steps(train, stream(seed), 2), 3):
        if step.objective:
            step.objective()
        step.model.score(users, items)

rng = np.random.default_rng(0)
users, items = np.nonzero(rng.random((9, 11)) < 0.6)
values = rng.integers(1, 6, len(users)).astype(float)
ratings = Ratings.from_triples(users, items, values, 9, 11, rng.standard_normal((11, 3)))
first, later, traced_fits = map(int, sys.argv[1:4])
for name in sys.argv[4:]:
    solver = SOLVERS.make(name + ("[rank=2]" if name in ("frsvm", "imc") else ""))
    train = offer(solver, ratings)
    with one_blas_thread():
        for seed in range(first):
            fit(seed)
        gc.collect()
        before = resident()
        for seed in range(later):
            fit(seed)
        gc.collect()
        grown = resident() - before
        tracemalloc.start()
        fit(0)
        gc.collect()
        traced = []
        for _ in range(3):  # what NumPy and Python keep for later is seen as it is renewed; what leaks grows in all
            before = tracemalloc.get_traced_memory()[0]
            for seed in range(traced_fits):
                fit(seed)
            gc.collect()
            traced.append(tracemalloc.get_traced_memory()[0] - before)
        tracemalloc.stop()
        print(name, grown, min(traced))
"""


def grown(names: Sequence[str], first: int, later: int, traced_fits: int) -> list[str]:
    """The solvers that leave memory behind: bytes of the process in the later fits, or objects in some more."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, (first, later, traced_fits)), *names],
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = [line.split() for line in done.stdout.splitlines()]
    assert [name for name, *_ in told] == list(names)
    return [
        name for name, resident, traced in told if int(resident) >= 2 * MEGABYTE or int(traced) >= 1000 * traced_fits
    ]


@pytest.mark.slow
@pytest.mark.one_in(4)
@pytest.mark.parametrize("part", range(4))
def test_fits_leave_no_objects_behind(part):
    assert not grown(OWN_SOLVERS[part::4], first=10, later=30, traced_fits=4)


@pytest.mark.trust
@pytest.mark.parametrize("name", OWN_SOLVERS)
def test_a_thousand_fits_leave_no_memory_behind(name):
    assert not grown([name], first=200, later=800, traced_fits=20)
