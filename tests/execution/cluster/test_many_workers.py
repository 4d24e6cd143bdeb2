"""What a driver does when workers or the scheduler go away at a given moment: a client that stands for a cluster."""

import threading
from contextlib import nullcontext
from dataclasses import replace

import pytest
from execution.test_isolation import task_of

from rankbench.core.errors import Unfinished, UserError
from rankbench.execution.isolation import Caps, Interrupted

distributed = pytest.importorskip("distributed", reason="needs the extra dask")

from distributed.client import ClosedClientError, FutureCancelledError  # noqa: E402
from distributed.scheduler import KilledWorker  # noqa: E402

from rankbench.execution import machine  # noqa: E402
from rankbench.execution.cluster import connecting, waiting  # noqa: E402
from rankbench.execution.cluster import driver as cluster  # noqa: E402
from rankbench.execution.cluster.driver import Cluster  # noqa: E402
from rankbench.execution.cluster.orders import Gone, Introduction, Order, Worker  # noqa: E402
from rankbench.execution.cluster.waiting import Waits  # noqa: E402
from rankbench.execution.worker import ended_early  # noqa: E402

HERE = "tcp://here:1"
CANCELLED = FutureCancelledError("key", "scheduler-connection-lost")
CLOSED = ClosedClientError("Client is closed")
KILLED = KilledWorker("key", None, 1)


class Answer:
    """A future with a result or an error; without either it has not ended."""

    def __init__(self, result=None, error=None, status="finished"):
        self.found, self.error, self.status = result, error, status

    def result(self, timeout=None):
        if error := self.error or (None if self.done() else TimeoutError()):
            raise error
        return self.found

    def exception(self, timeout=None):
        return self.error

    def done(self):
        return self.status == "finished"

    def cancel(self):
        self.status = "cancelled"


class Unheard(Answer):
    """A future whose connection breaks while it is waited for."""

    def exception(self, timeout=None):
        raise OSError("closed")


INTRODUCED = Answer(Introduction(machine.describe(), True))


class Client:
    """A client of a cluster with these workers, which answers so to what is submitted."""

    loop = None
    status = "running"

    def __init__(self, *answers, workers=(HERE,)):
        self.answers, self.workers = list(answers), workers
        self.scheduler = self

    def identity(self, n_workers):
        if self.workers is None:
            raise OSError("gone")
        return {"workers": dict.fromkeys(self.workers)}

    def sync(self, function, callback_timeout, **arguments):
        return function(**arguments)

    def submit(self, work, *arguments, **options):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self, timeout):
        self.status = "closed"


@pytest.fixture
def driver(monkeypatch):
    """Makes a driver of a cluster that this client stands for, and the list of what it warns of."""

    def made(client, per_node=1, **waits):
        said = []
        monkeypatch.setattr(connecting, "connected", lambda scheduler: client)
        return Cluster("tcp://scheduler:1", per_node, said.append, Waits(**waits)), said

    return made


@pytest.fixture
def unreachable(monkeypatch):
    """Lets every further attempt to reach the scheduler fail, once the driver is made."""

    def refusing(scheduler):
        raise UserError(f"no scheduler answers at {scheduler}")

    def cut(client):
        client.workers, client.status = None, "closed"
        monkeypatch.setattr(connecting, "connected", refusing)

    return cut


@pytest.fixture
def worker():
    """The worker of `Client`."""
    return Worker(HERE, "here", machine.describe())


@pytest.fixture
def task(tmp_path):
    """A cell to train."""
    return task_of(tmp_path)


@pytest.fixture
def stopped():
    """The event of a run that has been stopped."""
    stop = threading.Event()
    stop.set()
    return stop


# the workers


def test_a_run_that_is_stopped_waits_for_no_worker(driver, task, stopped):
    found, _ = driver(Client(workers=()))
    with pytest.raises(Interrupted):
        found.run(task, Caps(), stopped, alone=False)


