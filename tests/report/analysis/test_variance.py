"""The table of where the variance comes from: of one run, and of runs that redraw fewer sources."""

from dataclasses import replace

import pytest
from helpers import TINY, altered, csv_rows, ran, tiny, tuned

import rankbench as package
from rankbench.experiments.spaces import Tune
from rankbench.records.cells import Selection
from rankbench.records.store import ResultsFolder
from rankbench.report.analysis import variance
from rankbench.report.analysis.comparison import within
from rankbench.report.analysis.evidence import evidence, scope_of
from rankbench.report.analysis.variance import COLUMNS, share_sheet, shares_of, shares_to_csv
from rankbench.report.render.facts import facts
from rankbench.report.study import redrawn, study

pytestmark = pytest.mark.slow
SGD = "sgd[rank=2]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the tiny experiment and with its starts alone."""
    out = tmp_path_factory.mktemp("folder")
    for sources in (("splits", "search", "start"), ("start",)):
        ran(out, TINY, Selection(repetitions=4, redraw=sources))
    return out


@pytest.fixture(scope="module")
def found(folder):
    """The shares of the tiny experiment."""
    return shares_of(study(ResultsFolder(folder, pytest.fail), "tiny"))


def sources(found, solver, of="mean", metric="ndcg@5"):
    """The sources of a solver's number, with their shares."""
    return {one.source: one for one in found if (one.solver, one.of, one.metric) == (solver, of, metric)}


def test_a_run_of_starts_alone_tells_them_from_splits(found):
    own = sources(found, SGD)
    assert list(own) == ["users", "splits", "start"]
    assert all(0 <= one.low <= one.share <= one.high <= 1 for one in own.values())
    assert own["start"].freedom == 3 and own["start"].share > 0
    assert (own["users"].users, own["users"].repetitions) == (20, 4)


def test_the_facts_have_the_command_with_what_it_redraws(folder):
    whole = study(ResultsFolder(folder, pytest.fail), "tiny")
    commands = [line for one in (whole, *redrawn(whole)) for fact in facts(one) if fact.name == "command"
                for line in fact.lines]  # fmt: skip
    again = "rankbench run tiny -r 4"  # where nothing is tuned, no search can be held
    assert commands == [again, f"{again} --redraw search,start"]


def test_a_ranking_that_draws_nothing_has_no_share_of_starts(found):
    assert sources(found, "global[lam=10]")["start"].share == 0
    apart = sources(found, "global[lam=10]", f"difference from {SGD}") or sources(
        found, SGD, "difference from global[lam=10]"
    )
    assert list(apart) == ["users", "splits", "start"] and apart["start"].share > 0  # that of sgd


def test_shares_of_one_run_name_together_what_it_draws_together(tmp_path):
    run = ran(tmp_path, TINY).study()
    assert list(sources(shares_of(run), SGD)) == ["users", "splits and start"]
    with_search = ran(tmp_path, tuned()).study()
    assert list(sources(shares_of(with_search), "sgd[step=0.1]")) == ["users", "splits, search and start"]
    shared = ran(tmp_path, tuned(Tune({"global": {}, "sgd": {"rank": (2, 3)}}, trials=2, per="split"))).study()
    assert list(sources(shares_of(shared), "sgd[step=0.1]")) == ["users", "splits and start"]


def test_the_scope_of_a_run_says_what_it_draws_anew(tmp_path):
    scopes = {}
    for drawn in (("splits", "search", "start"), ("splits",), ("start",), ("search",)):
        made = ran(tmp_path / "-".join(drawn), tuned(), Selection(redraw=drawn)).study()
        (scopes[drawn],) = {one.scope for one in evidence(made).values()}
    assert list(scopes.values()) == [
        "on new data of this kind",
        "on new data of this kind, with the same start",
        "with new starts on this split",
        "with new searches on this split",
    ]
    assert scope_of([], ()) == "on this split"


def test_the_table_is_printed_as_markdown_csv_latex_and_in_the_report(cli, folder, found):
    printed = cli("table", "tiny", "--what", "variance", "--out", folder).out
    sheet = share_sheet(found)
    assert "| variance of the | source | share | 95 % | degrees |" in printed
    assert " | ".join(sheet.lines[0]) in printed and "need not add up to 100 %" in printed
    rows = csv_rows(cli("table", "tiny", "--what", "variance", "--csv", "--out", folder).out)
    assert rows == csv_rows(shares_to_csv(found)) and tuple(rows[0]) == COLUMNS
    assert float(rows[0]["share"]) == found[0].share
    cli("report", "--no-page", "--out", folder)
    (page,) = (path for path in folder.glob("report/*.md") if "Where the variance comes from" in path.read_text())
    assert "| users |" in page.read_text()


def test_the_table_of_python_has_the_same_rows(folder, found):
    table = package.outcome("tiny", out=folder).variance()
    assert tuple(table.columns) == COLUMNS and len(table) == len(found)
    assert table.source.tolist() == [one.source for one in found]


def test_of_one_repetition_there_is_no_table_and_the_remedy_is_said(cli, tmp_path):
    ran(tmp_path, TINY, Selection(repetitions=1))
    assert package.outcome("tiny", out=tmp_path).variance().empty
    said = cli.refuses("table", "tiny", "--what", "variance", "--out", tmp_path)
    assert "has no two repetitions" in said and "-r 2" in said


def test_the_scope_is_that_of_the_repetitions_that_are_compared(tmp_path):
    whole = ran(tmp_path, tiny(solvers=("random", "global", "sgd"), repetitions=2)).study()
    partial = altered(whole, entries=[
        entry for entry in whole.entries if entry.cell.place.repetition == 0 or entry.cell.solver.name == "random"
    ])  # fmt: skip
    for one_study, scope in ((whole, "on new data of this kind"), (partial, "on this split")):
        assert {one.scope for one in evidence(one_study).values()} == {scope}
        assert {one.scope for one in within(one_study)} == {scope}


def test_a_run_without_one_of_two_solvers_has_no_difference_of_them():
    assert variance._difference({}, (("data", "split"), "sgd"), (("data", "split"), "mf"), "map") is None


def test_what_lies_in_no_folder_has_no_runs_that_redraw_less(tmp_path):
    assert redrawn(replace(ran(tmp_path, TINY).study(), cells="")) == []
