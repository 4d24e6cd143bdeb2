"""The command line: its promises to scripts, and one clear line for every mistake."""

import csv
import io
import subprocess
import sys

import pytest
from helpers import rankbench, tiny_toml, with_solver

COLUMNS = "experiment,data,solver,settings,metric,published,measured,sd,n,seconds,peak_mb,determinism,status"


@pytest.fixture
def results(tmp_path, monkeypatch, capsys):
    """A folder with the results of the tiny experiment."""
    out = tmp_path / "out"
    assert rankbench(monkeypatch, "run", tiny_toml(tmp_path), "--out", str(out), "-q") == 0
    capsys.readouterr()
    return out


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["run", "park2015-tabel1"], "did you mean 'park2015-table1'? (rankbench list experiments)"),
        (["run", "park2015-table1", "-s", "sdg"], "did you mean 'sgd'? (rankbench list solvers)"),
        (["run", "park2015-table1", "-s", "sgd[rank=0]"], "sgd: rank=0 is out of range: must be at least 1"),
        (["run", "park2015-table1", "-s", "sgd[rank=two]"], "sgd: rank=two is not of type int"),
        (["run", "park2015-table1", "-s", "sgd[rnak=2]"], "'rnak'; did you mean 'rank'?"),
        (["run", "park2015-table1", "-s", "sgd[loss=logstic]"], "did you mean 'logistic'?"),
        (["run", "park2015-table1", "-s", "sgd[rank=2"], "expected name or name[key=value,...]"),
        (["run", "park2015-table1", "-s", "nowhere.py:Mine"], "no file 'nowhere.py'"),
        (["run", "park2015-table1", "-d", "ml-latst-small"], "did you mean 'ml-latest-small'?"),
        (["run", "park2015-table1", "--timeout", "10"], "write it like 30s, 10m, 2h, or none"),
        (["run", "park2015-table1", "--memory", "lots"], "write it like 500M, 8G, or none"),
        (["run", "park2015-table1", "-r", "0"], "--repetitions=0 is out of range"),
        (["run", "park2015-table1", "-j", "0"], "-j 0 is out of range"),
        (["run", "park2015-table1", "-j", "many"], "'-j' / '--jobs'"),
        (["run", "park2015-table1", "--sed", "3"], "--seed"),
        (["run", "nowhere.toml"], "no experiment file 'nowhere.toml'"),
        (["rnu"], "'run'"),
        (["list", "solver"], "did you mean 'solvers'?"),
        (["info", "sdg"], "did you mean 'sgd'?"),
        (["table", "tiny", "--csv", "--latex"], "exclude each other"),
        (["table", "tiny", "--out", "empty"], "no results under empty"),
        (["report", "--out", "empty"], "no results under empty"),
        (["plot", "tiny", "--out", "empty"], "no results under empty"),
        (["data", "fetch", "insteval2"], "did you mean 'insteval'?"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(monkeypatch, capsys, tmp_path, arguments, fragment):
    monkeypatch.chdir(tmp_path)
    assert rankbench(monkeypatch, *arguments) == 1
    printed = capsys.readouterr()
    assert fragment in printed.err
    assert printed.err.startswith("rankbench: ") and printed.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"titel": '"x"'}, "unknown key in tiny.toml: 'titel'; did you mean 'title'?"),
        ({"budget": "{setps = 3}"}, "tiny.toml: [budget] 'setps'; did you mean 'steps'?"),
        ({"budget": "{steps = -1}"}, "steps=-1 is out of range"),
        ({"metrics": '["ndgc@10"]'}, "tiny.toml: unknown metric 'ndgc'; did you mean 'ndcg'?"),
        ({"solvers": "[]"}, "tiny.toml: solvers must be a list of names that is not empty"),
        ({"data": "3"}, "tiny.toml: data must be a list"),
        ({"title": ""}, "tiny.toml: missing key 'title'"),
        ({"title": '"x'}, "tiny.toml: "),
        ({"repetitions": "0"}, "repetitions=0 is out of range"),
        ({"figure": '{kind = "curv"}'}, "did you mean 'curve'?"),
        ({"splits": '["n-per-usr"]'}, "did you mean 'n-per-user'?"),
        ({"splits": '["n-per-user[n=500]"]'}, "leaves nothing to train on: the data is too small"),
    ],
)
def test_a_mistake_in_an_experiment_names_file_key_and_nearest(monkeypatch, capsys, tmp_path, changes, fragment):
    assert rankbench(monkeypatch, "run", tiny_toml(tmp_path, **changes), "--out", str(tmp_path / "out")) == 1
    error = capsys.readouterr().err
    assert fragment in error and error.count("\n") == 1


def test_quiet_prints_the_table_and_nothing_else(monkeypatch, capsys, tmp_path):
    assert rankbench(monkeypatch, "run", tiny_toml(tmp_path), "--out", str(tmp_path / "out"), "-q") == 0
    printed = capsys.readouterr()
    lines = printed.out.strip().splitlines()
    assert lines[0] == "tiny: Tiny"
    assert all(line.startswith("|") for line in lines[2:])
    assert printed.err == ""


def test_a_pipe_gets_plain_lines_and_is_told_where_the_report_is(monkeypatch, capsys, tmp_path):
    assert rankbench(monkeypatch, "run", tiny_toml(tmp_path), "--out", str(tmp_path / "out")) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "tiny 1/4 ok: low-rank" in out
    assert f"report: {tmp_path / 'out' / 'report' / 'index.html'}" in out
    assert (tmp_path / "out" / "report" / "index.html").stat().st_size > 1e6


