"""The wall time of experiments: cells side by side count once, pauses between runs do not count."""

from math import isnan

import pytest
from helpers import made_up, made_up_study, no_values, prepared, tiny, tuned

from rankbench.records.store import ResultsFolder
from rankbench.report.analysis.costs import at_a_time, duration, duration_sheet, elapsed, spelled
from rankbench.report.render.facts import facts
from rankbench.report.writing import write_report


@pytest.fixture
def study(tmp_path):
    """Makes a study of the tiny experiment's four cells, which end at these times of a day and take so many seconds."""

    def made(*spans, name="tiny"):
        def lasting(cell, span):
            return made_up(cell, 0.5, finished=f"2026-01-02T{span[0]}+00:00", wall=span[1])

        return made_up_study(tmp_path / "results", tiny(name=name), spans, made=lasting, arrays=no_values)

    return made


def test_cells_one_after_the_other_add_up_and_a_pause_does_not_count(study):
    found = study(("03:00:10", 10.0), ("03:00:30", 20.0), ("09:00:05.5", 5.5))
    assert elapsed([found]) == pytest.approx(35.5)
    assert at_a_time(found) == pytest.approx(1.0)


def test_cells_side_by_side_count_once(study):
    found = study(("03:00:10", 10.0), ("03:00:12", 10.0), ("03:00:08", 4.0), ("03:00:20", 4.0))
    assert elapsed([found]) == pytest.approx(12.0 + 4.0)
    assert at_a_time(found) == pytest.approx(28.0 / 16.0)


def test_a_short_cell_inside_a_long_one_does_not_end_it(study):
    assert elapsed([study(("03:00:10", 10.0), ("03:00:04", 2.0), ("03:00:12", 7.0))]) == pytest.approx(12.0)


def test_trials_count_too(tmp_path):
    run = prepared(tmp_path, tuned())
    run.open()
    run.keep(made_up(run.plan.trials[0], 0.5, finished="2026-01-02T03:00:10+00:00", wall=10.0), {})
    found = run.study()
    assert elapsed([found]) == pytest.approx(10.0)
    assert duration_sheet([duration(found)]).lines[0][1:] == ("10 s", "1.0", "0", "1")


def test_experiments_that_ran_at_the_same_time_take_no_longer_together(study):
    both = study(("03:00:10", 10.0)), study(("03:00:15", 10.0), name="other")
    assert elapsed(both) == pytest.approx(15.0)
    lines = duration_sheet(map(duration, both)).lines
    assert lines[0] == ("tiny", "10 s", "1.0", "1", "0") and lines[1][0] == "other"
    assert lines[2] == ("all together", "15 s", "", "2", "0")


def test_what_has_not_run_took_no_time(study):
    found = study()
    assert elapsed([found]) == 0 and isnan(at_a_time(found))
    assert duration_sheet([duration(found)]).lines == (("all together", "0 s", "", "0", "0"),)
    assert "wall time" not in {fact.name for fact in facts(found)}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.514, "0.51 s"),
        (59.4, "59 s"),
        (60.0, "1 min 0 s"),
        (3599.0, "59 min 59 s"),
        (3600.0, "1 h 0 min"),
        (13_500.0, "3 h 45 min"),
    ],
)
def test_a_duration_is_spelled_out(seconds, text):
    assert spelled(seconds) == text


@pytest.mark.slow
def test_a_report_says_how_long_its_experiments_took(study, tmp_path):
    found = study(("03:00:10", 10.0), ("03:00:12", 10.0))
    told = {fact.name: fact.lines for fact in facts(found)}
    assert told["wall time"] == ("12 s in which cells ran, 1.7 at a time on average",)
    write_report(ResultsFolder(tmp_path / "results", print), print, tmp_path / "report", page=False)
    text = (tmp_path / "report" / "README.md").read_text()
    assert "| experiment | wall time | cells at a time | cells | trials |" in text
    assert "| tiny | 12 s | 1.7 | 2 | 0 |" in text and "| all together | 12 s |" in text
