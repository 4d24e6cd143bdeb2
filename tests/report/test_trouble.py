"""A failure is shown in one line and does not stop the remaining cells, experiments or parts of the report."""

import json
import re
import sys
import threading

import pytest
from helpers import (
    csv_rows,
    made_up,
    made_up_run,
    made_up_study,
    no_values,
    prepared,
    silent,
    store_in,
    tiny,
    tiny_toml,
    with_solver,
)

from rankbench import experiments
from rankbench.core import lines
from rankbench.records.claims import Claims
from rankbench.records.results import Counted
from rankbench.records.store import ResultsFolder
from rankbench.report import writing
from rankbench.report.render.page import page
from rankbench.report.render.tables import sheet, to_csv, to_latex, to_markdown
from rankbench.report.rows import rows
from rankbench.report.sections import Section
from rankbench.report.writing import write_report

pytestmark = pytest.mark.slow


@pytest.fixture
def command(here, cli):
    """Runs a command on the results of the test, in its folder; returns what it says."""
    return lambda *arguments, code=0: cli(*arguments, "--out", "out", code=code)


def named(folder, name, **changes):
    """An experiment file of this name."""
    (folder / "tiny.toml").unlink(missing_ok=True)
    tiny_toml(folder, **changes)
    (folder / "tiny.toml").rename(folder / f"{name}.toml")
    return f"{name}.toml"


def ratings(folder, name, value):
    """A CSV file of the ratings that a function of user and item gives."""
    lines = [f"{user},{item},{value(user, item)}" for user in range(8) for item in range(20)]
    (folder / name).write_text("\n".join(["user,item,rating", *lines, ""]))
    return f"csv:{name}"


def every_format(command, *more, code=0):
    """What run, and table in each of its formats, print of an experiment; a report of it can be made, too."""
    printed = command("run", "tiny.toml", *more, code=code).out
    tables = [command("table", "tiny", *how).out for how in ((), ("--csv",), ("--latex",))]
    command("report")
    return printed, *tables


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"splits": '["n-per-user[n=500,least=5]"]'}, "n-per-user[n=500,least=5]"),
        ({"data": '["csv:broken.csv"]'}, "broken.csv"),
        ({"data": '["low-rank[users=20,items=30,per_user=20]", "csv:broken.csv"]'}, "broken.csv"),
    ],
)
def test_an_experiment_that_cannot_run_stops_none_of_the_others(command, tmp_path, changes, fragment):
    (tmp_path / "broken.csv").write_text("user,item,rating\n1,2,many\n")
    bad = named(tmp_path, "bad", repetitions="1", **changes)
    good = named(tmp_path, "good", repetitions="1")
    printed, errors = command("run", bad, good, code=1)
    assert errors.count("\n") == 1 and "bad" in errors and fragment in errors
    held = 2 if "low-rank" in changes.get("data", "") else 0
    ended = [line for line in printed.splitlines() if "cells ended well" in line]
    assert "skipped bad" not in printed and "| ok |" not in printed  # tables are left to the report
    assert ended[-1] == "good: 2 of 2 cells ended well; rankbench table good --out out"
    assert not held or ended[0] == "bad: 2 of 2 cells ended well; rankbench table bad --out out"


def test_a_run_of_several_ends_with_the_scoreboard_and_a_run_of_one_with_its_table(command, tmp_path):
    number = '[{solver = "global", metric = "ndcg@5", value = 0.5}]'
    files = [named(tmp_path, name, repetitions="1", published=number) for name in ("one", "two")]
    printed = command("run", *files).out
    assert "2 published numbers: 2 at a smaller size than the papers'." in printed
    assert "| all papers | 2 | 2 |" in printed
    printed = command("run", files[0]).out
    assert "published numbers" not in printed and printed.count("| ok |") == 2


def test_values_that_cannot_be_read_stop_none_of_the_others(command, tmp_path):
    number = '[{solver = "global", metric = "ndcg@5", value = 0.5}]'
    files = [named(tmp_path, name, repetitions="2", published=number) for name in ("one", "two")]
    command("run", files[0])
    for values in (tmp_path / "out" / "one" / "cells").glob("*.npz"):
        values.write_bytes(b"PK")
    printed, errors = command("run", *files, code=1)
    assert "two: 4 of 4 cells ended well; rankbench table two" in printed
    lines = errors.splitlines()
    assert [line[: line.index("out/")] for line in lines] == [
        "rankbench: one: ",
        "rankbench: one cannot be shown whole: UserError: ",
    ]
    assert all(".npz is damaged" in line for line in lines) and (tmp_path / "out" / "report" / "two.md").exists()
    assert "1 published numbers: 1 at a smaller size than the papers'." in printed


def test_alone_such_an_experiment_is_one_line(command, tmp_path):
    said = command("run", named(tmp_path, "bad", splits='["n-per-user[n=500,least=5]"]'), code=2)
    assert said.err.count("\n") == 1


