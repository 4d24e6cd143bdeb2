"""Running cells on a Dask cluster of separate processes: the same results, whichever workers die, freeze or differ."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import TINY, prepared, ran, tiny, tiny_toml, until, with_solver
from planning.test_warm_starts import along, told

import rankbench
from rankbench.core.errors import Unfinished, UserError
from rankbench.data import DATASETS
from rankbench.execution.isolation import Caps, Interrupted
from rankbench.records.cells import Selection
from rankbench.report.rows import Row, rows

distributed = pytest.importorskip("distributed", reason="needs the extra dask")

from rankbench.execution import machine  # noqa: E402
from rankbench.execution.cluster import connecting  # noqa: E402
from rankbench.execution.cluster import driver as cluster  # noqa: E402
from rankbench.execution.cluster import worker as cluster_worker  # noqa: E402
from rankbench.execution.cluster.driver import Cluster  # noqa: E402
from rankbench.execution.cluster.orders import (  # noqa: E402
    Introduction,
    Order,
    Refusal,
    own_files,
    partitions_of,
    unfit,
)
from rankbench.execution.cluster.waiting import Waits  # noqa: E402
from rankbench.execution.cluster.worker import carry_out  # noqa: E402

pytestmark = pytest.mark.slow

BLOWS = [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.trust)]  # what is frozen is waited for long

SOURCE = str(Path(rankbench.__file__).parents[1])
FROZEN = 3  # seconds after which a frozen worker counts as gone where one is frozen; a busy machine's may stall so long


LOCAL = ("--host", "127.0.0.1", "--no-dashboard")


def dask(what, *arguments, inside=(), **environment):
    """A scheduler or a worker in a process of its own, without a dashboard; `inside` is a command that starts it."""
    return subprocess.Popen(
        [*inside, sys.executable, "-m", f"distributed.cli.dask_{what}", *arguments, *LOCAL],
        env={**os.environ, "PYTHONPATH": SOURCE, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def end(*processes):
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def worker_of(file, folder, daemon="False", nanny=True, **differently):
    """A worker for the scheduler of this file, with a nanny that starts another one when it dies, or alone."""
    options = ("--scheduler-file", str(file), "--nthreads", "1", "--local-directory", str(folder))
    options += () if nanny else ("--no-nanny",)
    return dask("worker", *options, DASK_DISTRIBUTED__WORKER__DAEMON=daemon, **differently)


@contextmanager
def joined_by(file, folder, **differently):
    """A worker that joins the cluster of this file, under other conditions than its workers."""
    with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
        before = len(client.scheduler_info(n_workers=-1)["workers"])
        nanny = worker_of(file, folder, **differently)
        try:
            client.wait_for_workers(before + 1, timeout=180)
            yield
        finally:
            end(nanny)


@contextmanager
def cluster_in(folder, workers=2, daemon="False", blow=None):
    """A scheduler and so many workers, with a nanny each unless one is to be killed; gives the scheduler's file."""
    file = folder / "scheduler.json"
    gone_after = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{FROZEN}s"} if blow == signal.SIGSTOP else {}
    scheduler = dask("scheduler", "--port", "0", "--scheduler-file", str(file), **gone_after)
    nannies = []
    try:
        until(file.exists)
        nannies = [worker_of(file, folder, daemon, nanny=blow != signal.SIGKILL) for _ in range(workers)]
        if workers:
            with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
                client.wait_for_workers(workers, timeout=180)
        yield file
    finally:
        end(scheduler, *nannies)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A cluster with two workers that no test harms."""
    with cluster_in(tmp_path_factory.mktemp("cluster")) as file:
        yield str(file)


@contextmanager
def on(file, per_node=2, **waits):
    """The cluster of a scheduler file, and a list of what it warns of."""
    said = []
    found = Cluster(str(file), per_node, said.append, Waits(**waits))
    try:
        yield found, said
    finally:
        found.close()


def warnings(said):
    """What a cluster warned of, without what it waited for: a busy machine's workers may answer late."""
    return [line for line in said if not line.startswith("waiting: ")]


