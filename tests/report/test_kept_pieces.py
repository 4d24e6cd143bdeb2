"""A report makes again what has changed, and nothing else: a stale piece never stays."""

import json
import os
import shutil
from dataclasses import replace
from importlib.metadata import distributions

import pytest
from helpers import around, made_up, made_up_run, prepared, silent, tiny

from rankbench.core.errors import UserError
from rankbench.core.leftovers import partial_of
from rankbench.records.store import ResultsFolder
from rankbench.report import pieces, writing
from rankbench.report.render import answer as answers
from rankbench.report.sections import Section
from rankbench.report.writing import write_report

pytestmark = pytest.mark.slow


def experiment(name):
    return tiny(name=name, repetitions=1)


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A folder with results of two experiments of two papers, and their report."""
    out = tmp_path_factory.mktemp("reported")
    for name in ("two-b", "one-a"):
        made_up_run(out, experiment(name))
    write_report(ResultsFolder(out, silent), silent)
    return out


@pytest.fixture
def stored(reported, tmp_path):
    """A copy of these results and their report; returns the run of the first experiment."""
    shutil.copytree(reported, tmp_path, dirs_exist_ok=True)
    return prepared(tmp_path, experiment("one-a"))


@pytest.fixture
def report(tmp_path, monkeypatch):
    """Writes the report; returns the names of the experiments that were made again."""
    made, drawing = [], writing.drawing
    monkeypatch.setattr(writing, "drawing", lambda study: made.append(study.name) or drawing(study))

    def write(**options):
        made.clear()
        write_report(ResultsFolder(tmp_path, silent), silent, **options)
        return list(made)

    return write


def test_a_second_report_makes_nothing_again_and_has_the_same_bytes(stored, report, tmp_path):
    before = {path: path.read_bytes() for path in (tmp_path / "report").rglob("*") if path.is_file()}
    assert report() == []
    assert {path: path.read_bytes() for path in (tmp_path / "report").rglob("*") if path.is_file()} == before


def test_a_changed_result_is_shown(stored, report, tmp_path):
    cell = stored.plan.cells[0]
    stored.store.save(replace(made_up(cell, 0.8125), finished="2026-01-03T03:04:05+00:00"), around(cell, 0.8125))
    assert report() == ["one-a"]
    assert all("0.8125" in (tmp_path / "report" / name).read_text() for name in ("one.md", "one.html"))


def test_a_removed_result_is_no_longer_shown(stored, report, tmp_path):
    stored.store.path(stored.plan.cells[0]).unlink()
    assert report() == ["one-a"] and "| pending |" in (tmp_path / "report" / "one.md").read_text()


def test_a_changed_plan_is_shown(stored, report, tmp_path):
    prepared(tmp_path, tiny(name="one-a", repetitions=1, title="Another title")).open()
    assert report() == ["one-a"] and "Another title" in (tmp_path / "report" / "one.md").read_text()


def test_another_option_makes_all_again(stored, report, tmp_path):
    assert report(page=False) == ["one-a", "two-b"]
    assert report(page=True) == ["one-a", "two-b"]
    assert 'id="one-a"' in (tmp_path / "report" / "one.html").read_text()


@pytest.mark.trust
@pytest.mark.parametrize("how", ["removed", "changed"])
@pytest.mark.parametrize("file", ["tables/one-a.tex", "figures/one-a.png"])
def test_a_file_that_is_gone_or_was_changed_is_written_again(stored, report, tmp_path, file, how):
    path = tmp_path / "report" / file
    whole = path.read_bytes()
    path.unlink() if how == "removed" else path.write_bytes(whole[:-1])
    assert report() == ["one-a"] and path.read_bytes() == whole


@pytest.mark.trust
@pytest.mark.parametrize("content", ["", "{", "[]", '{"made_of": 3}', "\udcff"])
def test_a_damaged_record_of_a_piece_is_made_again(stored, report, tmp_path, content):
    path = tmp_path / "report" / pieces.FOLDER / "one-a.json"
    whole = path.read_bytes()
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert report() == ["one-a"] and path.read_bytes() == whole


def test_a_record_with_a_text_where_a_number_belongs_is_made_again(stored, report, tmp_path):
    path = tmp_path / "report" / pieces.FOLDER / "one-a.json"
    content = json.loads(path.read_bytes())
    path.write_text(json.dumps(content | {"piece": content["piece"] | {"cells": "many"}}))
    assert report() == ["one-a"]


def test_an_experiment_that_is_gone_leaves_nothing_in_the_report(stored, report, tmp_path):
    os.rename(tmp_path / "two-b", tmp_path.parent / f"{tmp_path.name}-two-b")
    assert report() == []
    found = {path.name for path in (tmp_path / "report").rglob("*") if path.suffix in (".json", ".html", ".js")}
    assert found == {"one-a.json", "index.html"}  # one paper has one page


@pytest.mark.parametrize("where", ["index.html", "tables/one-a.csv", "figures/one-a.png", ".rendered/one-a.json"])
def test_what_a_killed_report_left_half_written_is_removed(stored, report, tmp_path, where):
    left = partial_of(tmp_path / "report" / where)
    left.touch()
    report()
    assert not left.exists()


def test_a_page_that_no_report_wrote_stays(stored, report, tmp_path):
    (tmp_path / "report" / "mine.html").write_text("<p>my own</p>")
    report()
    assert (tmp_path / "report" / "mine.html").exists()


def test_another_source_of_rankbench_makes_all_again(stored, report, monkeypatch):
    monkeypatch.setattr(pieces, "_program", lambda: "another")
    assert report() == ["one-a", "two-b"]


def test_each_paper_has_a_page_behind_the_first_one(stored, report, tmp_path):
    front, behind = ((tmp_path / "report" / name).read_text() for name in ("index.html", "one.html"))
    assert 'href="one.html#one-a"' in front and 'href="two.html"' in front and "<article" not in front
    assert '<article id="one-a">' in behind and 'data-file="rankbench-plotly.js"' in behind and "two-b" not in behind
    assert len(front) < 60_000


def test_a_failed_cell_is_named_with_its_reason_in_page_and_markdown(stored, report, tmp_path):
    cell = stored.plan.cells[0]
    stored.store.save(made_up(cell, 0.5, status="failed", reason="took <long>", curve=(), counted=()), {})
    report()
    page, text = ((tmp_path / "report" / name).read_text() for name in ("one.html", "one.md"))
    assert "<b>failed</b>, took &lt;long&gt;" in page and f"- {cell.label}: failed, took &lt;long>" in text


def test_a_run_whose_results_are_gone_as_a_folder_is_reported(stored, report, tmp_path):
    shutil.rmtree(tmp_path / "two-b" / "cells")
    assert report() == ["two-b"] and "| pending |" in (tmp_path / "report" / "two.md").read_text()


@pytest.mark.trust
def test_a_link_that_leads_nowhere_stops_no_report(stored, report, tmp_path):
    cells = tmp_path / "two-b" / "cells"
    (cells / "loop.npz").symlink_to("loop.npz")
    (cells / "gone.npz").symlink_to("gone")
    assert report() == ["two-b"]
    assert report() == []


def test_an_error_that_no_section_tells_is_raised(tmp_path, monkeypatch):
    def fail(study):
        raise UserError("nobody knows why")

    monkeypatch.setattr(pieces, "score_of", fail)
    run = prepared(tmp_path, tiny())
    run.open()
    with pytest.raises(UserError, match="nobody knows why"):
        pieces.piece_of(Section(run.study(), "tiny"), html=False)


def test_where_nothing_has_run_nothing_is_said_of_durations_nor_of_the_best(tmp_path):
    run = prepared(tmp_path, tiny())
    run.open()
    assert writing._durations([]) == [] and list(answers._against(run.study(), [])) == []


def test_what_is_installed_is_known_by_the_names_of_folders():
    def letters(names):
        return {"".join(filter(str.isalnum, name)).lower() for name in names}

    assert letters(pieces._installed()) == letters(one.name for one in distributions())
