"""Reference numbers: published on the same data, published on other data, or computed."""

import json
import re
from dataclasses import replace

import pytest
from helpers import csv_rows, made_up, made_up_study, no_values, tiny

from rankbench.experiments import PER_STEP, Figure, Published
from rankbench.names import Pattern
from rankbench.report.render.figures.plots import draw
from rankbench.report.render.figures.series import drawing
from rankbench.report.render.page import page
from rankbench.report.render.tables import notes, sheet, to_csv, to_latex, to_markdown
from rankbench.report.rows import rows
from rankbench.report.sections import Section

HERE = "low-rank[users=20,items=30,per_user=20]"
OTHER = "low-rank[users=20,items=31,per_user=20]"


@pytest.fixture
def study(tmp_path):
    """Makes a study of the tiny experiment with these numbers beside the measured ones."""

    def made(*published, **changes):
        figure = Figure("sweep", metric="ndcg@5", x="n")
        return made_up_study(tmp_path, tiny(published=published, figure=figure, **changes), arrays=no_values)

    return made


def of_sgd(on=None, **changes):
    return Published(Pattern("sgd"), "ndcg@5", 0.75, on=on and Pattern.read(on), **changes)


def lines_of(study):
    """What scripts read, by solver, of the second metric."""
    table = csv_rows(to_csv(rows(study)))
    return {line["solver"]: line for line in table if line["metric"] == "ndcg@5"}


def legend(study):
    """The lines drawn beside measured ones."""
    return [line.name for line in drawing(study).panels[0].beside]


@pytest.mark.slow
def test_what_was_published_on_other_data_says_so_wherever_it_stands(study, tmp_path):
    found = study(of_sgd("ml-1m"))
    assert notes(found)[0] == f"Published on ml-1m, measured here on {HERE}: for orientation only."
    assert "published on ml-1m" in sheet(found).headings
    assert "| published on ml-1m |" in to_markdown(sheet(found))
    assert "& published on ml-1m &" in to_latex(sheet(found))
    assert lines_of(found)["sgd"]["published"] == "0.75" and lines_of(found)["sgd"]["published_on"] == "ml-1m"
    assert lines_of(found)["global"]["published"] == lines_of(found)["global"]["published_on"] == ""
    assert legend(found) == ["SGD, published on MovieLens 1M"]
    html = page([Section(found, "tiny", drawing(found))])
    assert '"name":"SGD, published on MovieLens 1M"' in html and "measured here on low-rank" in html
    draw(drawing(found), tmp_path, "tiny")


@pytest.mark.parametrize("on", [None, "low-rank", "low-rank[items=30]", HERE])
def test_what_was_published_on_the_same_data_stands_there_without_a_word(study, on):
    found = study(of_sgd(on))
    assert not [line for line in notes(found) if "Published on" in line]
    assert [heading for heading in sheet(found).headings if "published" in heading] == ["published"]
    assert legend(found) == ["SGD, published"]
    assert lines_of(found)["sgd"]["published_on"] == HERE


@pytest.mark.parametrize("on", ["low-rank[items=31]", "jester[parts=all]"])
def test_the_same_data_with_other_settings_is_other_data(study, on):
    found = study(of_sgd(on))
    assert f"published on {on}" in sheet(found).headings
    assert lines_of(found)["sgd"]["published_on"] == on


@pytest.mark.parametrize(
    ("split", "stands"),
    [(None, True), ("n-per-user", True), ("n-per-user[n=8]", True), ("n-per-user[n=9]", False), ("entries", False)],
)
def test_what_was_published_for_another_split_does_not_stand_there(study, split, stands):
    found = study(of_sgd(split=split and Pattern.read(split)))
    assert (lines_of(found)["sgd"]["published"] == "0.75") is stands


def test_numbers_of_several_data_sets_under_one_heading_each_name_theirs(study):
    entries = (of_sgd("ml-1m", data=Pattern.read(HERE)), of_sgd(data=Pattern.read(OTHER)))
    found = study(*entries, data=(HERE, OTHER))
    table = sheet(found)
    column = table.headings.index("published")
    assert [line[column] for line in table.lines] == ["", "0.7500 (ml-1m)", "", "0.7500"]
    assert notes(found)[0] == f"Published on ml-1m, measured here on {HERE}: for orientation only."