def execute(folder, workplace, experiment=TINY, selection=None, caps=None):
    """A finished run on a cluster."""
    run = prepared(folder, experiment, selection or Selection(), caps=caps or Caps(seconds=60.0))
    run.workplace = workplace
    run.execute(lambda event: None)
    return run


def without_times(study):
    """A study's rows without what depends on when and where its cells ran."""
    timeless = {"seconds": None, "peak_mb": None, "prepare": None, "load": None, "disturbed": False}
    return [replace(row, **timeless) for row in rows(study)]


def test_a_cluster_gives_what_this_machine_gives(tmp_path, shared):
    here = ran(tmp_path / "here", TINY)
    with on(shared) as (workplace, said):
        until(lambda: workplace.places == 2)
        there = execute(tmp_path / "there", workplace)
    assert without_times(there.study()) == without_times(here.study()) and warnings(said) == []
    assert isinstance(without_times(here.study())[0], Row)
    for cell in here.plan.cells:
        one, other = here.result(cell), there.result(cell)
        assert (one.model, one.split) == (other.model, other.split) and other.model


def test_the_command_line_runs_on_a_cluster(tmp_path, shared):
    command = [sys.executable, "-m", "rankbench", "run", tiny_toml(tmp_path), "--no-report", "-j", "2"]
    options = ["--scheduler", shared, "--out", str(tmp_path / "out")]
    found = subprocess.run([*command, *options], capture_output=True, text=True, check=False, timeout=120)
    assert found.returncode == 0, found.stderr
    assert "tiny: 4 of 4 cells ended well" in found.stdout and found.stderr == ""


def test_one_cell_per_node_is_the_default_and_is_timed_and_workers_without_a_cell_are_named_once(shared):
    with on(shared, per_node=1) as (workplace, said):
        until(lambda: workplace.places == workplace.places == 1 and warnings(said))
    line = "note: 1 of 2 workers get no cell: each node runs 1 at a time, or as many as -j says"
    assert warnings(said) == [line]


def test_own_solvers_travel_by_content(tmp_path, shared):
    solver = with_solver(tmp_path, "pass")
    text = Path(solver.rpartition(":")[0]).read_text()
    run = prepared(tmp_path, tiny(), Selection(solvers=(solver,), repetitions=1), caps=Caps(seconds=60.0))
    (cell,) = run.plan.cells
    assert list(own_files(cell).values()) == [text.encode()]
    elsewhere = {"/nowhere/mine.py": text.encode()}
    moved = replace(cell, solver=replace(cell.solver, home="/nowhere/mine.py:Mine"))
    found = cluster_worker._with_own_files(Order(moved, Caps(), elsewhere, "stop"), tmp_path)
    assert found.solver.record == cell.solver.record and found.key == cell.key
    with on(shared) as (workplace, _):
        run.workplace = workplace
        run.execute(lambda event: None)
    assert run.result(cell).status == "ok"


def test_trials_start_from_the_model_before_them_on_workers_too(tmp_path, shared):
    experiment = along(tmp_path)
    here = ran(tmp_path / "here", experiment)
    with on(shared) as (workplace, _):
        assert told(execute(tmp_path / "there", workplace, experiment)) == told(here)


def test_limits_hold_on_workers(tmp_path, shared):
    solver = with_solver(tmp_path, "time.sleep(60)")
    with on(shared) as (workplace, _):
        selection = Selection(solvers=(solver,), repetitions=1)
        run = execute(tmp_path, workplace, tiny(), selection, caps=Caps(seconds=0.5))
    (cell,) = run.plan.cells
    assert run.result(cell).status == "timeout"


