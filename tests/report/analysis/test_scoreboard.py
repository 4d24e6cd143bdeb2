"""The scoreboard: what the measured numbers say of the published ones, paper by paper."""

import re
from dataclasses import replace

import pytest
from helpers import altered, around, made_up_study, tiny

from rankbench.experiments import Published
from rankbench.names import Pattern
from rankbench.records.cells import Selection
from rankbench.report.analysis.verdicts import TOTAL, Score, added, in_words, score_of, score_sheet
from rankbench.report.render.page import page
from rankbench.report.sections import Section

pytestmark = pytest.mark.slow


@pytest.fixture
def study(tmp_path):
    """Makes a study of global 0.5 and sgd 0.6, beside a published number for each."""

    def made(
        published=(0.5, 0.9), metric="ndcg@5", full=True, on=None, arrays=around, kept=("global", "sgd"), **changes
    ):
        numbers = tuple(
            Published(Pattern(name), metric, value, on=on)
            for name, value in zip(("global", "sgd"), published, strict=True)
        )
        out, experiment = tmp_path / str(len(list(tmp_path.iterdir()))), tiny(published=numbers, **changes)
        values = {name: value for name, value in (("global", 0.5), ("sgd", 0.6)) if name in kept}
        how = {"selection": Selection(full=full), "arrays": arrays}
        return made_up_study(out, experiment, lambda cell: values.get(cell.solver.name), **how)

    return made


def counts(found):
    """The counts of the first paper that are not zero."""
    score = added([score_of(found)])[0]
    return {name: count for name, count in vars(score).items() if count and name != "paper"}


def test_a_number_within_the_spreads_agrees_and_others_are_higher_or_lower(study):
    assert counts(study((0.5, 0.9))) == {"published": 2, "agrees": 1, "lower": 1}
    assert counts(study((0.4, 0.6))) == {"published": 2, "agrees": 1, "higher": 1}
    assert counts(study((0.25, 0.9), metric="pairwise-error")) == {"published": 2, "agrees": 1, "lower": 1}


def test_numbers_that_cannot_be_compared_are_counted_by_the_reason(study):
    assert counts(study(full=False)) == {"published": 2, "smaller": 2}
    assert counts(study(on=Pattern("ml-1m"))) == {"published": 2, "elsewhere": 2}
    assert counts(study(repetitions=1)) == {"published": 2, "undecided": 2}
    assert counts(study(kept=("global",))) == {"published": 2, "agrees": 1, "missing": 1}


def test_papers_are_told_apart_and_added_up(study):
    found = added(map(score_of, (study(paper="one"), study(paper="two", full=False), study(paper="one"))))
    assert [score.paper for score in found] == ["one", "two", TOTAL]
    assert [score.published for score in found] == [4, 2, 6]
    assert found[-1] == Score(TOTAL, 6, agrees=2, lower=2, smaller=2)


def test_in_words_everything_is_counted_once(study):
    assert in_words(added(map(score_of, (study(), study(full=False))))) == (
        "4 published numbers: 2 on the papers' own data at their own size (1 lower, 0 higher, "
        "1 agree within the spreads of both), 2 at a smaller size than the papers'."
    )
    assert in_words(added(map(score_of, [study(on=Pattern("ml-1m"))]))) == "2 published numbers: 2 on other data."


def test_columns_without_a_count_are_left_out(study):
    table = score_sheet(added(map(score_of, [study()])))
    assert table.headings == ("paper", "published", "lower", "agrees")
    assert table.lines[-1] == (TOTAL, "2", "1", "1")


def test_the_page_marks_a_status_by_its_class_and_a_count_as_a_number(study):
    html = page([Section(study(), "tiny")])
    assert html.count('<td class="ok">ok</td>') == 2
    assert '<td class="number">2</td><td class="number">1</td>' in html  # the last column of the scoreboard too


def test_without_published_numbers_there_is_no_scoreboard(study):
    found = study()
    assert added(map(score_of, [])) == []
    html = page([Section(found, "tiny")])
    assert "2 published numbers" in html
    bare = altered(found, experiment=replace(found.experiment, published=()))
    html = re.sub(r"<script.*?</script>", "", page([Section(bare, "tiny")]), flags=re.S)
    assert added(map(score_of, [bare])) == [] and "published numbers" not in html
