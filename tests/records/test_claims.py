"""Claims: one driver runs a cell, even if drivers die, are suspended or have wrong clocks; no files are left behind."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import until

import rankbench
from rankbench.core.errors import UserError
from rankbench.records import claim_files, claims
from rankbench.records.claims import Claims

HOUR = 3600.0
DRIVER = """
import sys
from pathlib import Path
from rankbench.records.claims import Claims

with Claims(Path(sys.argv[1]), float(sys.argv[2])) as claims:
    for line in sys.stdin:
        verb, *keys = line.split()
        if verb == "lost":
            print(*sorted(claims.lost), flush=True)
        else:
            print(*(key for key in keys if getattr(claims, verb)(key)), flush=True)
"""


class Driver:
    """A driver in a process of its own that does what it is told, a line each."""

    def __init__(self, folder, lease=HOUR):
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(folder), str(lease)],
            env={**os.environ, "PYTHONPATH": str(Path(rankbench.__file__).parents[1])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, *words):
        print(*words, file=self.process.stdin, flush=True)

    def answer(self):
        return self.process.stdout.readline().split()

    def ask(self, *words):
        self.tell(*words)
        return self.answer()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(180) == 0


@pytest.fixture
def driver():
    started = []

    def start(*args):
        started.append(Driver(*args))
        return started[-1]

    yield start
    for each in started:
        with suppress(OSError):
            each.process.kill()
        each.process.wait()
        each.process.stdout.close()
        with suppress(OSError):
            each.process.stdin.close()


def age(path, seconds):
    stamp = time.time() - seconds
    os.utime(path, (stamp, stamp), follow_symlinks=False)


def forge(folder, key="cell", seconds=0.0, **changes):
    """A claim of another machine, last touched so long ago."""
    folder.mkdir(exist_ok=True)
    card = {"token": os.urandom(8).hex(), "host": "node3", "pid": 4711, "started": "1", "boot": "b", "namespace": "n"}
    card |= {"lease": 60.0, "since": "2020-01-01T00:00:00+00:00"} | changes
    path = folder / f"{key}.claim"
    path.write_text(json.dumps(card))
    age(path, seconds)
    return card


def content(path):
    return json.loads(path.read_text())


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "claims"


def test_one_has_it_until_it_is_released_and_nothing_is_left(folder):
    with Claims(folder) as ours, Claims(folder) as theirs:
        assert ours.holder("cell") is None
        assert ours.take("cell") and ours.take("cell") and not theirs.take("cell")
        holder = theirs.holder("cell")
        assert (holder.host, holder.pid) == (os.uname().nodename, os.getpid()) and "T" in holder.since
        theirs.release("cell")
        assert not theirs.take("cell")
        ours.release("cell")
        ours.release("cell")
        assert theirs.take("cell") and not ours.take("cell")
        assert ours.take("another")
        assert ours.lost == theirs.lost == frozenset()
    assert not folder.exists()


def test_the_folder_stays_while_another_driver_is_in_it(folder):
    with Claims(folder) as ours:
        with Claims(folder):
            pass
        assert ours.take("cell")
    assert not folder.exists()
    folder.mkdir()
    (folder / "mine.txt").touch()
    with Claims(folder) as ours:
        assert ours.take("cell")
    assert names(folder) == ["mine.txt"]


def test_claims_without_a_heartbeat_are_refused(folder):
    ours = Claims(folder)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="only inside"):
            ours.take("cell")
        with ours:
            assert ours.take("cell")
            with pytest.raises(RuntimeError, match="already"):
                ours.__enter__()
            assert ours.take("cell")
    assert not folder.exists()


@pytest.mark.slow
def test_many_drivers_take_each_key_once(folder, driver):
    keys = [f"key{number}" for number in range(50)]
    drivers = [driver(folder) for _ in range(8)]
    for each in drivers:
        each.ask("lost")  # it has started
    for number, each in enumerate(drivers):
        each.tell("take", *random.Random(number).sample(keys, len(keys)))
    taken = [each.answer() for each in drivers]
    assert sorted(key for keys in taken for key in keys) == sorted(keys)
    for each in drivers:
        each.end()
    assert not folder.exists()


def test_a_killed_driver_gives_its_cells_back_at_once(folder, driver):
    holder = driver(folder)
    assert holder.ask("take", "first", "second") == ["first", "second"]
    with Claims(folder, HOUR) as ours:
        assert not ours.take("first") and ours.holder("first").pid == holder.process.pid
        holder.process.send_signal(signal.SIGKILL)
        until(lambda: ours.take("first"))  # a zombie counts as dead: nobody has waited for the process yet
        assert holder.process.returncode is None
        with Claims(folder, HOUR) as third:
            assert names(folder).count("second.claim") == 0, "the next driver clears up at once"
            assert third.take("second") and not third.take("first")
    assert not folder.exists()


def test_a_later_process_with_the_same_pid_is_another(folder):
    with Claims(folder, HOUR) as ours:
        assert ours.take("cell")
        card = content(folder / "cell.claim")
        for change, takes in ({"started": "1"}, True), ({"started": "1", "boot": "x"}, False):
            forge(folder, "again", **(card | {"token": "abc"} | change))
            assert ours.take("again") is takes
        for change in {"host": "x"}, {"boot": ""}, {"namespace": "pid:[1]"}, {"boot": "x"}:
            forge(folder, "far", **(card | {"token": "abc", "pid": 2**31 - 1} | change))
            assert not ours.take("far"), "that no such process is here says nothing about another place"
        forge(folder, "far", **(card | {"token": "abc", "pid": 2**31 - 1}))
        assert ours.take("far")
        (folder / "again.claim").unlink()


def test_without_a_boot_id_nobody_is_taken_for_dead(folder, monkeypatch):
    monkeypatch.setattr(claim_files.system, "boot_id", lambda: "")
    with Claims(folder) as ours, Claims(folder) as theirs:
        assert ours.take("cell")
        forge(folder, "far", **(content(folder / "cell.claim") | {"token": "abc", "pid": 2**31 - 1}))
        assert not theirs.take("far") and not theirs.take("cell")
        (folder / "far.claim").unlink()


def test_another_machines_claim_lasts_as_long_as_its_own_lease(folder):
    with Claims(folder, lease=5) as ours:
        forge(folder, seconds=100, lease=200.0)
        assert not ours.take("cell") and ours.holder("cell").host == "node3" and ours.holder("cell").pid == 4711
        forge(folder, seconds=300, lease=200.0)
        assert ours.holder("cell") is None and ours.take("cell")
        assert content(folder / "cell.claim")["pid"] == os.getpid()


@pytest.mark.parametrize("offset", [-5 * HOUR, 0, 5 * HOUR])
def test_only_the_file_servers_clock_counts(folder, monkeypatch, offset):
    touch = os.utime

    def served(path, times=None, **options):
        stamp = time.time() + offset
        touch(path, times or (stamp, stamp), **options)

    monkeypatch.setattr(claims.os, "utime", served)
    with Claims(folder) as ours:
        for ago, takes in [(0, False), (50, False), (-50, False), (70, True), (HOUR, True), (-HOUR, True)]:
            forge(folder, f"{ago}", seconds=ago - offset)
            assert ours.take(f"{ago}") is takes, ago
            (folder / f"{ago}.claim").unlink()


def test_the_heartbeat_keeps_claims_alive(folder):
    with Claims(folder, lease=0.4) as ours:
        assert ours.take("cell") and ours.take("other")
        for key in "cell", "other":
            path = folder / f"{key}.claim"
            age(path, HOUR)
            until(lambda path=path: time.time() - path.stat().st_mtime < HOUR / 2)
        driver_file = next(folder.glob(".*.driver"))
        driver_file.unlink()
        until(driver_file.exists)


def test_the_heart_beats_four_times_in_a_lease(folder, monkeypatch):
    waits, wait = [], threading.Event.wait
    monkeypatch.setattr(
        threading.Event, "wait", lambda self, timeout=None: waits.append(timeout) or wait(self, timeout)
    )
    with Claims(folder, lease=8):
        until(lambda: 2.0 in waits)


def test_the_heartbeat_survives_a_file_server_that_is_away(folder, monkeypatch):
    asked = threading.Semaphore(0)

    def away(path, *args, **options):
        asked.release()
        raise OSError(errno.EIO, "Input/output error")

    with Claims(folder, lease=0.4) as ours:
        assert ours.take("cell")
        monkeypatch.setattr(os, "open", away)
        assert all(asked.acquire(timeout=180) for _ in range(3))  # the driver's file, the claim, the next beat
        monkeypatch.undo()
        age(folder / "cell.claim", HOUR)
        until(lambda: time.time() - (folder / "cell.claim").stat().st_mtime < HOUR / 2)
        assert not ours.lost


@pytest.mark.slow
def test_a_driver_that_stood_still_notices_and_leaves_the_new_claim_alone(folder, driver):
    frozen = driver(folder, 1)
    assert frozen.ask("take", "kept", "left") == ["kept", "left"]
    with Claims(folder, HOUR) as ours:
        assert not ours.take("kept")
        frozen.process.send_signal(signal.SIGSTOP)
        until(lambda: ours.take("kept"))
        frozen.process.send_signal(signal.SIGCONT)
        until(lambda: "kept" in frozen.ask("lost"))
        assert frozen.ask("take", "kept") == []
        frozen.ask("release", "kept")
        frozen.end()
        assert content(folder / "kept.claim")["pid"] == os.getpid() and not ours.lost
        assert not (folder / "left.claim").exists()
    assert not folder.exists()


def test_a_loss_is_noticed_by_release_and_forgotten_when_the_key_is_taken_again(folder):
    with Claims(folder, HOUR) as ours, Claims(folder, HOUR) as theirs:
        assert ours.take("cell")
        forge(folder)
        ours.release("cell")
        assert ours.lost == {"cell"} and (folder / "cell.claim").exists()
        forge(folder, seconds=2 * HOUR)
        assert ours.take("cell") and not ours.lost and not theirs.take("cell")


def test_the_heartbeat_does_not_touch_what_others_claimed(folder):
    with Claims(folder, 0.4) as ours:
        assert ours.take("cell")
        os.replace(folder / "cell.claim", folder / "aside")
        forge(folder, "other", seconds=30)
        os.replace(folder / "other.claim", folder / "cell.claim")
        until(lambda: ours.lost == {"cell"})
        assert time.time() - (folder / "cell.claim").stat().st_mtime > 29
        (folder / "aside").unlink()


def test_a_vanished_claim_is_lost_or_made_anew(folder):
    with Claims(folder, 0.4) as ours:
        assert ours.take("cell")
        (folder / "cell.claim").unlink()
        until(lambda: ours.lost == {"cell"})
        assert ours.take("cell") and ours.lost == frozenset() and (folder / "cell.claim").exists()


def test_exactly_one_wins_a_stale_claim(folder):
    rounds, takers = 60, 4
    barrier, wins = threading.Barrier(takers), [[] for _ in range(takers)]

    def contend(number):
        with Claims(folder) as ours:
            for turn in range(rounds):
                if barrier.wait(180) == 0:
                    forge(folder, f"{turn}", HOUR)
                barrier.wait(180)
                if ours.take(f"{turn}"):
                    wins[number].append(turn)
            barrier.wait(180)

    threads = [threading.Thread(target=contend, args=(number,), daemon=True) for number in range(takers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    assert sorted(turn for turns in wins for turn in turns) == list(range(rounds))
    assert not folder.exists()


def test_whoever_is_late_does_not_touch_the_new_claim(folder, monkeypatch):
    """Another takes the stale claim over between our look at it and our removal; a third would use any gap."""
    clear, remove, removed = Claims._clear, claims.remove, []
    with Claims(folder) as ours, Claims(folder) as theirs, Claims(folder) as third:

        def late(self, *args, **options):
            if self is ours:
                assert theirs.take("cell")
            return clear(self, *args, **options)

        def watched(path):
            removed.append(path.name)
            remove(path)

        forge(folder, seconds=HOUR)
        monkeypatch.setattr(Claims, "_clear", late)
        monkeypatch.setattr(claims, "remove", watched)
        assert not ours.take("cell") and not third.take("cell") and theirs.take("cell")
        assert removed == ["cell.claim"], "the stale one, once"
        assert names(folder) == sorted(["cell.claim", *(each._driver.name for each in (ours, theirs, third))])
        monkeypatch.setattr(Claims, "_clear", clear)


def test_a_holder_that_comes_back_to_life_keeps_its_claim(folder, monkeypatch):
    """It touches the claim after we judged it stale, before we have the right to remove it."""
    permits = Claims._permits

    def revived(self, key, token):
        os.utime(folder / f"{key}.claim")
        return permits(self, key, token)

    with Claims(folder) as ours:
        card = forge(folder, seconds=HOUR)
        dead = folder / f".cell.{card['token']}.0.permit"
        dead.touch()
        age(dead, HOUR)
        monkeypatch.setattr(Claims, "_permits", revived)
        assert not ours.take("cell") and content(folder / "cell.claim") == card
        assert list(folder.glob(".*.permit")) == [dead], "its number is used up as long as the claim is there"


def test_the_permit_of_another_is_respected_until_it_is_stale(folder):
    with Claims(folder) as ours, Claims(folder) as theirs:
        token = forge(folder, seconds=HOUR)["token"]
        permit = folder / f".cell.{token}.0.permit"
        os.link(theirs._driver, permit)
        assert not ours.take("cell") and permit.exists()
        permit.unlink()
        permit.touch()
        assert not ours.take("cell") and permit.exists()
        age(permit, HOUR)
        with Claims(folder):
            pass
        assert ours.take("cell") and not permit.exists()


def test_a_stale_permit_stays_as_long_as_its_claim(folder):
    with Claims(folder) as ours:
        token = forge(folder)["token"]
        permit = folder / f".cell.{token}.0.permit"
        permit.touch()
        age(permit, HOUR)
        ours._sweep()
        assert permit.exists()
        age(folder / "cell.claim", HOUR)
        ours._sweep()
        assert names(folder) == [ours._driver.name]


def damage(path, kind):
    """Put something into a claim's place that is none."""
    sound = forge(path.parent, path.stem)
    path.unlink()
    texts = {
        "empty": "",
        "no JSON": "{",
        "another JSON": "[1]",
        "deep": "[" * 100000,
        "a field too few": json.dumps({"host": "node3"}),
        "a field too many": json.dumps(sound | {"more": 1}),
        "wrong types": json.dumps(sound | {"pid": "4711"}),
        "a pid that is none": json.dumps(sound | {"pid": 1 << 70}),
        "a token that leads elsewhere": json.dumps(sound | {"token": "../x"}),
        "no lease": json.dumps(sound | {"lease": float("nan")}),
    }
    if kind in texts:
        path.write_text(texts[kind])
    elif kind == "binary":
        path.write_bytes(bytes(range(256)))
    elif kind == "folder":
        (path / "with").mkdir(parents=True)
        (path / "with" / "file").touch()
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "link to nothing":
        path.symlink_to("nowhere")
    elif kind == "pipe":
        os.mkfifo(path)
    return kind


