"""What stands under and beside an experiment's numbers: the verdicts on published ones, and how they were made."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import FAILED, MACHINE, altered, around, made_up_study, tiny

from rankbench.experiments import Budget, Published
from rankbench.names import Pattern
from rankbench.records.cells import Selection
from rankbench.records.results import Counted, pairs_of
from rankbench.records.store import ResultsFolder
from rankbench.report.analysis.verdicts import Finding, added, finding, published_sheet, score_of
from rankbench.report.pieces import piece_of
from rankbench.report.render.differences import differences_page
from rankbench.report.render.facts import facts
from rankbench.report.render.page import page
from rankbench.report.render.page.markup import rendered
from rankbench.report.rows import rows
from rankbench.report.sections import Section
from rankbench.report.writing import write_report

pytestmark = pytest.mark.slow


@pytest.fixture
def study(tmp_path):
    """Makes a study of global 0.5 and sgd 0.6, beside these published numbers of both."""

    def made(
        numbers=(0.5, 0.9), full=True, on=None, arrays=around, changes=None, sd=0.02, to="results", **of_experiment
    ):
        published = tuple(
            Published(Pattern(name), "ndcg@5", value, sd=sd, on=on)
            for name, value in zip(("global", "sgd"), numbers, strict=False)
        )
        experiment, values = tiny(**{"published": published, **of_experiment}), {"global": 0.5, "sgd": 0.6}
        how = {"selection": Selection(full=full), "arrays": arrays, **(changes or {})}
        return made_up_study(tmp_path / to, experiment, lambda cell: values[cell.solver.name], **how)

    return made


def lines_of(study):
    """The facts of a study by their names."""
    return {fact.name: fact.lines for fact in facts(study)}


def test_each_published_number_has_a_line_with_difference_interval_and_verdict(study):
    table = published_sheet(study())
    assert table.headings == ("data", "solver", "metric", "published", "measured", "difference", "expected", "verdict")
    first, second = table.lines
    assert first[1:6] == ("global[lam=10]", "ndcg@5", "0.5000 ± 0.0200", "0.5000 ± 0.0000", "+0.0000")
    assert second[5] == "−0.3000" and (first[7], second[7]) == ("agrees", "lower")
    assert 0 < float(second[6].removeprefix("up to ")) < 0.3
    assert table.best == {(1, 4)} and table.solvers == ("global[lam=10]", "sgd[rank=2]")


def test_a_published_number_that_is_written_with_an_exponent_is_rounded_at_its_last_digit(study):
    line = published_sheet(study(numbers=(2e-05, 3e-05))).lines[0]
    assert line[7] == "higher" and float(line[6].removeprefix("up to ")) < 0.3


def test_what_cannot_be_judged_says_why(study):
    assert {line[7] for line in published_sheet(study(full=False)).lines} == {"smaller size"}
    assert {line[7] for line in published_sheet(study(on=Pattern("ml-1m"))).lines} == {"other data than MovieLens 1M"}
    assert {line[7] for line in published_sheet(study(repetitions=1, sd=None, to="bare")).lines} == {"undecided"}


def test_one_solver_is_the_reproduction_of_a_number_and_others_are_its_variants(study):
    found = study(numbers=(0.5, 0.6), solvers=("sgd[rank=3]", "global", "sgd[rank=2]"))
    lines = published_sheet(found).lines
    assert [line[1] for line in lines] == ["sgd[rank=3]", "global", "sgd[rank=2]"]
    assert [line[7] for line in lines] == ["agrees", "agrees", "variant"]


def test_without_a_measured_number_there_is_no_difference(study):
    lines = published_sheet(study(changes=FAILED)).lines
    assert [line[3:6] for line in lines] == [("0.5000 ± 0.0200", "", ""), ("0.9000 ± 0.0200", "", "")]


def test_without_published_numbers_there_is_no_table_of_them(study):
    assert published_sheet(study(())) is None


def test_the_scoreboard_counts_the_verdicts_of_the_tables(study):
    found = study()
    verdicts = [finding(found, row) for row in rows(found) if row.published is not None]
    assert verdicts == [Finding.AGREES, Finding.LOWER]
    assert (added(map(score_of, [found]))[0].agrees, added(map(score_of, [found]))[0].lower) == (1, 1)


def test_the_facts_say_how_the_numbers_were_made(study):
    found = lines_of(study(changes={"split": "ab" * 32}, budget=Budget(steps=3, seconds=2.5, tolerance=0.01)))
    assert found["seed"] == ("0",) and found["repetitions"] == ("2",)
    assert found["budget"] == ("3 steps or 2.5 seconds or a relative change of the objective of at most 0.01",)
    (splits,) = found["split hashes"]
    assert splits.endswith(": abababababab, abababababab")
    assert found["machine"] == (f"fingerprint {MACHINE.fingerprint}, basis {MACHINE.basis}",)
    assert found["users left out"] == found["pairs without a score"] == ("none",)


def test_users_left_out_are_counted_by_data_and_by_metric_where_those_differ(study):
    (alike,) = lines_of(study(changes={"counted": (Counted(18, 2), Counted(18, 2))}))["users left out"]
    assert alike.endswith(": 2 of 20")
    several = study(changes={"counted": (Counted(18, 2), Counted(15, 5))})
    (told,) = lines_of(several)["users left out"]
    assert told.endswith(": 2 of 20 by pairwise error; 5 of 20 by NDCG@5")


def test_the_share_of_pairs_without_a_score_is_a_range_over_solvers(study):
    (line,) = lines_of(study(changes={"unscored": 0.125}))["pairs without a score"]
    assert line.endswith(": 12.50%")
    found = study()
    odd = [replace(one, result=replace(one.result, unscored=0.25 if one.cell.solver.name == "sgd" else 0.125))
           for one in found.entries]  # fmt: skip
    (line,) = lines_of(altered(found, entries=tuple(odd)))["pairs without a score"]
    assert line.endswith(": 12.50% to 25.00%, by solver")


def test_several_splits_and_machines_have_a_line_each(study):
    splits = ("n-per-user[n=8,least=5]", "n-per-user[n=9,least=5]")
    found = study(splits=splits, changes={"split": "cd" * 32})
    assert len(lines_of(found)["split hashes"]) == 2
    entries = (replace(found.entries[0], result=replace(found.entries[0].result, machine=replace(MACHINE, cpu="b"))),)
    assert len(lines_of(altered(found, entries=(*entries, *found.entries[1:])))["machine"]) == 2


def test_results_of_older_versions_without_hashes_of_splits_have_no_line_of_them(study):
    assert "split hashes" not in lines_of(study())


def test_a_metric_over_all_pairs_says_how_many_there_are(study):
    def arrays(cell, value):
        """Twenty users with three pairs each, but for one who has none."""
        pairs = np.full(20, 3.0)
        pairs[0] = 0.0
        return {"comparison-error": np.where(pairs > 0, value, np.nan), pairs_of("comparison-error"): pairs}

    of_pairs = {"metrics": ("comparison-error",), "numbers": (), "changes": {"counted": (Counted(19, 1),)}}
    (line,) = lines_of(study(arrays=arrays, **of_pairs))["held-out pairs"]
    assert line.endswith(": 57 of 19 users")
    assert "held-out pairs" not in lines_of(study(to="plain"))


def test_page_and_markdown_have_the_same_table_and_facts(study, tmp_path):
    found = study(changes={"split": "ab" * 32})
    write_report(ResultsFolder(tmp_path / "results", print), print, page=False)
    text, html = (
        (tmp_path / "results" / "report" / "tiny.md").read_text(),
        page([Section(found, "tiny")]).replace("<wbr>", ""),
    )
    for line in (*published_sheet(found).lines, *([line] for fact in facts(found) for line in fact.lines)):
        assert line[-1] in text and line[-1] in html
    assert "| data | solver | metric | published | measured | difference | expected | verdict |" in text
    assert "- split hashes: " in text and "<dt>split hashes</dt>" in html
    assert '<td class="lower">lower</td>' in html and '<td class="agrees">agrees</td>' in html


def test_the_command_and_the_time_of_all_cells_are_told(study):
    found = lines_of(study())
    assert found["command"] == ("rankbench run tiny --full",)
    assert found["time of all cells"] == ("12 s for 4 cells; the longest took 3 s",)
    assert lines_of(study(full=False))["command"] == ("rankbench run tiny",)
    one = altered(study(), entries=study().entries[:1])
    assert lines_of(one)["time of all cells"] == ("3 s for 1 cell; the longest took 3 s",)
    assert lines_of(study(changes={"wall": 61.0}))["time of all cells"][0].startswith("4 min 4 s for 4 cells")


def test_the_page_of_differences_has_each_published_number_and_the_reasons(study, tmp_path):
    study(differences="Ties explain it: with ties counted as right the numbers agree.")
    write_report(ResultsFolder(tmp_path / "results", print), print, tmp_path / "report")
    text = (tmp_path / "report" / "differences.md").read_text()
    assert "### tiny" in text and "Ties explain it" in text
    assert "| −0.3000 |" in text and "| 0.9000 ± 0.0200 |" in text
    page_text = (tmp_path / "report" / "index.html").read_text()
    assert "Differences from the paper" in page_text and "Ties explain it" in page_text
    assert (
        "[Every published number beside the measured one](differences.md)"
        in (tmp_path / "report" / "README.md").read_text()
    )


def test_an_experiment_without_published_numbers_has_no_part_in_the_page_of_differences(study):
    assert "tiny" not in differences_page([piece_of(Section(study(numbers=()), "tiny"))])


def test_reasons_of_differences_keep_their_paragraphs_lists_and_tables():
    text = "Ties `explain` it.\n\n- one\n  goes on\n- two <3\n\n| a | b |\n|---|---:|\n| 1 | 2 |\n"
    assert rendered("blocks", text) == (
        "<p>Ties <code>explain</code> it.</p><ul><li>one\n  goes on</li><li>two &lt;3</li></ul>"
        '<div class="wide" role="region" aria-label="a, b" tabindex="0"><table><thead><tr><th scope="col">a</th>'
        '<th scope="col">b</th></tr></thead><tbody>'
        "<tr><td>1</td><td>2</td></tr></tbody></table></div>"
    )
