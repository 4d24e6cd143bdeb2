"""What the fork server has ready before it forks the cells' processes."""

import os
import subprocess
import sys
from importlib.util import find_spec
from multiprocessing import forkserver

import pytest

from rankbench.execution import isolation
from rankbench.solvers import SOLVERS

LOOK = """
import gc, sys
import rankbench.execution.preloaded
print(gc.get_freeze_count() > len(gc.get_objects()))
from rankbench.core import blas
print(*sys.modules, blas.loaded.cache_info().currsize)
before = blas.loaded.cache_info().misses
with blas.one_blas_thread():
    print(blas.loaded.cache_info().misses - before)
import wave
with blas.one_blas_thread():
    print(blas.loaded.cache_info().misses - before)
"""


@pytest.mark.slow
def test_the_fork_server_imports_every_solver_and_has_looked_for_blas_but_imports_nothing_that_draws():
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    frozen, first, *_, unchanged, imported = done.stdout.splitlines()
    *modules, looked = first.split()
    assert {entry.partition(":")[0] for entry in SOLVERS.entries.values()} <= set(modules)
    assert {"rankbench.execution.supervisor", "multiprocessing.popen_forkserver", "encodings.cp437"} <= set(modules)
    assert not {"pandas", "matplotlib", "plotly"} & set(modules)
    assert (looked, unchanged) == ("1", "0")  # a cell does not look again
    assert frozen == "True"  # a collection in a cell does not touch what it shares with the server
    assert imported == "1"  # unless a module was imported since, which may bring a library


REHEARSE = """
import os, sys
from rankbench.execution import preloaded
from rankbench.names import registry
print(registry._record.cache_info().currsize, len(os.listdir("/proc/self/task")))
before = set(sys.modules)
found = preloaded.rehearse()
print(found.status, [values.shape for values in found.per_user.values()], *set(sys.modules) - before)
"""


@pytest.mark.slow
def test_the_fork_server_rehearses_a_cell_and_starts_no_thread_which_a_fork_would_lose():
    one_thread = os.environ | dict.fromkeys(isolation._BLAS_THREADS, "1")
    done = subprocess.run([sys.executable, "-c", REHEARSE], capture_output=True, text=True, check=True, env=one_thread)
    assert done.stdout.splitlines() == ["1 1", "ok [(8,)]"]  # one solver was made, by one thread
    assert not done.stderr


def test_the_fork_server_is_told_to_import_it(monkeypatch):
    told = []
    monkeypatch.setattr(forkserver, "set_forkserver_preload", told.append)
    monkeypatch.setattr(forkserver, "ensure_running", lambda: None)
    isolation.server()
    assert told == [["rankbench.execution.preloaded"]]
    assert find_spec(told[0][0])  # the server leaves out what it cannot import, and says nothing


def test_the_fork_server_imports_from_where_this_process_does(monkeypatch, tmp_path):
    paths = []
    monkeypatch.setattr(forkserver, "ensure_running", lambda: paths.append(os.environ["PYTHONPATH"]))
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    before = dict(os.environ)
    isolation.server()
    assert paths == [os.pathsep.join([os.getcwd(), str(tmp_path), *sys.path[2:]])]
    assert dict(os.environ) == before