def test_a_study_that_cannot_be_drawn_leaves_a_report_on_the_rest(monkeypatch, tmp_path):
    for name in ("one", "two"):
        made_up_run(tmp_path, tiny(name=name), arrays=no_values)
    drawing = writing.drawing

    def fails(study):
        if study.name == "one":
            raise ZeroDivisionError("no width")
        return drawing(study)

    monkeypatch.setattr(writing, "drawing", fails)
    warnings = []
    first = write_report(ResultsFolder(tmp_path, silent), warnings.append)
    assert warnings == ["one cannot be shown whole: ZeroDivisionError: no width"]
    assert "one cannot be shown whole: ZeroDivisionError: no width" in first.read_text()
    assert "cannot be shown whole" in (first.parent / "one.md").read_text()
    assert {path.name for path in (first.parent / "figures").iterdir()} == {"two.pdf", "two.png"}
    assert {path.name for path in (first.parent / "tables").glob("*.csv")} == {"one.csv", "two.csv"}
    assert "| ok |" in (first.parent / "two.md").read_text()


def test_a_metric_without_a_value_is_an_empty_cell_everywhere(command, tmp_path):
    data = ratings(tmp_path, "alike.csv", lambda user, item: 3)
    with_solver(tmp_path)
    metrics = '["pairwise-error", "kendall"]'
    for figure in ('{kind = "bars"}', '{kind = "curve", x = "step"}'):
        tiny_toml(tmp_path, data=json.dumps([data]), solvers='["mine.py:Mine"]', metrics=metrics, figure=figure)
        printed, people, scripts, latex = every_format(command)
        assert " nan" not in printed
        for line in csv_rows(scripts):
            assert (line["measured"], line["sd"], line["n"], line["status"]) == ("", "", "0", "ok")
        (row,) = [line for line in people.splitlines() if line.startswith("| csv:alike.csv")]
        assert row.startswith("| csv:alike.csv | mine.py:Mine |  |  |") and "nan" not in row
        assert "nan" not in latex.replace("mine.py", "")
    assert "csv:alike.csv" in (tmp_path / "out" / "report" / "tiny.md").read_text()


def test_a_metric_without_a_value_leaves_the_others_theirs(command, tmp_path):
    data = ratings(tmp_path, "alike.csv", lambda user, item: 3)
    with_solver(tmp_path)
    tiny_toml(tmp_path, data=json.dumps([data]), solvers='["mine.py:Mine"]', metrics='["kendall", "msd"]')
    _, _, scripts, _ = every_format(command)
    found = {line["metric"]: line for line in csv_rows(scripts)}
    assert (found["kendall"]["n"], found["kendall"]["users"], found["kendall"]["left_out"]) == ("0", "0", "8")
    assert (found["msd"]["n"], found["msd"]["left_out"]) == ("2", "0") and float(found["msd"]["measured"]) > 0


def test_a_diverged_solver_is_shown_as_such_and_never_as_the_best(command, tmp_path):
    with_solver(tmp_path, "scores = np.arange(train.n_items, dtype=float)", "scores[::2] = np.nan")
    path = tmp_path / "mine.py"
    path.write_text(path.read_text() + "        yield Step(ItemScores(scores))\n")
    tiny_toml(tmp_path, solvers='["mine.py:Mine", "global", "sgd[rank=2]"]', repetitions="1")
    printed, people, scripts, latex = every_format(command, code=1)
    for text in (printed, people):
        (row,) = [line for line in text.splitlines() if line.startswith("| ") and "| mine.py:Mine |" in line]
        assert row.endswith("| diverged |") and "**" not in row
    found = [line for line in csv_rows(scripts) if line["solver"] == "mine.py:Mine"]
    assert {(line["status"], line["measured"], line["n"]) for line in found} == {("diverged", "", "0")}
    (row,) = [line for line in latex.splitlines() if "mine.py:Mine" in line]
    assert "diverged" in row and "textbf" not in row
    html = (tmp_path / "out" / "report" / "index.html").read_text()
    assert re.search(r"mine.py:Mine · repetition 0: <b>diverged</b>, NaN for \d+ held-out pairs", html)
    errors = command("run", "tiny.toml", "--no-report", code=1).err
    assert errors.count("\n") == 1 and "diverged: " in errors


def study_of(tmp_path, **changes):
    """The tiny experiment; what came of sgd is changed."""

    def made(cell, value):
        return made_up(cell, value, **(changes if cell.solver.name == "sgd" else {}))

    return made_up_study(tmp_path, made=made, arrays=no_values)


