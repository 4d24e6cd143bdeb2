"""Speed-ups: per repetition, without set-up time, and with the bound of the schedule."""

import pytest
from helpers import colours, csv_rows, made_up, made_up_run, made_up_study, no_values, tiny

from rankbench.core.errors import UserError
from rankbench.experiments import Curve, Figure, Published
from rankbench.names import Pattern
from rankbench.records.results import Point
from rankbench.report.render.figures.plots import draw
from rankbench.report.render.figures.series import drawing
from rankbench.report.render.page import page
from rankbench.report.render.tables import sheet, to_csv
from rankbench.report.rows import rows
from rankbench.report.sections import Section

PACES = {("global", 1): (1.0, 1.0), ("global", 3): (1.0, 1.0), ("sgd", 1): (0.8, 1.2), ("sgd", 3): (0.4, 0.3)}


@pytest.fixture
def study(tmp_path):
    """Makes a study of two solvers on one thread and on three, set up in ten seconds, paced as above."""

    def made(published=(), curves=(), **changed):
        figure = Figure(kind="speedup", curves=curves)
        experiment = tiny(threads=(1, 3), figure=figure, metrics=("ndcg@5",), published=published)
        return made_up_study(tmp_path, experiment, made=paced, arrays=no_values, **changed)

    return made


def paced(cell, value, **changed):
    pace = PACES[cell.solver.name, cell.threads][cell.place.repetition]
    bound = 2.5 if (cell.solver.name, cell.threads) == ("sgd", 3) else None
    curve = tuple(
        Point(step, 10 * (step > 0) + pace * step, (0.5,), bound=bound if step else None) for step in range(4)
    )
    return made_up(cell, 0.5, curve=curve, **changed)


def test_the_table_shows_threads_speed_up_and_bound(study):
    table = sheet(study())
    assert table.headings[3:6] == ("threads", "speed-up", "its bound")
    assert [line[3:6] for line in table.lines] == [
        ("1", "1.00", ""), ("3", "1.00", ""), ("1", "1.00", ""), ("3", "3.00", "2.50"),
    ]  # fmt: skip


def test_the_set_up_counts_in_a_speed_up_of_its_own(study):
    table = sheet(study())
    column = table.headings.index("with set-up")
    ten_and_three_steps = [10 + 3 * pace for pace in (0.8, 1.2, 0.4, 0.3)]
    mean = (ten_and_three_steps[0] / ten_and_three_steps[2] + ten_and_three_steps[1] / ten_and_three_steps[3]) / 2
    assert [line[column] for line in table.lines] == ["1.00", "1.00", "1.00", f"{mean:.2f}"]


def test_a_published_speed_up_stands_beside_the_measured_one_of_as_many_threads(study):
    numbers = [
        Published(Pattern("sgd"), "speed-up", 2.0, threads=3, on=Pattern("ml-1m")),
        Published(Pattern("sgd"), "seconds", 963.1, threads=1, on=Pattern("ml-1m")),
    ]
    found = study(published=tuple(numbers))
    table = sheet(found)
    columns = [table.headings.index(heading) for heading in ("published speed-up", "published seconds")]
    assert [[line[column] for column in columns] for line in table.lines] == [
        ["", ""], ["", ""], ["", "963.1"], ["2.00", ""],
    ]  # fmt: skip
    (line,) = [line for line in drawing(found).panels[0].beside if line.what.startswith("published")]
    assert (line.owner, line.x, line.y) == ("SGD", (3,), (2.0,))


def test_a_published_speed_up_of_a_solver_without_a_measured_one_is_not_drawn(tmp_path):
    numbers = tuple(Published(Pattern(name), "speed-up", 2.0, threads=3) for name in ("sgd", "global"))
    experiment = tiny(threads=(1, 3), figure=Figure("speedup"), metrics=("ndcg@5",), published=numbers)
    found = made_up_study(tmp_path, experiment, made=paced, contended=lambda cell: cell.solver.name == "global")
    drawn = drawing(found)
    draw(drawn, tmp_path, "tiny")
    assert [line.owner for line in drawn.panels[0].beside] == ["SGD", "SGD"]  # its bound and its published number


def test_a_reference_line_is_drawn_with_the_speed_ups(study):
    (panel,) = drawing(study(curves=(Curve("bound", (1, 3), (1, 2.5)),))).panels
    assert [line.name for line in panel.curves] == ["one per thread", "bound"]


@pytest.mark.parametrize("given", [{"metric": "speed-up"}, {"metric": "ndcg@5", "threads": 2}])
def test_a_published_speed_up_needs_its_number_of_threads(given):
    with pytest.raises(UserError, match="threads goes with metric = speed-up or seconds"):
        Published(Pattern("sgd"), value=1.0, **given)


def test_scripts_find_the_threads_among_the_settings(study):
    found = csv_rows(to_csv(rows(study())))
    assert [line["settings"].rpartition(",")[2] for line in found] == ["threads=1", "threads=3"] * 2


@pytest.mark.slow
def test_the_figure_has_a_line_per_solver_and_its_bound_beside_it(study, tmp_path):
    drawn = drawing(study())
    (panel,) = drawn.panels
    by_name = {line.name: line for line in panel.lines}
    assert (by_name["SGD"].x, by_name["Global ranking"].y) == ((1, 3), (1, 1))
    assert by_name["SGD"].y == pytest.approx([1, 3])
    assert (by_name["SGD"].low[1], by_name["SGD"].high[1]) == pytest.approx((2, 4))
    assert [(line.name, line.owner, line.x, line.y) for line in panel.beside] == [("SGD, bound", "SGD", (3,), (2.5,))]
    draw(drawn, tmp_path, "tiny")
    assert colours(tmp_path / "tiny.png") > 10
    assert '"SGD, bound"' in page([Section(study(), "tiny", drawn)])


def test_each_solver_is_as_fast_as_on_its_own_data_split_and_settings(tmp_path):
    data = tuple(f"low-rank[users=20,items={items},per_user=20]" for items in (30, 31))
    splits = tuple(f"n-per-user[n={n},least=5]" for n in (8, 9))
    solvers = ("sgd[rank=2]", "sgd[rank=3]")
    experiment, paces = tiny(threads=(1, 3), data=data, splits=splits, solvers=solvers, repetitions=1), {}

    def curve(cell):
        where = (cell.place.data.written, cell.place.split.written, cell.solver.written)
        pace = paces.setdefault(where, 2.0 ** len(paces)) if cell.threads == 1 else 1.0
        return tuple(Point(step, pace * step, (0.5, 0.5)) for step in range(4))

    table = sheet(made_up_study(tmp_path, experiment, curve=curve))
    column = table.headings.index("speed-up")
    found = {line[:3]: float(line[column]) for line in table.lines if line[column - 1] == "3"}
    assert found == paces and len(found) == 8


def test_times_of_contended_runs_give_no_speed_up(study):
    assert [line[4] for line in sheet(study(contended=True)).lines] == [""] * 4
    assert drawing(study(contended=True)) is None


def test_one_number_of_threads_is_no_axis(tmp_path):
    run = made_up_run(tmp_path, tiny(threads=(2,)), arrays=no_values)
    assert "threads" not in sheet(run.study()).headings
