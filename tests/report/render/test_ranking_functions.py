"""Where the strongest features of basic ranking functions are shown."""

from dataclasses import replace

import pytest
from helpers import TINY, colours, made_up_study, no_values, silent, tiny

from rankbench.core.errors import UserError
from rankbench.experiments.costs import Rivals
from rankbench.records.results import RankingFunction, Weight
from rankbench.records.store import ResultsFolder
from rankbench.report.outline import outline
from rankbench.report.render.page import page
from rankbench.report.render.ranking_functions import bases, chosen, described, draw_bases, examples
from rankbench.report.sections import Section
from rankbench.report.writing import write_report

LEARNED = (
    RankingFunction((Weight("war", 2.0), Weight("drama", 0.5)), (Weight("comedy", -1.0), Weight("noir", -0.25))),
    RankingFunction((Weight("drama", 3.0), Weight("noir", 1.0)), (Weight("comedy", -4.0),)),
)


@pytest.fixture
def study(tmp_path):
    """The tiny experiment, where sgd is said to have learned basic functions."""
    return made_up_study(
        tmp_path, TINY, arrays=no_values, functions=lambda cell: LEARNED if cell.solver.name == "sgd" else ()
    )


def test_each_solver_on_each_data_set_is_shown_once(study):
    (found,) = bases(study)
    assert found.solver == "sgd[rank=2]" and found.functions == LEARNED
    assert [number for number, _ in chosen(found, ())] == [1, 2]
    assert next(described(found)) == f"{found.title}, function 1: + war, drama; - comedy, noir"


def test_a_report_shows_one_of_each_kind_of_solver(tmp_path):
    found = made_up_study(
        tmp_path, tiny(solvers=("sgd[rank=2]", "sgd[rank=3]", "altsvm")), arrays=no_values, functions=LEARNED
    )
    assert [one.solver for one in bases(found)] == ["sgd[rank=2]", "sgd[rank=3]", "altsvm"]
    assert [one.solver for one in examples(found)] == ["sgd[rank=2]", "altsvm"]
    assert "--columns 1,2,3` draws all 3" in "".join(map(repr, outline(Section(found, "tiny"))))


def test_a_report_on_rivals_in_speed_shows_none(study):
    rivals = (Rivals("sgd", "global"),)
    changed = replace(study.plan, experiment=replace(study.experiment, rivals=rivals))
    assert examples(replace(study, plan=changed)) == [] and bases(study)


def test_functions_are_chosen_by_their_numbers(study):
    (found,) = bases(study)
    assert chosen(found, [2]) == [(2, LEARNED[1])]
    with pytest.raises(UserError, match=r"no column 3: sgd.* has stored columns 1 to 2"):
        chosen(found, [3])


@pytest.mark.trust
def test_the_drawing_is_the_same_bytes_each_time(study, tmp_path):
    (found,) = bases(study)
    for name in ("one", "two"):
        draw_bases([found], [], tmp_path, name)
    for ending in ("pdf", "png"):
        one, two = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("one", "two"))
        assert one == two
    assert colours(tmp_path / "one.png") > 10


def test_the_page_lists_them(study):
    assert "function 1: + war, drama; - comedy, noir" in page([Section(study, "tiny")])


@pytest.mark.slow
def test_a_run_stores_them_and_plot_basis_draws_them(cli, tmp_path):
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
    cli("run", tmp_path / "own.toml", "--out", out, "--no-report", "--quiet")
    said = cli("report", "own", "--columns", "2", "--to", tmp_path, "--out", out).out
    drawn = [f"own{part}.{kind}" for part in ("", "-basis-1") for kind in ("pdf", "png")]
    assert said.splitlines() == [str(tmp_path / name) for name in drawn]
    assert colours(tmp_path / "own-basis-1.png") > 10
    said = cli.refuses("report", "own", "--columns", "one", "--to", tmp_path, "--out", out)
    assert "--columns=one: expected numbers like 1,2" in said
    second = (tmp_path / "own-basis-1.png").read_bytes()
    cli("report", "own", "--to", tmp_path, "--out", out)
    assert second != (tmp_path / "own-basis-1.png").read_bytes()  # of the first too


@pytest.mark.slow
def test_the_report_draws_them_and_shows_the_picture(study, tmp_path):
    write_report(ResultsFolder(tmp_path, silent), silent)
    assert colours(tmp_path / "report" / "figures" / "tiny-basis.png") > 1
    text = (tmp_path / "report" / "tiny.md").read_text()
    assert "Basic ranking functions:" in text
    assert "![Basic ranking functions](figures/tiny-basis.png)" in text