def test_a_worker_without_the_data_is_sent_the_split(tmp_path, shared):
    (tmp_path / "r.csv").write_text("".join(f"u{i},i{j},{(i * j) % 5}\n" for i in range(12) for j in range(20)))
    data = (f"csv:{tmp_path / 'r.csv'}",)
    run = prepared(tmp_path, tiny(data=data), caps=Caps(seconds=60.0))
    (tmp_path / "r.csv").unlink()  # from now on no worker can read it; the driver has cut its splits already
    with on(shared) as (workplace, said):
        run.workplace = workplace
        run.execute(lambda event: None)
    assert {run.result(cell).status for cell in run.plan.cells} == {"ok"}
    assert warnings(said) and all("is sent the split" in line and "r.csv" in line for line in warnings(said))


def test_a_worker_without_a_published_data_set_says_which_command_gets_it(tmp_path, monkeypatch):
    (cell,) = prepared(tmp_path, tiny(repetitions=1, solvers=("global",))).plan.cells
    for name in ("RANKBENCH_DATA", "RANKBENCH_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "empty"))
    place = replace(cell.place, data=DATASETS.resolve("ml-100k"))
    found = carry_out(Order(replace(cell, place=place, split_hash="1" * 64), Caps(), {}, "stop"))
    assert isinstance(found, Refusal) and found.lacks_data
    assert "ml-100k" in found.reason and "rankbench data fetch ml-100k" in found.reason


def test_a_scheduler_file_that_is_just_being_written_is_read_once_it_is_complete(tmp_path, monkeypatch):
    file = tmp_path / "scheduler.json"
    file.write_text('{"addr')
    monkeypatch.setattr(connecting, "sleep", lambda seconds: file.write_text('{"address": "tcp://here:1"}'))
    assert connecting._address(str(file)) == "tcp://here:1"


@pytest.mark.parametrize(
    ("text", "why"),
    [('{"addr', ".*"), ("[1]", "it has no address"), ("7", "it has no address"), ("{}", "it has no address")],
)
def test_a_scheduler_file_that_stays_damaged_is_one_line(tmp_path, monkeypatch, text, why):
    monkeypatch.setattr(connecting, "_WRITTEN", 0.0)
    (tmp_path / "scheduler.json").write_text(text)
    with pytest.raises(
        UserError, match=rf"no scheduler answers at .*scheduler\.json \({why}\); start one with: dask sch"
    ):
        Cluster(str(tmp_path / "scheduler.json"), 1, print, Waits())


def test_a_worker_with_other_data_is_refused(tmp_path, monkeypatch):
    (cell,) = prepared(tmp_path, tiny(repetitions=1, solvers=("global",))).plan.cells
    monkeypatch.setattr(cluster_worker, "_stopped_by", None)  # is not reached
    found = carry_out(Order(replace(cell, split_hash="0" * 64), Caps(), {}, "stop"))
    assert isinstance(found, Refusal) and not found.lacks_data
    assert "its data differs" in found.reason and "not the planned 000000000000" in found.reason


def test_a_worker_whose_disk_is_full_is_refused(tmp_path, monkeypatch):
    (cell,) = prepared(tmp_path, tiny(repetitions=1, solvers=("global",))).plan.cells

    def full(*arguments):
        raise OSError(28, "No space left on device", "/scratch/draft")

    monkeypatch.setattr(cluster_worker.Materials, "write", full)
    found = carry_out(Order(cell, Caps(), {}, "stop"))
    assert found == Refusal("it cannot write to /scratch/draft: No space left on device")


def test_workers_of_another_rankbench_or_without_processes_get_no_cells():
    mine = machine.describe()
    other = replace(mine, packages=(("rankbench", "9.9"), *mine.packages[1:]))
    assert "it has rankbench 9.9, and this driver" in unfit(Introduction(other, True), mine)
    assert "it has kernels abc" in unfit(Introduction(replace(mine, kernels="abc"), True), mine)
    assert "DASK_DISTRIBUTED__WORKER__DAEMON=False" in unfit(Introduction(mine, False), mine)
    assert unfit(Introduction(mine, True), mine) == ""


@pytest.mark.trust
def test_a_worker_of_another_version_gets_no_cells_and_the_others_run_them(tmp_path):
    installed = tmp_path / "other" / "rankbench-9.9.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: rankbench\nVersion: 9.9\n")
    path = f"{installed.parent}{os.pathsep}{SOURCE}"
    with cluster_in(tmp_path, workers=1) as file, joined_by(file, tmp_path, PYTHONPATH=path, PYTHONSAFEPATH="1"):
        with on(file) as (workplace, said):
            until(lambda: workplace.places == 1 and warnings(said))
            run = execute(tmp_path / "out", workplace)
    assert {run.result(cell).status for cell in run.plan.cells} == {"ok"}
    (line,) = warnings(said)
    assert "gets no cells: it has rankbench 9.9, and this driver" in line and "install the same rankbench" in line