@pytest.mark.parametrize(
    ("changes", "heading", "shown", "column", "number"),
    [
        ({"counted": (Counted(18, 2), Counted(17, 3))}, "left out", "2", "left_out", "2"),
        ({"unscored": 0.125}, "unscored", "12.50%", "unscored", "0.125"),
        ({"prepare": 1.5}, "prepare", "1.500", "prepare", "1.5"),
    ],
)
def test_a_column_appears_when_there_is_something_in_it(tmp_path, changes, heading, shown, column, number):
    assert heading not in sheet(study_of(tmp_path / "without")).headings
    found = study_of(tmp_path / "with", **changes)
    table = sheet(found)
    place = table.headings.index(heading)
    assert table.lines[1][place] == shown
    assert f"| {heading} |" in to_markdown(table) and f"& {heading} &" in to_latex(table)
    html = page([Section(found, "tiny")])
    assert f'scope="col">{heading}</th>' in html and f'<td class="number">{shown}</td>' in html
    lines = [line for line in csv_rows(to_csv(rows(found))) if line["solver"] == "sgd"]
    assert lines[0][column] == number


def test_the_rows_of_scripts_say_whom_each_metric_counts(tmp_path):
    found = study_of(tmp_path, counted=(Counted(18, 2), Counted(17, 3)))
    lines = [line for line in csv_rows(to_csv(rows(found))) if line["solver"] == "sgd"]
    assert [(line["users"], line["left_out"]) for line in lines] == [("18", "2"), ("17", "3")]


def test_an_item_that_was_never_rated_in_training_is_unscored_and_no_divergence(command, tmp_path):
    lines = ["seen = np.bincount(train.items, minlength=train.n_items) > 0"]
    lines += ["yield Step(ItemScores(np.where(seen, np.arange(train.n_items, dtype=float), np.nan)))"]
    with_solver(tmp_path, *lines)
    path = tmp_path / "mine.py"  # without the step that comes before these
    path.write_text(path.read_text().replace("yield Step(ItemScores(np.arange(train.n_items, dtype=float)))", "pass"))
    tiny_toml(tmp_path, solvers='["mine.py:Mine"]', splits='["cold-items[test=0.2]"]', metrics='["kendall"]')
    _, people, scripts, _ = every_format(command, "-r", "1")
    (line,) = csv_rows(scripts)
    assert (line["status"], line["unscored"]) == ("ok", "1.0")
    assert "| unscored |" in people and "| 100.00% |" in people


def test_what_a_solver_imports_on_the_clock_is_named(command, tmp_path):
    module = "slow_to_import"
    (tmp_path / f"{module}.py").write_text("import xmlrpc.client\n")
    path = tmp_path / "mine.py"
    with_solver(tmp_path, "import slow_to_import")
    text = path.read_text().replace(
        "import os, signal, time", f"import os, signal, sys\nsys.path.append({str(tmp_path)!r})"
    )
    first = "        yield Step(ItemScores(np.arange(train.n_items, dtype=float)))\n"
    path.write_text(text.replace(first, "") + first)
    printed = command("run", tiny_toml(tmp_path), "-s", "mine.py:Mine", "-s", "global", "-r", "1").out
    (note,) = [line for line in printed.splitlines() if "during training" in line]
    assert note.startswith("note: mine.py:Mine imported ") and module in note and "xmlrpc" in note
    assert note.endswith("import at the top of its file")
    assert module not in sys.modules
    scripts = command("table", "tiny", "--csv").out
    assert all(float(line["prepare"]) >= 0 for line in csv_rows(scripts))


def test_a_text_that_utf_8_cannot_hold_goes_through_everything(command, tmp_path):
    with_solver(tmp_path, r"raise ValueError('half \ud800 and \udcff')")
    tiny_toml(tmp_path, solvers='["mine.py:Mine", "global"]', repetitions="1")
    _, people, scripts, _ = every_format(command, code=1)
    assert "| failed |" in people and ",failed," in scripts
    html = (tmp_path / "out" / "report" / "index.html").read_text(encoding="utf-8")
    assert r"half \ud800 and \udcff" in html
    errors = command("run", "tiny.toml", "--no-report", code=1).err
    assert r"half \ud800 and \udcff" in errors


def test_a_cell_that_another_driver_runs_is_waited_for_with_a_line(command, monkeypatch, tmp_path):
    experiment = experiments.load(tiny_toml(tmp_path, repetitions="1"))
    first, _ = prepared(tmp_path / "out", experiment).plan.cells
    store = store_in(tmp_path / "out")
    store.open()
    held, said = threading.Event(), threading.Event()

    def other_driver():
        with Claims(tmp_path / "out" / "tiny" / "claims") as claims:
            assert claims.take(first.key)
            held.set()
            said.wait(180)
            store.save(made_up(first, 0.25), {})

    def listen(text):
        show(text)
        if "waiting for its result" in text:
            said.set()

    show = lines.show
    monkeypatch.setattr(lines, "show", listen)
    other = threading.Thread(target=other_driver)
    other.start()
    assert held.wait(180)
    printed = command("run", "tiny.toml", "--no-report", "-v").out
    other.join()
    waiting = [line for line in printed.splitlines() if "waiting" in line]
    assert len(waiting) == 1
    assert re.match(rf"tiny: process \d+ on \S+ is running {re.escape(first.label)}: waiting for", waiting[0])
    assert "0.2500" in printed  # what the other made is taken, and not made again
