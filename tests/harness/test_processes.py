"""What is known about processes, also on systems without /proc, and about those that have just ended."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from rankbench.harness import machine, memory, processes
from rankbench.harness.records import Peak

GONE = 2**22 + 1  # more than any process's number
CHILD = "import os, time; os.fork() and os.fork(); os.write(1, b'ready\\n'); time.sleep(60)"


@pytest.fixture
def family():
    """A process with two children, all of which are there."""
    process = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True, start_new_session=True)
    for _ in range(3):
        assert process.stdout.readline() == "ready\n"
    yield process
    processes.kill_group(process.pid)
    process.communicate()


@pytest.mark.parametrize("listed", [True, False])
def test_all_descendants_are_found_with_and_without_the_systems_lists(family, monkeypatch, listed):
    if not listed:
        monkeypatch.setattr(processes.os.path, "exists", lambda path: False)
    expected = {child.pid for child in psutil.Process(family.pid).children(recursive=True)}
    assert len(expected) == 2 and set(processes.descendants(family.pid)) == expected
    assert processes.descendants(GONE) == []


def test_what_has_ended_has_no_children_takes_no_memory_and_can_be_killed_again():
    assert processes._children(GONE) == []
    assert not processes.exceed([GONE], 0)
    processes.kill(GONE, signal.SIGKILL)
    processes.kill_group(GONE)


def test_a_process_that_ends_while_it_is_looked_at_has_no_children(monkeypatch):
    def gone(path, **how):
        raise ProcessLookupError(3, "No such process")

    monkeypatch.setattr(processes.Path, "read_text", gone)
    assert processes.descendants(os.getpid()) == []


@pytest.mark.parametrize("status", ["Name: python\nVmRSS: 5 kB\n", None])
def test_where_the_system_keeps_no_peak_the_memory_taken_now_stands_for_it(monkeypatch, status):
    def told(path, **how):
        if status is None:
            raise FileNotFoundError(2, "No such file or directory")
        return status

    def sealed(path, text, **how):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(memory.Path, "read_text", told)
    monkeypatch.setattr(memory.Path, "write_text", sealed)
    monkeypatch.setattr(memory.psutil.Process, "memory_info", lambda process: SimpleNamespace(rss=7_000_000))
    found = memory.PeakMemory()
    assert found.note("train") == 7.0
    assert found.peaks == (Peak("train", 7.0),)


def test_shared_memory_counts_once_where_the_system_says_so(family, monkeypatch):
    every = [family.pid, *processes.descendants(family.pid)]
    resident = [processes._resident(pid) for pid in every]
    proportional = [processes._proportional(pid, size) for pid, size in zip(every, resident, strict=True)]
    assert 0 < sum(proportional) < sum(resident)
    assert not processes.exceed(every, sum(resident))
    assert processes.exceed(every, min(resident) // 2)
    assert processes.exceed(every, sum(proportional) // 2)
    assert processes._proportional(GONE, 7) == 7  # the system has no such file


def test_without_proc_and_git_the_machine_is_described_by_what_python_knows(monkeypatch):
    def absent(*arguments, **more):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(machine.Path, "read_text", absent)
    monkeypatch.setattr(machine.subprocess, "run", absent)
    assert machine._cpu() == (machine.platform.processor() or os.uname().machine)
    assert machine._git() is None
    assert machine._version("no-such-package") == "absent"
