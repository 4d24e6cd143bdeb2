"""A disk that is full at any write costs one line and no finished cell, and the next run goes on from there."""

import builtins
import errno
import io
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from faults.driving import without_times
from helpers import rankbench, tiny_toml

pytestmark = pytest.mark.slow

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
PLENTY = "size=2m,nr_inodes=1000"
CHANGES = ("mkdir", "link", "replace", "rename")  # functions of `os` that need room in a folder


class Disk:
    """Counts the writes below a folder, and lets the one with a certain number fail for lack of room."""

    def __init__(self, folder: Path, fails: int | None = None, late: bool = False) -> None:
        self.folder, self.fails, self.late, self.writes = str(folder), fails, late, 0

    def is_full(self, path: object) -> bool:
        """Whether this write fails."""
        if not str(path).startswith(self.folder):
            return False
        self.writes += 1
        return self.writes - 1 == self.fails

    def opened(self, open_: Callable[..., object]) -> Callable[..., object]:
        """`open`, which fails for lack of room when it should, or later when something is written (`late`)."""

        def instead(path, mode="r", *rest, **more):  # type: ignore[no-untyped-def]
            if set(mode) & set("wax+") and isinstance(path, str | Path) and self.is_full(path):
                if not self.late:
                    raise FULL
                Path(path).touch()
                path = "/dev/full"
            return open_(path, mode, *rest, **more)

        return instead

    def made(self, open_: Callable[..., int]) -> Callable[..., int]:
        """`os.open`, in the same way."""

        def instead(path, flags, *rest, **more):  # type: ignore[no-untyped-def]
            if flags & os.O_CREAT and self.is_full(path):
                if not self.late:
                    raise FULL
                os.close(open_(path, flags, *rest, **more))
                path, flags = "/dev/full", flags & ~(os.O_CREAT | os.O_EXCL)
            return open_(path, flags, *rest, **more)

        return instead

    def changed(self, change: Callable[..., None]) -> Callable[..., None]:
        """A function of `os` with one or two paths, which fails for lack of room when it should."""

        def instead(*arguments, **more):  # type: ignore[no-untyped-def]
            if self.is_full(arguments[-1] if isinstance(arguments[-1], str | Path) else arguments[0]):
                raise FULL
            change(*arguments, **more)

        return instead


@contextmanager
def writing_to(disk: Disk) -> Iterator[None]:
    """A context in which writes of this process go through the disk."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (builtins, io):
            patch.setattr(module, "open", disk.opened(module.open))
        patch.setattr(os, "open", disk.made(os.open))
        for name in CHANGES:
            patch.setattr(os, name, disk.changed(getattr(os, name)))
        yield


def table(out: Path) -> dict[str, object]:
    """All results without their times."""
    return {path.name: without_times(json.loads(path.read_text())) for path in sorted(out.glob("*/cells/*.json"))}


def leftovers(out: Path) -> list[Path]:
    """What is neither a result nor a plan nor a manifest."""
    return [path for path in out.rglob("*") if path.is_file() and path.suffix not in {".json", ".npz", ".sha256"}]


def run_on(disk: Disk, folder: Path) -> int:
    """The exit code of a run of two cells on this disk."""
    with pytest.MonkeyPatch.context() as patch, writing_to(disk):
        return rankbench(patch, "run", str(folder / "tiny.toml"), "-r", "1", "-q", "--no-report", "--out", disk.folder)


@pytest.fixture
def writes(tmp_path):
    """How many writes a run of two cells makes, and its results."""
    tiny_toml(tmp_path)
    disk = Disk(tmp_path / "reference")
    assert run_on(disk, tmp_path) == 0
    return disk.writes, table(tmp_path / "reference")


def check(code: int, said: str, out: Path, expected: dict[str, object]) -> None:
    """What a run says that has failed, and what it has kept."""
    assert "Traceback" not in said
    if code:
        assert (code, said.count("\n")) == (2, 1) and "No space left on device" in said, said
        assert "make room" in said or "choose another folder" in said, said
    assert table(out).items() <= expected.items()


def run_again(folder: Path, out: Path, expected: dict[str, object]) -> None:
    """Run with plenty of room: everything is there, and nothing else."""
    assert run_on(Disk(out), folder) == 0
    assert table(out) == expected
    assert leftovers(out) == []


def fill_at(number: int, late: bool, folder: Path, capsys, expected) -> None:
    """Let one write fail, then run again with room."""
    out = folder / f"out-{number}"
    capsys.readouterr()
    check(run_on(Disk(out, number, late), folder), capsys.readouterr().err, out, expected)
    run_again(folder, out, expected)


@pytest.mark.trust
@pytest.mark.parametrize("late", [False, True])
def test_some_writes_may_fail(tmp_path, capsys, writes, late):
    number, expected = writes
    assert number > 20
    for fails in range(random.randrange(8), number, 8):
        fill_at(fails, late, tmp_path, capsys, expected)


@pytest.mark.trust
@pytest.mark.parametrize("late", [False, True])
def test_each_write_may_fail(tmp_path, capsys, writes, late):
    number, expected = writes
    for fails in range(number):
        fill_at(fails, late, tmp_path, capsys, expected)


# ---- a real disk ----


@pytest.fixture
def disk(tmp_path):
    """A small disk, and a function that gives it another size; only root may make one."""
    path = tmp_path / "disk"
    path.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", PLENTY, "tmpfs", path], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("only root may mount a disk, and not everywhere")
    yield path, lambda size: subprocess.run(["mount", "-o", f"remount,{size}", path], check=True)
    subprocess.run(["umount", "--lazy", path], check=True)


def fill(disk, folder: Path, size: str, capsys, expected) -> bool:
    """Run on a disk of this size, then again on one with plenty of room; returns whether the first run failed."""
    path, resize = disk
    resize(size)
    capsys.readouterr()
    code = run_on(Disk(path / "out"), folder)
    check(code, capsys.readouterr().err, path / "out", expected)
    resize(PLENTY)
    run_again(folder, path / "out", expected)
    shutil.rmtree(path / "out")
    return code == 2


def test_a_small_disk_of_some_sizes(tmp_path, capsys, writes, disk):
    _, expected = writes
    for size in ("size=8k", "size=32k", "nr_inodes=5", "nr_inodes=9"):
        assert fill(disk, tmp_path, size, capsys, expected)


@pytest.mark.trust
@pytest.mark.parametrize("size", ["size={}k", "nr_inodes={}"])
def test_a_disk_that_is_larger_each_time_until_it_is_large_enough(tmp_path, capsys, writes, disk, size):
    _, expected = writes
    step = 4 if "k" in size else 1
    failed = [fill(disk, tmp_path, size.format(step * number), capsys, expected) for number in range(2, 40)]
    assert failed[0] and not failed[-1] and sum(failed) > 5


# ---- a full disk behind standard output ----


@pytest.mark.trust
@pytest.mark.parametrize("arguments", [("list",), ("run", "tiny.toml", "--out", "out", "--no-report")])
def test_output_that_cannot_be_written_is_one_line(tmp_path, arguments):
    tiny_toml(tmp_path)
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "rankbench", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr == "rankbench: No space left on device; nothing that was stored before is lost\n"
