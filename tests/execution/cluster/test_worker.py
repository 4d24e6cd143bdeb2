"""What a worker does for a driver, in a Dask cluster with one worker that lives in the process of the tests."""

import os
import socket
import threading
from contextlib import nullcontext
from dataclasses import replace

import pytest
from helpers import TINY, prepared, ran, tiny, until, with_solver

from rankbench.execution.isolation import Caps
from rankbench.records.cells import Selection
from rankbench.report.rows import rows

distributed = pytest.importorskip("distributed", reason="needs the extra dask")

from execution.cluster.test_driver import PARTED, execute, on, warnings, without_times  # noqa: E402

from rankbench.execution.cluster import worker as cluster_worker  # noqa: E402
from rankbench.execution.cluster.driver import Cluster  # noqa: E402
from rankbench.execution.cluster.orders import Order, Refusal  # noqa: E402
from rankbench.execution.cluster.worker import carry_out  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address():
    """Where the scheduler of a cluster listens whose only worker is a thread of this process."""
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(protocol="tcp://", host="127.0.0.1", **options) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def order(tmp_path):
    """An order to train a cell."""
    cell, *_ = prepared(tmp_path, TINY).plan.cells
    return Order(cell, Caps(seconds=60.0), {}, "stop")


@pytest.mark.parametrize("experiment", [TINY, replace(PARTED, repetitions=1)], ids=["whole", "in parts"])
def test_a_worker_gives_the_bits_that_the_driver_would(tmp_path, address, experiment):
    here = ran(tmp_path / "here", experiment)
    with on(address) as (workplace, said):
        there = execute(tmp_path / "there", workplace, experiment)
    assert warnings(said) == [] and {row.status for row in rows(there.study())} == {"ok"}
    assert without_times(there.study()) == without_times(here.study())


def test_a_cell_ends_when_the_driver_says_so(tmp_path, address, monkeypatch):
    monkeypatch.setattr(cluster_worker, "_LOOK", 0.05)
    solver = with_solver(tmp_path, f"open({str(tmp_path / 'begun')!r}, 'w').close()", "time.sleep(60)")
    (cell,) = prepared(tmp_path, tiny(), Selection(solvers=(solver,), repetitions=1)).plan.cells
    with distributed.Client(address, set_as_default=False) as client:
        answer = client.submit(carry_out, Order(cell, Caps(), {}, "stop-it"), pure=False)
        until((tmp_path / "begun").exists)
        distributed.Event("stop-it", client=client).set()
        assert answer.result(timeout=180) == Refusal("the driver stopped")


def test_processes_that_do_not_reach_each_other_are_not_taken_for_a_full_disk(order, monkeypatch):
    def refused():
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(cluster_worker, "_split_file", lambda order, folder: folder / "split.arrays")
    monkeypatch.setattr(cluster_worker, "_stopped_by", lambda name: nullcontext(threading.Event()))
    monkeypatch.setattr(cluster_worker, "server", refused)
    with pytest.raises(ConnectionRefusedError):
        carry_out(order)


def test_a_seat_is_given_up_when_the_driver_says_so(address, monkeypatch):
    monkeypatch.setattr(cluster_worker, "_LOOK", 0.05)
    with distributed.Client(address, set_as_default=False) as client:
        host, port = client.submit(cluster_worker.take_seat, "team", b"key", pure=False).result(timeout=180)
        assert host == "127.0.0.1" and set(cluster_worker._SEATS) == {"team"}
        served = client.submit(cluster_worker.serve_seat, "team", 0, [(host, port)], pure=False)
        until(lambda: not cluster_worker._SEATS)
        distributed.Event("team", client=client).set()
        assert served.result(timeout=180) is None


def test_a_seat_that_nobody_has_asked_to_be_served_is_given_up_for_the_next_team(address):
    with distributed.Client(address, set_as_default=False) as client:
        host, port = client.submit(cluster_worker.take_seat, "left", b"key", pure=False).result(timeout=180)
        client.submit(cluster_worker.take_seat, "next", b"key", pure=False).result(timeout=180)
    assert set(cluster_worker._SEATS) == {"next"}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, port), timeout=10)
    cluster_worker._SEATS.pop("next").close()


def test_a_team_whose_seats_were_given_up_is_lost_and_made_again(tmp_path, address, monkeypatch):
    experiment, seated, teams = replace(PARTED, solvers=PARTED.solvers[:1], repetitions=1), Cluster._seated, []

    def late(self, *arguments):  # as if this driver stood still until another one made a team
        found = seated(self, *arguments)
        teams.append(found)
        if len(teams) == 1:
            self._client.submit(cluster_worker.take_seat, "other", b"key", pure=False).result()
            cluster_worker._SEATS.pop("other").close()
        return found

    monkeypatch.setattr(Cluster, "_seated", late)
    with on(address) as (workplace, _):
        found = execute(tmp_path, workplace, experiment)
    assert len(teams) == 2 and {row.status for row in rows(found.study())} == {"ok"}


def test_a_scheduler_that_is_away_ends_nothing(monkeypatch):
    looked, may_stop, acted = threading.Semaphore(0), threading.Event(), []

    class Away:
        def __init__(self, name, client):
            self.answers = iter([OSError("away"), False, True])

        def is_set(self):
            looked.release()
            if isinstance(answer := next(self.answers, True), OSError):
                raise answer
            return answer and may_stop.wait(180)

    monkeypatch.setattr(cluster_worker, "_LOOK", 0.01)
    monkeypatch.setattr(cluster_worker, "Event", Away)
    monkeypatch.setattr(cluster_worker, "get_client", lambda: None)
    with cluster_worker._on_event("stop", lambda: acted.append("stopped")):
        for _ in range(2):
            assert looked.acquire(timeout=180)
        assert acted == []
        may_stop.set()
        until(lambda: acted)


def test_the_splits_used_last_are_kept(tmp_path, order):
    for age, name in enumerate("abcd"):
        path = tmp_path / f"{name}.arrays"
        path.write_bytes(b"split")
        os.utime(path, (age, age))
    again = cluster_worker._split_file(replace(order, cell=replace(order.cell, split_hash="a")), tmp_path)
    assert again == tmp_path / "a.arrays" and again.read_bytes() == b"split"
    sent = replace(order, cell=replace(order.cell, split_hash="e"), split=b"sent")
    assert cluster_worker._split_file(sent, tmp_path).read_bytes() == b"sent"
    assert sorted(path.name for path in tmp_path.glob("?.arrays")) == [f"{name}.arrays" for name in "acde"]
    assert not (tmp_path / "draft").exists()


def test_the_model_to_start_from_is_written_where_the_solver_finds_it(tmp_path, order):
    assert cluster_worker._start_file(order, tmp_path) is None
    assert cluster_worker._start_file(replace(order, start=b"model"), tmp_path).read_bytes() == b"model"


def test_a_worker_describes_its_machine_and_whether_it_may_start_processes():
    told = cluster_worker.introduce()
    assert told.machine.version("rankbench") and told.may_start_processes
