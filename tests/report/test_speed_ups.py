"""Speed-ups: repetition by repetition, without what is set up first, and beside them what the schedule allows."""

import csv
import io
from dataclasses import replace

import pytest
from helpers import made_up, tiny

from rankbench.experiments import Figure
from rankbench.harness.plan import Selection, plan
from rankbench.harness.store import plan_record
from rankbench.report.figures import draw
from rankbench.report.page import page
from rankbench.report.series import drawing
from rankbench.report.tables import Study, rows, sheet, to_csv

PACES = {("global", 1): (1.0, 1.0), ("global", 3): (1.0, 1.0), ("sgd", 1): (0.8, 1.2), ("sgd", 3): (0.4, 0.3)}


def study(**changed):
    """Two solvers on one thread and on three, seconds per step by repetition as above, set up in ten seconds."""
    made = plan(tiny(threads=(1, 3), figure=Figure(kind="speedup"), metrics=("ndcg@5",)), Selection())
    record = plan_record(made)
    results = [result_of(cell, **changed) for cell in made.cells]
    cells = list(zip(record["cells"].values(), results, strict=True))
    return Study("tiny", record["definition"], cells, record["skips"])


def result_of(cell, **changed):
    pace = PACES[cell.solver, cell.threads][cell.repetition]
    bound = {"bound": 2.5} if (cell.solver, cell.threads) == ("sgd", 3) else {}
    curve = [
        {"step": step, "seconds": 10 * (step > 0) + pace * step, "metrics": {"ndcg@5": 0.5}, **(bound if step else {})}
        for step in range(4)
    ]
    return replace(made_up(cell, 0.5), cell={"repetition": cell.repetition}, curve=curve, **changed)


def test_the_table_shows_threads_speed_up_and_bound():
    table = sheet(study())
    assert table.headings[3:6] == ["threads", "speed-up", "its bound"]
    assert [line[3:6] for line in table.lines] == [
        ["1", "1.00", ""], ["3", "1.00", ""], ["1", "1.00", ""], ["3", "3.00", "2.50"],
    ]  # fmt: skip


def test_scripts_find_the_threads_among_the_settings():
    found = list(csv.DictReader(io.StringIO(to_csv(rows(study())))))
    assert [line["settings"].rpartition(",")[2] for line in found] == ["threads=1", "threads=3"] * 2


def test_the_figure_has_a_line_per_solver_and_its_bound_dashed(tmp_path):
    drawn = drawing(study())
    (panel,) = drawn.panels
    by_name = {line.name: line for line in panel.lines}
    assert (by_name["sgd"].x, by_name["global"].y) == ([1, 3], [1, 1])
    assert by_name["sgd"].y == pytest.approx([1, 3])
    assert (by_name["sgd"].low[1], by_name["sgd"].high[1]) == pytest.approx((2, 4))
    assert [(line.name, line.owner, line.x, line.y) for line in panel.published] == [("sgd, bound", "sgd", [3], [2.5])]
    draw(drawn, tmp_path, "tiny")
    assert (tmp_path / "tiny.png").stat().st_size > 5000
    assert '"sgd, bound"' in page([study()])


def test_times_of_contended_runs_give_no_speed_up():
    assert [line[4] for line in sheet(study(contended=True)).lines] == [""] * 4
    assert drawing(study(contended=True)) is None


def test_one_number_of_threads_is_no_axis():
    made = plan(tiny(threads=(2,)), Selection())
    record = plan_record(made)
    cells = [(entry, made_up(cell, 0.5)) for entry, cell in zip(record["cells"].values(), made.cells, strict=True)]
    assert "threads" not in sheet(Study("tiny", record["definition"], cells, [])).headings
