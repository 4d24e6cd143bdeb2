"""A cell ends with its driver and its children, and reports the correct reason, whatever a solver does."""

import importlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import psutil
import pytest
from helpers import SOLVER_HEAD, tiny, with_solver

from rankbench.core.contract import Step
from rankbench.core.errors import UserError
from rankbench.distributed.teams import Entrance, Member, PartsLost
from rankbench.execution import isolation, voices, worker
from rankbench.execution.isolation import Caps, Interrupted, Supervisors, run_isolated, server
from rankbench.execution.training import checkpoints
from rankbench.execution.worker import Task, ended_early
from rankbench.experiments import Budget
from rankbench.models import ItemScores
from rankbench.planning import memory
from rankbench.planning.materials import Materials
from rankbench.planning.plan import plan
from rankbench.records.cells import Selection
from rankbench.records.results import Point

pytestmark = pytest.mark.slow

SOON = 60.0  # seconds that a busy machine may take for what happens at once
MIB = 2**20

DRIVER = """
import pickle, sys, threading
from rankbench.execution.isolation import Caps, run_isolated, server
run_isolated(server(), pickle.load(open(sys.argv[1], "rb")), Caps(seconds=None), threading.Event())
"""

FORGETFUL = """
import pickle, sys, threading
from rankbench.execution.isolation import Caps, Supervisors, server
supervisors = Supervisors(server())
for _ in range(2):  # the second one is short, as everything is loaded
    assert supervisors.run(pickle.load(open(sys.argv[1], "rb")), Caps(), threading.Event()).status == "ok"
"""

CHILDREN = {  # each notes its own number; some have left their parent, session and group behind
    "plain": ("if os.fork() == 0:", "    note()", "    time.sleep(60)"),
    "daemon": (
        "if os.fork() == 0:",
        "    os.setsid()",
        "    if os.fork() == 0:",
        "        note()",
        "        time.sleep(60)",
        "    os._exit(0)",
    ),
    "deaf": (
        "if os.fork() == 0:",
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)",
        "    note()",
        "    time.sleep(60)",
    ),
    "program": ("note(__import__('subprocess').Popen(['sleep', '60'], start_new_session=True).pid)",),
}
FAMILY = tuple(line for lines in CHILDREN.values() for line in lines)


def noting(path):
    """Lines that define `note`, which writes a process's number down, and `noted`, which waits for so many."""
    return (
        "def note(pid=None):",
        f"    with open({str(path)!r}, 'a') as file:",
        "        file.write(f'{pid or os.getpid()}\\n')",
        "def noted(number):",
        f"    while not os.path.exists({str(path)!r}) or len(open({str(path)!r}).readlines()) < number:",
        "        time.sleep(0.005)",
    )


def read(path):
    """The numbers noted so far."""
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def task_of(folder, *lines, budget=None, threads=1):
    """A cell of a user's solver that goes on with these lines, and its split."""
    return task_with(folder, with_solver(folder, *lines), budget, threads)


def task_with(folder, solver, budget=None, threads=1):
    """A cell of this solver, and its split."""
    changes = {"budget": budget} if budget else {}
    made = plan(tiny(**changes), Selection(solvers=(solver,), repetitions=1, threads=threads))
    (cell,) = made.cells
    path = folder / "split.npz"
    Materials(0).write(cell.place, path)
    return Task(cell, path)


def outcome_of(folder, *lines, caps=None, stop=None, **changes):
    """How the cell of these lines ends."""
    return run_isolated(server(), task_of(folder, *lines, **changes), caps or Caps(SOON), stop or threading.Event())


def alive(pid):
    """Whether a process still runs; what waits for its parent to look at it does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def eventually(true, seconds=SOON):
    """Whether something comes true in time."""
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return true()


@pytest.fixture(autouse=True, scope="module")
def started(tmp_path_factory):
    """The server has done its imports, so that a cell's limits in time are its own."""
    assert outcome_of(tmp_path_factory.mktemp("first")).status == "ok"


# ---- nothing is left behind ----


@pytest.mark.trust
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_cell_and_all_below_it_die_with_the_driver(tmp_path, number):
    pids = tmp_path / "pids"
    lines = (*noting(pids), "note()", "note(os.getppid())", *FAMILY, "time.sleep(60)")
    (tmp_path / "task").write_bytes(pickle.dumps(task_of(tmp_path, *lines)))
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path / "task")])
    assert eventually(lambda: len(read(pids)) == 2 + len(CHILDREN))
    below = {process.pid for process in psutil.Process(driver.pid).children(recursive=True)} | set(read(pids))
    os.kill(driver.pid, number)
    driver.wait()
    assert eventually(lambda: not any(map(alive, below)))


