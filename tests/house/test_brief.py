"""`pytest --brief`, as `make quick` calls it: the first case of each test, with few examples."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CASES = """
import pytest
from hypothesis import given, settings, strategies

@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.slow), 2, 3])
def test_cases(n):
    pass

class TestKind:
    @pytest.mark.parametrize("n", [4, 5])
    def test_cases(self, n):
        pass

@given(strategies.integers())
def test_examples(n):
    assert settings().max_examples == EXAMPLES

@pytest.mark.one_in(2)
@pytest.mark.parametrize("n", [6, 7, 8])
def test_in_turns(n):
    pass
"""
IN_TURNS = ["test_in_turns[6]", "test_in_turns[7]", "test_in_turns[8]"]


@pytest.mark.parametrize(
    ("words", "kept", "examples"),
    [
        ((), [*(f"test_cases[{n}]" for n in (1, 2, 3, 4, 5)), "test_examples", *IN_TURNS], 25),
        (("--brief",), ["test_cases[1]", "test_cases[4]", "test_examples", *IN_TURNS[:1]], 10),
        (("--brief", "-m", "not slow"), ["test_cases[2]", "test_cases[4]", "test_examples", *IN_TURNS[:1]], 10),
        (("-m", "not trust", "-k", "turns"), IN_TURNS[::2], 25),
        (("-m", "trust or hypothesis", "--hypothesis-profile", "thorough"), ["test_examples", *IN_TURNS[1:2]], 300),
    ],
)
def test_the_first_case_that_is_chosen_stands_for_all(tmp_path, words, kept, examples):
    shutil.copy(Path(__file__).parents[1] / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    trust\n    one_in(n)\n")
    (tmp_path / "test_it.py").write_text(CASES.replace("EXAMPLES", str(examples)))
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert [line.split()[0].rpartition("::")[2] for line in done.stdout.splitlines() if " PASSED" in line] == kept