def with_small_disk():
    """A command that starts another one, for which alone /mnt is a disk of 4 KiB; skips the test where that is refused.

    The path is short, since TMPDIR is not used for sockets where its path is long.
    """
    inside = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
    inside += ('mount -t tmpfs -o size=4k none /mnt && exec "$@"', "sh")
    try:
        allowed = subprocess.run([*inside, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("this system lets no user mount a file system of his own")
    return inside


def test_a_worker_whose_disk_fills_up_gets_no_more_cells_and_the_others_run_them(tmp_path):
    inside = with_small_disk()
    experiment = tiny(solvers=("global", "sgd"), repetitions=4)
    with cluster_in(tmp_path, workers=1) as file, joined_by(file, tmp_path, inside=inside, TMPDIR="/mnt"):
        with on(file) as (workplace, said):
            until(lambda: workplace.places == 2)
            run = execute(tmp_path / "out", workplace, experiment)
    assert {run.result(cell).status for cell in run.plan.cells} == {"ok"}
    (line,) = warnings(said)
    assert "gets no more cells: it cannot write to" in line and "No space left on device" in line


def test_daemonic_workers_are_refused_with_the_remedy(tmp_path):
    with cluster_in(tmp_path, workers=1, daemon="True") as file, on(file) as (workplace, said):
        with pytest.raises(UserError, match="can run cells; each says above what it lacks"):
            until(lambda: workplace.places != 1)  # it is 1 while the worker has not answered
        (line,) = warnings(said)
        assert "gets no cells" in line and "DASK_DISTRIBUTED__WORKER__DAEMON=False" in line


def test_a_scheduler_that_does_not_answer_is_one_line_in_five_seconds(tmp_path):
    command = [sys.executable, "-m", "rankbench", "run", tiny_toml(tmp_path), "--scheduler", "tcp://127.0.0.1:9"]
    started = time.monotonic()
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180, cwd=tmp_path)
    assert found.returncode == 2 and found.stderr.count("\n") == 1, found.stderr
    assert "no scheduler answers at tcp://127.0.0.1:9" in found.stderr and "dask scheduler" in found.stderr
    assert time.monotonic() - started < 30  # five seconds and the imports, on a busy machine
    assert not (tmp_path / "results").exists()


def noting(folder):
    """A solver that writes down each training, then waits until a file allows it to go on."""
    return with_solver(
        folder,
        f"with open({str(folder / 'log')!r}, 'a') as file:",
        "    print('training', file=file)",
        f"while not os.path.exists({str(folder / 'go')!r}): time.sleep(0.01)",
    )


def trainings(folder):
    """How many trainings have begun."""
    log = folder / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def busy(client):
    """The address of a worker that runs a cell."""
    return next(address for address, keys in client.processing().items() if keys)


def executed_with_a_blow(folder, run, file, blow, victim=busy):
    """Run on a cluster; once the first cell has begun, a worker gets a signal; then all cells may go on."""
    running = threading.Thread(target=run.execute, args=(lambda event: None,))
    with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
        running.start()
        until(lambda: trainings(folder) > 0)
        pid = client.run(os.getpid)[victim(client)]
        os.kill(pid, blow)
        (folder / "go").touch()
        running.join(180)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        assert not running.is_alive()
        until(lambda: not served(client))


@pytest.mark.parametrize("blow", BLOWS)
def test_cells_of_a_worker_that_dies_or_freezes_are_run_by_another(tmp_path, blow):
    selection = Selection(solvers=(noting(tmp_path), "global[lam=10]"))
    with cluster_in(tmp_path, blow=blow) as file, on(file, per_node=1) as (workplace, _):
        run = prepared(tmp_path / "there", tiny(), selection, caps=Caps(seconds=60.0))
        run.workplace = workplace
        executed_with_a_blow(tmp_path, run, file, blow)
    assert trainings(tmp_path) == 3  # of two cells, one began twice
    assert without_times(run.study()) == without_times(ran(tmp_path / "here", tiny(), selection).study())


@pytest.mark.trust
def test_a_cell_that_loses_its_workers_is_lost_and_run_again_on_request(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "_ATTEMPTS", 1)
    selection = Selection(solvers=(noting(tmp_path),), repetitions=1)
    with cluster_in(tmp_path) as file, on(file, per_node=1) as (workplace, _):
        run = prepared(tmp_path / "out", tiny(), selection)
        run.workplace = workplace
        executed_with_a_blow(tmp_path, run, file, signal.SIGKILL)
    (cell,) = run.plan.cells
    reason = "each of 1 times its worker went away or it was killed there"
    assert (run.result(cell).status, run.result(cell).reason) == ("lost", reason)
    assert prepared(tmp_path / "out", tiny(), selection).pending == ()
    again = ran(tmp_path / "out", tiny(), selection, rerun="failed")
    assert again.result(cell).status == "ok"


@pytest.mark.trust
def test_a_run_goes_on_when_its_scheduler_is_killed_and_started_again(tmp_path):
    selection = Selection(solvers=(noting(tmp_path), "global[lam=10]"))
    file = tmp_path / "scheduler.json"
    first = dask("scheduler", "--port", "0", "--scheduler-file", str(file))
    second = nannies = ()
    try:
        until(file.exists)
        nannies = [worker_of(file, tmp_path, nanny=False)]
        with on(file, per_node=1) as (workplace, _):
            run = prepared(tmp_path / "there", tiny(), selection, caps=Caps(seconds=60.0))
            run.workplace = workplace
            running = threading.Thread(target=run.execute, args=(lambda event: None,))
            running.start()
            until(lambda: trainings(tmp_path) == 1)
            end(first, *nannies)
            file.unlink()
            second = (dask("scheduler", "--port", "0", "--scheduler-file", str(file)),)
            (tmp_path / "go").touch()
            until(file.exists)
            nannies = [worker_of(file, tmp_path, nanny=False)]
            running.join(180)
            assert not running.is_alive()
    finally:
        end(first, *second, *nannies)
    assert without_times(run.study()) == without_times(ran(tmp_path / "here", tiny(), selection).study())


# users in parts, over all workers


PARTED = tiny(solvers=("frsvm[rank=2,features=none,partitions=5]", "altsvm[rank=2,inner=2,partitions=4]"))
GATE = """
from dataclasses import dataclass
from pathlib import Path
from time import sleep
import numpy as np

@dataclass(frozen=True)
class Gate:
    definition: str = "nothing: it notes that a model is evaluated, and waits until it may go on"
    better: str = "higher"
    limits: tuple[float, float] = (0.0, 1.0)
    version: int = 1

    def of_user(self, scores, ratings):
        with open({folder!r} + "/log", "a") as file:
            print("training", file=file)
        while not Path({folder!r} + "/go").exists():
            sleep(0.01)
        return 0.5
"""


def gated(folder):
    """An experiment in parts whose models are evaluated when a file allows it."""
    (folder / "gate.py").write_text(GATE.format(folder=str(folder)))
    metrics = (f"{folder / 'gate.py'}:Gate", "pairwise-error")
    return replace(PARTED, solvers=PARTED.solvers[:1], metrics=metrics, repetitions=1)


def served(client):
    """The workers that hold parts of some training."""
    return [address for address, keys in client.processing().items() if any("serve_seat" in key for key in keys)]


@pytest.mark.trust
@pytest.mark.parametrize("workers", [1, 2])
def test_a_training_in_parts_has_the_same_bits_on_any_number_of_workers(tmp_path, shared, workers):
    here = ran(tmp_path / "here", PARTED)
    with on(shared, per_node=workers) as (workplace, said):
        until(lambda: workplace.places == workers and len(warnings(said)) == 2 - workers)
        there = execute(tmp_path / "there", workplace, PARTED)
    assert {row.status for row in rows(here.study())} == {"ok"}
    assert without_times(there.study()) == without_times(here.study())
    for cell in here.plan.cells:
        one, other = here.result(cell), there.result(cell)
        assert one.model == other.model != "" and one.curve[-1].values == other.curve[-1].values


def test_cells_in_parts_and_whole_ones_run_after_each_other(tmp_path, shared):
    mixed = replace(PARTED, solvers=("global[lam=10]", *PARTED.solvers, "sgd[rank=2]"))
    with on(shared) as (workplace, _):
        there = execute(tmp_path / "there", workplace, mixed)
    assert without_times(there.study()) == without_times(ran(tmp_path / "here", mixed).study())


def holding_parts(client):
    """The address of a worker that holds parts, of the three that do."""
    assert len(served(client)) == 3
    return sorted(served(client))[1]


@pytest.mark.trust
@pytest.mark.parametrize("blow", BLOWS)
def test_a_training_in_parts_begins_again_when_a_worker_dies_or_freezes(tmp_path, blow):
    with cluster_in(tmp_path, workers=3, blow=blow) as file, on(file, per_node=3) as (workplace, _):
        run = prepared(tmp_path / "there", gated(tmp_path), caps=Caps(seconds=60.0))
        run.workplace = workplace
        until(lambda: workplace.places == 3)
        executed_with_a_blow(tmp_path, run, file, blow, holding_parts)
    here = ran(tmp_path / "here", gated(tmp_path))
    assert without_times(run.study()) == without_times(here.study())
    (cell,) = run.plan.cells
    assert run.result(cell).status == "ok" and run.result(cell).model == here.result(cell).model


def test_a_training_in_parts_that_loses_workers_too_often_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "_ATTEMPTS", 1)
    with cluster_in(tmp_path, workers=3, blow=signal.SIGKILL) as file, on(file, per_node=3) as (workplace, _):
        run = prepared(tmp_path / "out", gated(tmp_path), caps=Caps(seconds=60.0))
        run.workplace = workplace
        until(lambda: workplace.places == 3)
        executed_with_a_blow(tmp_path, run, file, signal.SIGKILL, holding_parts)
    (cell,) = run.plan.cells
    reason = "1 times a worker that held parts of the users went away"
    assert (run.result(cell).status, run.result(cell).reason) == ("lost", reason)