@pytest.mark.parametrize(
    ("end", "status", "reason"),
    [
        ("pass", "ok", None),
        ("raise ValueError('boom')", "failed", "ValueError: boom"),
        ("os._exit(3)", "failed", "exit code 3"),
        ("os._exit(0)", "failed", "exit code 0"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "failed", "exit code -11"),
        ("os.kill(os.getpid(), signal.SIGALRM)", "failed", "exit code -14"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "lost", "it was killed by SIGKILL"),
        ("os.kill(os.getpid(), signal.SIGHUP)", "lost", "it was killed by SIGHUP"),
        ("os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)", "lost", "it was killed by SIGTERM"),
        ("time.sleep(60)", "timeout", "took longer than 6 s"),
    ],
)
def test_however_a_cell_ends_its_children_go_and_the_reason_stays(tmp_path, end, status, reason):
    pids = tmp_path / "pids"
    lines = (*noting(pids), *FAMILY, f"noted({len(CHILDREN)})", end)
    outcome = outcome_of(tmp_path, *lines, caps=Caps(6.0 if status == "timeout" else SOON))
    assert outcome.status == status
    assert reason is outcome.reason or reason in outcome.reason
    assert len(read(pids)) == len(CHILDREN)
    assert not any(map(alive, read(pids)))
    assert outcome.wall < SOON


@pytest.mark.parametrize(("number", "status"), [("SIGKILL", "memory"), ("SIGTERM", "lost"), ("SIGSEGV", "failed")])
def test_a_process_that_the_system_killed_for_lack_of_memory_is_told_from_others(tmp_path, monkeypatch, number, status):
    counts = iter(range(100))  # the system kills a process for lack of memory between any two looks
    monkeypatch.setattr(isolation, "killed_for_memory", lambda: next(counts))
    assert outcome_of(tmp_path, f"os.kill(os.getpid(), signal.{number})").status == status


def test_a_solver_past_its_limit_is_killed_before_it_can_react(tmp_path):
    reacted = tmp_path / "reacted"
    deaf = f"signal.signal(signal.SIGTERM, lambda *_: open({str(reacted)!r}, 'w').close())"
    assert outcome_of(tmp_path, deaf, "time.sleep(60)", caps=Caps(1.0)).status == "timeout"
    assert not reacted.exists()


@pytest.mark.parametrize("child", CHILDREN)
def test_each_kind_of_child_goes_when_the_run_is_stopped(tmp_path, child):
    pids, stop = tmp_path / "pids", threading.Event()
    threading.Thread(target=lambda: eventually(lambda: read(pids)) and stop.set()).start()
    with pytest.raises(Interrupted):
        outcome_of(tmp_path, *noting(pids), *CHILDREN[child], "time.sleep(60)", stop=stop)
    assert read(pids) and not any(map(alive, read(pids)))


@pytest.mark.parametrize(
    "kill",
    [
        "os.kill(os.getppid(), signal.SIGKILL)",  # the supervisor
        "os.kill(__import__('psutil').Process(os.getppid()).ppid(), signal.SIGKILL)",  # the guard
        "os.killpg(0, signal.SIGKILL)",  # the supervisor and the solver
    ],
)
def test_whoever_is_killed_all_below_goes_along_and_the_cell_says_so(tmp_path, kill):
    pids = tmp_path / "pids"
    lines = (*noting(pids), "note()", *FAMILY, f"noted({1 + len(CHILDREN)})", kill)
    outcome = outcome_of(tmp_path, *lines, "time.sleep(60)")
    assert (outcome.status, outcome.reason) == ("lost", "the process that watches over the cell was killed")
    assert outcome.load is None
    assert len(read(pids)) == 1 + len(CHILDREN)
    assert eventually(lambda: not any(map(alive, read(pids))))


def test_a_supervisor_that_does_not_answer_is_killed_with_all_below(tmp_path, monkeypatch):
    monkeypatch.setattr(isolation, "_PATIENCE", 0.2)
    pids = tmp_path / "pids"
    lines = (*noting(pids), "note()", *FAMILY, f"noted({1 + len(CHILDREN)})", "os.kill(os.getppid(), signal.SIGSTOP)")
    outcome = outcome_of(tmp_path, *lines, "time.sleep(60)", caps=Caps(5.0))
    assert outcome.status == "timeout"
    assert len(read(pids)) == 1 + len(CHILDREN)
    assert eventually(lambda: not any(map(alive, read(pids))))


