"""Files that anybody may have put there have one door: nothing else in the package opens what is stored or given."""

import ast
import os
from collections import Counter
from pathlib import Path

import pytest

import rankbench
from rankbench.core import regular

PACKAGE = Path(rankbench.__file__).parent
READERS = {
    "open", "os.open", "io.open", "gzip.open", "bz2.open", "lzma.open", "tarfile.open", "zipfile.ZipFile", "ZipFile",
    "np.load", "np.fromfile", "np.memmap", "np.loadtxt", "np.genfromtxt", "tomllib.load", "json.load", "pickle.load",
    "shutil.copyfile", "shutil.copy", "shutil.copy2",
}  # fmt: skip
METHODS = {"read_bytes", "read_text", "open"}
ELSEWHERE = {  # how often a module reads otherwise, and why it may
    "core/regular.py": (3, "the door itself"),
    "core/source_code.py": (1, "our own source"),
    "core/leftovers.py": (2, "locks, without waiting and without following links"),
    "core/system.py": (2, "what the system says under /proc and /sys"),
    "arrays/array_files.py": (1, "the file that this process has just made, to write it"),
    "arrays/npz.py": (4, "arrays in a file that came through the door"),
    "data/files.py": (4, "parts of an archive that came through the door"),
    "data/tables/parsing.py": (1, "rows of a stream that came through the door"),
    "data/export.py": (2, "rows of a stream that came through the door"),
    "data/sources/brain.py": (1, "rows of a stream that came through the door"),
    "data/sources/embeddings.py": (2, "arrays, of which those in a .npy file are mapped"),
    "data/sources/jester.py": (1, "rows of a stream that came through the door"),
    "data/sources/netflix.py": (2, "parts of a stream that came through the door"),
    "data/sources/rdatasets.py": (2, "a distribution's record, and bytes whose SHA-256 was compared with it"),
    "judging/gathering.py": (1, "scratch files that this run has just written"),
    "leaderboards/sources/tables.py": (1, "rows of a stream that came through the door"),
    "judging/sources.py": (2, "arrays in a file, which `is_file` has seen"),
    "records/archive.py": (5, "an archive, which `is_file` has seen, and what was just unpacked from it"),
    "records/claim_files.py": (2, "claims, made anew or opened without waiting and without following links"),
    "records/claims.py": (2, "the file that this driver has just written, and locks"),
    "checks/kit.py": (1, "the device that swallows what a checked solver prints"),
    "cli/process.py": (1, "the device that swallows what nobody reads"),
    "cli/completion.py": (1, "our own source"),
    "experiments/__init__.py": (1, "our own experiments"),
    "experiments/durations.py": (1, "our own durations"),
    "execution/voices.py": (1, "the device that swallows what nobody reads"),
    "execution/cluster/driver.py": (2, "scratch files that this run has just written"),
    "execution/cluster/orders.py": (1, "scratch files that this run has just written"),
    "report/render/page/markup.py": (1, "our own templates"),
}


def reads(call: ast.Call) -> bool:
    """Whether a call opens a file to read it; `.open()` without arguments is one of our own classes."""
    name = ast.unparse(call.func)
    modes = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if any(mode in ("w", "wb", "x", "xb", "a", "ab") for mode in modes):
        return False
    last = name.rpartition(".")[2]
    if last == "open" and name not in READERS:
        return bool(call.args)
    tables = last.startswith("read_") and name.partition(".")[0] in ("pandas", "pd", "numpy", "np")
    return name in READERS or tables or (last in METHODS and name != last)


def readers() -> Counter[str]:
    """How often each module of the package opens a file to read it."""
    return Counter(
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and reads(node)
    )


@pytest.mark.slow
def test_files_are_opened_by_one_door():
    """Who needs another way in says here why; most need `regular.opened` or `regular.content`."""
    assert dict(readers()) == {module: count for module, (count, _) in ELSEWHERE.items()}


@pytest.mark.parametrize("text", ["open(p)", "p.open('rb')", "p.read_text()", "np.load(p)", "pandas.read_csv(p)",
                                  "zipfile.ZipFile(p)", "p.read_bytes()", "open(p, mode)"])  # fmt: skip
def test_a_reader_is_seen(text):
    assert reads(ast.parse(text).body[0].value)


@pytest.mark.parametrize("text", ["p.open('wb')", "open(p, 'w')", "store.open()", "opened(p)", "regular.content(p)",
                                  "zipfile.ZipFile(p, 'w')"])  # fmt: skip
def test_what_writes_and_what_comes_through_the_door_is_none(text):
    assert not reads(ast.parse(text).body[0].value)


def test_a_file_is_read_up_to_what_is_expected(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert regular.content(path) == regular.content(path, 5) == b"12345"
    with pytest.raises(OSError, match="it has 5 bytes, and at most 4 are expected"):
        regular.content(path, 4)
    regular.copied(path, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"12345"


def test_a_hole_is_not_read(tmp_path):
    path = tmp_path / "hole"
    with path.open("wb") as file:
        file.truncate(300 << 20)
    with pytest.raises(OSError, match="nothing was written to its beginning"):
        regular.opened(path)
    with path.open("r+b") as file:
        file.write(b"text")
    with regular.opened(path) as file:
        assert file.read(4) == b"text"


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe or a device, not a file"):
        regular.opened(tmp_path / "pipe")


@pytest.mark.parametrize("read", [regular.opened, regular.content])
def test_a_folder_is_called_a_folder(read, tmp_path):
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        read(tmp_path)


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="needs a file whose size is not known: Linux has some"
)
def test_more_is_read_than_a_file_says_that_it_has_and_no_more_than_is_allowed():
    assert regular.content("/proc/self/status").endswith(b"\n") and len(regular.content("/proc/self/status")) > 500
    assert len(regular.content("/proc/self/status", 10)) == 10
