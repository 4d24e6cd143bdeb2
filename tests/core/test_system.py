"""What is known about processes, also on systems without /proc, and about those that have just ended."""

import os
import re
import signal
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

import rankbench
from rankbench.core import system
from rankbench.execution import machine
from rankbench.planning import memory
from rankbench.records.results import Peak

PACKAGE = Path(rankbench.__file__).parent
GONE = 2**22 + 1  # more than any process's number
CHILD = "import os, time; os.fork() and os.fork(); os.write(1, b'ready\\n'); time.sleep(60)"


@pytest.fixture
def family():
    """A process with two children, all of which are there."""
    process = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True, start_new_session=True)
    for _ in range(3):
        assert process.stdout.readline() == "ready\n"
    yield process
    system.kill_group(process.pid)
    process.communicate()


@pytest.mark.parametrize("listed", [True, False])
def test_all_descendants_are_found_with_and_without_the_systems_lists(family, monkeypatch, listed):
    if not listed:
        monkeypatch.setattr(system.os.path, "exists", lambda path: False)
    expected = {child.pid for child in psutil.Process(family.pid).children(recursive=True)}
    assert len(expected) == 2 and set(system.descendants(family.pid)) == expected
    assert system.descendants(GONE) == []


@pytest.mark.parametrize(("text", "number"), [("oom_kill_x 5\noom_kill 7\nother 9", 7), ("other 9", 0), ("", 0)])
def test_what_the_system_killed_for_lack_of_memory_is_counted_where_it_tells(monkeypatch, text, number):
    monkeypatch.setattr(system, "_text", {"/proc/vmstat": text}.__getitem__)
    assert system.killed_for_memory() == number


def test_what_has_ended_has_no_children_takes_no_memory_and_can_be_killed_again():
    assert system._children(GONE) == []
    assert not system.exceed([GONE], 0)
    system.kill(GONE, signal.SIGKILL)
    system.kill_group(GONE)


def test_a_process_that_ends_while_it_is_looked_at_has_no_children(monkeypatch):
    def gone(path, **how):
        raise ProcessLookupError(3, "No such process")

    monkeypatch.setattr(system.Path, "read_text", gone)
    assert system.descendants(os.getpid()) == []


@pytest.mark.parametrize("status", [b"Name: python\nVmRSS: 5 kB\n", None])
def test_where_the_system_keeps_no_peak_the_memory_taken_now_stands_for_it(monkeypatch, status):
    def opened(path, mode, buffering):
        if mode == "rb" and status is not None:
            return BytesIO(status)
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(system, "open", opened, raising=False)
    monkeypatch.setattr(system.psutil.Process, "memory_info", lambda process: SimpleNamespace(rss=7_000_000))
    found = memory.PeakMemory()
    assert found.note("train") == 7.0
    assert found.peaks == (Peak("train", 7.0),)


