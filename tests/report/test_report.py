"""Tables, figures and the page, from results made up by hand."""

import csv
import io
import re
from dataclasses import replace

import pytest
from helpers import MACHINE, absent_data, made_up, prepared, silent, tiny

from rankbench.errors import UserError
from rankbench.experiments import Curve, Figure, Published, read
from rankbench.harness.store import ResultsFolder
from rankbench.names import Pattern
from rankbench.report.figures import draw
from rankbench.report.page import page
from rankbench.report.sections import Section
from rankbench.report.series import drawing
from rankbench.report.study import studies
from rankbench.report.tables import rows, sheet, to_csv, to_latex, to_markdown
from rankbench.report.writing import write_report

pytestmark = pytest.mark.slow

PUBLISHED = (
    Published(Pattern("sgd"), "ndcg@5", 0.75, sd=0.01, on=Pattern("ml-1m")),
    Published(Pattern("global", (("lam", "99"),)), "ndcg@5", 0.5),
)
FAILED = {"status": "failed", "reason": "boom", "curve": (), "counted": ()}


@pytest.fixture
def study(tmp_path):
    """Makes a study of the tiny experiment of made-up results, by default global 0.5 and 0.7, sgd 0.6 and 0.6."""

    def made(values=(0.5, 0.6, 0.7, 0.6), changes=None, **of_experiment):
        run = prepared(tmp_path, tiny(**{"published": PUBLISHED, **of_experiment}))
        run.open()
        for number, (cell, value) in enumerate(zip(run.plan.cells, values, strict=False)):
            if value is not None:
                run.keep(made_up(cell, value, **(changes or {}).get(number, {})), {})
        return run.study()

    return made


def html_of(study):
    """The page about one study."""
    return page([Section(study, study.name, drawing(study))])


def test_a_row_is_the_mean_and_the_spread_over_repetitions_divided_by_n(study):
    row = next(row for row in rows(study()) if (row.solver, row.metric) == ("global", "ndcg@5"))
    assert row.measured == pytest.approx(0.6)
    assert row.sd == pytest.approx(0.1)
    assert row.seconds == pytest.approx(0.3)
    assert (row.n, row.peak_mb, row.status) == (2, 50.0, "ok")
    assert (row.users, row.left_out, row.unscored) == (20, 0, 0)


def test_published_stands_beside_the_row_whose_settings_agree(study):
    found = {(row.solver, row.metric): row.published for row in rows(study())}
    assert found == {
        ("global", "pairwise-error"): None, ("global", "ndcg@5"): None,
        ("sgd", "pairwise-error"): None, ("sgd", "ndcg@5"): 0.75,
    }  # fmt: skip


def test_times_of_several_machines_or_of_contended_runs_are_not_averaged(study):
    found = study(changes={1: {"contended": True}, 2: {"machine": replace(MACHINE, cpu="another")}})
    assert {row.seconds for row in rows(found)} == {None}


def test_a_failed_repetition_shows_and_is_not_averaged(study):
    found = {row.solver: row for row in rows(study((0.5, 0.6, 0.9, None), {2: FAILED})) if row.metric == "ndcg@5"}
    assert (found["global"].status, found["global"].n, found["global"].measured) == ("failed", 1, 0.5)
    assert (found["sgd"].status, found["sgd"].n) == ("pending", 1)


def test_csv_can_be_read_back_to_the_last_digit(study):
    back = list(csv.DictReader(io.StringIO(to_csv(rows(study())))))
    assert [float(line["measured"]) for line in back] == [row.measured for row in rows(study())]


def test_the_sheet_marks_the_better_solver_by_each_metrics_direction(study):
    found = sheet(study((0.5, 0.9, 0.5, 0.9)))
    assert found.headings[:5] == ("data", "solver", "pairwise-error", "ndcg@5", "published on ml-1m")
    assert found.best == {(0, 2), (1, 3)}  # global errs less, sgd has the higher ndcg


def test_a_published_spread_is_shown_beside_its_number(study):
    assert [line[4] for line in sheet(study()).lines] == ["", "0.7500 ± 0.0100"]


def test_equal_solvers_are_not_marked(study):
    assert sheet(study([0.5] * 4)).best == set()


def test_markdown_and_latex_have_a_line_per_solver(study):
    assert to_markdown(sheet(study())).count("\n") == 4
    latex = to_latex(sheet(study()))
    assert latex.count(r"\\") == 3 and r"$\pm$" in latex and "±" not in latex
    assert not re.search(r"(?<!\\)_", latex)


