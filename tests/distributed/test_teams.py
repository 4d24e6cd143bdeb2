"""Teams of processes: what they compute has the bits of one process, and a lost member ends the training."""

import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from solvers.contract import STEPS, ratings, scores

import rankbench
from rankbench.arrays import mapped
from rankbench.arrays.npz import fingerprint
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Executor
from rankbench.core.errors import UserError
from rankbench.core.streams import stream
from rankbench.data.views import offer
from rankbench.distributed import channels, teams
from rankbench.distributed.channels import Channel, PeerGone, accepted, connected_to, listening_at, read, written
from rankbench.distributed.in_process import InProcess
from rankbench.distributed.teams import Entrance, Member, PartsLost, Team, below, parts_below, parts_of_member
from rankbench.solvers.altsvm import AltSVM
from rankbench.solvers.frsvm import FRSVM

KEY = b"a key of a test"


MEMBER = """
import json, sys
from rankbench.distributed.teams import Member
from rankbench.core.blas import one_blas_thread
member = Member("127.0.0.1", sys.argv[2].encode())
print(json.dumps(member.address), flush=True)
with one_blas_thread():
    member.serve(int(sys.argv[1]), [tuple(address) for address in json.loads(input())])
"""


@contextmanager
def team_of(members):
    """A team of so many processes, and the processes."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = {**os.environ, "PYTHONPATH": str(Path(rankbench.__file__).parents[1])}
    commands = [[sys.executable, "-c", MEMBER, str(number), KEY.decode()] for number in range(members)]
    processes = [subprocess.Popen(command, env=environment, **pipes) for command in commands]
    addresses = [json.loads(process.stdout.readline()) for process in processes]
    for process in processes:
        print(json.dumps(addresses), file=process.stdin, flush=True)
    team = Team(Entrance(tuple(addresses[0]), KEY, members))
    try:
        yield team, processes
    finally:
        team.close()
        for process in processes:
            with process:  # closes its pipes
                assert process.wait(180) in (0, -signal.SIGKILL)


@contextmanager
def team_of_threads(members, memory=None):
    """A team whose members are threads of this process."""
    seats = [Member("127.0.0.1", KEY) for _ in range(members)]
    addresses = [seat.address for seat in seats]
    threads = [threading.Thread(target=seat.serve, args=(w, addresses)) for w, seat in enumerate(seats)]
    for thread in threads:
        thread.start()
    team = Team(Entrance(addresses[0], KEY, members, memory))
    try:
        yield team, seats
    finally:
        team.close()
        for thread in threads:
            thread.join(180)
            assert not thread.is_alive()


def made(numbers, shift):
    """A part: its numbers, which are changed in place."""
    return numbers + shift


def moved(part, by):
    part += by
    return (part.copy(), len(part))


def picked(part, places, times):
    return times * part[places]


def ill(part):
    raise UserError("part has a problem", remedy="cure it")


def unspeakable(part):
    raise Strange(lambda: None)


class Strange(Exception):
    """An error that cannot be sent."""


def everything(executor: Executor):
    """What an executor answers to some calls."""
    numbers = np.random.default_rng(0).standard_normal((11, 4)) * 10.0 ** np.arange(11)[:, None]
    executor.place(made, [(row,) for row in numbers], 0.5)
    first = executor.total(moved, np.full(4, 1e-3))
    picks = executor.ask(picked, {0: (np.array([1, 2]),), 7: (np.array([3]),), 10: ([0],)}, 2.0)
    return [*first, *executor.total(moved, 1.0), *(picks[part] for part in (0, 7, 10)), sorted(picks)]


@pytest.mark.parametrize("members", [1, 2, 3, 4, 7, 11, 13])
def test_a_team_answers_what_one_process_does(members):
    with team_of_threads(members) as (team, _):
        for found, expected in zip(everything(team), everything(InProcess()), strict=True):
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
        assert team.cost.sent > 0 and team.cost.memory > 0 and team.cost.seconds > 0


@pytest.mark.parametrize("members", [1, 2, 3, 4, 5, 8, 13, 64])
def test_every_member_is_below_one_and_holds_the_parts_after_it(members):
    above = {child: number for number in range(members) for child in below(number, members)}
    assert sorted(above) == list(range(1, members))
    for parts in (members, 64, 100):
        held = [part for number in range(members) for part in parts_of_member(number, members, parts)]
        assert held == list(range(parts))
        for child, number in above.items():
            family, new = {child}, {child}
            while new := {other for other, parent in above.items() if parent in new}:
                family |= new
            theirs = [part for one in sorted(family) for part in parts_of_member(one, members, parts)]
            assert list(parts_below(child, number, members, parts)) == theirs


@pytest.mark.parametrize("members", [2, 5])
def test_a_sum_travels_once_over_each_connection(members):
    with team_of_threads(members) as (team, _):
        team.place(made, [(np.zeros(100_000),)] * 16, 0.0)
        before = team.cost.sent
        team.total(moved, np.ones(100_000))  # 100,000 numbers down and up; members of other than 2^n parts send more
        travelled = (team.cost.sent - before) / (8e5 * members)
        assert 2 <= travelled < (2.01 if members == 2 else 4)


def test_an_error_in_a_part_is_raised_at_the_driver_and_the_team_goes_on():
    with team_of_threads(3) as (team, _):
        team.place(made, [(np.arange(3.0),)] * 6, 1.0)
        with pytest.raises(UserError, match="part has a problem; cure it"):
            team.total(ill)
        with pytest.raises(RuntimeError, match="Strange: "):
            team.ask(unspeakable, {5: ()})
        assert team.ask(picked, {4: ([0],)}, 1.0)[4].tolist() == [1.0]


def test_a_member_that_takes_too_much_memory_ends_the_training():
    with team_of_threads(2, memory=1) as (team, _):
        with pytest.raises(MemoryError):
            team.place(made, [(np.zeros(1),)] * 2, 0.0)


SOLVERS = {
    "frsvm": FRSVM(rank=2, partitions=5),
    "frsvm without features": FRSVM(rank=3, features="none", start="random", fallback="mean", newton=2, partitions=6),
    "altsvm": AltSVM(rank=3, lam=0.5, inner=2, partitions=5),
    "altsvm with the hinge loss": AltSVM(rank=3, lam=0.5, loss="hinge", schedule="random", partitions=4),
}


def course(solver, executor, threads=1):
    """The hash, the objective and all scores of the first models."""
    train = offer(solver, ratings())
    with one_blas_thread():
        for step in islice(solver.steps_on(executor, train, stream(0), threads), STEPS):
            yield step.model.digest(), step.objective(), scores(step.model, train).tobytes()


@pytest.mark.trust
@pytest.mark.parametrize("name", SOLVERS)
def test_the_number_of_members_does_not_change_a_bit(name):
    expected = list(course(SOLVERS[name], InProcess()))
    assert expected == list(course(SOLVERS[name], InProcess(), threads=3))
    for members in (1, 2, 3):
        with team_of_threads(members) as (team, _):
            assert list(course(SOLVERS[name], team)) == expected


@pytest.mark.trust
@pytest.mark.parametrize("name", ["frsvm", "altsvm"])
def test_processes_compute_what_threads_do(name):
    expected = list(course(SOLVERS[name], InProcess()))
    with team_of(3) as (team, _):
        assert list(course(SOLVERS[name], team)) == expected


def test_gathered_and_scattered_models_are_the_same():
    solver = SOLVERS["frsvm"]
    train = offer(solver, ratings())
    with team_of_threads(2) as (team, _), one_blas_thread():
        model = next(solver.steps_on(team, train, stream(0))).model
        assert fingerprint(model.gathered()) == model.digest()
        np.testing.assert_allclose(model.ranking_functions()[1], model.gathered().users.mean(axis=0), rtol=1e-12)


@pytest.mark.trust
@pytest.mark.parametrize("victim", range(4))
def test_a_member_that_is_killed_ends_the_training_and_the_team(victim):
    with team_of(4) as (team, processes):
        steps = course(SOLVERS["frsvm"], team)
        next(steps)
        os.kill(processes[victim].pid, signal.SIGKILL)
        with pytest.raises(PartsLost, match="a process that held parts of the users went away"):
            list(steps)
        # that every process has ended is asserted where the team is left


def test_a_member_can_be_told_to_close_whatever_it_waits_for():
    lonely = Member("127.0.0.1", KEY)
    thread = threading.Thread(target=lonely.serve, args=(0, [lonely.address]))
    thread.start()
    lonely.close()
    thread.join(180)
    assert not thread.is_alive()
    with team_of_threads(3) as (team, seats):
        everything(team)
        seats[2].close()
        with pytest.raises(PartsLost):
            everything(team)


def test_whoever_does_not_know_the_key_is_not_heard(monkeypatch):
    """A stranger's pickle is never read, and a peer that knows the key is still let in after the stranger."""
    listener, found = listening_at("127.0.0.1"), []
    thread = threading.Thread(target=lambda: found.append(accepted(listener, KEY)))
    thread.start()
    with pytest.raises(PeerGone):
        connected_to(listener.getsockname(), b"another key").receive()
    with socket.create_connection(listener.getsockname()) as silent:
        silent.sendall(b"x" * 10)
    friend = connected_to(listener.getsockname(), KEY)
    thread.join(180)
    (channel,) = found
    friend.send(written({"an array": np.arange(3)}))
    assert read(channel.receive())["an array"].tolist() == [0, 1, 2]
    friend.close()
    with pytest.raises(PeerGone):
        channel.receive()
    channel.close()
    listener.close()