@pytest.mark.parametrize(
    "lost",
    [
        CANCELLED,
        OSError("closed"),
        *(Answer(status=status) for status in ("lost", "cancelled")),
        Unheard(status="pending"),
    ],
)
def test_a_worker_whose_introduction_was_lost_is_asked_again(driver, lost):
    found, said = driver(Client(lost, INTRODUCED))
    with found._change:
        assert found._usable(1) == []
        assert [worker.address for worker in found._usable(1)] == [HERE] and said == []


def test_a_worker_that_cannot_describe_itself_gets_no_cells(driver):
    found, said = driver(Client(Answer(error=ImportError("no rankbench"))))
    with pytest.raises(UserError, match="no worker of tcp://scheduler:1 can run cells; each says above what it lacks"):
        _ = found.places
    assert said == [f"worker {HERE} gets no cells: it cannot describe itself (ImportError: no rankbench)"]


def test_of_cells_that_run_alone_each_node_gets_one(driver):
    workers = ("tcp://here:1", "tcp://here:2", "tcp://there:1", "tcp://there:2")
    found, said = driver(Client(*[INTRODUCED] * 4, workers=workers), per_node=2)
    go_on, stopped = threading.Event(), threading.Event()
    stopped.set()
    assert (found.places, found.nodes, said) == (4, 2, [])
    with found._free_worker(go_on, 1) as one, found._free_worker(go_on, 1) as other:
        assert {one.node, other.node} == {"tcp://here", "tcp://there"}
        with pytest.raises(Interrupted), found._free_worker(stopped, 1):
            pass
        with found._free_worker(stopped, 2) as beside:
            assert beside not in (one, other)


def test_a_cell_that_runs_alone_waits_for_a_node_where_nothing_runs(driver, task, stopped):
    workers, good = ("tcp://here:1", "tcp://here:2"), ended_early("timeout", "took too long")
    found, _ = driver(Client(*[INTRODUCED] * 2, Answer(good), workers=workers), per_node=2)
    with found._free_worker(threading.Event(), 2):
        with pytest.raises(Interrupted):
            found.run(task, Caps(), stopped, alone=True)
        assert found.run(task, Caps(), stopped, alone=False)[0] == good


# one cell on one worker


def answered(driver, task, stop, *answers, workers=(HERE,)):
    """What a driver makes of these answers to an order."""
    found, _ = driver(Client(*answers, workers=workers))
    return found._answer(HERE, Order(task.cell, Caps(), {}, "stop"), stop)


@pytest.mark.parametrize(
    "lost",
    [CANCELLED, OSError("closed"), CLOSED, *(Answer(error=error) for error in (CANCELLED, OSError("closed"), KILLED)),
     Answer(status="lost"), Answer(status="cancelled")],
)  # fmt: skip
def test_a_worker_that_does_not_answer_is_gone(driver, task, lost):
    with pytest.raises(Gone):
        answered(driver, task, threading.Event(), lost)


def test_a_worker_that_left_the_cluster_is_gone_and_its_cell_is_cancelled(driver, task):
    waiting = Answer(status="pending")
    with pytest.raises(Gone):
        answered(driver, task, threading.Event(), waiting, workers=())
    assert waiting.status == "cancelled"


def test_a_cell_that_was_killed_on_its_worker_is_handed_out_again(driver, task):
    killed, good = ended_early("lost", "it was killed by SIGKILL"), ended_early("timeout", "took too long")
    found, _ = driver(Client(INTRODUCED, Answer(killed), Answer(killed), Answer(good)))
    assert found.run(task, Caps(), threading.Event(), alone=False)[0] == good
    found, _ = driver(Client(INTRODUCED, *[Answer(killed)] * 3))
    reason = "each of 3 times its worker went away or it was killed there"
    assert found.run(task, Caps(), threading.Event(), alone=False)[0] == ended_early("lost", reason)


def test_a_cell_under_way_does_not_fail_when_its_scheduler_stays_away(driver, task, unreachable):
    client = Client(Answer(status="pending"))
    found, _ = driver(client, scheduler=0.0)
    unreachable(client)
    client.status = "running"
    with pytest.raises(Unfinished):
        found._answer(HERE, Order(task.cell, Caps(), {}, "stop"), threading.Event())
    found.close()


