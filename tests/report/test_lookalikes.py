"""Whatever shows results on a lookalike says what they are worth, and no published score stands beside them."""

import pytest
from helpers import made_up, tiny

from rankbench.experiments import Published
from rankbench.harness.plan import Selection, plan
from rankbench.harness.store import Store, plan_record
from rankbench.report.page import page
from rankbench.report.series import drawing
from rankbench.report.tables import Study, notes, rows, sheet
from rankbench.report.writing import write_report

DATA = "lookalike:ml-10m[ratings=2000]"
NOTE = (
    "lookalike:ml-10m is generated in the published shape of ml-10m, for speed work only: "
    "its scores say nothing about ml-10m."
)
PUBLISHED = (
    Published("sgd", "ndcg@5", 0.75),
    Published("sgd", "ndcg@5", 0.76, data="ml-10m"),
    Published("global", "ndcg@5", 0.77, data="lookalike:ml-10m"),
    Published("global", "pairwise-error", 0.25, data=DATA),
)


def made(*data):
    """A plan of the tiny experiment on these data sets."""
    return plan(tiny(data=data, splits=("n-per-user[n=8,least=5]",), repetitions=1, published=PUBLISHED), Selection())


def study(*data):
    """The tiny experiment on these data sets with made-up results."""
    planned = made(*data)
    record = plan_record(planned)
    cells = [(entry, made_up(cell, 0.6)) for entry, cell in zip(record["cells"].values(), planned.cells, strict=True)]
    return Study("tiny", record["definition"], cells, record["skips"])


def test_results_on_a_lookalike_carry_the_note_once():
    assert notes(study(DATA)).count(NOTE) == 1
    assert notes(study("low-rank", DATA, "lookalike:ml-10m[ratings=3000]")).count(NOTE) == 1
    both = notes(study(DATA, "lookalike:netflix[ratings=6000]"))
    assert [line.partition(" ")[0] for line in both] == ["lookalike:ml-10m", "lookalike:netflix"]


def test_other_results_carry_none():
    assert not [line for line in notes(study("low-rank[users=20,items=30,per_user=20]")) if "speed work" in line]


def test_no_published_score_stands_beside_a_lookalikes():
    assert {row.published for row in rows(study(DATA))} == {None}
    assert "published" not in sheet(study(DATA)).headings


def test_beside_real_data_in_the_same_table_it_still_stands():
    found = rows(study("low-rank[users=20,items=30,per_user=20]", DATA))
    stands = {(row.data.partition("[")[0], row.solver) for row in found if row.published is not None}
    assert stands == {("low-rank", "sgd")}


@pytest.fixture
def report(tmp_path):
    """The folder of a report on a lookalike."""
    planned, store = made(DATA), Store(tmp_path, "tiny")
    store.open()
    store.write_plan(planned)
    for cell in planned.cells:
        store.save(cell, made_up(cell, 0.6), {})
    write_report(tmp_path, tmp_path / "report", page=False)
    return tmp_path / "report"


def test_the_page_and_the_markdown_say_it(report):
    assert NOTE in page([study(DATA)])
    assert NOTE in (report / "tiny.md").read_text()


@pytest.mark.parametrize("name", ["tables/tiny.csv", "tables/tiny.tex"])
def test_a_bare_table_names_it_in_every_line_with_numbers(report, name):
    lines = [line for line in (report / name).read_text().splitlines() if "0.6" in line]
    assert lines and all("lookalike:ml-10m" in line for line in lines)


def test_a_figures_panel_is_titled_by_it():
    assert drawing(study(DATA)).panels[0].title.startswith("lookalike:ml-10m")
