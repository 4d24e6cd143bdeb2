"""How often verdicts err, as the experiment `verdicts` measures it."""

import csv
import io

import numpy as np
import pytest
from helpers import made_up_study, tiny

from rankbench.report.analysis import errors
from rankbench.report.analysis.errors import error_sheets, errors_to_csv
from rankbench.report.asked import asked_tables
from rankbench.statistics import study as generated

pytestmark = pytest.mark.slow


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Makes a study of solvers whose values move from repetition to repetition by so much."""
    for name, small in (("USERS", (20,)), ("REPETITIONS", (1, 3, 5)), ("SOLVERS", (2,))):
        monkeypatch.setattr(generated, name, small)

    def made(moved, redraws=40, repetitions=30):
        experiment = tiny(redraws=redraws, repetitions=repetitions, solvers=("global",))

        def arrays(cell, value):
            rng = np.random.default_rng(cell.place.repetition)
            values = value + 0.02 * rng.standard_normal(20) + moved * rng.standard_normal()
            return {measure.label: values for measure in cell.measures}

        return made_up_study(tmp_path, experiment, arrays=arrays)

    return made


def test_users_alone_err_where_repetitions_matter_and_verdicts_do_not(study):
    (*_, table) = asked_tables(study(moved=0.05))
    assert table.name == "errors-same-solver" and table.sheet.headings[:2] == ("solver", "metric")
    for line in table.sheet.lines:
        alone, everything, groups, *_ = map(float, line[2:5])
        assert alone > 50 and everything < 20 and groups < 20


def test_each_table_has_its_legend_and_the_same_digits_each_time(study):
    first, again = ([(one.name, one.sheet.lines, one.legend) for one in asked_tables(study(0.01, 3))] for _ in range(2))
    assert first == again
    assert [name for name, *_ in first] == [f"errors-{name}" for name in errors.TITLES]
    assert all(legend and lines for _, lines, legend in first)


def test_too_few_repetitions_leave_their_places_empty(study):
    (*_, table) = asked_tables(study(0.01, 3, repetitions=4))
    assert set(table.sheet.lines[0][2:]) == {""}


def test_experiments_without_redraws_have_no_such_tables(study):
    assert asked_tables(study(0.01, redraws=0)) == []


def test_each_table_has_a_file_of_csv(study):
    found = study(0.01, 3)
    for name, _, table, _ in error_sheets(found):
        head, *lines = csv.reader(io.StringIO(errors_to_csv(name, found)))
        assert head == list(table.headings) and [line[0] for line in lines] == [line[0] for line in table.lines]