def test_an_error_that_is_not_the_solvers_is_tried_again_and_told_in_the_end(driver, task):
    broken, good = Answer(error=TypeError("cannot be sent")), ended_early("timeout", "took too long")
    found, _ = driver(Client(INTRODUCED, broken, Answer(good)))
    assert found.run(task, Caps(), threading.Event(), alone=False)[0] == good
    found, _ = driver(Client(INTRODUCED, *[broken] * 3))
    reason = "each of 3 times its worker did not get so far as to run it: TypeError: cannot be sent"
    assert found.run(task, Caps(), threading.Event(), alone=False)[0] == ended_early("lost", reason)
    found, _ = driver(Client(INTRODUCED, broken, CANCELLED, broken))
    reason += " or its worker went away or it was killed there"
    assert found.run(task, Caps(), threading.Event(), alone=False)[0] == ended_early("lost", reason)


def test_a_run_that_is_stopped_waits_for_no_answer(driver, task, stopped):
    with pytest.raises(Interrupted):
        answered(driver, task, stopped, Answer(status="pending"))


def test_a_scheduler_that_stays_away_is_told(driver, worker, unreachable):
    client = Client()
    found, _ = driver(client, scheduler=0.0)
    unreachable(client)
    assert not found._are_present([worker])
    with pytest.raises(
        Unfinished, match=r"the scheduler tcp://scheduler:1 does not answer for 0 s \(--scheduler-timeout"
    ):
        found._usable(1)


def test_a_scheduler_that_comes_back_is_connected_to_again(driver, worker, unreachable, monkeypatch):
    first, second = Client(), Client(INTRODUCED)
    found, _ = driver(first)
    unreachable(first)
    assert found._usable(1) == [] and found._are_present([worker]) and found._client is first
    monkeypatch.setattr(connecting, "connected", lambda scheduler: second)
    assert found._usable(1) == [] and found._client is second
    assert [worker.address for worker in found._usable(1)] == [HERE]


def test_a_scheduler_that_does_not_answer_is_waited_for_over_the_same_connection(driver, unreachable):
    client = Client(INTRODUCED)
    found, _ = driver(client)
    unreachable(client)
    client.status = "running"
    assert found._usable(1) == [] and client.status == "running"
    client.workers = (HERE,)
    assert [worker.address for worker in found._usable(1)] == [HERE] and found._client is client


def test_a_cell_goes_on_while_the_scheduler_does_not_answer_and_is_gone_with_its_connection(driver, unreachable):
    client = Client()
    found, _ = driver(client)
    unreachable(client)
    assert not found._has_left(client, HERE)
    assert found._has_left(Client(), HERE)


# what is said of waits, and how they end


class Clock:
    """A time that tests set."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The time by which waits are measured."""
    found = Clock()
    monkeypatch.setattr(waiting, "monotonic", found)
    return found


def test_a_wait_is_said_after_a_moment_and_then_once_a_minute_until_its_limit(clock):
    said = []
    wait = waiting.Wait("nobody is there", "--patience", 180.0, "call somebody", say=said.append)
    for clock.now in range(100, 280):
        wait.goes_on()
    assert said == [
        f"waiting: nobody is there for {seconds} s; the run ends after 180 s (--patience)" for seconds in (5, 65, 125)
    ]
    clock.now = 280
    with pytest.raises(Unfinished, match=r"nobody is there for 180 s \(--patience\); call somebody, and run the same"):
        wait.goes_on()


def test_a_wait_that_was_over_begins_anew(clock):
    wait = waiting.Wait("nobody is there", "--patience", 10.0, say=print)
    wait.goes_on()
    wait.is_over()
    clock.now += 20
    wait.goes_on()