def test_a_computed_number_is_never_called_published(study):
    found = study(of_sgd(computed="Theorem 1, with probability 0.95"))
    table = sheet(found)
    assert "computed" in table.headings and not [heading for heading in table.headings if "published" in heading]
    assert table.lines[1][table.headings.index("computed")] == "0.7500"
    assert "& computed &" in to_latex(table)
    line = lines_of(found)["sgd"]
    assert (line["published"], line["published_on"], line["computed"]) == ("", "", "0.75")
    assert legend(found) == ["SGD, computed"]
    assert "Computed: Theorem 1, with probability 0.95." in notes(found)


def test_a_remark_is_a_sentence_of_its_own(study):
    found = study(of_sgd(remark="with 173 features"))
    assert "Published with 173 features." in notes(found)
    assert not [line for line in notes(found) if "measured here" in line]


def test_published_and_computed_numbers_have_columns_of_their_own(study):
    bound = Published(Pattern("global"), "ndcg@5", 0.9, computed="a formula")
    found = study(of_sgd("ml-1m"), bound)
    table = sheet(found)
    assert table.headings[3:6] == ("NDCG@5", "published on ml-1m", "computed")
    assert [line[4:6] for line in table.lines] == [("", "0.9000"), ("0.7500", "")]


def test_the_figure_of_the_page_is_json_also_with_quotes_in_a_remark(study):
    found = study(of_sgd("ml-1m", remark='by "them" </script>'))
    html = page([Section(found, "tiny", drawing(found))])
    assert "by &quot;them&quot; &lt;/script&gt;" in html
    (figures,) = re.findall(r'<script type="application/json" class="figures">(.*?)</script>', html)
    assert json.loads(figures)["ndcg@5"]["data"]


def test_what_was_published_on_data_that_is_not_at_hand_has_rows_of_its_own(study):
    there = Published(Pattern("global"), "ndcg@5", 0.7605, data=Pattern("netflix"))
    shown = of_sgd("ml-10m")
    found = study(shown, there, data=(HERE, "netflix", "ml-10m"))
    lines = [row for row in rows(found) if row.published is not None and row.measured is None]
    assert [(row.data, row.solver, row.metric, row.published, row.status) for row in lines] == [
        ("netflix", "global", "ndcg@5", 0.7605, "skipped")
    ]  # the number of ml-10m stands beside a measured one already
    assert ["netflix", "global"] in [list(line[:2]) for line in sheet(found).lines]


def column(study, heading):
    """A column of the table for people, by solver."""
    table = sheet(study)
    place = table.headings.index(heading)
    return dict(zip(table.solvers, (line[place] for line in table.lines), strict=True))


def test_seconds_per_step_stand_beside_published_ones(study):
    found = study(Published(Pattern("sgd"), PER_STEP, 0.07))
    assert set(column(found, "seconds per step").values()) == {"0.150"}  # 0.3 seconds in two steps
    published = column(found, "published seconds per step")
    assert {solver.partition("[")[0]: text for solver, text in published.items()} == {"sgd": "0.07", "global": ""}
    assert not [heading for heading in sheet(study()).headings if "per step" in heading]


def test_a_recorded_gap_is_shown_relative_to_the_objective(tmp_path):
    def with_gap(cell, value):
        result = made_up(cell, value)
        last = replace(result.curve[-1], objective=-200.0, gap=2.0 * (1 + cell.place.repetition))
        return replace(result, curve=(*result.curve[:-1], last)) if cell.solver.name == "sgd" else result

    gaps = column(made_up_study(tmp_path, made=with_gap), "relative gap")
    found = {solver.partition("[")[0]: text for solver, text in gaps.items()}
    assert found == {"sgd": "2e-02", "global": ""}  # the larger one of two repetitions


def test_published_seconds_per_step_of_data_that_is_not_at_hand_stand_beside_its_other_numbers(study):
    of_missing = {"data": Pattern("netflix")}
    numbers = (
        Published(Pattern("global"), what, value, **of_missing) for what, value in ((PER_STEP, 7), ("ndcg@5", 0.7))
    )
    lines = [row for row in rows(study(*numbers, data=(HERE, "netflix"))) if row.published is not None]
    assert [(row.solver, row.metric, row.published_step) for row in lines] == [("global", "ndcg@5", 7)]
