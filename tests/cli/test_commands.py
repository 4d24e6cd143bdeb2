"""The command line: exit codes and output for scripts, and a clear one-line error for every mistake."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from html import escape as html_of
from zipfile import ZipFile

import pandas
import pytest
from helpers import (
    TINY,
    TUNE_TOML,
    absent_data,
    csv_rows,
    made_up,
    made_up_run,
    no_values,
    prepared,
    ran,
    tiny_toml,
    with_solver,
)
from rich.console import Console

from rankbench.api.session import Session, chosen_experiments
from rankbench.api.terminal import Terminal
from rankbench.cli import looking, options, sharing
from rankbench.cli.printer import show_sheet
from rankbench.cli.showing import runs
from rankbench.cli.showing.runs import _using
from rankbench.core.errors import UserError
from rankbench.execution.cluster.waiting import Waits
from rankbench.execution.isolation import Caps
from rankbench.execution.run import Conditions, Event, Run
from rankbench.execution.workplace import workplace_at
from rankbench.experiments.durations import reproduced
from rankbench.metrics import RULES
from rankbench.planning import materials
from rankbench.planning.plan import plan
from rankbench.records.cells import Selection
from rankbench.report.analysis.costs import spelled
from rankbench.report.render.tables import Sheet, to_latex, to_markdown
from rankbench.solvers import SOLVERS

COLUMNS = "experiment,data,split,solver,settings,metric,published,measured,sd,n,seconds,peak_mb,determinism,status"
LATER = (  # columns that came at the end
    "users,left_out,unscored,published_on,computed,prepare,load,low,high,verdict,rival,difference,difference_low,"
    "difference_high,margin,p,chance,first,tier,strength"
)


@pytest.fixture
def results(cli, tmp_path):
    """A folder with the results of the tiny experiment."""
    out = tmp_path / "out"
    cli("run", tiny_toml(tmp_path), "--out", out, "-q")
    return out


@pytest.fixture
def asked(cli, monkeypatch, here):
    """What a verb hands over when it is asked for something: the session, and what the session is to do."""

    def of(*arguments, code=0):
        calls = []
        for verb in ("run_all", "preview_all", "tune_one"):
            called = lambda *given, verb=verb: calls.append((verb, *given)) or code  # noqa: E731
            monkeypatch.setattr(f"rankbench.cli.showing.runs.{verb}", called)
        cli(*arguments, code=code)
        ((verb, session, *given),) = calls
        return verb, session, given

    return of


@pytest.mark.parametrize(
    ("arguments", "selection", "conditions"),
    [
        ("", {}, {}),
        ("-s sgd[rank=2] -s global", {"solvers": ("sgd[rank=2]", "global")}, {}),
        ("-d btl -d low-rank", {"data": ("btl", "low-rank")}, {}),
        ("-r 7", {"repetitions": 7}, {}),
        ("--seed 7", {"seed": 7}, {}),
        ("--threads 7", {"threads": 7}, {}),
        ("--trials 7", {"trials": 7}, {}),
        ("--full", {"full": True}, {}),
        ("-j 7", {}, {"jobs": 7}),
        ("--timeout 2m", {}, {"caps": Caps(seconds=120.0)}),
        ("--timeout none", {}, {"caps": Caps(seconds=None)}),
        ("--memory 3M", {}, {"caps": Caps(memory=3 * 2**20)}),
        ("--rerun all", {}, {"rerun": frozenset({"all"})}),
        ("--rerun failed,disturbed", {}, {"rerun": frozenset({"failed", "disturbed"})}),
        ("--rerun foreign", {}, {"rerun": frozenset({"foreign"})}),
    ],
)
def test_each_option_of_run_asks_for_one_thing(asked, arguments, selection, conditions):
    verb, session, given = asked("run", *arguments.split())
    assert (verb, given) == ("run_all", [["all"], True])
    assert session.selection == Selection(**selection)
    assert session.conditions == Conditions(**conditions)
    assert session.display == Terminal() and session.results.out == options.RESULTS


@pytest.mark.parametrize(("arguments", "wait"), [("--join", False), ("--join --wait", True)])
def test_a_driver_that_joins_leaves_at_once_or_with_the_last_cell(asked, arguments, wait):
    verb, session, given = asked("run", "a", *arguments.split())
    assert (verb, given) == ("run_all", [["a"], True])
    assert session.conditions == Conditions(join=True, wait=wait)


@pytest.mark.parametrize(
    ("arguments", "conditions", "changes"),
    [
        ("", {}, {}),
        ("-j 7", {"jobs": 7}, {}),
        ("--timeout 30s", {"caps": Caps(seconds=30.0)}, {}),
        ("--rerun all", {"rerun": frozenset({"all"})}, {}),
        ("--rerun failed", {"rerun": frozenset({"failed"})}, {}),
        ("--steps 7", {}, {"steps": 7}),
        ("--split per-user", {}, {"split": "per-user"}),
        ("--trials 7", {}, {"trials": 7}),
        ("--metric kendall", {}, {"metric": "kendall"}),
        ("--validation per-user", {}, {"validation": "per-user"}),
    ],
)
def test_each_option_of_tune_asks_for_one_thing(asked, arguments, conditions, changes):
    verb, session, (found,) = asked("tune", "sgd", "-d", "low-rank", "--space", "lam=1..2", *arguments.split())
    assert verb == "tune_one" and session.selection == Selection() and session.display == Terminal()
    assert session.conditions == Conditions(**conditions) and session.results.out == options.RESULTS
    told = {"steps": found.budget.steps, "split": found.splits[0], "metric": found.metrics[0]}
    told |= {"trials": found.tune.trials, "validation": found.tune.validation}
    usual = {"steps": 20, "split": "entries[test=0.2]", "metric": "pairwise-error"}
    assert told == {**usual, "trials": 8, "validation": "entries[test=0.2]", **changes}


@pytest.mark.parametrize("verb", ["run", "tune"])
def test_run_and_tune_take_what_both_know(asked, verb):
    arguments = ["tune", "sgd", "-d", "low-rank", "--space", "lam=1..2"] if verb == "tune" else ["run", "a", "b"]
    _, session, given = asked(*arguments, "-q", "--out", "here", "--seed", "3", "--threads", "2")
    assert session.display == Terminal(quiet=True) and str(session.results.out) == "here"
    assert session.selection == Selection(seed=3, threads=2)
    assert verb == "tune" or given == [["a", "b"], True]
    asked(*arguments, code=2)  # whatever the session ends with, the process does


def test_a_run_without_a_report_and_one_that_is_only_previewed(asked):
    assert asked("run", "a", "--no-report")[::2] == ("run_all", [["a"], False])
    assert asked("run", "a", "--dry-run")[::2] == ("preview_all", [["a"], False])
    assert asked("run", "a", "--dry-run", "-v")[::2] == ("preview_all", [["a"], True])


def test_amounts_are_read_with_their_units():
    assert [options.seconds_of(text) for text in ("30s", "0.5m", "2h", "none")] == [30.0, 30.0, 7200.0, None]
    assert [options.bytes_of(text) for text in ("500M", "1.5G", "none")] == [500 * 2**20, 3 * 2**29, None]


@pytest.mark.slow
def test_quiet_prints_the_table_and_nothing_else(cli, tmp_path):
    printed = cli("run", tiny_toml(tmp_path), "--out", tmp_path / "out", "-q")
    lines = printed.out.strip().splitlines()
    assert lines[0] == "tiny: Tiny"
    assert all(line.startswith("|") for line in lines[2:])
    assert printed.err == ""


@pytest.mark.slow
def test_a_pipe_gets_plain_lines_and_is_told_where_the_report_is(cli, tmp_path):
    out = cli("run", tiny_toml(tmp_path), "--out", tmp_path / "out").out
    assert "\x1b" not in out
    assert f"tiny: 4 of 4 cells ended well; rankbench table tiny --out {tmp_path / 'out'}\n" in out
    assert "tiny 1/4" not in out
    again = ("--rerun", "all", "-v", "--no-report", "--out", str(tmp_path / "out"))
    assert "tiny 1/4 ok: low-rank" in cli("run", tiny_toml(tmp_path), *again).out
    assert f"report: {tmp_path / 'out' / 'report' / 'index.html'}" in out
    shown = (tmp_path / "out" / "report" / "index.html").read_text().lower()
    assert shown.startswith("<!doctype html>") and shown.rstrip().endswith("</html>") and "ndcg@5" in shown


def test_a_failed_cell_is_exit_code_1_now_and_when_resumed(cli, tmp_path):
    solver = with_solver(tmp_path, "raise ValueError('boom')")
    arguments = ["run", tiny_toml(tmp_path), "-s", solver, "-r", "1", "--out", str(tmp_path / "out"), "--no-report"]
    for _ in range(2):
        error = cli(*arguments, code=1).err
        assert "ValueError: boom (mine.py, line 18: raise ValueError('boom')) (--rerun failed runs it again)" in error


@pytest.mark.parametrize("kept", [materials.KEPT, 0])
def test_a_dry_run_prints_the_cells_and_writes_nothing(cli, monkeypatch, tmp_path, kept):
    monkeypatch.setattr(materials, "KEPT", kept)  # bytes of splits in memory, beyond which a run has a scratch folder
    out = tmp_path / "out"
    printed = cli("run", tiny_toml(tmp_path), "--dry-run", "--out", out).out
    assert printed.count("run  low-rank") == 4
    assert "4 of 4 cells to run, no estimate, 4 of unknown duration" in printed
    assert not out.exists()


@pytest.mark.parametrize(("more", "listed"), [([], 0), (["-v"], 8)])
def test_a_dry_run_of_several_experiments_lists_cells_only_if_asked(cli, tmp_path, more, listed):
    other = shutil.copy(tiny_toml(tmp_path), tmp_path / "other.toml")
    both = tiny_toml(tmp_path), str(other)
    printed = cli("run", *both, "--dry-run", "--out", tmp_path / "out", *more).out
    assert printed.count("run  low-rank") == listed
    assert [line.partition(":")[0] for line in printed.splitlines() if "4 of 4 cells" in line] == ["tiny", "other"]
    assert ("which differences would show" in printed) == bool(listed)


@pytest.mark.slow
def test_a_dry_run_of_a_full_profile_says_how_long_the_reproduction_took(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_DATA", str(tmp_path))
    dry = ("--dry-run", "--out", str(tmp_path / "out"))
    took = reproduced("cortes2007-bounds")
    whole = f"cortes2007-bounds: 100 of 100 cells to run, about {spelled(took.seconds)}, one at a time, judging by"
    assert f"{whole} the reproduction on {took.processor}\n" in cli("run", "cortes2007-bounds", "--full", *dry).out
    said = cli("run", "cortes2007-bounds", "--full", "-r", "2", *dry).out
    assert f"20 of 20 cells to run, about {spelled(took.seconds / 5)}, one at a time" in said
    assert "20 of 20 cells to run, no estimate, 20 of unknown duration" in cli("run", "cortes2007-bounds", *dry).out
    told = cli("run", "cortes2007-table1", "--full", *dry).out
    assert (
        "rankbench data fetch ml-1m" in told and "0 of 0 cells to run, about " in told and " for all 1080, one" in told
    )
    assert reproduced("no-such-experiment") is None


TUNED = {"tune": TUNE_TOML, "solvers": '["global", "sgd"]', "repetitions": "1"}


@pytest.mark.slow
def test_a_tuned_experiment_runs_its_trials_then_its_cells_and_resumes(cli, tmp_path):
    arguments = ["run", tiny_toml(tmp_path, **TUNED), "--out", str(tmp_path / "out"), "--no-report"]
    printed = cli(*arguments, "--dry-run").out
    assert printed.count("· trial\n") == 6 and printed.count("with the settings of its best trial") == 2
    assert "tiny: 8 of 8 cells (6 of them trials) to run, no estimate, 8 of unknown duration" in printed
    printed = cli(*arguments).out
    assert "tiny trials 6/6 ok" not in printed and "tiny: 2 of 2 cells ended well" in printed
    assert "| data | solver | chosen |" in printed
    assert f"trials: 6; rankbench table tiny --what trials --out {tmp_path / 'out'} lists them" in printed
    assert "but not part of this run" not in printed
    printed = cli(*arguments).out
    assert "tiny trials: 6 of 6 cells are stored already" in printed
    assert "tiny: 2 of 2 cells are stored already" in printed
    assert "tiny: 0 of 8 cells (6 of them trials) to run" in cli(*arguments, "--dry-run").out
    printed = cli(*arguments, "--dry-run", "--rerun", "all", "-j", "2").out
    assert re.search(r"8 of 8 cells \(6 .*\) to run, about .+, 2 at a time, judging by stored results$", printed, re.M)
    assert cli("table", "tiny", "--what", "trials", "--out", tmp_path / "out").out.count("| chosen | ok |") == 2
    lines = csv_rows(cli("table", "tiny", "--what", "trials", "--csv", "--out", tmp_path / "out").out)
    assert [line["solver"] for line in lines] == ["global"] * 3 + ["sgd"] * 3
    printed = cli("table", "tiny", "--what", "by-trials", "--out", tmp_path / "out").out
    assert "| data | metric | trials | global | sgd | leader |" in printed and "| NDCG@5 | 3 | " in printed.upper()


@pytest.mark.slow
def test_status_counts_trials_with_their_run(cli, tmp_path):
    out = str(tmp_path / "out")
    cli("run", tiny_toml(tmp_path, **TUNED), "--out", out, "-q", "--no-report")
    told = cli("status", "--out", out).out
    assert "8 of 8 cells are stored: 8 ok" in told and "of no recorded run" not in told


def test_trials_that_diverged_are_counted_among_those_that_cannot_be_chosen(cli, here):
    with_solver(here, "if self.mode == 'a': yield Step(ItemScores(np.full(train.n_items, np.nan)))")
    toml = {**TUNED, "solvers": '["mine.py:Mine"]', "tune": "{space = {'mine.py:Mine' = {mode = ['a', 'b']}}}"}
    said = cli("run", tiny_toml(here, **toml), "--out", "out", "--no-report").out
    assert "trials: 2, 1 of which did not end well and cannot be chosen" in said


def test_a_line_says_the_cell_its_first_metric_and_its_training_seconds(capsys):
    first, second = plan(TINY, Selection(solvers=("sgd",))).cells
    for display, said in ((Terminal(quiet=True), ""), (Terminal(), ""), (Terminal(verbose=True), SAID)):
        with display.progress("tiny", 2) as tell:
            tell(Event("start", first))
            tell(Event("end", first, made_up(first, 0.5)))
            tell(Event("end", second, made_up(second, float("nan"))))
        assert capsys.readouterr().out == said.format(first.label, second.label)


SAID = """\
tiny 1/2 ok: {}: pairwise-error 0.2500, 0.300 s
tiny 2/2 ok: {}: pairwise-error without a value, 0.300 s
"""


HOSTILE = "raise ValueError('\\x1b[31m[red]bo|om</b>\\x07\\n' + 'x' * 9000)"
SHOWN = "ValueError: \\x1b[31m[red]bo|om</b>\\x07\\nxxx"


def test_what_a_solver_says_is_shown_as_text_and_cut(cli, tmp_path):
    arguments = ["run", tiny_toml(tmp_path), "-s", with_solver(tmp_path, HOSTILE), "-r", "1"]
    printed = cli(*arguments, "--out", tmp_path / "out", code=1)
    assert SHOWN in printed.err
    for text in (printed.out, printed.err):
        assert "\x1b" not in text and "\x07" not in text and len(text) < 12_000
    (stored,) = (tmp_path / "out/tiny/cells").glob("mine*.json")
    assert 9000 < len(stored.read_text()) < 9000 + 3 * 4096  # all of it is there once
    html = (tmp_path / "out/report/index.html").read_text()
    assert html_of(SHOWN) in html and "\x1b" not in html and "</b>\\x07" not in html


def test_nothing_that_a_terminal_shows_is_taken_for_markup(monkeypatch, capsys, tmp_path):
    cell = plan(TINY, Selection(solvers=("sgd",))).cells[0]
    terminal = partial(Console, force_terminal=True, width=400)
    monkeypatch.setattr("rankbench.cli.printer.Console", terminal)
    monkeypatch.setattr("rankbench.api.terminal.Console", terminal)
    failed = made_up(cell, 0.5, status="failed", reason="[red]boom[/red]\x1b[2J", curve=(), counted=())
    with Terminal().progress("[b]tiny", 1) as tell:
        tell(Event("end", cell, failed))
    sheet = Sheet(("a[b=c]", "\x1b[2J"), (False, False), (("[red]x\x1b]0;y\x07", "[/]"),), frozenset({(0, 1)}))
    show_sheet("[red]title", sheet)
    out = capsys.readouterr().out
    assert "\x1b[2J" not in out and "\x1b]0" not in out
    out = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out)  # without rich's own colours
    for text in ("[red]boom[/red]", "\\x1b[2J", "[b]tiny", "a[b=c]", "[red]x\\x1b]0;y\\x07", "[/]", "[red]title"):
        assert text in out
    assert "\x1b" not in to_markdown(sheet) and r"{[}red]x" in to_latex(sheet)
    assert r"\textbackslash{}x1b[2J" in to_latex(sheet)


@pytest.mark.trust
def test_every_letter_can_be_printed_on_every_terminal(tmp_path):
    solver = with_solver(tmp_path, "raise ValueError('größe 日本')")
    command = [sys.executable, "-m", "rankbench", "run", tiny_toml(tmp_path), "-s", solver, "-r", "1", "--no-report"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 1 and b"Traceback" not in done.stderr
    assert rb"gr\xf6\xdfe \u65e5\u672c" in done.stderr and done.stderr.isascii()


@pytest.mark.slow
@pytest.mark.parametrize("named", ["csv:missing.csv", "netflix"])
@pytest.mark.parametrize("more", [["-q"], ["--dry-run"]])
def test_data_that_somebody_named_and_that_is_not_there_is_an_error(cli, monkeypatch, here, named, more):
    monkeypatch.setenv("RANKBENCH_DATA", str(here))
    monkeypatch.setenv("RANKBENCH_CACHE", str(here))
    assert named.partition(":")[2] or named in cli.refuses("run", "all", "-d", named, *more)
    cli.refuses("run", "all", "-s", "nowhere.py:Mine", *more)


def test_an_experiment_that_is_named_twice_is_run_once(tmp_path):
    name = tiny_toml(tmp_path)
    assert [found.name for found in chosen_experiments([name, name], Selection())] == ["tiny"]


def test_what_was_forced_is_resumed_without_force(cli, monkeypatch, tmp_path):
    def stopped(self, tell):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "execute", stopped)
    arguments = ["run", tiny_toml(tmp_path), "--rerun", "all", "--out", str(tmp_path / "out"), "-s", "sgd[rank=2]"]
    said = cli(*arguments, code=130).err
    resume = shlex.join(["rankbench", *(word for word in arguments if word not in ("--rerun", "all"))])
    assert said == f"rankbench: stopped; finished cells kept: 0; resume with: {resume}\n"


@pytest.mark.slow
def test_a_failed_trial_and_a_failed_solver_of_a_tuned_experiment_are_exit_code_1(cli, here):
    solver = with_solver(here, "if self.mode != 'b':", "    raise ValueError('boom')")
    toml = {**TUNED, "solvers": '["mine.py:Mine"]', "tune": "{space = {'mine.py:Mine' = {mode = ['a', 'b']}}}"}
    arguments = ["run", tiny_toml(here, **toml), "--out", "out", "--no-report"]
    out, error = cli(*arguments, code=1)
    assert "trials: 2, 1 of which did not end well and cannot be chosen" in out
    assert "rankbench: failed: 1 trial of mine.py:Mine: ValueError: boom (mine.py, line" in error
    assert solver.endswith("mine.py:Mine")
    toml["tune"] = toml["tune"].replace("'b'", "'c'")
    error = cli("run", tiny_toml(here, **toml), "--out", "out", "--no-report", code=1).err
    assert "none of its 2 trials ended well; the first: failed, ValueError: boom (mine.py, line" in error


@pytest.mark.slow
def test_tune_tries_one_solver_and_ends_with_the_command_that_uses_the_winner(cli, tmp_path):
    solver = with_solver(tmp_path, "yield Step(ItemScores(np.ones(train.n_items) * (self.mode == 'b')))")
    data, out = "low-rank[users=20,items=60]", str(tmp_path / "out")
    arguments = ["tune", solver, "-d", data, "--space", "mode=a|b", "--metric", "kendall", "--out", out, "--steps", "0"]
    lines = cli(*arguments).out.splitlines()
    table = [line for line in lines if line.startswith("| low-rank")]
    assert [line.count("chosen") for line in table] == [1, 0, 0]  # two trials, best first, and the cell
    assert lines[-1].startswith("to use it: rankbench run ")
    using = shlex.split(lines[-1].removeprefix("to use it: rankbench "))
    assert using[2:] == ["-d", data, "-s", f"{solver}[mode=a]"]
    assert "mine.py:Mine[mode=a]" in cli(*using, "-r", "1", "-q", "--no-report", "--out", out).out


def test_a_tune_that_finds_nothing_is_exit_code_2(cli, tmp_path):
    solver = with_solver(tmp_path, "raise ValueError('boom')")
    arguments = ["tune", solver, "-d", "low-rank[users=20,items=60]", "--space", "mode=a|b", "--steps", "1"]
    assert "none of its 2 trials ended well" in cli(*arguments, "--out", tmp_path / "out", code=1).err


@pytest.mark.slow
def test_ctrl_c_in_the_trials_keeps_those_that_ended_and_says_how_to_resume(tmp_path):
    begun = tmp_path / "begun"
    solver = with_solver(
        tmp_path, "if self.mode == 'b':", f"    open({str(begun)!r}, 'w').close()", "    time.sleep(60)"
    )
    out = tmp_path / "out"
    tune = ["tune", solver, "-d", "low-rank[users=20,items=60]", "--space", "mode=a|b", "--out", str(out)]
    command = [sys.executable, "-m", "rankbench", *tune]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True, text=True)
    deadline = time.monotonic() + 180
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=180)
    assert process.returncode == 130
    assert "stopped; finished cells kept: 1; resume with: rankbench tune" in errors and errors.count("\n") == 1


@pytest.mark.slow
def test_table_csv_has_the_promised_columns_and_a_row_per_metric(cli, results):
    text = cli("table", "tiny", "--csv", "--out", results).out
    assert text.splitlines()[0] == f"{COLUMNS},{LATER}"
    rows = csv_rows(text)
    assert [(row["solver"], row["metric"]) for row in rows] == [
        (solver, metric) for solver in ("global", "sgd") for metric in ("pairwise-error", "ndcg@5")
    ]
    assert rows[2]["settings"] == "rank=2,lam=0.1,step=0.05,decay=1e-05,loss=squared-hinge,schedule=serial,parts=8"
    assert all(0 < float(row["measured"]) < 1 and row["n"] == "2" and row["status"] == "ok" for row in rows)


@pytest.mark.slow
def test_table_latex_and_plot_and_report_work_from_stored_results(cli, results, tmp_path):
    assert cli("table", "tiny", "--latex", "--out", results).out.startswith(r"\begin{tabular}")
    cli("report", "tiny", "--to", tmp_path / "f", "--out", results)
    assert {path.name for path in (tmp_path / "f").iterdir()} == {"tiny.pdf", "tiny.png"}
    cli("report", "--out", results, "--to", tmp_path / "r", "--no-page")
    assert (tmp_path / "r" / "README.md").exists() and not (tmp_path / "r" / "index.html").exists()


@pytest.mark.slow
def test_the_profile_and_the_seed_choose_among_several_runs(cli, monkeypatch, here):
    tiny_toml(here)
    drawn = []
    monkeypatch.setattr(
        "rankbench.report.render.figures.plots.draw", lambda drawing, folder, name: drawn.append(drawing)
    )
    for solver, *how in (("global", "--full"), ("sgd[rank=3]", "--seed", "1"), ("sgd[rank=2]",)):
        cli("run", "tiny.toml", "-r", "1", "-s", solver, *how, "--no-report")
    for how, solver in (
        ((), "sgd[rank=2]"),
        (("--full",), "global[lam=10]"),
        (("--quick",), "sgd[rank=2]"),
        (("--seed", "1"), "sgd[rank=3]"),
        (("--seed", "0", "--full"), "global[lam=10]"),
    ):
        lines = [line for line in cli("table", "tiny", *how).out.splitlines() if line.startswith("| low-rank")]
        assert [line.split(" | ")[1] for line in lines] == [solver]
        cli("report", "tiny", *how)
        assert drawn.pop().panels[0].lines[0].y[-1] == pytest.approx(float(lines[0].split(" | ")[2]), abs=1e-4)
    said = cli.refuses("table", "tiny", "--seed", "1", "--full")
    assert "tiny has no such run; rankbench status tiny --out results lists its runs" in said


@pytest.mark.slow
def test_a_table_for_people_says_what_its_metrics_mean(cli, results):
    printed = cli("table", "tiny", "--out", results).out
    assert printed.startswith("| data | solver |")
    assert "*NDCG@5* (`ndcg@5`): " in printed and RULES in printed


@pytest.mark.slow
def test_a_users_solver_is_run_again_when_its_file_was_edited_and_not_when_it_was_moved(cli, here):
    with_solver(here)
    arguments = ["run", tiny_toml(here), "-r", "1", "--out", "out", "--no-report"]
    cli(*arguments, "-s", "mine.py:Mine")
    (here / "elsewhere").mkdir()
    (here / "mine.py").rename(here / "elsewhere" / "mine.py")
    assert "tiny: 1 of 1 cells are stored already" in cli(*arguments, "-s", "elsewhere/mine.py:Mine").out
    (here / "elsewhere" / "mine.py").rename(here / "mine.py")
    with_solver(here, "yield Step(ItemScores(np.zeros(train.n_items)))")
    assert "stored already" not in cli(*arguments, "-s", "mine.py:Mine").out
    rows = [
        row for row in csv_rows(cli("table", "tiny", "--csv", "--out", "out").out) if row["solver"] == "mine.py:Mine"
    ]
    assert [row["metric"] for row in rows] == ["pairwise-error", "ndcg@5"]  # the edited file's, and no older ones
    assert rows[0]["measured"] == "0.5"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["experiments", "solvers", "datasets", "splits", "metrics"])
def test_everything_listed_can_be_told_about(cli, kind):
    names = [line.split()[0] for line in cli("list", kind).out.splitlines()]
    assert names
    for name in names:
        assert cli("list", name).out.startswith(f"{name}: ")


def test_info_says_how_an_experiment_is_tuned(cli):
    for name, told in (
        ("park2015-table1", "2 grid trials for each solver"),
        ("parkzhang2014-choices", "none: solvers run"),
    ):
        assert f"tuning       {told}" in cli("list", name).out


def test_doctor_and_data_tell_what_is_where(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    told = cli("doctor").out
    assert "fingerprint" in told and "blas" in told and str(tmp_path) in told
    assert str(tmp_path) in cli("data", "where").out
    assert "btl: generated, nothing to hash" in cli("data", "verify").out


def test_data_where_tells_the_files_of_one_data_set_or_how_to_get_them(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_DATA", str(tmp_path))
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path / "cache"))
    said = cli("data", "where", "jester[parts=all]").out
    nothing = "nothing there yet: rankbench data fetch jester[parts=all]"
    assert said == f"{tmp_path}/jester\n{tmp_path}/cache/data/jester\n{nothing}\n"
    (tmp_path / "jester").mkdir()
    (tmp_path / "jester/jester-data-1.csv").touch()
    assert cli("data", "where", "jester").out == f"{tmp_path}/jester/jester-data-1.csv\n"
    assert cli("data", "where", "btl").out == "btl has no files: generated\n"


def test_info_tells_the_settings_of_what_has_some_without_defaults(cli):
    out = cli("list", "csv:PATH").out
    assert "  path = (must be given)" in out and "  separator = auto" in out


@pytest.mark.slow
def test_every_command_shows_an_example_in_its_help(cli):
    commands = ["run", "tune", "list", "status", "report", "table", "compare", "verify", "doctor", "data"]
    for words in ([name] for name in commands):
        assert "Example: rankbench" in cli(*words, "--help").out
    for name in ("where", "fetch", "import", "verify"):
        assert "Example: rankbench data" in cli("data", name, "--help").out


@pytest.mark.trust
@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_reader_who_has_had_enough_is_no_mistake(buffered):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "rankbench", "list", "solvers"]
    environment = {**os.environ, "PYTHONUNBUFFERED": buffered}
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("module", "others"),
    [
        ("rankbench.cli", ["numpy", "scipy", "pandas", "matplotlib", "plotly"]),
        ("rankbench.cli.showing.runs", ["rankbench.judging", "rankbench.leaderboards", "rankbench.own_data.auditing"]),
    ],
)
def test_help_and_run_import_nothing_that_they_have_no_use_for(module, others):
    script = f"import sys, {module}; print([name for name in {others} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("most", "noted"), [(4, False), (5, True)])
def test_an_axis_of_more_threads_than_cores_is_noted(cli, monkeypatch, tmp_path, most, noted):
    monkeypatch.setattr("psutil.cpu_count", lambda logical=True: 4)
    toml = tiny_toml(tmp_path, threads=f"[1, {most}]", repetitions="1", solvers='["global"]')
    assert ("threads on 4 cores" in cli("run", toml, "--out", tmp_path / "o", "--no-report").out) is noted


def test_more_threads_than_cores_is_allowed_and_noted(cli, tmp_path):
    arguments = ["run", tiny_toml(tmp_path), "--threads", "500", "-r", "1", "--out", str(tmp_path / "o"), "--no-report"]
    assert "note: 500 threads on" in cli(*arguments, "-s", "global").out


# ---- what is asked of stored results that do not have it ----


@pytest.fixture
def nothing_good(tmp_path):
    """A folder with a run none of whose cells ended well."""
    made_up_run(tmp_path / "out", status="failed", reason="broken", curve=(), arrays=no_values)
    return str(tmp_path / "out")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("report", "tiny", "--to", "figures"), "no cell of tiny has ended well yet: rankbench run tiny --out "),
        (("report", "tiny", "--columns", "1", "--to", "figures"), "no cell of tiny has ended well yet: "),
        (("table", "tiny", "--what", "trials"), "tiny has no trials: it tunes nothing"),
        (("table", "tinny"), "did you mean 'tiny'?"),
        (("status", "tyni"), "unknown experiment in this folder of results: 'tyni'; did you mean 'tiny'?"),
        (("compare", "."), "'.' is a folder, not an experiment; a folder of results is given by --out"),
    ],
)
def test_results_that_lack_what_is_asked_for_are_one_line(cli, here, nothing_good, arguments, line):
    assert line in cli.refuses(*arguments, "--out", nothing_good)


def test_a_figure_cannot_be_written_below_a_file(cli, tmp_path):
    made_up_run(tmp_path / "out", arrays=no_values)
    (tmp_path / "file").write_text("")
    said = cli.refuses("report", "tiny", "--to", tmp_path / "file", "--out", tmp_path / "out")
    assert f"cannot write to {tmp_path}/file: File exists" in said


def test_without_dask_a_scheduler_is_refused_with_the_command_that_installs_it(cli, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "rankbench.execution.cluster.driver", None)
    said = cli.refuses("run", tiny_toml(tmp_path), "--scheduler", "tcp://127.0.0.1:1", "-q")
    assert "--scheduler needs Dask, which is not installed" in said


def test_what_needs_no_fetching_is_counted(cli):
    assert cli("data", "fetch", "low-rank[users=20,items=30,per_user=20]").out.startswith(
        "low-rank[users=20,items=30,per_user=20]: 400 rows, 20 users, 30 items; "
    )


def test_info_tells_of_data_with_its_argument_and_without(cli):
    for name, said in (("csv:gone.csv", "csv:gone.csv: A text file"), ("csv", "csv:PATH: A text file")):
        assert cli("list", name).out.startswith(said)


# ---- what ends a command early ----


@pytest.mark.parametrize(("raised", "code", "said"), [(KeyboardInterrupt(), 130, "stopped\n"), (SystemExit(3), 3, "")])
def test_an_interrupt_and_an_exit_of_somebody_elses_code_have_their_codes(cli, monkeypatch, raised, code, said):
    def app(*arguments, **options):
        raise raised

    monkeypatch.setattr("rankbench.cli.app._command", lambda: app)
    assert cli("list", code=code).err.endswith(said)


@pytest.mark.parametrize("verb", [("list",), ("data", "where"), ("run", "--seed", "1")])
def test_an_interrupt_of_what_runs_nothing_is_told(cli, monkeypatch, verb):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("rankbench.cli.looking.show", interrupted)
    monkeypatch.setattr("rankbench.cli.data_verbs.show", interrupted)
    monkeypatch.setattr("rankbench.core.streams.checked_seed", interrupted)  # while options are read
    assert cli(*verb, code=130).err.splitlines()[-1] == "rankbench: stopped"


def test_a_missing_module_is_an_error_of_the_program_where_there_is_fork(cli, monkeypatch):
    def app(*arguments, **options):
        raise ImportError("no module named nonsense")

    monkeypatch.setattr("rankbench.cli.app._command", lambda: app)
    with pytest.raises(ImportError, match="nonsense"):
        cli("list")
    monkeypatch.delattr(os, "fork")
    assert "this system has no fork" in cli("list", code=1).err


def test_without_a_scheduler_cells_run_on_this_machine():
    with workplace_at(None, 1, print, Waits()) as workplace:
        assert workplace is None


def test_an_error_of_rankbench_in_one_experiment_does_not_stop_the_others(cli, monkeypatch, tmp_path):
    first = tiny_toml(tmp_path)
    (tmp_path / "other.toml").write_text((tmp_path / "tiny.toml").read_text())
    execute = Session.execute

    def broken(self, run):
        if run.plan.experiment.name == "tiny":
            raise RuntimeError("a defect")
        return execute(self, run)

    monkeypatch.setattr(Session, "execute", broken)
    out = str(tmp_path / "out")
    told = cli("run", first, tmp_path / "other.toml", "--out", out, "--no-report", code=1)
    assert "tiny stopped: RuntimeError: a defect; all other experiments continue" in told.err
    assert list((tmp_path / "out" / "other" / "cells").glob("*.json"))


def test_a_driver_that_joins_says_how_to_resume_when_it_is_stopped(cli, monkeypatch, tmp_path):
    def stopped(self, chosen):
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "run_each", stopped)
    assert "--join" in cli("run", tiny_toml(tmp_path), "--join", "--out", tmp_path / "out", code=130).err


@pytest.mark.slow
def test_the_best_solver_for_which_no_experiment_has_a_place_is_only_named(monkeypatch, tmp_path):
    cell = prepared(tmp_path, TINY).plan.cells[0]
    assert _using(cell).startswith("to use it: rankbench run ")
    monkeypatch.setattr("rankbench.cli.showing.runs.experiments.names", lambda: [])
    assert _using(cell) == f"the best: {cell.solver_text}"


@pytest.mark.slow
def test_the_best_solver_is_named_for_no_experiment_whose_data_it_cannot_learn_from(tmp_path):
    cell = prepared(tmp_path, TINY).plan.cells[0]
    unsuited = replace(cell, solver=SOLVERS.resolve("frsvm[rank=2]"))  # it needs item features, this data has none
    assert _using(unsuited) == "the best: frsvm[rank=2]"


def test_what_is_skipped_is_said_with_the_command_that_gets_it(cli, tmp_path):
    data = f"['{absent_data(tmp_path)}', 'low-rank[users=20,items=30,per_user=20]']"
    printed = cli("run", tiny_toml(tmp_path, data=data), "--dry-run", "--out", "out").out
    assert printed.count("run  low-rank") == 4 and "skipped tiny: " in printed and "ask its owner" in printed


def test_where_no_cell_can_run_that_is_said(cli, tmp_path):
    toml = tiny_toml(tmp_path, data=f"['{absent_data(tmp_path)}']")
    said = "".join(cli("run", toml, "--no-report", "--out", tmp_path / "out"))
    assert "tiny: no cell could be run" in said and "skipped tiny: " in said


def test_an_export_tells_its_rows_and_hash(cli, tmp_path):
    data = "low-rank[users=20,items=30,per_user=20]"
    said = cli("data", "export", data, "n-per-user[n=8,least=5]", "--to", tmp_path / "cut").out
    assert said.startswith(f"{tmp_path / 'cut'}: ") and "train 160 rows" in said and "; hash " in said


def test_files_with_other_bytes_than_the_published_ones_are_exit_code_1(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_DATA", str(tmp_path))
    with ZipFile(tmp_path / "ml-100k.zip", "w") as archive:
        archive.writestr("ml-100k/u.data", "1\t2\t3\t4\n")
    assert "ml-100k.zip" in cli("data", "verify", "ml-100k", code=1).out


def test_the_words_to_resume_begin_nothing_again(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rankbench", "run", "tiny", "--rerun", "all", "-q", "--rerun=failed,disturbed"])
    assert runs._without_rerun() == ["run", "tiny", "-q", "--rerun", "failed,disturbed"]


def test_a_leaderboard_shows_judges_proposals_and_another_one_where_they_are_asked_for(cli, tmp_path):
    rows = [("x", "a", "b"), ("y", "b", "a"), ("x", "a", "c"), ("y", "c", "a"), ("x", "b", "c"), ("y", "a", "c")]
    (tmp_path / "v.csv").write_text("judge,winner,loser\n" + "".join(f"{','.join(row)}\n" for row in rows))
    words = ("rank", str(tmp_path / "v.csv"), "--judges", "--next", "2", "--against", str(tmp_path / "v.csv"))
    shown = cli(*words).out
    assert "Kendall's tau between the two orders: 1.00." in shown
    assert all(f"{title}\n" in shown for title in ("Judges", "Comparisons to ask for next"))
    assert "Nothing else that could be asked" not in shown


def test_comparisons_that_settle_nothing_are_not_proposed(cli, tmp_path):
    rows = [f"{judge},a,b\n" for judge in range(3000)] + [f"{judge},b,a\n" for judge in range(90)]
    (tmp_path / "v.csv").write_text("judge,winner,loser\n" + "".join(rows))
    shown = cli("rank", str(tmp_path / "v.csv"), "--next", "5").out
    assert "Nothing else that could be asked would settle" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--judges"], "at least two judges; name it: FILE[judge=NAME]"),
        (["--next", "-1"], "--next=-1 is out of range: must be at least 0"),
        (["--to", "nowhere/board.csv"], "cannot write to nowhere/board.csv: there is no folder nowhere"),
        (["--to", "board.doc"], "--to board.doc has no ending of a leaderboard"),
        (["--against", "far.csv"], "share fewer than two items"),
        (["--against", "nowhere.csv"], "nowhere.csv"),
        (["--model", "pagerank", "--next", "3"], "pagerank has no errors to propose comparisons by"),
    ],
)
def test_what_a_leaderboard_cannot_show_is_refused_before_it_is_printed(cli, here, words, message):
    (here / "v.csv").write_text("winner,loser\na,b\nb,a\nb,c\nc,b\n")
    (here / "far.csv").write_text("winner,loser\nx,y\ny,x\n")
    assert message in cli.refuses("rank", "v.csv", *words)


def test_many_comparisons_to_ask_for_are_announced(cli, tmp_path):
    (tmp_path / "v.csv").write_text("winner,loser\na,b\nb,a\nb,c\nc,b\n")
    said = cli("rank", tmp_path / "v.csv", "--next", "1001").err
    assert "computing 1,001 comparisons to ask for next, one after the other\n" == said


def test_basic_functions_that_nothing_has_are_refused(tmp_path):
    with pytest.raises(UserError, match="--columns=1: tiny has stored no basic functions of named features; run frsvm"):
        looking._draw_bases(ran(tmp_path, selection=Selection(solvers=("global",))).study(), "1", tmp_path)


def test_no_recommendations_have_no_reasons():
    empty = pandas.DataFrame({"user": [], "place": [], "item": [], "score": []})
    assert list(sharing._with_reasons(None, empty, 3).columns) == [*empty.columns, "because", "contribution"]
