"""Solvers that stop, take all memory or leave children behind, and the driver that runs them."""

import json

import pytest
from faults.driving import BLOW, PATIENCE, SERIAL, TUNING, Place, eventually, shorter
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


@pytest.mark.trust
@pytest.mark.parametrize("number", ["SIGSTOP", "SIGTSTP"])
def test_a_solver_that_was_stopped_ends_by_its_limit(tmp_path, number):
    lines = (f"os.kill(os.getpid(), signal.{number})", "time.sleep(600)")
    code, status, reason, _ = outcome(tmp_path, *lines, options=("--timeout", "1s"))
    assert (code, status, reason) == (1, "timeout", "took longer than 1 s")


@pytest.mark.trust
def test_a_solver_that_gets_no_more_memory_is_out_of_memory(tmp_path):
    lines = (
        "import resource",
        "most = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize() + 2**27",
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))",
        "kept = [np.ones(2**20) for _ in range(1000)]",
    )
    code, status, reason, _ = outcome(tmp_path, *lines)
    assert (code, status, reason) == (1, "memory", "out of memory")


@pytest.mark.trust
@pytest.mark.parametrize(
    ("end", "status", "reason"),
    [
        ("os._exit(3)", "failed", "exit code 3"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "lost", "it was killed by SIGKILL"),
        ("os.abort()", "failed", "exit code -6"),
        ("raise ValueError('gone')", "failed", "ValueError: gone"),
    ],
)
def test_a_solver_that_dies_and_leaves_a_child_with_its_pipes_holds_nobody_up(tmp_path, end, status, reason):
    code, found, why, _ = outcome(tmp_path, *HOLDING, end, options=("--timeout", f"{PATIENCE:g}s"))
    assert (code, found) == (1, status) and reason in why


def test_a_cell_whose_supervisor_is_killed_every_time_is_lost_after_three_times(tmp_path):
    log = tmp_path / "attempts"
    lines = (f"open({str(log)!r}, 'a').write('!')", "os.kill(os.getppid(), signal.SIGKILL)", "time.sleep(600)")
    code, status, reason, said = outcome(tmp_path, *HOLDING, *lines)
    assert (code, status) == (1, "lost") and log.read_text() == "!!!"
    assert reason == "the process that watches over the cell was killed, each of 3 times"
    assert reason in said


KILLS = {
    "supervisor": "os.kill(os.getppid(), signal.SIGKILL)",
    "guard": "os.kill(__import__('psutil').Process(os.getppid()).ppid(), signal.SIGKILL)",
    "solver": "os.kill(os.getpid(), signal.SIGTERM)",
}


def of_each(kind, usual=()):
    """Each process around a cell of this kind of run, as arguments of a test; all but the usual ones with `trust`."""
    marks = {whom: () if whom in usual else pytest.mark.trust for whom in KILLS}
    return [pytest.param(kind, whom, id=f"{kind.name}-{whom}", marks=marks[whom]) for whom in KILLS]


@pytest.mark.parametrize(("kind", "whom"), [*of_each(shorter(SERIAL), ["guard"]), *of_each(TUNING)])
def test_a_cell_that_is_killed_from_outside_is_run_again_and_changes_no_answer(tmp_path, kind, whom):
    once = f"mark = {str(tmp_path / 'killed')!r}\nif not os.path.exists(mark):\n    open(mark, 'x').close()"
    undisturbed, place = Place(tmp_path / "undisturbed", kind), Place(tmp_path / "place", kind)
    code, said = undisturbed.finish("-q")
    assert code == 0, said
    code, said = place.finish("-q", **{BLOW: f"{once}\n    {KILLS[whom]}\n    time.sleep(600)"})
    assert code == 0, said
    assert (tmp_path / "killed").exists() and place.table() == undisturbed.table()


def test_a_trial_that_is_lost_for_good_is_said_and_counts_in_the_exit_code(tmp_path):
    place = Place(tmp_path / "place", TUNING)
    code, said = place.finish("-q", **{BLOW: "if self.mode == 'b': os.kill(os.getpid(), signal.SIGKILL)"})
    assert code == 1
    assert "lost: 2 trials of " in said and "it was killed by SIGKILL, each of 3 times" in said