KINDS = ["empty", "no JSON", "another JSON", "deep", "a field too few", "a field too many", "wrong types"]
KINDS += ["a pid that is none", "a token that leads elsewhere", "no lease", "binary", "folder", "loop"]
KINDS += ["link to nothing", "pipe"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_claim_stops_others_for_a_lease_only(folder, kind):
    with Claims(folder) as ours:
        path = folder / "cell.claim"
        damage(path, kind)
        age(path, 0)
        holder = ours.holder("cell")
        assert not ours.take("cell") and (holder.host, holder.pid) == ("unknown", 0)
        age(path, HOUR)
        assert ours.holder("cell") is None and ours.take("cell") and content(path)["pid"] == os.getpid()
    assert not folder.exists()


@pytest.mark.parametrize("number, name", [(errno.EROFS, "Read-only file system"), (errno.ENOSPC, "No space left")])
@pytest.mark.parametrize("call", ["open", "link", "mkdir"])
def test_a_folder_that_takes_nothing_is_one_line_that_says_what_to_do(folder, monkeypatch, call, number, name):
    real = getattr(os, call)

    def refused(path, *args, **options):
        if call == "open" and not args[0] & os.O_CREAT:
            return real(path, *args, **options)
        raise OSError(number, os.strerror(number))

    expected = rf"^cannot write to {folder}: {name}.*; choose another folder with --out$"
    if call == "mkdir":
        monkeypatch.setattr(os, call, refused)
        with pytest.raises(UserError, match=expected), Claims(folder):
            pass
        return
    with Claims(folder) as ours:
        monkeypatch.setattr(os, call, refused)
        with pytest.raises(UserError, match=expected):
            ours.take("cell")
        if call == "open":
            with pytest.raises(UserError, match=expected), Claims(folder):
                pass
        assert names(folder) == [ours._driver.name]
        monkeypatch.undo()
        assert ours.take("cell")
    assert not folder.exists()


def test_a_disk_that_fills_while_a_claim_is_written_keeps_no_half_of_it(folder, monkeypatch):
    def full(path, *args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with Claims(folder, HOUR) as ours:
        monkeypatch.setattr(claim_files.os, "fdopen", full)
        with pytest.raises(UserError, match="No space left"):
            ours.take("cell")
        assert names(folder) == [ours._driver.name]


def test_a_file_in_the_folders_place_is_named(folder):
    folder.touch()
    with pytest.raises(UserError, match=r"cannot write to .*claims: .*; choose another folder"), Claims(folder):
        pass


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_hard_links_will_do(folder, monkeypatch, number):
    def refused(source, path, **options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refused)
    with Claims(folder) as ours, Claims(folder) as theirs:
        assert ours.take("cell") and not theirs.take("cell") and theirs.holder("cell").pid == os.getpid()
        forge(folder, "stale", seconds=HOUR)
        assert theirs.take("stale") and not ours.take("stale")
        ours.release("cell")
        assert theirs.take("cell")
    assert not folder.exists()


def test_an_answer_that_got_lost_on_the_network_is_no_refusal(folder, monkeypatch):
    """The server made the link, its answer was lost, and the same request sent again found the name taken."""
    link = os.link

    def twice(source, path):
        link(source, path)
        link(source, path)

    monkeypatch.setattr(os, "link", twice)
    with Claims(folder) as ours:
        assert ours.take("cell")
        forge(folder, "stale", seconds=HOUR)
        assert ours.take("stale")
    assert not folder.exists()


def test_what_dead_drivers_left_is_removed_and_what_is_new_or_foreign_is_not(folder):
    folder.mkdir()
    left = [".a.driver", ".b.card", ".cell.abc.0.permit", ".odd.permit", ".c.grave"]
    foreign = ["notes.txt", ".hidden", ".nfs0001"]
    for name in (*left, *foreign):
        (folder / f"{name}").touch()
        age(folder / name, HOUR)
    (folder / ".d.grave").mkdir()
    age(folder / ".d.grave", HOUR)
    (folder / ".new.card").touch()
    forge(folder, "old", HOUR)
    forge(folder, "held")
    with Claims(folder):
        assert [name for name in names(folder) if not name.endswith(".driver")] == sorted(
            [*foreign, ".new.card", "held.claim"]
        )


def test_a_draft_that_others_cleared_away_is_written_again(folder, monkeypatch):
    create, removed = claims.create, []

    def swept(path, card):
        made = create(path, card)
        if path.suffix == ".card" and not removed:
            removed.append(path)
            path.unlink()
        return made

    monkeypatch.setattr(claims, "create", swept)
    with Claims(folder) as ours:
        assert ours.take("cell") and removed


def test_a_folder_that_goes_while_a_driver_signs_in_is_made_again(folder, monkeypatch):
    create, gone = claims.create, []

    def raced(path, card):
        if not gone:
            gone.append(path)
            folder.rmdir()
        return create(path, card)

    monkeypatch.setattr(claims, "create", raced)
    with Claims(folder) as ours:
        assert ours.take("cell") and gone
        ours._driver.unlink()  # somebody took us for dead
        assert ours.take("other")
        ours.release("cell")
    assert not folder.exists()


def test_a_forked_child_releases_nothing(folder):
    with Claims(folder, HOUR) as ours:
        assert ours.take("cell")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                ours.release("cell")
                ours.__exit__(None, None, None)
                try:
                    ours.take("another")
                except RuntimeError:
                    status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert content(folder / "cell.claim")["pid"] == os.getpid() and ours.take("cell")
    assert not folder.exists()


def test_all_is_released_when_the_run_fails_and_its_error_is_not_hidden(folder, monkeypatch):
    with pytest.raises(KeyError, match="the run"), Claims(folder) as ours:
        ours.take("cell")
        raise KeyError("the run")
    assert not folder.exists()

    def refused(source, path, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    with pytest.raises(KeyError, match="the run"), Claims(folder) as ours:
        ours.take("cell")
        monkeypatch.setattr(os, "link", refused)
        raise KeyError("the run")


def test_a_claim_that_could_not_be_given_back_is_given_back_at_the_exit(folder, monkeypatch):
    with Claims(folder) as claims:
        assert claims.take("a")
        with monkeypatch.context() as patch:
            patch.setattr(os, "link", full)
            with pytest.raises(UserError, match="No space left on device; choose another folder"):
                claims.release("a")
        assert (folder / "a.claim").exists() and claims.holder("a")
    assert not folder.exists() and claims.lost == frozenset()


def test_a_claim_that_cannot_be_given_back_at_the_exit_holds_nobody_up(folder, monkeypatch):
    with monkeypatch.context() as patch, Claims(folder) as claims:
        assert claims.take("a")
        patch.setattr(os, "link", full)
    assert (folder / "a.claim").exists()
    with Claims(folder) as later:
        assert later.take("a")
    assert not folder.exists()


def full(*arguments, **more):
    """A disk without room."""
    raise OSError(28, "No space left on device")


def test_a_name_that_somebody_else_has_just_taken_is_left_to_him(folder):
    with Claims(folder) as ours:
        path = folder / "mine"
        assert claims.create(path, ours._me) and not claims.create(path, replace(ours._me, token="other"))
        assert content(path)["token"] == ours._me.token
        path.unlink()
