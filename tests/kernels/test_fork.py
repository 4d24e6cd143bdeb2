"""A process that has run kernels with several threads may be forked: the new one trains too, with the same bits."""

import multiprocessing
import sys

import pytest
from kernels.test_fuzzed_kernels import python
from solvers.contract import ratings

import rankbench
from rankbench.kernels.shared.parallel import end_threads

PROGRAM = """
import os, signal, sys
import numpy as np
from solvers.contract import ratings
import rankbench

def trained(name, threads):
    return rankbench.fit(rankbench.solvers.SOLVERS.make(name), ratings(), steps=2, seed=0, threads=threads)

def bytes_of(model):
    return model.score(*np.divmod(np.arange(20), 5)).tobytes()

name = sys.argv[1]
before = bytes_of(trained(name, 2))
child = os.fork()
if child == 0:
    signal.alarm(30)  # ends a process that waits for threads
    os._exit(0 if bytes_of(trained(name, 2)) == before and len(os.listdir("/proc/self/task")) >= 2 else 1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(code, bytes_of(trained(name, 2)) == before)
"""


@pytest.mark.trust
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads in /proc")
@pytest.mark.parametrize("name", ["mf[rank=2]", "altsvm[rank=2]", "lcr[rank=1,anchors=2]"])
def test_a_forked_process_trains_with_threads_and_the_same_bits(name):
    done = python("-c", PROGRAM, name, seconds=120)
    assert done.stdout == "0 True\n", done.stderr[-2000:]


def _trained(threads):
    """The bytes of a model; a function that another process finds by name."""
    fitted = rankbench.fit(rankbench.MF(rank=2), ratings(), steps=2, seed=0, threads=threads)
    return fitted.score([0, 1, 2], [0, 1, 2]).tobytes()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
def test_multiprocessing_that_forks_trains_too():
    here = _trained(2)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_trained, [1, 2, 3]).get(60) == [here] * 3


def test_threads_end_and_start_anew():
    here = _trained(2)
    end_threads()
    end_threads()
    assert _trained(2) == here
