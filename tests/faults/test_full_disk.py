"""A disk that is full at any write costs one line and no finished cell, and the next run goes on from there."""

import builtins
import errno
import io
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from faults.driving import without_times
from helpers import rankbench, tiny_toml

from rankbench.harness.codec import parsed

pytestmark = pytest.mark.slow

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
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
    return {path.name: without_times(parsed(path.read_text())) for path in sorted(out.glob("*/cells/*.json"))}


def leftovers(out: Path) -> list[Path]:
    """What is neither a result nor a plan."""
    return [path for path in out.rglob("*") if path.is_file() and path.suffix not in {".json", ".npz"}]


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


def fill_at(number: int, late: bool, folder: Path, capsys, expected) -> None:
    """Let one write fail, then run again with room."""
    out = folder / f"out-{number}"
    capsys.readouterr()
    code = run_on(Disk(out, number, late), folder)
    said = capsys.readouterr().err
    assert "Traceback" not in said
    if code:
        assert (code, said.count("\n")) == (1, 1) and "No space left on device" in said, said
        assert "make room" in said or "choose another folder" in said, said
    finished = table(out)
    assert finished.items() <= expected.items()
    assert run_on(Disk(out), folder) == 0
    assert table(out) == expected
    assert leftovers(out) == []


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
