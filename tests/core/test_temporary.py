"""The folder of a process for temporary files: its path is short, and it never outlives the next run."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rankbench.core import leftovers, temporary
from rankbench.core.errors import UserError
from rankbench.core.leftovers import HELD, partial_of

HOLD = "import sys; from rankbench.core.temporary import own_folder; print(own_folder(), flush=True); sys.stdin.read()"


@pytest.fixture
def base(tmp_path, monkeypatch):
    """A folder for temporary files of its own, and no folder in it yet."""
    made = Path(tempfile.mkdtemp(prefix="base"))  # a path that is short enough; that of `tmp_path` is not
    monkeypatch.setenv("TMPDIR", str(made))
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    temporary._made.cache_clear()
    yield made
    temporary._made.cache_clear()
    shutil.rmtree(made, ignore_errors=True)


def holder():
    """Another process that holds a folder, and the folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, Path(process.stdout.readline().strip())


def test_a_process_has_one_folder_that_goes_with_it(base):
    process, path = holder()
    assert path.parent == base and path.is_dir()
    process.communicate("")
    assert process.returncode == 0 and list(base.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("needed", [True, False])
def test_the_folder_of_a_killed_process_goes_with_the_next_and_a_living_ones_stays(base, needed):
    (dead, left), (alive, used) = holder(), holder()
    (left / "socket").touch()
    os.kill(dead.pid, signal.SIGKILL)
    dead.communicate()
    assert left.exists()
    if needed:
        own = temporary.own_folder()
        assert own == temporary.own_folder() and set(base.iterdir()) == {used, own}
    else:
        temporary.remove_folders_left_behind()
        assert list(base.iterdir()) == [used]
    alive.communicate("")


def test_a_long_path_is_replaced_by_one_that_sockets_can_have(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/" + "x" * 200)
    assert temporary._base() == Path("/tmp")
    monkeypatch.setattr(tempfile, "tempdir", "/x")
    assert temporary._base() == Path("/x")


def test_a_folder_that_takes_nothing_is_one_line(base, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(base / "gone"))
    with pytest.raises(UserError, match=r"cannot write to .*gone: No such file or directory; make room or set TMPDIR"):
        temporary.own_folder()


def test_a_file_system_without_locks_will_do_and_nothing_on_it_is_removed(base, monkeypatch):
    def refused(handle, how):
        raise OSError(37, "No locks available")

    other = partial_of(base / "rankbench-run")
    other.mkdir()
    (other / HELD).touch()
    monkeypatch.setattr(fcntl, "flock", refused)
    assert temporary.own_folder().is_dir()
    assert other.is_dir()


@pytest.mark.parametrize("gone", [True, False])
def test_a_folder_that_another_process_has_removed_or_is_just_removing_is_not_used(base, monkeypatch, gone):
    flock, others = fcntl.flock, []

    def late(handle, how):
        if not others:
            others.append(next(base.iterdir()))
            if not gone:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            shutil.rmtree(others[0])
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    own = temporary.own_folder()
    assert own.is_dir() and own not in others


def test_a_name_that_another_process_has_just_taken_is_not_used(tmp_path, monkeypatch):
    asked, hold = [], leftovers._hold

    def second(path):
        asked.append(path)
        return hold(path) if len(asked) > 1 else None

    monkeypatch.setattr(leftovers, "_hold", second)
    with leftovers.replacing(tmp_path / "a") as partial:
        partial.write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == ["a"] and len(set(asked)) == 2


def test_what_has_no_temporary_name_is_left_alone(tmp_path):
    (tmp_path / "kept").write_text("")
    leftovers.remove_left_behind(tmp_path, "*")
    assert (tmp_path / "kept").exists()


def test_a_leftover_that_cannot_be_removed_is_not_held_from_then_on(tmp_path, monkeypatch):
    left = partial_of(tmp_path / "a")
    left.touch()
    with monkeypatch.context() as sealed:
        sealed.setattr(Path, "unlink", lambda path: os.listdir(path / "nothing"))
        leftovers.remove_left_behind(tmp_path, "*~.partial")
    assert left.exists()
    leftovers.remove_left_behind(tmp_path, "*~.partial")
    assert not left.exists()