def test_a_listener_that_does_not_know_the_key_is_not_told_anything():
    listener, ended = listening_at("127.0.0.1"), []

    def listen():
        with pytest.raises(PeerGone):
            accepted(listener, b"another key")
        ended.append(True)

    thread = threading.Thread(target=listen)
    thread.start()
    with pytest.raises(PeerGone):
        connected_to(listener.getsockname(), KEY)
    listener.shutdown(socket.SHUT_RDWR)
    thread.join(180)
    listener.close()
    assert ended


def test_nobody_at_the_address_is_a_loss(monkeypatch):
    monkeypatch.setattr(channels, "PATIENCE", 1.0)
    listener = listening_at("127.0.0.1")
    address = listener.getsockname()
    listener.close()
    with pytest.raises(PartsLost):
        Team(Entrance(address, KEY, 1))


def test_arrays_travel_as_they_are():
    sealed = np.arange(12.0).reshape(3, 4)
    sealed.flags.writeable = False
    for content in (sealed, sealed.T, sealed[:, 1:3], np.array([], np.int32), np.array(3.5), "text", None):
        found = read([bytearray(blob) for blob in written(content)])
        np.testing.assert_array_equal(found, content)
        assert content is not sealed or not found.flags.writeable
    assert read([bytearray(blob) for blob in written(sealed.copy())]).flags.writeable


