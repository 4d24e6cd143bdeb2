"""What a shell completes: the names of everything, at the places where they belong, without loading NumPy."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from rankbench import __version__, experiments
from rankbench.cli import completion, looking
from rankbench.cli.describe import everything
from rankbench.data import DATASETS
from rankbench.data.splits import SPLITS
from rankbench.metrics import METRICS
from rankbench.solvers import SOLVERS

PROGRAM = "import sys; sys.argv[0] = 'rankbench'; from rankbench.cli import main; main()"


def asking(shell, line):
    """The environment variables by which a shell asks what may stand at the end of this line."""
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_TYPER_COMPLETE_ARGS": line}
    return {**asked, "_RANKBENCH_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}


def offered(cli, monkeypatch, shell, line):
    """The lines that a shell is told."""
    for name, value in asking(shell, line).items():
        monkeypatch.setenv(name, value)
    return cli().out.split()


@pytest.mark.slow
def test_every_name_is_found_without_an_import():
    assert completion.experiments("") == sorted([*experiments.names(), "all"])
    assert completion.solvers("") == sorted(SOLVERS.entries)
    assert completion.data_sets("") == sorted(DATASETS.entries)
    assert completion.splits("") == sorted(SPLITS.entries)
    assert completion.metrics("") == sorted(METRICS)
    assert completion.checkable("") == sorted({*completion.solvers(""), *completion.data_sets("")})
    assert {"all", "altsvm", "auc"} & set(completion.listed("a")) == {"altsvm", "auc"}
    assert set(everything()) <= set(completion.listed(""))


def test_names_of_plug_ins_are_offered(monkeypatch):
    point = EntryPoint("score-gap", "somewhere:Gap", "rankbench.metrics")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point] if group == point.group else [])
    assert completion.metrics("sc") == completion.checkable("sc") == ["score-gap"]
    assert completion.solvers("sc") == []


def test_stored_experiments_are_those_of_the_folder_of_results(here):
    assert completion.stored("") == []
    for path in ("mine/cells", "mine/plans", "other/plans", "report/figures"):
        (here / "results" / path).mkdir(parents=True)
    assert completion.stored("") == ["mine", "other"]
    assert completion.stored("o") == ["other"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_the_names_that_go_on(cli, monkeypatch, shell):
    words = offered(cli, monkeypatch, shell, "rankbench run -s ranksvm-j")
    assert [word for word in words if "ranksvm-joint" in word] == [word for word in words if "svm" in word] != []
    assert "sgd" not in "".join(words)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("rankbench run cortes2007-c", "cortes2007-cost"),
        ("rankbench run -d jes", "jester"),
        ("rankbench on ratings.csv --metric ken", "kendall"),
        ("rankbench on ratings.csv --split leave-l", "leave-last-out"),
        ("rankbench tune sg", "sgd"),
        ("rankbench check sg", "sgd"),
        ("rankbench list sol", "solvers"),
        ("rankbench list n-p", "n-per-user"),
        ("rankbench data export jes", "jester"),
        ("rankbench data where jes", "jester"),
        ("rankbench table mi", "mine"),
    ],
)
def test_names_are_offered_where_they_belong(cli, monkeypatch, here, line, name):
    (here / "results" / "mine" / "cells").mkdir(parents=True)
    assert offered(cli, monkeypatch, "bash", line) == [name]


def test_what_is_no_name_is_left_to_the_shell(cli, monkeypatch):
    assert offered(cli, monkeypatch, "bash", "rankbench run my/exp") == []
    assert offered(cli, monkeypatch, "zsh", "rankbench run my/exp") == ["_files"]


@pytest.mark.slow
def test_a_completion_imports_nothing_that_takes_time():
    command = [sys.executable, "-X", "importtime", "-c", PROGRAM]
    environment = {**os.environ, **asking("bash", "rankbench list alts")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "altsvm\n"
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert {"rankbench", "typer"} <= imported
    assert not imported & {"numpy", "scipy", "pandas", "matplotlib", "plotly"}
    assert "rankbench.core.contract" not in done.stderr


def test_the_version_is_one_line(cli):
    assert cli("--version").out == f"rankbench {__version__}\n"


def test_the_parts_of_a_table_are_completed():
    assert looking.parts("co") == ["costs"] and "results" in looking.parts("")
