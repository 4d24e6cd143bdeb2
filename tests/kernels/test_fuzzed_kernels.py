"""No call of a kernel ends the process, whatever its arguments, and threads change no byte of an exact kernel."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_fuzzing import STUBS, Server, Trial, entries, guarded
from kernel_uses import USES

from rankbench.kernels.shared.arena import Scratch

HERE = Path(__file__).parents[1]


def python(*arguments: str, seconds: int) -> subprocess.CompletedProcess[str]:
    """A Python of its own that runs one of the tests' programs."""
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", *arguments],
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def assert_survives(first: int, count: int, log: Path, seconds: int) -> None:
    """Run these trials; a failure tells the call and the number that makes it again."""
    done = python("kernel_fuzzing.py", str(first), str(count), str(log), seconds=seconds)
    last = log.read_text().splitlines()[-1] if log.exists() else "no trial"
    assert done.returncode == 0, f"{done.stdout}\nlast: {last}\nended with {done.returncode}: {done.stderr[-3000:]}"


@pytest.mark.trust
@pytest.mark.parametrize("first", [0, 49])
def test_changed_arguments_raise_or_return(first, tmp_path):
    assert_survives(first, 49, tmp_path / "log", seconds=300)


@pytest.mark.trust
@pytest.mark.parametrize("first", range(1000, 9000, 1000))
def test_many_changed_arguments_raise_or_return(first, tmp_path):
    assert_survives(first, 1000, tmp_path / "log", seconds=900)


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path / "log")
    yield server
    server.close()


def finds_nothing(findings: Callable[[Trial], list[str]], **how: Any) -> None:
    """Let hypothesis draw trials; what it reports of a failure is the smallest trial that it can make fail."""

    @settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], **how)
    @given(st.integers(0, len(USES) - 1), st.tuples(*[st.integers(1, 40)] * 3), st.integers(0, 2**32 - 1))
    def check(use, shape, seed):
        assert findings(Trial(use, seed, shape)) == []

    check()


@pytest.mark.trust
def test_trials_that_hypothesis_draws_find_nothing(server):
    finds_nothing(server.findings, max_examples=60, derandomize=True)


@pytest.mark.trust
def test_many_trials_that_hypothesis_draws_find_nothing(server):
    finds_nothing(server.findings, max_examples=2000)


@pytest.mark.trust
def test_a_trial_that_ends_its_process_is_a_finding_and_the_next_trial_has_a_new_process(server):
    trial = Trial(0, 0, (2, 3, 2))
    assert server.findings(trial) == []
    first = server.process.pid
    server.process.kill()
    (finding,) = server.findings(trial)
    assert finding.startswith("the process ended with -9 after: Trial(use=0, seed=0, shape=(2, 3, 2)): ")
    assert server.process.pid != first
    assert server.findings(trial) == []


@pytest.mark.trust
def test_hypothesis_makes_a_failing_trial_smaller():
    asked = []

    def findings(trial):
        asked.append(trial)
        return ["wrong"] if trial.use >= 7 and trial.shape[1] >= 5 else []

    with pytest.raises(AssertionError, match="wrong"):
        finds_nothing(findings, derandomize=True)
    assert asked[-1] == Trial(7, 0, (1, 5, 1))  # the last one that it tried is the one that it reports


@pytest.mark.trust
def test_the_uses_of_the_package_call_every_kernel():
    done = python("kernel_fuzzing.py", "never-called", seconds=300)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr[-3000:]


def test_the_stubs_name_what_the_kernels_have():
    assert len(entries()) > 80
    assert {entry.module.split(".")[2] for entry in entries()} >= {"data", "methods", "metrics", "models", "solvers"}
    for entry in entries():
        assert callable(getattr(importlib.import_module(entry.module), entry.name))
    assert STUBS.name == "kernels"


@pytest.mark.parametrize(("at_end", "beyond"), [(True, 1), (False, -1)])
def test_an_access_beyond_a_guarded_array_ends_the_process(at_end, beyond):
    inside = guarded(np.arange(5.0), at_end)
    np.testing.assert_array_equal(inside, np.arange(5.0))
    place = "5" if beyond > 0 else "-1"
    program = (
        "import ctypes, numpy as np; from kernel_fuzzing import guarded; print('begun', flush=True); "
        f"a = guarded(np.arange(5.0), {at_end}); "
        f"print((ctypes.c_double * 1).from_address(a.ctypes.data + 8 * {place})[0])"
    )
    done = python("-c", program, seconds=60)
    assert done.stdout == "begun\n"
    assert done.returncode != 0


@pytest.mark.parametrize(("size", "threads"), [(2**62, 4), (2**63, 2), (-1, 1), (2**70, 1)])
def test_scratch_memory_that_no_machine_has_is_refused(size, threads):
    with pytest.raises((MemoryError, OverflowError)):
        Scratch(size, threads)