def test_a_cell_leaves_neither_descriptors_nor_files(tmp_path):
    others = set(multiprocessing.active_children())  # of tests of a cluster's worker, which keeps its supervisors

    def held():
        assert eventually(lambda: not set(multiprocessing.active_children()) - others)  # asking closes what they had
        return psutil.Process().num_fds(), sorted(os.listdir(tmp_path))

    task = task_of(tmp_path, *(line.replace("note()", "pass") for line in CHILDREN["plain"]))
    context = server()
    before = held()
    assert run_isolated(context, task, Caps(SOON), threading.Event()).status == "ok"
    assert held() == before


def test_a_forked_child_that_leaves_by_the_solvers_door_does_not_speak_for_it(tmp_path):
    lines = ("if (pid := os.fork()) == 0:", "    raise SystemExit(5)", "_, status = os.waitpid(pid, 0)")
    last = "assert os.waitstatus_to_exitcode(status) == 5, status"
    outcome = outcome_of(tmp_path, *lines, last)
    assert (outcome.status, outcome.reason) == ("ok", None)


def test_signals_to_the_solvers_own_group_reach_the_solver_alone(tmp_path):
    outcome = outcome_of(tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN)", "os.killpg(0, signal.SIGTERM)")
    assert outcome.status == "ok"