def test_shared_memory_counts_once_where_the_system_says_so(family, monkeypatch):
    every = [family.pid, *system.descendants(family.pid)]
    resident = [system._resident(pid) for pid in every]
    proportional = [system._proportional(pid, size) for pid, size in zip(every, resident, strict=True)]
    assert 0 < sum(proportional) < sum(resident)
    assert not system.exceed(every, sum(resident))
    assert system.exceed(every, min(resident) // 2)
    assert system.exceed(every, sum(proportional) // 2)
    assert system._proportional(GONE, 7) == 0  # it has ended, and takes nothing any more
    monkeypatch.setattr(system, "open", _refused, raising=False)
    assert system._proportional(family.pid, 7) == 7  # the system does not say


def test_a_process_that_ends_while_sizes_are_read_does_not_exceed_the_limit(family, monkeypatch):
    every = [family.pid, *system.descendants(family.pid)]
    first_reading = iter([10, 10, 10])  # the shares of those that are left grow while the others end
    monkeypatch.setattr(system, "_proportional", lambda pid, size: next(first_reading, 1))
    monkeypatch.setattr(system, "_resident", lambda pid: 15)
    assert not system.exceed(every, 20)
    monkeypatch.setattr(system, "_proportional", lambda pid, size: 10)
    assert system.exceed(every, 20)


def _refused(*arguments, **more):
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize(("limits", "found"), [(["1000"], 1000), (["max", "9" * 19], 5000), ([], 5000)])
def test_the_memory_is_the_machines_or_what_a_container_leaves(tmp_path, monkeypatch, limits, found):
    for number, text in enumerate(limits):
        (tmp_path / f"{number}").write_text(f"{text}\n")
    monkeypatch.setattr(system, "_LIMITS", [str(tmp_path / f"{number}") for number in range(3)])
    monkeypatch.setattr(system.psutil, "virtual_memory", lambda: SimpleNamespace(total=5000))
    assert system.total_memory() == found


def test_mapped_files_count_where_the_system_tells(monkeypatch):
    assert system.mapped_bytes() > 0
    assert system.mapped_bytes() == pytest.approx(psutil.Process().memory_info().shared, rel=0.1)
    monkeypatch.setattr(system, "_text", lambda _: "")
    assert system.mapped_bytes() == 0


def test_a_reserved_file_has_its_size_and_its_room(tmp_path):
    with (tmp_path / "a").open("wb") as file:
        system.reserve(file.fileno(), 1 << 20)
        about = os.fstat(file.fileno())
    assert about.st_size == 1 << 20 and about.st_blocks * 512 >= 1 << 20


def test_without_proc_and_git_the_machine_is_described_by_what_python_knows(monkeypatch):
    def absent(*arguments, **more):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(system, "open", absent, raising=False)
    monkeypatch.setattr(machine.subprocess, "run", absent)
    assert system.cpu_name() == (system.platform.processor() or os.uname().machine)
    assert machine._git.__wrapped__() is None
    assert machine._version("no-such-package") == "absent"


LINUX = re.compile(
    r"[\"']/proc|^ *import (?:fcntl|resource|ctypes)|\bos\.(?:killpg|kill|setpgid|getpgid|sched_\w+)\(|prctl", re.M
)


def test_no_other_module_asks_the_system_in_a_way_of_its_own():
    sources = {path.name: path.read_text() for path in PACKAGE.rglob("*.py")}
    assert len(LINUX.findall(sources.pop("system.py"))) > 10
    assert [name for name, text in sources.items() if LINUX.search(text)] == []
    assert [name for name, text in sources.items() if re.search(r"\bos\.(fork|wait)", text)] == ["supervisor.py"]


WITHOUT = """
import os, sys, signal, subprocess
import psutil  # which asks Linux by these modules, and other systems in other ways
sys.modules.update(fcntl=None, resource=None, termios=None)
del os.fork, os.setpgid, os.killpg, os.sched_getaffinity, signal.SIGKILL, signal.SIGCHLD, signal.SIGUSR1
"""
TRAINING = (
    WITHOUT
    + """
import rankbench
split = rankbench.split(rankbench.load("low-rank[users=30,items=30,per_user=20]"), "n-per-user[n=8]")
model = rankbench.fit("sgd[rank=2]", split, steps=3)
rankbench.save(model, sys.argv[1])
print(rankbench.evaluate(rankbench.load(sys.argv[1]), split, ["pairwise-error"]))
"""
)


@pytest.mark.slow
def test_what_trains_in_this_process_needs_neither_fork_nor_locks(tmp_path):
    """As on Windows, as far as this can be tried elsewhere."""
    command = [sys.executable, "-c", TRAINING, str(tmp_path / "model.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "pairwise-error" in done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run", "gunasekar2016-dag", "-q"], 1, "this system has no fork, by which trainings get processes of their"),
        (["check", "sgd"], 1, "this system has no fork"),
        (["doctor"], 0, ""),
        (["list", "solvers"], 0, ""),
    ],
)
def test_a_system_without_fork_describes_and_says_in_a_line_what_it_cannot(tmp_path, words, code, said):
    script = f"{WITHOUT}\nfrom rankbench.cli import main; sys.argv = ['rankbench', *{words!r}]; main()"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1 if said else 0), done.stderr
    assert said in done.stderr


def test_a_process_that_is_not_there_has_not_started():
    assert system.started(2**30) == "" != system.started(os.getpid())