@pytest.mark.parametrize(
    ("stays", "room", "in_files"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_large_arrays_that_stay_are_kept_in_files(monkeypatch, tmp_path, stays, room, in_files):
    """A worker needs no memory for its part of the rows, however much it has: the disk does, or else the memory."""
    monkeypatch.setattr(mapped, "LARGE", 200)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path if room else tmp_path / "nowhere"))
    sent = {"few": np.arange(3), "many": np.arange(100.0)}
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = Channel(socket.create_connection(server.getsockname()))
        far = Channel(server.accept()[0])
    near.send(written(sent), stays)
    found = read(far.receive())
    assert {name: array.tolist() for name, array in found.items()} == {k: v.tolist() for k, v in sent.items()}
    assert {name: is_in_a_file(array) for name, array in found.items()} == {"few": False, "many": in_files}
    found["many"] += 1
    near.send([b"a", b""], stays)
    assert [bytes(blob) for blob in far.receive()] == [b"a", b""]
    near.close()
    far.close()


def is_in_a_file(array):
    """Whether an array lies in a mapped file."""
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return isinstance(array, mmap.mmap)


def test_of_a_teams_messages_only_the_parts_stay(monkeypatch):
    sent = []
    monkeypatch.setattr(channels.Channel, "send", lambda channel, blobs, stays=False: sent.append(stays) or 0)
    for kind in ("place", "total", "ask"):
        teams._Call.made(kind, 1, (), {}).sent_to(object.__new__(channels.Channel), range(1))
    assert sent == [True, False, False]


def test_a_member_that_was_closed_while_somebody_connected_lets_him_go(monkeypatch):
    class Connected:
        closed = False

        def close(self):
            self.closed = True

    member, channel = Member("127.0.0.1", KEY), Connected()

    def accepting(listener, key):
        member.close()
        return channel

    monkeypatch.setattr(teams, "accepted", accepting)
    member.serve(0, [member.address])
    assert channel.closed
