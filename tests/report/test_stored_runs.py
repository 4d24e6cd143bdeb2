"""Stored results of several runs, files and versions: all of them are shown or mentioned somewhere."""

import json
import re
import shutil
from importlib.resources import files

import pytest
from helpers import csv_rows, tiny_toml, with_solver

from rankbench.kernels import LEVEL

pytestmark = pytest.mark.slow

BUILT_IN = "gunasekar2016-dag"
CUT = ("-s", "global", "-d", "partial-orders[users=200,items=100,per_user=20,density=0.1]", "-r", "1")


@pytest.fixture
def run(here, cli):
    """Runs an experiment in the folder of the test; returns what is printed."""
    return lambda *arguments: cli("run", *arguments, "--out", "out", "--no-report").out


@pytest.fixture
def printed(cli):
    """What a verb prints about the results of the test."""
    return lambda *arguments: cli(*arguments, "--out", "out").out


def repetitions(text):
    """How many repetitions each solver has in a table for scripts."""
    return {line["solver"]: line["n"] for line in csv_rows(text)}


def test_files_of_one_name_in_two_folders_are_two_and_are_shown_as_they_were_written(run, printed, tmp_path):
    for number, folder in enumerate(("one", "two")):
        (tmp_path / folder).mkdir()
        lines = [f"{user},{item},{(user * item + item + number) % 5}" for user in range(6) for item in range(20)]
        (tmp_path / folder / "ratings.csv").write_text("\n".join(["user,item,rating", *lines, ""]))
        with_solver(tmp_path / folder, f"yield Step(ItemScores(np.arange(train.n_items) % {number + 2}.0))")
    data = ["csv:one/ratings.csv", "csv:two/ratings.csv"]
    solvers = ["one/mine.py:Mine", "two/mine.py:Mine"]
    tiny_toml(tmp_path, data=json.dumps(data), solvers=json.dumps(solvers), metrics='["kendall"]', repetitions="1")
    run("tiny.toml")
    found = csv_rows(printed("table", "tiny.toml", "--csv"))
    shown = {(line["data"].partition("[")[0], line["solver"]) for line in found}
    assert shown == {(one, other) for one in data for other in solvers}
    assert len({line["measured"] for line in found}) == 4
    people = printed("table", "tiny.toml")
    assert all(f"| {one} | {other} |" in people for one in data for other in solvers)


def test_another_wording_of_an_experiment_keeps_the_rows_of_earlier_runs(run, printed, tmp_path):
    run(tiny_toml(tmp_path))
    run(tiny_toml(tmp_path, title='"Other words"', about='"And more of them."'), "-s", "global", "-r", "1")
    table = printed("table", "tiny.toml", "--csv")
    assert repetitions(table) == {"global": "2", "sgd": "2"}
    assert "not shown here" not in printed("table", "tiny.toml")


def test_another_seed_hides_no_run_and_each_can_be_seen(run, printed, tmp_path):
    run(tiny_toml(tmp_path))
    said = run("tiny.toml", "--seed", "1", "-s", "global", "-r", "1")
    assert "note: 4 more results of tiny are stored but not part of this run" in said
    latest = printed("table", "tiny")
    assert "sgd" not in latest
    assert re.search(r"4 more results of tiny are stored and not shown here \(quick profile with seed 0", latest)
    for name in ("tiny", "tiny.toml"):
        assert repetitions(printed("table", name, "--seed", "0", "--csv")) == {"global": "2", "sgd": "2"}
        assert repetitions(printed("table", name, "--seed", "1", "--csv")) == {"global": "1"}
    first = printed("table", "tiny", "--seed", "0")
    assert "1 more results of tiny are stored and not shown here (quick profile with seed 1" in first
    status = printed("status", "tiny")
    size = sum(path.stat().st_size for path in (tmp_path / "out" / "tiny" / "cells").iterdir())
    assert status.startswith(f"tiny: 5 results, {size / 1e6:.1f} MB\n")
    for seed, cells in ((0, 4), (1, 1)):
        assert re.search(rf"quick profile, seed {seed}, .*: {cells} of {cells} cells are stored: {cells} ok", status)
    assert re.search(r"made on .* cores, Python .* \(machine [0-9a-f]{12}.*\): 5 results", status)


