"""Basic ranking functions in words: where they are shown."""

from dataclasses import replace

import pytest
from helpers import made_up, rankbench, tiny
from rankbench.report.basis import bases, chosen, described, draw_basis

from rankbench.errors import UserError
from rankbench.harness.plan import Selection, plan
from rankbench.harness.store import plan_record
from rankbench.report.page import page
from rankbench.report.tables import Study

LEARNED = [
    {"positive": [["war", 2.0], ["drama", 0.5]], "negative": [["comedy", -1.0], ["noir", -0.25]]},
    {"positive": [["drama", 3.0], ["noir", 1.0]], "negative": [["comedy", -4.0]]},
]


def study():
    """The tiny experiment, where sgd is said to have learned basic functions."""
    made = plan(tiny(), Selection())
    record = plan_record(made)
    results = [made_up(cell, 0.5) for cell in made.cells]
    results = [
        replace(one, basis=LEARNED if cell.solver == "sgd" else None)
        for cell, one in zip(made.cells, results, strict=True)
    ]
    return Study(
        "tiny", record["definition"], list(zip(record["cells"].values(), results, strict=True)), record["skips"]
    )


def test_each_solver_on_each_data_set_is_shown_once():
    (found,) = bases(study())
    assert found.solver.startswith("sgd") and [one.number for one in found.functions] == [1, 2]
    assert next(described(found)) == "function 1: + war, drama; - comedy, noir"


def test_functions_are_chosen_by_their_numbers():
    (found,) = bases(study())
    assert [one.number for one in chosen(found, [2])] == [2]
    with pytest.raises(UserError, match=r"no column 3: sgd.* has columns 1 to 2 stored"):
        chosen(found, [3])


def test_the_drawing_is_the_same_bytes_each_time(tmp_path):
    (found,) = bases(study())
    for name in ("one", "two"):
        draw_basis(found, [], tmp_path, name)
    for ending in ("pdf", "png"):
        one, two = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("one", "two"))
        assert one == two and len(one) > 1000


def test_the_page_lists_them():
    assert "function 1: + war, drama; - comedy, noir" in page([study()])


def test_a_run_stores_them_and_plot_basis_draws_them(tmp_path, monkeypatch, capsys):
    lines = [f"{user},{item},{(user * item + item) % 5}" for user in range(6) for item in range(8)]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *lines, ""]))
    named = [f"{item},{item % 3},{item % 2}" for item in range(8)]
    (tmp_path / "features.csv").write_text("\n".join(["item,length,depth", *named, ""]))
    (tmp_path / "own.toml").write_text(
        'title = "own"\npaper = "none"\nabout = "a test"\nsplits = ["per-user"]\nmetrics = ["pairwise-error"]\n'
        f'data = ["csv:{tmp_path}/ratings.csv[features={tmp_path}/features.csv]"]\n'
        'solvers = ["frsvm[rank=2]"]\nrepetitions = 1\n[budget]\nsteps = 2\n'
    )
    out = str(tmp_path / "out")
    assert rankbench(monkeypatch, "run", str(tmp_path / "own.toml"), "--out", out, "--no-report", "--quiet") == 0
    capsys.readouterr()
    assert rankbench(monkeypatch, "plot", "basis", "own", "--columns", "2", "--to", str(tmp_path), "--out", out) == 0
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / f"own-basis-1.{kind}") for kind in ("pdf", "png")]
    assert (tmp_path / "own-basis-1.png").stat().st_size > 1000
