"""Trials and chosen settings in tables and reports, from made-up results."""

import csv
import gzip
import re
from dataclasses import replace

import pytest
from helpers import SPACES, around, csv_rows, made_up, prepared, silent, tuned

from rankbench.execution.run import Run
from rankbench.experiments import Figure, Published
from rankbench.experiments.spaces import Tune
from rankbench.names import Pattern
from rankbench.records.cells import Selection
from rankbench.records.store import ResultsFolder
from rankbench.report.analysis.trials import COLUMNS, best_first, trial_sheet, trials, trials_to_csv
from rankbench.report.render.figures.series import drawing
from rankbench.report.render.page import page
from rankbench.report.render.tables import notes, sheet, to_csv, to_latex, to_markdown
from rankbench.report.rows import rows
from rankbench.report.sections import Section
from rankbench.report.study import study
from rankbench.report.writing import write_report

pytestmark = pytest.mark.slow

GRID = Tune({"global": {"lam": (10.0, 20.0, 30.0)}, "sgd": {"lam": (1.0, 2.0, 3.0)}}, "grid", 3, "ndcg@5")
WINNERS = {("global", 0): 0, ("global", 1): 2, ("global", 2): 0, ("sgd", 0): 1, ("sgd", 1): 1, ("sgd", 2): 1}
FAILED = {"status": "failed", "reason": "ValueError: <boom>", "curve": (), "counted": ()}


def tried(trial, value, **changes):
    """A made-up result of a trial, whose one metric has this value."""
    made = made_up(trial, 2 * value, **changes)
    return replace(made, curve=tuple(replace(point, values=(value,)) for point in made.curve))


def stored(out, tune=GRID, winners=WINNERS, finals=0.6, repetitions=3, value=None, **changes):
    """A study, read from disk, in which these trials win: their value is 0.9, that of the others 0.5."""
    run = opened(out, tune, repetitions, **changes)
    for search in run.plan.searches:
        for place, trial in enumerate(search.trials):
            wins = winners.get((trial.solver.name, trial.place.repetition)) == place
            run.keep(tried(trial, 0.9 if wins else 0.5, contended=place == 1), {})
    run.try_out(lambda event: None)  # every trial is there: this decides the cells
    for cell in run.plan.cells:
        found = value(cell) if value else finals + cell.place.repetition / 10
        run.keep(made_up(cell, found), around(cell, found))
    return read_back(out)


def opened(out, tune=GRID, repetitions=3, **changes) -> Run:
    """A run of a tuned experiment that has written down its plan, and nothing else."""
    run = prepared(out, tuned(tune, **changes), Selection(repetitions=repetitions))
    run.open()
    return run


def read_back(out):
    """What the report reads from disk."""
    return study(ResultsFolder(out, silent), "tiny")


def test_a_row_gathers_the_repetitions_whatever_was_chosen_for_each(tmp_path):
    found = {row.solver: row for row in rows(stored(tmp_path)) if row.metric == "ndcg@5"}
    assert set(found) == {"global", "sgd"}
    assert found["global"].n == 3 and found["global"].measured == pytest.approx(0.7)
    assert found["global"].settings == "lam=10|30|10,loss=squared-hinge"
    assert found["sgd"].settings == "rank=10,lam=2,step=0.1,decay=1e-05,loss=squared-hinge,schedule=serial,parts=8"


def test_people_see_what_was_chosen(tmp_path):
    table = sheet(stored(tmp_path))
    assert table.headings[:3] == ("data", "solver", "chosen")
    assert [line[1:3] for line in table.lines] == [("global †", "lam=10 / 30 / 10"), ("sgd[step=0.1] †", "lam=2")]
    assert len(table.numeric) == len(table.headings) == len(table.lines[0])


def test_many_choices_are_shown_as_a_range(tmp_path):
    winners = {("global", repetition): repetition % 3 for repetition in range(4)}
    table = sheet(stored(tmp_path, winners=winners, repetitions=4))
    assert [line[2] for line in table.lines] == ["lam=10..30", "lam=1"]


def test_many_choices_of_a_word_are_listed_once_each(tmp_path):
    words = Tune({name: {"loss": ("squared-hinge", "logistic")} for name in ("global", "sgd")}, "grid", 2, "ndcg@5")
    winners = {("global", repetition): repetition % 2 for repetition in range(4)}
    table = sheet(stored(tmp_path, words, winners=winners, repetitions=4))
    assert [line[2] for line in table.lines] == ["loss=squared-hinge / logistic", "loss=squared-hinge"]