@pytest.mark.trust
@pytest.mark.parametrize("given", [None, "/somewhere"])
def test_a_folder_of_the_same_name_where_a_run_starts_is_not_taken_for_the_package(tmp_path, given):
    (tmp_path / "here" / "rankbench").mkdir(parents=True)
    (tmp_path / "here" / "rankbench" / "__init__.py").touch()
    asked = (
        f"assert os.environ.get('PYTHONPATH') == {given!r}, os.environ",
        "assert not {'PYTHONSAFEPATH', 'RANKBENCH_PYTHONPATH', 'RANKBENCH_PYTHONSAFEPATH'} & set(os.environ)",
    )
    (tmp_path / "task").write_bytes(pickle.dumps(task_of(tmp_path, *asked)))
    (tmp_path / "driver.py").write_text(f"import sys\nsys.path[1:1] = {sys.path!r}\n{FORGETFUL}")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    variables |= {"PYTHONPATH": given} if given else {}
    command = [sys.executable, str(tmp_path / "driver.py"), str(tmp_path / "task")]
    done = subprocess.run(command, cwd=tmp_path / "here", env=variables, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- memory ----


def hungry(children, own, each, seconds):
    """Lines that take memory, fork so many children that take more and keep it for a while, and wait for them."""
    return (
        f"kept = np.ones({own * MIB // 8})",
        f"for _ in range({children}):",
        "    if os.fork() == 0:",
        f"        more = np.ones({each * MIB // 8})",
        f"        time.sleep({seconds})",
        "        os._exit(0)",
        f"for _ in range({children}):",
        "    os.wait()",
    )


def test_what_children_take_counts(tmp_path):
    outcome = outcome_of(tmp_path, *hungry(3, 0, 150, 60), caps=Caps(SOON, 400 * MIB))
    assert (outcome.status, outcome.reason) == ("memory", "took more than 400 MiB")


def test_what_children_share_counts_once(tmp_path):
    outcome = outcome_of(tmp_path, *hungry(4, 200, 0, 0.6), caps=Caps(SOON, 500 * MIB))
    assert outcome.status == "ok", outcome.reason


# ---- processes inside a solver ----


def test_a_solver_may_have_a_pool_of_processes(tmp_path):
    lines = (
        "import math, multiprocessing",
        "with multiprocessing.Pool(2) as pool:",
        "    roots = pool.map(math.sqrt, range(100))",
        "yield Step(ItemScores(np.resize(roots, train.n_items)))",
    )
    outcome = outcome_of(tmp_path, *lines)
    assert (outcome.status, len(outcome.curve)) == ("ok", 2), outcome.reason


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_a_solver_may_use_joblib(tmp_path, backend):
    pytest.importorskip("joblib")
    pids = tmp_path / "pids"
    lines = (
        *noting(pids),
        "from joblib import Parallel, delayed",
        f"inside = Parallel(n_jobs=2, backend={backend!r})(delayed(os.getpid)() for _ in range(20))",
        "for pid in set(inside) - {os.getpid()}: note(pid)",
        "yield Step(ItemScores(np.arange(train.n_items, dtype=float)))",
    )
    outcome = outcome_of(tmp_path, *lines)
    assert (outcome.status, len(outcome.curve)) == ("ok", 2), outcome.reason
    assert bool(read(pids)) == (backend != "threading")  # they were processes of their own indeed
    assert not any(map(alive, read(pids)))


# ---- whatever a solver does stays in its cell ----

BOMB = ("class Bomb:", "    def __reduce__(self):", "        return int, ('x',)")
NOISE = (  # a message that is none, on the way home
    "for handle in range(3, 64):",
    "    try:",
    "        os.write(handle, bytes([0, 0, 0, 3]) + b'xyz')",
    "    except OSError:",
    "        pass",
    "time.sleep(60)",
)
MUTE = ("class Mute(Exception):", "    def __str__(self):", "        raise ValueError", "raise Mute")


@pytest.mark.parametrize(
    ("lines", "status", "reason"),
    [
        (("os.closerange(0, 256)",), "failed", "without a message (exit code 1)"),
        (("os.closerange(0, 256)", "yield Step(ItemScores(np.ones(train.n_items)))"), "failed", "without a message"),
        (("__import__('resource').setrlimit(7, (3, 3))", "open('/dev/null')"), "failed", "OSError"),
        (("import tempfile", "os.chdir(gone := tempfile.mkdtemp())", "os.rmdir(gone)"), "ok", ""),
        (("for _ in range(5):", "    print('x' * 2**20)"), "ok", ""),
        (("for _ in range(5):", "    os.write(2, b'x' * 2**20)"), "ok", ""),
        (("f = lambda f: f(f)", "f(f)"), "failed", "RecursionError"),
        (("raise SystemExit(4)",), "failed", "SystemExit: 4"),
        (("raise MemoryError",), "memory", "out of memory"),
        (("yield Step(ItemScores(np.zeros(2)))",), "failed", "UserError: item id"),
        (("raise KeyboardInterrupt",), "failed", "KeyboardInterrupt"),
        (("raise BrokenPipeError('mine')",), "failed", "BrokenPipeError: mine"),
        (("os.abort()",), "failed", "exit code -6"),
        (("__import__('ctypes').string_at(0)",), "failed", "exit code -11"),
        (MUTE, "failed", "Mute: (its text cannot be shown: ValueError)"),
        ((*BOMB, "yield Step(ItemScores(np.ones(train.n_items)), bound=Bomb())"), "failed", "not 'Bomb'"),
        (NOISE, "failed", "what the cell sent cannot be read: UnpicklingError"),
        (("import threading", "threading.Thread(target=time.sleep, args=(60,)).start()"), "ok", ""),
        (("os.kill(os.getpid(), signal.SIGINT)",), "ok", ""),
    ],
)
def test_what_a_solver_does_stays_in_its_cell(tmp_path, lines, status, reason, capfd):
    outcome = outcome_of(tmp_path, *lines)
    assert outcome.status == status, outcome.reason
    assert reason in (outcome.reason or "")
    assert "Traceback" not in capfd.readouterr().err  # the reason says it all


def test_what_a_solver_prints_is_written_out_in_plain_lines(tmp_path, capfd):
    lines = (
        r"print('\x1b[31mred\x1b[0m größe\tx', flush=True)",
        r"os.write(2, b'\x1b]0;title\x07\r 5%\r10%\r\n\xff\x9b2J no end')",
        r"__import__('subprocess').run(['printf', '\\033[2J\\n'])",
    )
    assert outcome_of(tmp_path, *lines).status == "ok"
    out, errors = capfd.readouterr()
    assert out == "\\x1b[31mred\\x1b[0m größe      x\n\\x1b[2J\n"
    assert errors == "\\x1b]0;title\\x07\n 5%\n10%\n\\xff\\x9b2J no end\n"


def test_a_line_that_does_not_end_is_written_out_in_pieces_and_to_a_closed_output_not_at_all(monkeypatch):
    heard, voice = multiprocessing.Pipe(duplex=False)
    written = []

    def write(number, data):
        written.append(bytes(data[:1000]))
        if len(written) > 2:
            raise OSError("closed")
        return len(written[-1])

    monkeypatch.setattr(voices.os, "write", write)
    thread = voices.relay((heard,))
    with voice, open(voice.fileno(), "wb", closefd=False) as file:
        file.write(b"x" * 200_000)
    thread.join(SOON)
    assert not thread.is_alive() and heard.closed
    assert written[:2] == [b"x" * 1000] * 2


@pytest.mark.parametrize("error", [ConnectionRefusedError, BrokenPipeError, EOFError])
def test_a_server_that_is_ending_is_asked_again(tmp_path, monkeypatch, error):
    from multiprocessing import forkserver

    connect, asked = forkserver.connect_to_new_process, []

    def refusing_once(handles):
        asked.append(handles)
        if len(asked) == 1:
            raise error
        return connect(handles)

    monkeypatch.setattr("multiprocessing.popen_forkserver.forkserver.connect_to_new_process", refusing_once)
    assert outcome_of(tmp_path, "yield Step(ItemScores(np.ones(train.n_items)))").status == "ok"
    assert len(asked) == 2


def test_a_server_that_never_answers_is_asked_so_often_and_its_error_is_raised(monkeypatch):
    class Refusing:
        asked = 0

        def start(self):
            self.asked += 1
            raise ConnectionRefusedError(self.asked)

    monkeypatch.setattr(isolation, "_WATCH", 0.0)
    with pytest.raises(ConnectionRefusedError, match=str(isolation._ATTEMPTS + 1)):
        isolation._begin(Refusing())


# ---- one supervisor for one cell after another ----


def outcome_with(supervisors, folder, *lines, caps=None):
    """How the cell of these lines ends that one of these supervisors runs."""
    return supervisors.run(task_of(folder, *lines), caps or Caps(SOON), threading.Event())


def hold_again_and_again(supervisors, folder, *asserted):
    """Three cells, one after the other, in each of which what these lines assert holds."""
    for _ in range(3):
        outcome = outcome_with(supervisors, folder, *asserted)
        assert outcome.status == "ok", outcome.reason


@pytest.fixture
def supervisors():
    """Supervisors, of which there are none yet."""
    with Supervisors(server()) as found:
        yield found


@pytest.fixture
def pids(tmp_path):
    """The file in which processes note their numbers."""
    return tmp_path / "pids"


@pytest.mark.parametrize(
    ("first", "status"),
    [
        (("pass",), "ok"),
        (("raise ValueError('boom')",), "failed"),
        (("os._exit(3)",), "failed"),
        (("time.sleep(60)",), "timeout"),
        (NOISE, "failed"),
        (("os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)",), "lost"),
        (FAMILY, "ok"),
    ],
)
def test_after_a_cell_that_ended_its_supervisor_stays_for_later_ones(tmp_path, supervisors, pids, first, status):
    later, caps = tmp_path / "later", Caps(4.0) if status == "timeout" else None  # what is left may still note itself
    assert outcome_with(supervisors, tmp_path, *noting(pids), "note(os.getppid())", *first, caps=caps).status == status
    for _ in range(2):
        assert outcome_with(supervisors, tmp_path, *noting(later), "note(os.getppid())", "note()").status == "ok"
    (before, *_), (second, solver, third, last) = read(pids), read(later)
    assert alive(before) and len({before, second, third}) <= 2 and not {solver, last} & {before, second, third}


def test_what_a_short_cell_leaves_behind_is_ended_while_the_next_one_runs(tmp_path, supervisors, pids):
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    leave = f"note(__import__('subprocess').Popen([{sys.executable!r}, '-c', {deaf!r}]).pid)"
    assert outcome_with(supervisors, tmp_path, *noting(pids), leave).status == "ok"
    (left,) = read(pids)
    found = outcome_with(supervisors, tmp_path, f"while os.path.exists('/proc/{left}'): time.sleep(0.01)")
    assert found.status == "ok", found.reason


def test_a_cell_that_was_stopped_ends_and_its_supervisor_runs_the_next_one(tmp_path, supervisors, pids):
    stop, lines = threading.Event(), (*noting(pids), "note(os.getppid())", "note()")
    threading.Thread(target=lambda: eventually(lambda: len(read(pids)) == 2) and stop.set()).start()
    with pytest.raises(Interrupted):
        supervisors.run(task_of(tmp_path, *lines, "time.sleep(60)"), Caps(SOON), stop)
    assert outcome_with(supervisors, tmp_path, *lines).status == "ok"
    first, stopped, second, _ = read(pids)
    assert first == second and not alive(stopped)


@pytest.mark.parametrize("whom", ["supervisor", "guard"])
def test_in_place_of_a_supervisor_that_died_between_two_cells_there_is_a_new_one(tmp_path, supervisors, pids, whom):
    lines = (*noting(pids), "note(os.getppid())", "note(__import__('psutil').Process(os.getppid()).ppid())")
    assert outcome_with(supervisors, tmp_path, *lines).status == "ok"
    supervisor, guard = read(pids)
    os.kill(supervisor if whom == "supervisor" else guard, signal.SIGKILL)
    assert eventually(lambda: not alive(supervisor) and not alive(guard))
    assert outcome_with(supervisors, tmp_path, *lines).status == "ok"
    assert len(set(read(pids))) == 4


def test_a_supervisor_that_is_stopped_between_two_cells_ends_with_the_run(tmp_path, monkeypatch, pids):
    monkeypatch.setattr(isolation, "_PATIENCE", 0.2)
    with Supervisors(server()) as supervisors:
        assert outcome_with(supervisors, tmp_path, *noting(pids), "note(os.getppid())").status == "ok"
        (supervisor,) = read(pids)
        os.kill(supervisor, signal.SIGSTOP)
    assert eventually(lambda: not alive(supervisor))


def test_a_process_that_does_not_close_its_supervisors_ends_with_them(tmp_path, pids):
    (tmp_path / "task").write_bytes(pickle.dumps(task_of(tmp_path, *noting(pids), "note(os.getppid())")))
    done = subprocess.run([sys.executable, "-c", FORGETFUL, str(tmp_path / "task")], timeout=SOON, check=False)
    assert done.returncode == 0
    assert eventually(lambda: not any(map(alive, read(pids))))


def test_a_cell_finds_what_each_process_finds_whichever_cells_ran_before(tmp_path, supervisors):
    asked = (
        "assert not hasattr(np, 'left'), 'what the cell before left'",
        "np.left = True",
        "for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1):",
        "    assert signal.getsignal(number) is signal.SIG_DFL, number",
        "assert signal.set_wakeup_fd(-1) == -1",
        "held = [os.path.realpath(f'/proc/self/fd/{one}') for one in os.listdir('/proc/self/fd')]",
        "assert not any('socket' in one for one in held), held",
    )
    hold_again_and_again(supervisors, tmp_path, *asked)


def test_a_supervisor_holds_no_pipe_that_a_cell_prints_into(tmp_path, supervisors):
    asked = (
        "above = f'/proc/{os.getppid()}/fd'",
        "mine = {os.readlink(f'/proc/self/fd/{one}') for one in (1, 2)}",
        "def held(): return {os.readlink(f'{above}/{one}') for one in os.listdir(above)}",
        "deadline = time.monotonic() + 10",
        "while mine & held() and time.monotonic() < deadline: time.sleep(0.01)",
        "assert not mine & held()",
    )
    hold_again_and_again(supervisors, tmp_path, *asked)


def test_the_seconds_of_one_cell_are_not_counted_for_the_next(tmp_path, supervisors, monkeypatch):
    assert outcome_with(supervisors, tmp_path, "while time.process_time() < 1.5: pass").status == "ok"
    machine = iter((0.0, 10.0))  # CPU seconds of the whole machine before and after
    monkeypatch.setattr(isolation, "busy_seconds", lambda: next(machine))
    driver = time.process_time()
    outcome = outcome_with(supervisors, tmp_path, "time.sleep(0.3)")
    assert outcome.load * outcome.wall > 10 - 1.0 - (time.process_time() - driver)


def test_cells_side_by_side_have_a_supervisor_each_and_nothing_stays(tmp_path, pids):
    lines = (*noting(pids), "note(os.getppid())", "note(__import__('psutil').Process(os.getppid()).ppid())")
    tasks = [task_of(tmp_path, *lines, "noted(6)") for _ in range(3)]
    with Supervisors(server()) as supervisors, ThreadPoolExecutor(3) as pool:
        ended = list(pool.map(lambda task: supervisors.run(task, Caps(SOON), threading.Event()), tasks))
    assert [one.status for one in ended] == ["ok"] * 3
    assert len(set(read(pids))) == 6
    assert eventually(lambda: not any(map(alive, read(pids))))


def test_a_supervisor_that_dies_as_it_gets_its_order_says_nothing(tmp_path):
    line, far = multiprocessing.Pipe()
    home, away = multiprocessing.Pipe(duplex=False)
    far.close()
    supervisor = isolation._Supervisor(None, line)
    with line, home, away:
        supervisor.run(task_of(tmp_path), (away,))
        assert supervisor.end() is None


# ---- a cell's own process, without one ----


@pytest.fixture
def pipe():
    """The driver's end and the cell's end of a pipe."""
    home, away = multiprocessing.Pipe(duplex=False)
    with home, away:
        yield home, away


@pytest.fixture
def unlimited(monkeypatch):
    """Lets this process keep its own way of taking Ctrl-C."""
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)