@pytest.mark.parametrize(
    ("figure", "panels", "lines"),
    [(Figure("curve", x="seconds"), 1, 2), (Figure("bars"), 1, 2), (Figure("sweep", x="n"), 1, 2)],
)
def test_each_kind_of_figure_is_drawn_with_equal_bytes(study, tmp_path, figure, panels, lines):
    drawn = drawing(study(figure=figure))
    assert len(drawn.panels) == panels and len(drawn.panels[0].lines) == lines
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        draw(drawn, tmp_path / folder, "x")
    for name in ("x.png", "x.pdf"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_sweep_puts_the_setting_on_the_axis_and_published_beside_it(study):
    drawn = drawing(study(figure=Figure("sweep", metric="ndcg@5", x="n")))
    assert drawn.panels[0].lines[0].x == (8.0,)
    assert [(line.name, line.y) for line in drawn.panels[0].beside] == [("sgd, published on ml-1m", (0.75,))]


def test_a_sweep_has_a_panel_for_each_value_of_what_parts_it_with_the_curves_of_that_part(study, tmp_path):
    two = ("low-rank[users=20,items=30,per_user=20,rank=2]", "low-rank[users=20,items=30,per_user=20,rank=3]")
    curves = (Curve("noise", [8, 9], [0.2, 0.1], part="rank=3"), Curve("theory", [8], [0.3]))
    figure = Figure("sweep", x="n", by=("rank", "users"), curves=curves)
    swept = study([0.5] * 8, data=two, figure=figure, published=())
    drawn = drawing(swept)
    assert [panel.title for panel in drawn.panels][1:] == ["rank=3,users=20"]
    assert [len(panel.lines) for panel in drawn.panels] == [2, 2]
    found = [[(line.name, line.x, line.y) for line in panel.curves] for panel in drawn.panels]
    theory, noise = ("theory", (8.0,), (0.3,)), ("noise", (8.0, 9.0), (0.2, 0.1))
    assert found == [[theory], [noise, theory]]
    draw(drawn, tmp_path, "x")
    html = html_of(swept)
    assert html.count('"name": "noise"') == 1 and html.count('"name": "theory"') == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "bars"\nby = ["rank"]', "by and curves need kind=sweep, not kind=bars"),
        ('kind = "sweep"\ncurves = [3]', r"curves must be tables: \[\[figure.curves\]\]"),
        (
            'kind = "sweep"\ncurves = [{name = "a", x = [1, 2], y = [1]}]',
            "'a' has 2 numbers in x and 1 in y",
        ),
        ('kind = "sweep"\ncurves = [{name = "a", x = [], y = []}]', "x of 'a' must be a list of numbers"),
        ('kind = "sweep"\ncurves = [{name = "a", x = [1], y = ["b"]}]', "y of 'a' must be a list of numbers"),
        ('kind = "sweep"\ncurves = [{nam = "a", x = [1], y = [1]}]', "'nam'; did you mean 'name'"),
    ],
)
def test_a_bad_curve_says_what_is_wrong_with_it(text, message):
    head = 'title="t"\npaper="p"\nabout="a"\ndata=["btl"]\nsplits=["entries"]\nsolvers=["sgd"]\nmetrics=["kendall"]\n'
    with pytest.raises(UserError, match=message):
        read("x", "x.toml", f"{head}[figure]\n{text}\n")


def test_the_page_needs_no_network_and_says_what_failed(study):
    html = html_of(study([0.5] * 4, {0: {"status": "timeout", "reason": "took <long>"}}))
    assert not re.search(r"""<(?:script|link|img)[^>]+(?:src|href)=["'](?:https?:)?//""", html)
    assert "took &lt;long&gt;" in html and "Published on ml-1m" in html
    assert "expected value over all orders" in html


def test_skipped_data_shows_with_its_command(study, tmp_path):
    name = absent_data(tmp_path)
    found = study(data=(name,))
    assert [(row.data, row.status) for row in rows(found)] == [(name, "skipped")]
    assert "ask its owner" in html_of(found)


def test_the_report_writes_every_format_and_lists_what_there_is(study, tmp_path):
    study([0.5] * 4)
    results = ResultsFolder(tmp_path, silent)
    first = write_report(results, silent)
    assert first == tmp_path / "report" / "index.html"
    written = {str(path.relative_to(first.parent)) for path in first.parent.rglob("*") if path.is_file()}
    names = {"index.html", "README.md", "tiny.md", "tables/tiny.csv", "tables/tiny.tex"}
    assert written == names | {"figures/tiny.pdf", "figures/tiny.png"}
    assert [one.name for one in studies(results)] == ["tiny"]


def test_a_report_on_nothing_is_an_error(tmp_path):
    with pytest.raises(UserError, match="no results under"):
        write_report(ResultsFolder(tmp_path, silent), silent)