def test_the_best_of_a_column_is_marked_in_its_place(tmp_path):
    table = sheet(stored(tmp_path, value=lambda cell: 0.9 if cell.solver.name == "sgd" else 0.5))
    assert {(number, table.headings[column]) for number, column in table.best} == {(0, "pairwise error"), (1, "NDCG@5")}


def test_a_published_number_stands_beside_a_solver_whose_choices_differ(tmp_path):
    published = (
        Published(Pattern("global"), "ndcg@5", 0.75),
        Published(Pattern.read("sgd[lam=3]"), "ndcg@5", 0.1),
        Published(Pattern.read("sgd[lam=2]"), "ndcg@5", 0.5),
    )
    found = {row.solver: row.published for row in rows(stored(tmp_path, published=published)) if row.metric == "ndcg@5"}
    assert found == {"global": 0.75, "sgd": 0.5}


def test_a_sweep_has_published_points_of_solvers_whose_choices_differ(tmp_path):
    published = (Published(Pattern("global"), "ndcg@5", 0.75),)
    figure = Figure("sweep", metric="ndcg@5", x="n")
    drawn = drawing(stored(tmp_path, published=published, figure=figure))
    assert [line.name for line in drawn.panels[0].lines] == ["Global ranking", "SGD"]
    assert [(line.name, line.y) for line in drawn.panels[0].beside] == [("Global ranking, published", (0.75,))]


def test_solvers_that_were_given_the_same_settings_keep_their_rows(tmp_path):
    tune = Tune({"sgd": {"rank": (2, 3)}, "sgd[rank=2]": {"lam": (0.1, 0.2)}}, "grid", 2, "ndcg@5")
    found = stored(tmp_path, tune, {}, solvers=("sgd", "sgd[rank=2]"))  # both end with rank=2,lam=0.1
    assert len({entry.cell.key for entry in found.entries}) == 3  # one for each repetition
    assert [(line[1], line[2]) for line in sheet(found).lines] == [("sgd †", "rank=2"), ("sgd[rank=2] †", "lam=0.1")]
    assert {row.n for row in rows(found)} == {3}
    assert len(trials(found)) == 2 * 2 * 3  # also the trial that both made


def test_a_choice_that_is_not_yet_made_is_pending(tmp_path):
    opened(tmp_path)
    found = read_back(tmp_path)
    assert {row.status for row in rows(found)} == {"pending"}
    assert {trial.status for trial in trials(found)} == {"pending"} and not any(t.chosen for t in trials(found))
    assert all("lam=?" in row.settings for row in rows(found))
    assert to_csv(rows(found)).count("pending") == 4


def test_a_solver_whose_trials_all_failed_is_a_row_that_says_so(tmp_path):
    run = opened(tmp_path)
    for trial in run.plan.trials:
        run.keep(tried(trial, 0.5, **(FAILED if trial.solver.name == "sgd" else {})), {})
    run.try_out(lambda event: None)
    found = read_back(tmp_path)
    assert {(row.solver, row.status, row.measured) for row in rows(found)} == {
        ("global", "pending", None), ("sgd", "failed", None),
    }  # fmt: skip
    html = page([Section(found, "tiny")])
    assert "none of its 3 trials ended well; the first: failed, ValueError: &lt;boom&gt;" in html
    assert {trial.status for trial in trials(found)} == {"ok", "failed"}


def test_a_trial_that_failed_is_not_chosen_also_where_there_was_no_other(tmp_path):
    run = opened(tmp_path, Tune({"global": {"lam": (1.0,)}, "sgd": {"lam": (1.0,)}}, metric="ndcg@5"), repetitions=1)
    for trial in run.plan.trials:
        run.keep(tried(trial, 0.5, **(FAILED if trial.solver.name == "global" else {})), {})
    run.try_out(lambda event: None)
    found = trials(read_back(tmp_path))
    assert [(t.solver, t.chosen) for t in found] == [("global", False), ("sgd[step=0.1]", True)]


def test_every_trial_is_listed_with_what_it_gave_and_whether_it_was_chosen(tmp_path):
    found = trials(stored(tmp_path))
    assert len(found) == 2 * 3 * 3
    assert {(t.solver, t.repetition, t.settings) for t in found if t.chosen} == {
        ("global", 0, "lam=10"), ("global", 1, "lam=30"), ("global", 2, "lam=10"),
        ("sgd[step=0.1]", 0, "lam=2"), ("sgd[step=0.1]", 1, "lam=2"), ("sgd[step=0.1]", 2, "lam=2"),
    }  # fmt: skip
    assert all(t.value == (0.9 if t.chosen else 0.5) for t in found)