def test_the_command_that_status_gives_shows_that_run(run, printed, tmp_path):
    run(tiny_toml(tmp_path), "-r", "1")
    run("tiny.toml", "-s", "global", "-r", "1", "--seed", "1")
    run("tiny.toml", "-s", "sgd", "-r", "2", "--full")
    (tmp_path / "copy").mkdir()
    run(tiny_toml(tmp_path / "copy"), "-s", "global", "-r", "2")
    commands = re.findall(r"\(rankbench (table .*?)\)", printed("status", "tiny"))
    found = [repetitions(printed(*command.split(), "--csv")) for command in commands]
    assert found == [{"global": "1", "sgd": "1"}, {"global": "1"}, {"sgd": "2"}, {"global": "2"}]


def test_status_of_one_experiment_leaves_the_others_out(run, printed, tmp_path):
    for name in ("other", "tiny"):
        tiny_toml(tmp_path, title=f'"{name}"', repetitions="1")
        (tmp_path / "tiny.toml").rename(tmp_path / f"{name}.toml")
        run(f"{name}.toml", "-s", "global")
    headings = [
        [line.partition(":")[0] for line in printed("status", *names).splitlines() if line[0] != " "]
        for names in ((), ("tiny",))
    ]
    assert headings == [["other", "tiny"], ["tiny"]]


def test_results_of_another_question_are_counted_and_not_mixed_in(run, printed, tmp_path):
    run(tiny_toml(tmp_path))
    run(tiny_toml(tmp_path, metrics='["kendall"]'), "-s", "global", "-r", "1")
    table = printed("table", "tiny.toml")
    assert "kendall" in table and "ndcg" not in table and "sgd" not in table
    assert "4 more results of tiny are stored and not shown here" in table
    assert "of no recorded run (other definitions, selections or versions; seed 0): 4 results" in printed("status")


def test_a_copy_of_a_built_in_experiment_leaves_the_built_in_alone(run, printed, tmp_path):
    run(BUILT_IN, *CUT)
    (plan,) = (tmp_path / "out" / BUILT_IN / "plans").iterdir()
    content, table = plan.read_bytes(), printed("table", BUILT_IN, "--csv")
    text = files("rankbench.experiments").joinpath(f"{BUILT_IN}.toml").read_text(encoding="utf-8")
    title = re.search(r'^title = "(.*)"$', text, re.M)[1]
    copied = re.sub(r'^title = ".*"$', 'title = "A copy"', text, flags=re.M)
    copied = re.sub(r"^metrics = .*$", 'metrics = ["pairwise-accuracy"]', copied, flags=re.M)
    assert copied.count("pairwise-accuracy") == 1
    (tmp_path / f"{BUILT_IN}.toml").write_text(re.sub(r"^\[\[published\]\](.|\n)*?(?=^\[|\Z)", "", copied, flags=re.M))
    run(f"./{BUILT_IN}.toml", *CUT)
    assert plan.read_bytes() == content and printed("table", BUILT_IN, "--csv") == table
    assert {line["metric"] for line in csv_rows(table)} == {"pairwise-error"}
    found = csv_rows(printed("table", f"./{BUILT_IN}.toml", "--csv"))
    assert {line["metric"] for line in found} == {"pairwise-accuracy"}
    printed("report", "--no-page")
    page = (tmp_path / "out" / "report" / "gunasekar2016.md").read_text()
    assert page.index(f"## {BUILT_IN}\n\n{title}") < page.index(f"## {BUILT_IN}-2\n\nA copy")
    tables = tmp_path / "out" / "report" / "tables"
    assert (tables / f"{BUILT_IN}.csv").read_text() == table
    assert "pairwise-accuracy" in (tables / f"{BUILT_IN}-2.csv").read_text()


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (("status",), "no results under out: run some first (rankbench run all --out out)"),
        (("status", "tiny"), "no results under out"),
    ],
)
def test_status_of_an_empty_folder_is_one_line(cli, here, arguments, fragment):
    (here / "out").mkdir()
    assert fragment in cli.refuses(*arguments, "--out", "out")