def test_workers_that_run_something_else_are_waited_for_without_a_limit(driver, clock):
    found, said = driver(Client(Answer(status="pending")), workers=10.0)
    for clock.now in (100, 105, 1000):
        assert found._usable(1) == []
    assert said == [
        f"waiting: no worker of tcp://scheduler:1 has answered, as if all ran something else for {seconds} s; "
        "the run waits without a limit"
        for seconds in (5, 900)
    ]


# one cell over all workers


@pytest.mark.parametrize("alone", [True, False])
def test_beside_a_cell_in_parts_whose_seconds_count_no_worker_gets_another(driver, stopped, alone):
    found, _ = driver(Client(*[INTRODUCED] * 2, workers=("tcp://here:1", "tcp://there:1")))
    with found._free_team(1, threading.Event(), alone) as team:
        assert len(team) == 1
        with pytest.raises(Interrupted) if alone else nullcontext(), found._free_worker(stopped, 1) as other:
            assert other not in team


@pytest.mark.parametrize("lost", [CANCELLED, OSError("closed")])
def test_a_task_that_cannot_be_handed_over_loses_the_worker(driver, worker, lost):
    found, _ = driver(Client(lost))
    with pytest.raises(Gone):
        found._told(worker.address, print)


@pytest.mark.parametrize("lost", [CANCELLED, OSError("closed"), KILLED])
def test_a_worker_that_takes_no_seat_is_gone(driver, worker, lost):
    found, _ = driver(Client(Answer(error=lost)))
    with pytest.raises(Gone):
        found._seated([worker], "team", b"key", threading.Event())


def test_workers_are_not_waited_for_once_one_is_gone_or_the_run_is_stopped(driver, worker, stopped):
    found, _ = driver(Client(Answer(status="pending"), Answer(status="pending"), workers=()))
    with pytest.raises(Gone):
        found._seated([worker], "team", b"key", threading.Event())
    with pytest.raises(Interrupted):
        found._seated([worker], "team", b"key", stopped)


def test_parts_are_not_sent_between_workers_whose_connections_would_not_be_encrypted(driver, worker):
    found, _ = driver(Client())
    secret = replace(worker, address="tls://here:1")
    with pytest.raises(UserError, match=r"tls://here:1: .* not be encrypted; run with partitions=1, or on a cluster"):
        found._seated([secret], "team", b"key", threading.Event())


@pytest.mark.parametrize(("ends", "raised"), [("stopped", Interrupted), ("halted", Gone), ("lost", Gone)])
def test_a_training_in_parts_ends_with_the_run_or_with_a_worker(driver, worker, task, monkeypatch, ends, raised):
    stop, serving = threading.Event(), Answer(status="pending")
    found, _ = driver(Client(Answer(("here", 1)), serving))

    def trained(server, task, caps, halt):
        if ends == "lost":
            return ended_early("lost", "a member is gone")
        if ends == "stopped":
            stop.set()
        raise Interrupted

    monkeypatch.setattr(cluster, "run_isolated", trained)
    monkeypatch.setattr(cluster, "server", lambda: None)
    with pytest.raises(raised):
        found._led([worker], task, Caps(), stop)
    assert serving.status == "cancelled"


@pytest.mark.parametrize(("answer", "raised"), [(False, Interrupted), (OSError("closed"), Gone)])
def test_the_turn_of_a_team_is_not_waited_for_when_the_run_is_stopped_or_the_scheduler_gone(
    stopped, monkeypatch, answer, raised
):
    class Lock:
        def __init__(self, name, scheduler_rpc, loop):
            self.name = name

        def acquire(self, timeout):
            if isinstance(answer, OSError):
                raise answer
            return answer

    monkeypatch.setattr(connecting, "Lock", Lock)
    with pytest.raises(raised), connecting.only_team(Client(), stopped):
        raise AssertionError("two teams at a time")


@pytest.mark.parametrize("missing", ["nowhere.json", "nowhere"])
def test_a_scheduler_file_that_is_not_there_is_told(missing):
    with pytest.raises(
        UserError, match=rf"no scheduler answers at {missing} \(there is no such file\); start one with"
    ):
        connecting.connected(missing)