def test_what_is_no_message_of_a_cell_is_its_failure(pipe):
    home, away = pipe
    away.send({"status": "ok"})
    assert isolation._received(home) == ended_early("failed", "the cell sent a dict, which is not a valid message")


def test_a_last_message_that_comes_while_the_driver_looks_for_it_is_read(pipe, monkeypatch):
    home, away = pipe
    last, verdict, looks = ended_early("timeout", "took too long"), multiprocessing.Pipe(), []

    def looked(doors, timeout):
        """What `wait` found: the first time, before the message came, only that the process has ended."""
        looks.append(doors)
        return [verdict[0]] if len(looks) == 1 else [home]

    away.send(last)
    monkeypatch.setattr(isolation, "wait", looked)
    with verdict[0], verdict[1]:
        cell = isolation._Running(isolation._Supervisor(None, verdict[0]), home, None, time.monotonic(), None)
        assert isolation._watch(cell, [], Caps(), lambda: False)[0] == last
    assert len(looks) == 2


@pytest.mark.parametrize(("last", "status"), [(ended_early("ok", ""), "ok"), (None, None)], ids=["a word", "no word"])
def test_a_cell_that_ended_while_its_driver_stood_still_was_not_too_slow(last, status):
    (reader, writer), (line, supervisor) = multiprocessing.Pipe(duplex=False), multiprocessing.Pipe()
    points = [Point(step, 0.0, ()) for step in range(3)]
    for message in (*points, *([last] if last else [])):
        writer.send(message)
    writer.close()
    supervisor.send("its end")
    keeper = isolation._Supervisor(None, line)
    cell = isolation._Running(keeper, reader, None, time.monotonic() - 3600, isolation._clocks())
    curve = []
    found, leave = isolation._watch(cell, curve, Caps(seconds=1.0), lambda: False)
    assert curve == points and (found and found.status) == status and (leave > 0) == bool(last)
    for end in (reader, line, supervisor):
        end.close()


