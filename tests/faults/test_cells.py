"""Solvers that stop, take all memory or leave children behind, and the driver that runs them."""

import json

import pytest
from faults.driving import PATIENCE, Place, eventually
from helpers import tiny_toml, with_solver

pytestmark = pytest.mark.slow

HOLDING = (  # a child in a session of its own keeps the solver's pipes open for longer than the test takes
    "reading, writing = os.pipe()",
    "if os.fork() == 0:",
    "    os.setsid()",
    "    signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "    os.write(writing, b'!')",
    "    time.sleep(600)",
    "os.read(reading, 1)",
)


def outcome(folder, *lines, options=()):
    """The exit code of a run of one cell with these lines, its status and reason, and what the driver said."""
    place = Place(folder / "place")
    place.toml = tiny_toml(place.folder, solvers=json.dumps([with_solver(place.folder, *lines)]), repetitions="1")
    code, said = place.finish("-q", *options)
    assert eventually(lambda: not place.processes())
    assert place.leftovers() == []
    (found,) = (json.loads(text) for text in place.files().values())
    return code, found["status"], found["reason"], said


@pytest.mark.parametrize("number", ["SIGSTOP", "SIGTSTP"])
def test_a_solver_that_was_stopped_ends_by_its_limit(tmp_path, number):
    lines = (f"os.kill(os.getpid(), signal.{number})", "time.sleep(600)")
    code, status, reason, _ = outcome(tmp_path, *lines, options=("--timeout", "1s"))
    assert (code, status, reason) == (1, "timeout", "took longer than 1 s")


def test_a_solver_that_gets_no_more_memory_is_out_of_memory(tmp_path):
    lines = (
        "import resource",
        "most = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize() + 2**27",
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))",
        "kept = [np.ones(2**20) for _ in range(1000)]",
    )
    code, status, reason, _ = outcome(tmp_path, *lines)
    assert (code, status, reason) == (1, "memory", "out of memory")


@pytest.mark.parametrize(
    ("end", "status", "reason"),
    [
        ("os._exit(3)", "failed", "exit code 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "memory", "the system killed the process"),
        ("os.abort()", "failed", "exit code -6"),
        ("raise ValueError('gone')", "failed", "ValueError: gone"),
    ],
)
def test_a_solver_that_dies_and_leaves_a_child_with_its_pipes_holds_nobody_up(tmp_path, end, status, reason):
    code, found, why, _ = outcome(tmp_path, *HOLDING, end, options=("--timeout", f"{PATIENCE:g}s"))
    assert (code, found) == (1, status) and reason in why


def test_a_supervisor_that_was_killed_costs_its_cell_alone(tmp_path):
    lines = (*HOLDING, "os.kill(os.getppid(), signal.SIGKILL)", "time.sleep(600)")
    code, status, reason, _ = outcome(tmp_path, *lines)
    assert (code, status, reason) == (1, "failed", "the process that watches over the cell was killed")