def test_limits_hold_for_a_training_in_parts_and_its_workers_are_free_afterwards(tmp_path, shared):
    with on(shared) as (workplace, _):
        run = execute(tmp_path / "slow", workplace, gated(tmp_path), caps=Caps(seconds=1.0))
        (cell,) = run.plan.cells
        assert run.result(cell).status == "timeout"
        quick = execute(tmp_path / "quick", workplace, replace(PARTED, repetitions=1))
        assert {quick.result(cell).status for cell in quick.plan.cells} == {"ok"}


def test_two_drivers_train_in_parts_on_the_same_workers(tmp_path, shared):
    found = {}

    def drive(name):
        with on(shared) as (workplace, _):
            found[name] = execute(tmp_path / name, workplace, PARTED)

    drivers = [threading.Thread(target=drive, args=(name,)) for name in ("one", "other")]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join(120)
    assert without_times(found["one"].study()) == without_times(found["other"].study())
    assert {row.status for row in rows(found["one"].study())} == {"ok"}


def test_a_driver_that_stops_does_not_wait_for_workers_to_become_free(shared):
    stop = threading.Event()
    stop.set()
    with on(shared) as (workplace, _):
        workplace._busy["some worker"] = "its node"
        with pytest.raises(Interrupted):
            workplace._all_free(stop)