def test_a_cell_that_is_stopped_at_once_has_ended_when_that_is_told(tmp_path, supervisors):
    ended = outcome_with(supervisors, tmp_path, "time.sleep(60)", caps=Caps(seconds=0.0))
    assert ended.status == "timeout" and ended.wall < 60 and supervisors._leaving == []


def test_a_cell_that_could_not_begin_while_its_driver_stood_still_has_all_of_its_time(tmp_path, monkeypatch):
    take = Supervisors._take

    def late(self):
        time.sleep(1.0)
        return take(self)

    monkeypatch.setattr(isolation, "_STANDSTILL", 0.9)
    monkeypatch.setattr(Supervisors, "_take", late)
    assert outcome_of(tmp_path, "yield Step(ItemScores(np.zeros(train.n_items)))", caps=Caps(seconds=1.0)).wall > 1.0
    hanging = outcome_of(tmp_path, "time.sleep(60)", caps=Caps(seconds=1.0))
    assert hanging.status == "timeout" and hanging.wall > 2.0


def test_a_cell_whose_driver_has_gone_leaves_without_a_word(tmp_path, monkeypatch, pipe, unlimited):
    def leaving(code):
        raise SystemExit(code)

    home, away = pipe
    task = replace(task_of(tmp_path), parts=tmp_path / "gone.npz")
    home.close()
    monkeypatch.setattr(os, "_exit", leaving)
    with pytest.raises(SystemExit, match="1"):
        worker.main(away, pickle.dumps(task))


