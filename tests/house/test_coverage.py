"""How the data files of `make coverage` are combined: without those of processes that were killed meanwhile."""

import subprocess
import sys
from pathlib import Path

import pytest
from coverage import CoverageData

SCRIPT = Path(__file__).parents[2] / ".ci" / "combine_coverage.py"


def combined(folder):
    """What combining the files of a folder prints, and its exit code."""
    (folder / ".coveragerc").write_text("[run]\nparallel = true\n")
    done = subprocess.run([sys.executable, SCRIPT], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def written(folder, name, *lines):
    """A data file that says that these lines of a module were run."""
    data = CoverageData(str(folder / f".coverage.{name}"))
    data.add_lines({str(folder / "module.py"): lines})
    data.close()
    return folder / f".coverage.{name}"


def cut(path, size):
    """Leave only the first bytes of a file."""
    path.write_bytes(path.read_bytes()[:size])


@pytest.mark.parametrize("damage", ["nothing written", "half a table", "no table", "other bytes"])
def test_files_that_are_not_finished_are_counted_and_the_others_combined(tmp_path, damage):
    (tmp_path / "module.py").write_text("one = 1\ntwo = 2\nthree = 3\n")
    for number in (1, 2):
        written(tmp_path, f"whole-{number}", number)
    victim = written(tmp_path, "victim", 3)
    if damage == "other bytes":
        victim.write_bytes(b"x" * 5000)
    elif damage == "half a table":
        whole = victim.read_bytes()
        victim.write_bytes(whole[:8192] + bytes(4096) + whole[12288:])
    else:
        cut(victim, {"nothing written": 0, "no table": 4096}[damage])
    code, printed, errors = combined(tmp_path)
    assert (code, errors) == (0, "")
    assert printed == "1 of 3 data files left out: their processes were killed while they wrote them\n"
    assert [path.name for path in tmp_path.glob(".coverage*") if path.name != ".coveragerc"] == [".coverage"]
    found = CoverageData(str(tmp_path / ".coverage"))
    found.read()
    assert sorted(found.lines(str(tmp_path / "module.py"))) == [1, 2]


def test_whole_files_are_combined_without_a_word_and_no_file_is_an_error(tmp_path):
    (tmp_path / "module.py").write_text("one = 1\n")
    written(tmp_path, "whole", 1)
    assert combined(tmp_path) == (0, "", "")
    (tmp_path / ".coverage").unlink()
    code, _, errors = combined(tmp_path)
    assert code != 0 and "No data to combine" in errors