def test_more_parts_than_users_fail_with_the_remedy(tmp_path, shared):
    with on(shared) as (workplace, _):
        run = execute(tmp_path, workplace, replace(PARTED, solvers=("altsvm[rank=2,partitions=21]",), repetitions=1))
    (cell,) = run.plan.cells
    reason = "UserError: AltSVM: partitions=21 is above the number of users, 20; lower partitions"
    assert (run.result(cell).status, run.result(cell).reason) == ("failed", reason)


@pytest.mark.trust
@pytest.mark.parametrize("experiment", [TINY, PARTED], ids=["whole", "in parts"])
def test_a_scheduler_without_workers_ends_the_run_in_one_line(tmp_path, experiment):
    with cluster_in(tmp_path, workers=0) as file, on(file, workers=0.5) as (workplace, _):
        with pytest.raises(Unfinished, match=r"the scheduler .* has no workers for . s \(--wait-for-workers\); start"):
            execute(tmp_path / "out", workplace, experiment)


def rankbench_run(folder, file, *options):
    """A driver in a process of its own for the cluster of this file."""
    command = [sys.executable, "-m", "rankbench", "run", tiny_toml(folder), "--no-report", "--out", str(folder / "out")]
    return subprocess.Popen(
        [*command, "--scheduler", str(file), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_run_says_what_it_waits_for_and_ends_when_nobody_comes(tmp_path):
    with cluster_in(tmp_path, workers=0) as file:
        driver = rankbench_run(tmp_path, file, "--wait-for-workers", "8s", "-q")
        _, errors = driver.communicate(timeout=120)
    assert driver.returncode == 1
    first, second, third = errors.splitlines()
    assert re.search(r"waiting: the scheduler .* has no workers for [5-7] s; the run ends after 8 s", first)
    assert re.search(r"has no workers for [89] s \(--wait-for-workers\); start some with: dask worker", second)
    assert "stopped; finished cells kept: 0; resume with: rankbench run" in third


@pytest.mark.trust
@pytest.mark.parametrize("blow", BLOWS)
def test_a_run_whose_scheduler_is_gone_or_frozen_keeps_what_is_stored_and_ends(tmp_path, blow):
    file = tmp_path / "scheduler.json"
    scheduler = dask("scheduler", "--port", "0", "--scheduler-file", str(file))
    nannies = ()
    try:
        until(file.exists)
        nannies = [worker_of(file, tmp_path)]
        solver = noting(tmp_path)
        driver = rankbench_run(tmp_path, file, "-s", "global[lam=10]", "-s", solver, "--scheduler-timeout", "3s")
        until(lambda: trainings(tmp_path) == 1)
        kept = len(list((tmp_path / "out").glob("*/cells/*.json")))
        os.killpg(scheduler.pid, blow)
        _, errors = driver.communicate(timeout=120)
    finally:
        end(scheduler, *nannies)
    assert kept and driver.returncode == 1, errors
    assert "does not answer for" in errors and "(--scheduler-timeout); start it again" in errors
    assert f"stopped; finished cells kept: {kept}; resume with: rankbench run" in errors
    assert all(line.startswith("rankbench: ") for line in errors.splitlines()), errors


@pytest.mark.trust
def test_a_users_own_solver_with_partitions_trains_on_one_worker(tmp_path):
    text = "from rankbench.solvers.frsvm import FRSVM\nclass Mine(FRSVM): pass\n"
    (tmp_path / "mine.py").write_text(text)
    selection = Selection(solvers=(f"{tmp_path / 'mine.py'}:Mine[rank=2,features=none,partitions=3]",), repetitions=1)
    (cell,) = prepared(tmp_path, tiny(), selection).plan.cells
    (builtin,) = prepared(tmp_path, PARTED, Selection(solvers=PARTED.solvers[:1], repetitions=1)).plan.cells
    assert (partitions_of(cell), partitions_of(builtin)) == (0, 5)