def test_an_error_in_a_process_that_the_solver_forked_is_not_sent(tmp_path, monkeypatch, pipe, unlimited):
    home, away = pipe
    task, pids = replace(task_of(tmp_path), parts=tmp_path / "gone.npz"), iter([1])
    monkeypatch.setattr(worker.os, "getpid", lambda: next(pids, 2))
    with pytest.raises(FileNotFoundError, match="gone"):
        worker.main(away, pickle.dumps(task))
    assert not home.poll()


def test_a_package_that_is_missing_where_the_cell_runs_is_named_with_the_remedy(tmp_path, pipe, monkeypatch):
    path = tmp_path / "mine.py"
    needs = "    from rankbench.core.contract import Needs\n    needs = Needs(('wsgiref',), 'pip install it')\n"
    path.write_text(SOLVER_HEAD + needs)
    task = task_with(tmp_path, f"{path}:Mine")
    monkeypatch.setitem(sys.modules, "wsgiref", None)
    with pytest.raises(UserError, match=r"Mine needs a package that is not installed; pip install it"):
        worker.work(pipe[1].send, task)


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (MemoryError(), "memory", "out of memory"),
        (PartsLost("a member is gone"), "lost", "a member is gone"),
        (ValueError("boom"), "failed", "ValueError: boom"),
    ],
)
def test_the_last_message_of_a_cell_that_an_error_ended_says_what_it_was(error, status, reason):
    found = worker._failure(error)
    assert (found.status, found.reason, bool(found.trace)) == (status, reason, status == "failed")


@pytest.mark.parametrize(
    ("line", "status", "reason", "stored"),
    [
        ("yield Step(ItemScores(np.full(train.n_items, np.nan)))", "diverged", "NaN for ", True),
        (
            "yield Step(ItemScores(np.ones(train.n_items)), lambda: float('inf'))",
            "diverged",
            "its objective is inf",
            True,
        ),
        ("pass", "ok", "", True),
        ("yield Step(type('Bare', (), {'score': lambda self, users, items: np.ones(len(users))})())", "ok", "", False),
    ],
)
def test_the_last_message_of_a_cell_says_what_is_wrong_with_its_model(tmp_path, pipe, line, status, reason, stored):
    found = worker.work(pipe[1].send, task_of(tmp_path, line))
    assert (found.status, bool(found.model)) == (status, stored) and (found.reason or "").startswith(reason)
    assert (found.reason is None) == (status == "ok")