def test_a_failed_cell_is_exit_code_2_now_and_when_resumed(monkeypatch, capsys, tmp_path):
    solver = with_solver(tmp_path, "raise ValueError('boom')")
    arguments = ["run", tiny_toml(tmp_path), "-s", solver, "-r", "1", "--out", str(tmp_path / "out"), "--no-report"]
    for _ in range(2):
        assert rankbench(monkeypatch, *arguments) == 2
        assert "ValueError: boom (--retry-failed runs it again)" in capsys.readouterr().err


def test_a_dry_run_prints_the_cells_and_writes_nothing(monkeypatch, capsys, tmp_path):
    out = tmp_path / "out"
    assert rankbench(monkeypatch, "run", tiny_toml(tmp_path), "--dry-run", "--out", str(out)) == 0
    printed = capsys.readouterr().out
    assert printed.count("run  low-rank") == 4
    assert "4 of 4 cells to run, no estimate, 4 without precedent" in printed
    assert not out.exists()


def test_table_csv_has_the_promised_columns_and_a_row_per_metric(monkeypatch, capsys, results):
    assert rankbench(monkeypatch, "table", "tiny", "--csv", "--out", str(results)) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0] == COLUMNS
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["solver"], row["metric"]) for row in rows] == [
        (solver, metric) for solver in ("global", "sgd") for metric in ("pairwise-error", "ndcg@5")
    ]
    assert rows[2]["settings"] == "rank=2,lam=0.1,step=0.05,decay=1e-05,loss=squared-hinge"
    assert all(0 < float(row["measured"]) < 1 and row["n"] == "2" and row["status"] == "ok" for row in rows)


def test_table_latex_and_plot_and_report_work_from_stored_results(monkeypatch, capsys, results, tmp_path):
    assert rankbench(monkeypatch, "table", "tiny", "--latex", "--out", str(results)) == 0
    assert capsys.readouterr().out.startswith(r"\begin{tabular}")
    assert rankbench(monkeypatch, "plot", "tiny", "--to", str(tmp_path / "f"), "--out", str(results)) == 0
    assert {path.name for path in (tmp_path / "f").iterdir()} == {"tiny.pdf", "tiny.png"}
    assert rankbench(monkeypatch, "report", "--out", str(results), "--to", str(tmp_path / "r"), "--no-page") == 0
    assert (tmp_path / "r" / "README.md").exists() and not (tmp_path / "r" / "index.html").exists()


def test_a_table_for_people_says_what_its_metrics_mean(monkeypatch, capsys, results):
    assert rankbench(monkeypatch, "table", "tiny", "--out", str(results)) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("| data | solver |")
    assert "*ndcg@5*: " in printed and "Ties in score: expected value over all orders" in printed


def test_a_users_solver_that_is_there_is_said_not_to_be_watched(monkeypatch, capsys, tmp_path):
    arguments = [
        "run",
        tiny_toml(tmp_path),
        "-s",
        with_solver(tmp_path),
        "-r",
        "1",
        "--out",
        str(tmp_path / "o"),
        "--no-report",
    ]
    assert rankbench(monkeypatch, *arguments) == 0
    assert "version is raised" not in capsys.readouterr().out
    assert rankbench(monkeypatch, *arguments) == 0
    assert "note: a change of mine.py:Mine counts only when its version is raised" in capsys.readouterr().out


def test_a_table_that_is_not_there_names_the_nearest_one(monkeypatch, capsys, results):
    assert rankbench(monkeypatch, "table", "tinny", "--out", str(results)) == 1
    assert "did you mean 'tiny'?" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["experiments", "solvers", "datasets", "splits", "metrics"])
def test_everything_listed_can_be_told_about(monkeypatch, capsys, kind):
    assert rankbench(monkeypatch, "list", kind) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names
    for name in names:
        assert rankbench(monkeypatch, "info", name) == 0
        assert capsys.readouterr().out.startswith(f"{name}: ")


def test_doctor_and_data_tell_what_is_where(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    assert rankbench(monkeypatch, "doctor") == 0
    told = capsys.readouterr().out
    assert "fingerprint" in told and "blas" in told and str(tmp_path) in told
    assert rankbench(monkeypatch, "data", "where") == 0
    assert str(tmp_path) in capsys.readouterr().out
    assert rankbench(monkeypatch, "data", "verify") == 0
    assert "btl: generated, nothing to hash" in capsys.readouterr().out


def test_every_command_shows_an_example_in_its_help(monkeypatch, capsys):
    commands = ["run", "list", "info", "report", "table", "plot", "doctor", "data"]
    for words in ([name] for name in commands):
        assert rankbench(monkeypatch, *words, "--help") == 0
        assert "Example: rankbench" in capsys.readouterr().out
    for name in ("where", "fetch", "verify"):
        assert rankbench(monkeypatch, "data", name, "--help") == 0
        assert "Example: rankbench data" in capsys.readouterr().out


def test_help_imports_nothing_that_takes_time():
    heavy = ["numpy", "scipy", "pandas", "matplotlib", "plotly"]
    script = f"import sys, rankbench.cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_more_threads_than_cores_is_allowed_and_noted(monkeypatch, capsys, tmp_path):
    arguments = ["run", tiny_toml(tmp_path), "--threads", "500", "-r", "1", "--out", str(tmp_path / "o"), "--no-report"]
    assert rankbench(monkeypatch, *arguments, "-s", "global") == 0
    assert "note: 500 threads on" in capsys.readouterr().out
