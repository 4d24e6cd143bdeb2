"""Results on lookalike data are always labelled, and never shown next to published numbers."""

import pytest
from helpers import made_up_study, no_values, silent, tiny

from rankbench.experiments import Published
from rankbench.names import Pattern
from rankbench.records.store import ResultsFolder
from rankbench.report.render.figures.series import drawing
from rankbench.report.render.page import page
from rankbench.report.render.tables import notes, sheet
from rankbench.report.rows import rows
from rankbench.report.sections import Section
from rankbench.report.writing import write_report

pytestmark = pytest.mark.slow

DATA = "lookalike:ml-10m[ratings=2000]"
NOTE = (
    "lookalike:ml-10m is generated in the published shape of ml-10m, for speed work only: "
    "its scores say nothing about ml-10m."
)
PUBLISHED = (
    Published(Pattern("sgd"), "ndcg@5", 0.75),
    Published(Pattern("sgd"), "ndcg@5", 0.76, data=Pattern("ml-10m")),
    Published(Pattern("global"), "ndcg@5", 0.77, data=Pattern("lookalike:ml-10m")),
    Published(Pattern("global"), "pairwise-error", 0.25, data=Pattern.read(DATA)),
)


@pytest.fixture
def study(tmp_path):
    """Makes a study of the tiny experiment on some data sets, with made-up results."""

    def made(*data):
        experiment = tiny(data=data, splits=("n-per-user[n=8,least=5]",), repetitions=1, published=PUBLISHED)
        return made_up_study(tmp_path, experiment, 0.6, arrays=no_values)

    return made


def test_results_on_a_lookalike_carry_the_note_once(study):
    assert notes(study(DATA)).count(NOTE) == 1
    assert notes(study("low-rank", DATA, "lookalike:ml-10m[ratings=3000]")).count(NOTE) == 1
    both = notes(study(DATA, "lookalike:netflix[ratings=6000]"))
    assert [line.partition(" ")[0] for line in both] == ["lookalike:ml-10m", "lookalike:netflix"]


def test_other_results_carry_none(study):
    assert not [line for line in notes(study("low-rank[users=20,items=30,per_user=20]")) if "speed work" in line]


def test_no_published_score_stands_beside_a_lookalikes(study):
    assert {row.published for row in rows(study(DATA))} == {None}
    assert "published" not in sheet(study(DATA)).headings


def test_beside_real_data_in_the_same_table_it_still_stands(study):
    found = rows(study("low-rank[users=20,items=30,per_user=20]", DATA))
    stands = {(row.data.partition("[")[0], row.solver) for row in found if row.published is not None}
    assert stands == {("low-rank", "sgd")}


@pytest.fixture
def report(study, tmp_path):
    """The folder of a report on a lookalike."""
    study(DATA)
    write_report(ResultsFolder(tmp_path, silent), silent, tmp_path / "report", page=False)
    return tmp_path / "report"


def test_the_page_and_the_markdown_say_it(study, report):
    assert NOTE in page([Section(study(DATA), "tiny")])
    assert NOTE in (report / "tiny.md").read_text()


@pytest.mark.parametrize("name", ["tables/tiny.csv", "tables/tiny.tex"])
def test_a_bare_table_names_it_in_every_line_with_numbers(report, name):
    lines = [line for line in (report / name).read_text().splitlines() if "0.6" in line]
    assert lines and all("lookalike:ml-10m" in line for line in lines)


def test_a_figures_panel_is_titled_by_it(study):
    assert drawing(study(DATA)).panels[0].title == "Lookalike of ml-10m"
