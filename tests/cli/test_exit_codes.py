"""The table of exit codes in docs/commands.md is true."""

import json
from pathlib import Path

import pytest
from helpers import tiny_toml, with_solver

from rankbench.core.errors import Unfinished
from rankbench.execution.run import Run

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
ON = "-d low-rank[users=20,items=30,per_user=20] --trials 2 --steps 2 --space"


def table():
    """What the page says of each command and exit code."""
    text = PAGE.read_text().partition("## Exit codes")[2].partition("## ")[0]
    heading, _, *lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    rows = {name: dict(zip(heading[1:], cells, strict=True)) for first, *cells in lines for name in first.split(", ")}
    return {name.strip("`"): row for name, row in rows.items()}


@pytest.fixture
def here(cli, tmp_path, monkeypatch):
    """A folder with experiments, data and results, in which commands run."""
    tiny_toml(tmp_path, repetitions="1")
    (tmp_path / "bad").mkdir()
    solver = with_solver(tmp_path / "bad", "raise ValueError('gone')")
    tiny_toml(tmp_path / "bad", repetitions="1", solvers=json.dumps([solver]))
    (tmp_path / "nan").mkdir()
    with_solver(tmp_path / "nan", "yield Step(ItemScores(np.full(train.n_items, 1.0 if self.mode == 'b' else np.nan)))")
    (tmp_path / "a.csv").write_text("u,a,2\nu,b,1\nv,a,1\n")
    (tmp_path / "votes.csv").write_text("winner,loser\na,b\nb,a\n")
    monkeypatch.chdir(tmp_path)
    cli("run", "tiny.toml", "--no-report", "-q")
    return tmp_path


CASES = [
    ("run", 0, "run tiny.toml --no-report"),
    ("run", 1, "run bad/tiny.toml --no-report --out other"),
    ("run", 2, "run nowhere.toml"),
    ("tune", 0, f"tune sgd[rank=2] {ON} step=0.01|0.1"),
    ("tune", 0, f"tune nan/mine.py:Mine {ON} mode=a|b"),  # a diverged trial is a result
    ("tune", 1, f"tune bad/mine.py:Mine {ON} mode=a|b"),
    ("tune", 2, "tune nobody -d low-rank --space lam=1..2"),
    ("on", 2, "on nowhere.csv"),
    ("verify", 0, "verify tiny --all"),
    ("verify", 2, "verify nothing"),
    ("check", 1, "check bad/mine.py:Mine"),
    ("check", 2, "check nobody"),
    ("judge", 0, "judge a.csv --truth a.csv --no-report --metric map"),
    ("judge", 0, "judge a.csv --truth a.csv --metric map --published 1.000"),
    ("judge", 1, "judge a.csv --truth a.csv --metric map --published 0.123"),
    ("judge", 2, "judge nowhere.csv --truth a.csv"),
    ("all others", 0, "rank votes.csv --to board.csv"),
    ("all others", 2, "rank nowhere.csv"),
    ("compare", 0, "compare tiny"),
    ("compare", 2, "compare nothing"),
    ("merge", 0, "merge results --out joined"),
    ("merge", 2, "merge nowhere --out joined"),
]


@pytest.mark.parametrize(("command", "code", "words"), CASES, ids=[words for *_, words in CASES])
def test_commands_end_with_the_codes_of_the_table(cli, here, command, code, words):
    assert table()[command][str(code)]
    cli(*words.split(" "), code=code)


def test_ctrl_c_is_130(cli, here, monkeypatch):
    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "execute", stopped)
    assert table()["run"]["130"]
    cli("run", "tiny.toml", "--no-report", code=130)


@pytest.mark.parametrize("names", [("tiny.toml",), ("tiny.toml", "other.toml")])
def test_a_run_whose_workplace_is_lost_is_1_and_says_what_is_kept(cli, here, monkeypatch, names):
    def lost(*arguments):
        raise Unfinished("everybody has left", remedy="call somebody")

    (here / "other.toml").write_text((here / "tiny.toml").read_text())
    monkeypatch.setattr(Run, "execute", lost)
    first, second = cli("run", *names, "--no-report", code=1).err.splitlines()
    assert first == "rankbench: everybody has left; call somebody"
    assert "stopped; finished cells kept: 2; resume with: rankbench run tiny.toml" in second


def test_the_table_has_the_codes_and_commands_that_there_are():
    rows = table()
    assert {"run", "tune", "on", "judge", "verify", "check", "compare", "merge", "all others"} == set(rows)
    assert {tuple(row) for row in rows.values()} == {("0", "1", "2", "130")}