def test_seconds_of_contended_trials_are_not_shown(tmp_path):
    found = trials(stored(tmp_path))
    assert [t.seconds is None for t in found[:3]] == [False, True, False]
    assert found[0].seconds == pytest.approx(0.3)


def test_one_choice_for_all_repetitions_is_marked_on_the_trials_of_the_first(tmp_path):
    tune = Tune(GRID.space, "grid", 3, "ndcg@5", per="split")
    found = trials(stored(tmp_path, tune))
    assert len(found) == 2 * 3
    assert [(t.solver, t.settings) for t in found if t.chosen] == [("global", "lam=10"), ("sgd[step=0.1]", "lam=2")]


def test_best_first_follows_the_metrics_direction_and_leaves_failures_last(tmp_path):
    found = stored(tmp_path, Tune(SPACES, trials=3, metric="ndcg@5"))
    some = [t for t in trials(found) if (t.solver, t.repetition) == ("global", 1)]
    assert [t.chosen for t in best_first(some)] == [True, False, False]
    lower = [replace(t, measure=found.measures[0]) for t in some]
    assert [t.chosen for t in best_first(lower)] == [False, False, True]
    for nothing in (None, float("nan")):
        without = [replace(t, value=nothing) if t.chosen else t for t in some]
        assert [t.chosen for t in best_first(without)] == [False, False, True]


def test_the_list_of_trials_can_be_read_back(tmp_path):
    found = trials(stored(tmp_path))
    back = csv_rows(trials_to_csv(found))
    assert tuple(back[0]) == COLUMNS
    assert [float(line["value"]) for line in back] == [t.value for t in found]
    assert [line["chosen"] for line in back] == ["yes" if t.chosen else "no" for t in found]


def test_nothing_to_tune_is_said_so(tmp_path):
    found = stored(tmp_path, Tune({"global": {}, "sgd": {"lam": (1.0, 2.0)}}, metric="ndcg@5"))
    assert [line[2] for line in sheet(found).lines] == ["nothing to tune", "lam=2"]
    listed = trials(found)
    assert {trial.solver for trial in listed} == {"sgd[step=0.1]"}
    with_patience = replace(listed[0], settings="")  # then a trial finds the number of steps
    assert trial_sheet([with_patience]).lines[0][3] == "nothing to tune"


def test_bars_in_a_cell_do_not_end_it_in_a_pipe_table(tmp_path):
    for found in (sheet(stored(tmp_path)), trial_sheet(trials(stored(tmp_path)))):
        first, *others = found.lines
        table = replace(found, lines=((first[0], "a|b", *first[2:]), *others))
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in to_markdown(table).splitlines()}
        assert widths == {len(table.headings) + 1}
        assert to_latex(table).count(r"\\") == len(table.lines) + 1


def test_the_report_shows_every_trial_in_every_format(tmp_path):
    stored(tmp_path)
    first = write_report(ResultsFolder(tmp_path, silent), silent)
    listed = list(csv.DictReader(gzip.open(first.parent / "tables" / "tiny-trials.csv.gz", "rt")))
    assert len(listed) == 18
    html, markdown = first.read_text(), (first.parent / "tiny.md").read_text()
    for text in (html, markdown):
        assert "All trials of the tuning (18)" in text
        assert text.count("chosen") >= 6
        assert "3 grid trials for each solver" in text
    assert len(re.findall(r"^\| .*\| ok \|$", markdown, re.M)) == 18 + 2


def test_the_report_says_where_many_trials_are(tmp_path, monkeypatch):
    monkeypatch.setattr("rankbench.report.outline._MANY", 17)
    stored(tmp_path)
    first = write_report(ResultsFolder(tmp_path, silent), silent)
    for text in (first.read_text(), (first.parent / "tiny.md").read_text()):
        assert "All 18 trials of the tuning are in" in text
        assert "tables/tiny-trials.csv.gz" in text
        assert "rankbench table tiny --what trials" in text


def test_the_note_says_how_it_was_tuned(tmp_path):
    assert notes(stored(tmp_path))[:1] == [
        "Tuned equally: 3 grid trials for each solver, or its whole space where that is smaller; the best "
        "ndcg@5 on entries[test=0.2] of each repetition's training part is chosen."
    ]