def test_status_of_an_unknown_experiment_names_the_nearest(cli, run, tmp_path):
    run(tiny_toml(tmp_path), "-s", "global", "-r", "1")
    assert "'tinny'; did you mean 'tiny'?" in cli.refuses("status", "tinny", "--out", "out")


def test_damaged_files_are_set_aside_and_listed(cli, run, printed, tmp_path):
    run(tiny_toml(tmp_path))
    cells = tmp_path / "out" / "tiny" / "cells"
    broken, strange, *others = sorted(cells.glob("*.json"))
    broken.write_text('{"format": 3, "key"')
    strange.write_text('{"format": 3, "key": "x"}')
    (cells.parent / "plans" / "quick-9.json").write_text("[]")
    told = cli("status", "--out", "out")
    assert "tiny: 2 results" in told.out and len(others) == 2
    (line,) = [line for line in told.out.splitlines() if "set aside" in line]
    assert all(f"{name}.broken" in line for name in (broken.name, strange.name, "quick-9.json"))
    assert told.err.count("cannot be read") == 3
    assert "pending" in printed("table", "tiny", "--csv")
    run("tiny.toml")
    assert "pending" not in printed("table", "tiny", "--csv")


def with_other_kernels(folder):
    """Make stored results look as if other kernels had computed them."""
    for path in folder.glob("*.json"):
        content = json.loads(path.read_text())
        content["machine"]["kernels"] = "fedcba9876543210"
        path.write_text(json.dumps(content))


def test_results_of_other_kernels_are_reused_with_a_word_and_made_anew_if_asked(run, tmp_path):
    run(tiny_toml(tmp_path))
    cells = tmp_path / "out" / "tiny" / "cells"
    shutil.copytree(cells, tmp_path / "before")
    with_other_kernels(cells)
    notes = [line for line in run("tiny.toml").splitlines() if "other kernels" in line]
    assert len(notes) == 1 and notes[0].startswith("note: tiny reuses 4 results made with other kernels")
    told = run("tiny.toml", "--rerun", "foreign")
    assert "tiny: 4 of 4 cells ended well" in told and "other kernels" not in told
    told = run("tiny.toml")
    assert "4 of 4 cells are stored" in told and "other kernels" not in told


def test_the_report_names_what_made_the_results_and_when(cli, run, tmp_path):
    run(tiny_toml(tmp_path), "-s", "global", "-r", "1")
    run("tiny.toml")
    for number, path in enumerate(sorted((tmp_path / "out" / "tiny" / "cells").glob("*.json"))):
        content = json.loads(path.read_text())
        content["machine"] |= {"git": "0a1b2c3d4e5f", "kernels": "fedcba9876543210"} if number == 0 else {}
        content["finished"] = f"2031-05-0{4 + number}T12:00:00+00:00"
        path.write_text(json.dumps(content))
    cli("report", "--out", "out")
    report = tmp_path / "out" / "report"
    index = (report / "README.md").read_text()
    made_on = index.partition("Measured on:")[2].strip().splitlines()
    assert len(made_on) == 2
    (own,) = [line for line in made_on if "commit 0a1b2c3d4e5f" in line]
    assert f"kernels fedcba9876543210 ({LEVEL}); 2031-05-04" in own and "numpy " in own and "rankbench " in own
    assert any(line.endswith("; 2031-05-05 to 2031-05-07") for line in made_on)
    html = (report / "index.html").read_text()
    machines = html[html.index('<section id="machines">') : html.index("<footer>")]
    for heading in ("commit", "kernels", "rankbench", "NumPy", "SciPy", "last result"):
        assert f">{heading}</th>" in machines
    for text in ("0a1b2c3d4e5f", "fedcba9876543210", "2031-05-04", "2031-05-07"):
        assert f">{text}</td>" in machines


def test_results_without_a_noted_run_are_no_unknown_experiment(cli, tmp_path):
    out = tmp_path / "out"
    cli("run", tiny_toml(tmp_path), "-r", "1", "--out", out, "-q", "--no-report")
    shutil.rmtree(out / "tiny" / "plans")  # as an older version left its folders
    said = cli.refuses("table", "tiny", "--out", out)
    assert f"rankbench run tiny --out {out} finds them again and reuses them" in said
    assert "results, but no recorded run" in cli.refuses("report", "--out", out)
