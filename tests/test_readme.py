"""The examples of the README run and give what it says."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import rankbench

from rankbench import Ratings

pytestmark = pytest.mark.slow

README = Path(__file__).parent.parent / "README.md"


def example(name):
    """The text of the code block that is marked with this name."""
    match = re.search(rf"<!-- example: {name} -->\n```\w+\n(.*?)```", README.read_text(), re.S)
    assert match, f"README has no example {name!r}"
    return match[1]


def test_the_solver_is_short_and_runs_by_the_command_beside_it(tmp_path, monkeypatch, capsys):
    text = example("solver")
    assert len(text.strip().splitlines()) < 25
    (tmp_path / "popularity.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    words = shlex.split(example("command"))
    assert words[0] == "rankbench"
    options = ["-d", "low-rank[per_user=130]", "-r", "1", "--no-report", "-q"]  # generated, to be at hand everywhere
    assert rankbench(monkeypatch, *words[1:], *options) == 0
    printed = capsys.readouterr().out
    assert "popularity.py:Popularity[shrinkage=10]" in printed and "sgd[rank=10" in printed


def test_the_solver_computes_what_it_says(tmp_path):
    space: dict[str, object] = {}
    exec(example("solver"), space)
    train = Ratings.from_triples([0, 1, 1], [0, 0, 1], [2.0, 4.0, 3.0], 2, 3)
    (step,) = space["Popularity"](shrinkage=1.0).steps(train, np.random.default_rng(0))
    assert step.model.scores == pytest.approx([3.0, 3.0, 3.0])


def test_the_library_example_prints_two_metrics(capsys):
    exec(example("library"), {})
    printed = capsys.readouterr().out
    error = float(re.search(r"'pairwise-error': ([\d.]+)", printed)[1])
    assert error < 0.2


def test_the_tables_of_results_are_those_of_the_reports():
    script = README.parent / ".ci" / "write_readme_tables.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_command_of_the_table_exists(monkeypatch, capsys):
    for command in re.findall(r"^\| `rankbench (\w+)", README.read_text(), re.M):
        assert rankbench(monkeypatch, command, "--help") == 0
