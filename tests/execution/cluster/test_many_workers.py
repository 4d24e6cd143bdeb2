"""What a driver does when workers or the scheduler go away at a given moment: a client that stands for a cluster."""

import threading
from dataclasses import replace

import pytest
from execution.test_isolation import task_of

from rankbench.core.errors import UserError
from rankbench.execution.isolation import Caps, Interrupted

distributed = pytest.importorskip("distributed", reason="needs the extra dask")

from distributed.client import FutureCancelledError  # noqa: E402
from distributed.scheduler import KilledWorker  # noqa: E402

from rankbench.execution import machine  # noqa: E402
from rankbench.execution.cluster import driver as cluster  # noqa: E402
from rankbench.execution.cluster.driver import Cluster, _Gone, _Worker  # noqa: E402
from rankbench.execution.cluster.worker import Introduction, Order  # noqa: E402
from rankbench.execution.worker import ended_early  # noqa: E402

HERE = "tcp://here:1"
CANCELLED = FutureCancelledError("key", "scheduler-connection-lost")
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

    scheduler = loop = None
    status = "running"

    def __init__(self, *answers, workers=(HERE,)):
        self.answers, self.workers = list(answers), workers

    def scheduler_info(self, n_workers):
        if self.workers is None:
            raise OSError("gone")
        return {"workers": dict.fromkeys(self.workers)}

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

    def made(client):
        said = []
        monkeypatch.setattr(cluster, "_connected", lambda scheduler: client)
        monkeypatch.setattr(cluster, "_AGAIN", 0.0)
        return Cluster("tcp://scheduler:1", 1, said.append), said

    return made


@pytest.fixture
def unreachable(monkeypatch):
    """Lets every further attempt to reach the scheduler fail, once the driver is made."""

    def refusing(scheduler):
        raise UserError(f"no scheduler answers at {scheduler}")

    def cut(client):
        client.workers, client.status = None, "closed"
        monkeypatch.setattr(cluster, "_connected", refusing)
        monkeypatch.setattr(cluster, "_AWAY", 0.0)

    return cut


@pytest.fixture
def worker():
    """The worker of `Client`."""
    return _Worker(HERE, "here", machine.describe())


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
        found.run(task, Caps(), stopped)


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
        assert found._usable() == []
        assert [worker.address for worker in found._usable()] == [HERE] and said == []


def test_a_worker_that_cannot_describe_itself_gets_no_cells(driver):
    found, said = driver(Client(Answer(error=ImportError("no rankbench"))))
    with pytest.raises(UserError, match="no worker of tcp://scheduler:1 can run cells; each says above what it lacks"):
        _ = found.places
    assert said == [f"worker {HERE} gets no cells: it cannot describe itself (ImportError: no rankbench)"]


# one cell on one worker


def answered(driver, task, stop, *answers, workers=(HERE,)):
    """What a driver makes of these answers to an order."""
    found, _ = driver(Client(*answers, workers=workers))
    return found._answer(HERE, Order(task.cell, Caps(), {}, "stop"), stop)


@pytest.mark.parametrize(
    "lost",
    [CANCELLED, OSError("closed"), *(Answer(error=error) for error in (CANCELLED, OSError("closed"), KILLED)),
     Answer(status="lost"), Answer(status="cancelled")],
)  # fmt: skip
def test_a_worker_that_does_not_answer_is_gone(driver, task, lost):
    with pytest.raises(_Gone):
        answered(driver, task, threading.Event(), lost)


def test_a_worker_that_left_the_cluster_is_gone_and_its_cell_is_cancelled(driver, task):
    waiting = Answer(status="pending")
    with pytest.raises(_Gone):
        answered(driver, task, threading.Event(), waiting, workers=())
    assert waiting.status == "cancelled"


def test_what_breaks_the_order_itself_is_the_failure_of_its_cell(driver, task):
    found = answered(driver, task, threading.Event(), Answer(error=TypeError("cannot be sent")))
    assert found == ended_early("failed", "TypeError: cannot be sent")


def test_a_run_that_is_stopped_waits_for_no_answer(driver, task, stopped):
    with pytest.raises(Interrupted):
        answered(driver, task, stopped, Answer(status="pending"))


def test_a_scheduler_that_stays_away_is_told(driver, worker, unreachable):
    client = Client()
    found, _ = driver(client)
    unreachable(client)
    assert not found._are_present([worker])
    with pytest.raises(UserError, match="no scheduler answers at tcp://scheduler:1"):
        found._come_back()


def test_a_scheduler_that_comes_back_is_connected_to_again(driver, unreachable, monkeypatch):
    first, second = Client(), Client()
    found, _ = driver(first)
    unreachable(first)
    monkeypatch.setattr(cluster, "_AWAY", 60.0)
    monkeypatch.setattr(cluster, "sleep", lambda seconds: monkeypatch.setattr(cluster, "_connected", lambda _: second))
    assert found._present() == [] and found._present() == [HERE]
    assert found._client is second


# one cell over all workers


@pytest.mark.parametrize("lost", [CANCELLED, OSError("closed")])
def test_a_task_that_cannot_be_handed_over_loses_the_worker(driver, worker, lost):
    found, _ = driver(Client(lost))
    with pytest.raises(_Gone):
        found._told(worker, print)


@pytest.mark.parametrize("lost", [CANCELLED, OSError("closed"), KILLED])
def test_a_worker_that_takes_no_seat_is_gone(driver, worker, lost):
    found, _ = driver(Client(Answer(error=lost)))
    with pytest.raises(_Gone):
        found._seated([worker], "team", b"key", threading.Event())


def test_workers_are_not_waited_for_once_one_is_gone_or_the_run_is_stopped(driver, worker, stopped):
    found, _ = driver(Client(Answer(status="pending"), Answer(status="pending"), workers=()))
    with pytest.raises(_Gone):
        found._seated([worker], "team", b"key", threading.Event())
    with pytest.raises(Interrupted):
        found._seated([worker], "team", b"key", stopped)


def test_parts_are_not_sent_between_workers_whose_connections_would_not_be_encrypted(driver, worker):
    found, _ = driver(Client())
    secret = replace(worker, address="tls://here:1")
    with pytest.raises(UserError, match=r"tls://here:1: .* not be encrypted; run with partitions=1, or on a cluster"):
        found._seated([secret], "team", b"key", threading.Event())


@pytest.mark.parametrize(("ends", "raised"), [("stopped", Interrupted), ("halted", _Gone), ("lost", _Gone)])
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


@pytest.mark.parametrize(("answer", "raised"), [(False, Interrupted), (OSError("closed"), _Gone)])
def test_the_turn_of_a_team_is_not_waited_for_when_the_run_is_stopped_or_the_scheduler_gone(
    driver, stopped, monkeypatch, answer, raised
):
    class Lock:
        def __init__(self, name, scheduler_rpc, loop):
            self.name = name

        def acquire(self, timeout):
            if isinstance(answer, OSError):
                raise answer
            return answer

    monkeypatch.setattr(cluster, "Lock", Lock)
    found, _ = driver(Client())
    with pytest.raises(raised), found._only_team(stopped):
        raise AssertionError("two teams at a time")


@pytest.mark.parametrize("missing", ["nowhere.json", "nowhere"])
def test_a_scheduler_file_that_is_not_there_is_told(missing):
    with pytest.raises(
        UserError, match=rf"no scheduler answers at {missing} \(there is no such file\); start one with"
    ):
        cluster._connected(missing)