def test_a_cell_whose_parts_others_hold_gives_the_same_bits_and_counts_their_memory(tmp_path, pipe, monkeypatch):
    monkeypatch.setattr(memory.system, "peak_bytes", lambda: 0)  # of this process
    task = task_with(tmp_path, "frsvm[rank=2,features=none,partitions=3]")
    member, key = Member("127.0.0.1", b"key"), b"key"
    thread = threading.Thread(target=member.serve, args=(0, [member.address]))
    thread.start()
    found = worker.work(pipe[1].send, replace(task, team=Entrance(member.address, key, 1)))
    member.close()
    thread.join(SOON)
    assert found.status == "ok" and found.model == worker.work(pipe[1].send, task).model != ""
    assert {peak.stage: peak.megabytes > 0 for peak in found.peaks}["train"]
    assert sum(peak.megabytes > 0 for peak in found.peaks) == 1


def test_a_solver_that_yields_no_model_is_a_failure(tmp_path, pipe):
    path = tmp_path / "mine.py"
    path.write_text(SOLVER_HEAD.replace("yield Step(", "return; yield Step("))
    task = task_with(tmp_path, f"{path}:Mine")
    with pytest.raises(RuntimeError, match="the solver yielded no model"):
        worker.work(pipe[1].send, task)


# ---- what is measured ----


def test_others_that_keep_a_core_busy_are_seen(tmp_path):
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        outcome = outcome_of(tmp_path, "time.sleep(1)")
    finally:
        other.kill()
        other.wait()
    assert 0.5 < outcome.load < psutil.cpu_count() + 0.1  # times of processors are counted in hundredths of a second


def test_what_the_cells_own_threads_and_children_use_is_not_others(tmp_path, monkeypatch):
    machine = iter((0.0, 10.0))  # CPU seconds of the whole machine before and after
    monkeypatch.setattr(isolation, "busy_seconds", lambda: next(machine))
    lines = (
        "import threading",
        "def work():",
        "    while time.process_time() < 0.5: pass",
        "if os.fork() == 0:",
        "    work()",
        "    os._exit(0)",
        "workers = [threading.Thread(target=work) for _ in range(2)]",
        "for worker in workers: worker.start()",
        "for worker in workers: worker.join()",
        "os.wait()",
    )
    driver = time.process_time()
    outcome = outcome_of(tmp_path, *lines)
    others = outcome.load * outcome.wall
    assert 10 - 1.0 - (time.process_time() - driver) - 3.0 < others < 10 - 1.0 + 0.1 * outcome.load


def test_a_cell_too_short_for_the_systems_ticks_has_no_load(tmp_path, monkeypatch):
    monkeypatch.setattr(isolation, "_LEAST_SPAN", SOON)
    assert outcome_of(tmp_path).load is None


def test_packages_that_a_step_loads_are_named_once_each(tmp_path, monkeypatch):
    (tmp_path / "lately").mkdir()
    (tmp_path / "lately/__init__.py").write_text("import _part, also")
    (tmp_path / "long_ago").mkdir()
    for name in ("lately/inner", "_part", "also", "rankbench_user_theirs", "later", "long_ago/inner"):
        (tmp_path / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    def steps():
        for lines in ("import lately.inner, rankbench_user_theirs", "import later, long_ago.inner"):
            exec(lines)
            yield Step(ItemScores(np.ones(3)))

    importlib.import_module("long_ago")  # a package of which more is imported later is not new
    try:
        first, second = checkpoints(steps(), Budget(steps=1))
    finally:
        ours = (
            "lately",
            "lately.inner",
            "_part",
            "also",
            "rankbench_user_theirs",
            "later",
            "long_ago",
            "long_ago.inner",
        )
        for name in (*ours, "long_ago", "long_ago.inner"):
            sys.modules.pop(name, None)
    assert (first.imported, second.imported) == (("also", "lately"), ("later",))


def test_a_cell_says_what_it_imported_on_the_clock_and_how_long_its_view_took(tmp_path):
    name = with_solver(tmp_path)
    solver = tmp_path / "mine.py"
    solver.write_text(solver.read_text().replace("        yield", "        import colorsys\n        yield", 1))
    outcome = run_isolated(server(), task_with(tmp_path, name), Caps(SOON), threading.Event())
    assert outcome.imported == ("colorsys",)
    assert 0 < outcome.prepare < outcome.wall
