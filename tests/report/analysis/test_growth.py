"""Figures of growth: courses along the axis, fitted exponents beside the theory's, and the table and the figure."""

from dataclasses import replace
from itertools import pairwise
from math import isclose

import pytest
from helpers import MACHINE, altered, colours, csv_rows, made_up, made_up_study, no_values, prepared, tiny

from rankbench import experiments
from rankbench.core.errors import UserError
from rankbench.experiments import Budget, Figure
from rankbench.experiments.costs import Growth
from rankbench.experiments.naming import Names
from rankbench.names import Pattern
from rankbench.records.cells import Skip, skip_lines
from rankbench.records.results import Point
from rankbench.records.store import ResultsFolder
from rankbench.report.analysis.families import split_by_input
from rankbench.report.analysis.growth import COLUMNS, courses, exponent_sheet, exponents_to_csv
from rankbench.report.asked import asked_tables
from rankbench.report.outline import outline
from rankbench.report.render.figures.plots import draw
from rankbench.report.render.figures.series import drawing, drawings
from rankbench.report.render.page import page
from rankbench.report.render.tables import sheet
from rankbench.report.sections import Section
from rankbench.report.study import study as stored
from rankbench.report.writing import worth_drawing, write_report
from rankbench.solvers import SOLVERS

USERS = (20, 40, 80, 160)
POWERS = {"global": 1.0, "sgd": 2.0}
THEORY = (Growth("global", seconds=1, memory=1, why="a pass"), Growth("sgd", seconds=[0, 1]))


def of_users(count):
    return f"low-rank[users={count},items=30,per_user=20]"


@pytest.fixture
def study(tmp_path):
    """Makes a study whose solvers cost a power of the number on the axis; `cost` gives seconds and MB of a cell."""

    def made(cost=None, **changes):
        asked = {"data": tuple(map(of_users, USERS)), "figure": Figure(kind="growth", x="users"), "growth": THEORY}

        def costing(cell, value):
            seconds, megabytes = (cost or by_users)(cell)
            curve = (Point(0, 0.0, (0.5, 0.5)), Point(3, seconds, (0.5, 0.5)))
            return made_up(cell, value, curve=curve, peak_mb=megabytes)

        return made_up_study(tmp_path, tiny(**{**asked, **changes}), made=costing, arrays=no_values)

    return made


def by_users(cell):
    users = cell.place.data.setting("users")
    power = POWERS[cell.solver.name]
    noise = 1.1 if cell.place.repetition else 1 / 1.1  # whose geometric mean is 1
    return noise * 1e-4 * users**power, 60 + 0.2 * users**power


def test_the_exponents_are_those_of_the_costs(study):
    first, second = courses(study())
    assert first.sizes == second.sizes == (20.0, 40.0, 80.0, 160.0) and len(first.seconds[0]) == 2
    for course in (first, second):
        power = POWERS[course.solver.name]
        assert isclose(course.time.value, power, abs_tol=1e-9) and isclose(course.memory.value, power, abs_tol=1e-9)


def test_the_table_says_whether_the_interval_has_the_exponent_of_the_theory(study):
    table = exponent_sheet(study())
    assert table.headings[:6] == ("solver", "users", "seconds", "theory", "95 %", "agrees")
    assert table.lines[0] == (
        "Global ranking", "20 to 160", "1.00", "1", "1.00 to 1.00", "yes", "1.00", "1", "1.00 to 1.00", "yes", "a pass",
    )  # fmt: skip
    assert table.lines[1][2:6] == ("2.00", "0 to 1", "2.00 to 2.00", "no")


def test_the_csv_has_all_digits_and_both_ends_of_the_theory(study):
    found = csv_rows(exponents_to_csv(study()))
    assert tuple(found[0]) == COLUMNS
    second = found[1]
    assert isclose(float(second["seconds"]), 2) and (second["seconds_theory_low"], second["seconds_theory_high"]) == (
        "0.0",
        "1.0",
    )
    assert (second["solver"], second["smallest"], second["sizes"], second["memory_theory_low"]) == (
        "sgd", "20.0", "4", "",
    )  # fmt: skip


def test_times_that_other_cells_disturbed_give_no_exponent_and_other_machines_none(study):
    found = study()
    entries = tuple(replace(entry, result=replace(entry.result, contended=True)) for entry in found.entries)
    assert all(course.time is None and course.memory for course in courses(altered(found, entries=entries)))
    (row, _) = csv_rows(exponents_to_csv(altered(found, entries=entries)))
    assert row["seconds"] == "" and isclose(float(row["memory"]), 1)
    elsewhere = replace(MACHINE, cpu="another")
    last = replace(found.entries[-1], result=replace(found.entries[-1].result, machine=elsewhere))
    first, second = courses(altered(found, entries=(*found.entries[:-1], last)))
    assert first.time and second.time is None


def test_a_disturbed_time_is_marked(study):
    found = study()
    first = replace(found.entries[0], result=replace(found.entries[0].result, load=1.0))
    table = exponent_sheet(altered(found, entries=(first, *found.entries[1:])))
    assert [line[2] for line in table.lines] == ["1.00*", "2.00"]


def test_a_setting_of_the_solvers_may_be_the_axis_although_the_data_have_one_of_that_name(study):
    solvers = tuple(f"sgd[rank={rank},lam={lam}]" for lam in (1, 2) for rank in (2, 4, 8))
    figure = Figure(kind="growth", x="rank")
    found = study(lambda cell: (cell.solver.setting("rank") ** 1.5, 50.0), data=(of_users(20),), solvers=solvers,
                  figure=figure, growth=())  # fmt: skip
    assert [course.name for course in courses(found)] == ["SGD, λ = 1", "SGD, λ = 2"]
    assert [course.sizes for course in courses(found)] == [(2.0, 4.0, 8.0)] * 2
    assert exponent_sheet(found).lines[0][2:6] == ("1.50", "", "1.50 to 1.50", "")


def test_more_threads_than_cores_say_nothing(study):
    found = study(lambda cell: (1 / cell.threads, 50.0), data=(of_users(20),), threads=(1, 2, 4),
                  figure=Figure(kind="growth", x="threads"), growth=(Growth("sgd", seconds=-1),))  # fmt: skip
    assert MACHINE.usable_cores == 2
    line = exponent_sheet(found).lines[1]
    assert line[1:6] == ("1 to 2", "-1.00", "-1", "", "")


def test_theory_may_differ_with_the_data(study):
    data = (*map(of_users, USERS), *(of_users(count).replace("]", ",levels=2]") for count in USERS))
    theory = (Growth("sgd", seconds=2, data="low-rank[levels=5]"), Growth("sgd", seconds=3, data="low-rank[levels=2]"))
    found = study(solvers=("sgd",), data=data, growth=theory)
    assert [course.theory for course in courses(found)] == list(theory)
    assert [line[6] for line in exponent_sheet(found).lines] == ["yes", "no"]
    assert [course.where for course in courses(found)] == [
        "low-rank[items=30,per_user=20] n-per-user[n=8,least=5]",
        "low-rank[items=30,per_user=20,levels=2] n-per-user[n=8,least=5]",
    ]


def test_the_name_of_the_data_at_the_smallest_size_stands_for_all_sizes(study):
    data = (*map(of_users, USERS), *(of_users(count).replace("]", ",levels=2]") for count in USERS))
    names = Names(data={data[0]: "stars", data[4]: "thumbs", data[1]: "of no use here"})
    found = study(solvers=("sgd",), data=data, names=names)
    assert [course.where for course in courses(found)] == ["stars", "thumbs"]
    assert [line[0] for line in exponent_sheet(found).lines] == ["stars", "thumbs"]
    assert drawing(found).panels[0].title == "Training, stars"
    splits = ("n-per-user[n=8,least=5]", "n-per-user[n=4,least=5]")
    several = study(solvers=("sgd",), data=data[:4], names=Names(data={data[0]: "stars"}), splits=splits)
    assert [course.where for course in courses(several)] == [f"low-rank[items=30,per_user=20] {one}" for one in splits]


def test_a_setting_of_the_split_may_be_the_axis(study):
    splits = tuple(f"n-per-user[n={n},least=5]" for n in (2, 4, 8))
    found = study(lambda cell: (cell.place.split.setting("n"), 50.0), data=(of_users(20),), splits=splits,
                  figure=Figure(kind="growth", x="n"), growth=())  # fmt: skip
    assert [course.sizes for course in courses(found)] == [(2.0, 4.0, 8.0)] * 2
    assert isclose(courses(found)[0].time.value, 1.0)


def test_a_report_on_costs_shows_the_chosen_solvers_and_no_verdicts_and_leaves_the_measurements_to_a_file(study):
    found = study(figure=Figure(kind="growth", x="users", solvers=("sgd",)))
    assert [line.name for panel in drawing(found).panels for line in panel.lines] == ["SGD", "SGD"]
    said = repr(outline(Section(found, "growth", drawing(found))))
    assert "tables/growth.csv" in said and "rankbench table tiny" in said
    assert "All measurements'" not in said and "Verdicts speak of" not in said
    assert "Global" in said  # in the table of exponents


def test_growth_from_one_size_to_another_is_not_drawn(study):
    assert worth_drawing(study()) is not None
    assert worth_drawing(study(data=tuple(map(of_users, USERS[:2])))) is None


@pytest.mark.slow
def test_the_figure_has_seconds_and_memory_on_logarithmic_axes(study, tmp_path):
    found = study()
    drawn = drawing(found)
    assert drawn.log_x and drawn.log_y and drawn.spread == "smallest to largest of 2 repetitions"
    assert [panel.title for panel in drawn.panels] == ["Training", "Peak memory"]
    first = drawn.panels[0].lines[0]
    assert first.x == (20, 40, 80, 160) and first.high[0] / first.low[0] == pytest.approx(1.21)
    assert drawings(found) == {found.measures[0].label: drawn}
    draw(drawn, tmp_path, "growth")
    assert colours(tmp_path / "growth.png") > 20
    assert "How cost grows" in page([Section(found, "growth", drawn)])


def test_results_that_did_not_end_well_leave_no_figure_and_no_table(study):
    found = study()
    entries = tuple(replace(entry, result=replace(entry.result, status="failed")) for entry in found.entries)
    nothing = altered(found, entries=entries)
    assert drawing(nothing) is None and exponent_sheet(nothing) is None and asked_tables(nothing) == []


@pytest.mark.slow
def test_the_report_and_the_command_have_the_table(cli, study, tmp_path):
    study()
    folder = ResultsFolder(tmp_path, print)
    write_report(folder, print, tmp_path / "report", page=False)
    written = (tmp_path / "report" / "tiny.md").read_text()
    assert "How cost grows:" in written and "| Global ranking | 20 to 160 | 1.00 |" in written
    exact = (tmp_path / "report" / "tables" / "tiny-exponents.csv").read_text()
    assert exact == exponents_to_csv(stored(folder, "tiny"))
    for option, part in (("", "| solver | users |"), ("--csv", exact), ("--latex", "toprule")):
        arguments = ["table", "tiny", "--what", "costs", *filter(None, [option]), "--out", str(tmp_path)]
        assert part in cli(*arguments).out


def test_a_table_of_costs_is_only_for_experiments_that_compare_them(cli, tmp_path):
    run = prepared(tmp_path, tiny())
    run.open()
    said = cli.refuses("table", "tiny", "--what", "costs", "--out", tmp_path)
    assert "tiny compares no costs: its figure shows no growth, and it names no rivals" in said


@pytest.mark.parametrize("value", ["1", True, [1], [2, 1], [0, 1, 2], 11, float("nan")])
def test_an_exponent_is_a_number_or_its_two_ends(value):
    with pytest.raises(UserError, match=r"^Growth: seconds=.* must be an exponent like 1, or its lowest and highest"):
        Growth("sgd", seconds=value)


def test_an_entry_without_an_exponent_is_refused():
    with pytest.raises(UserError, match=r"^Growth: sgd has no exponent; give seconds, memory or both"):
        Growth("sgd")


def test_what_theory_says_needs_a_figure_of_growth():
    text = 'title="t"\nabout="a"\ndata=["btl"]\nsplits=["entries"]\nsolvers=["sgd"]\nmetrics=["kendall"]\n'
    with pytest.raises(UserError, match=r"^x.toml: \[\[growth\]\] needs \[figure\] kind=growth, not kind=bars"):
        experiments.read("x", "x.toml", text + '[[growth]]\nsolver = "sgd"\nseconds = 1\n')
    found = experiments.read(
        "x", "x.toml", text + '[figure]\nkind="growth"\nx="users"\n[[growth]]\nsolver = "sgd"\nseconds = [1, 2]\n'
    )
    assert found.growth == (Growth(Pattern("sgd"), (1.0, 2.0)),) and found.timed


def sizes_of(found):
    """The values along the axis of an experiment of the package."""
    axis = found.figure.x
    if axis == "threads":
        return found.threads
    texts = (*found.data, *found.splits, *found.solvers)
    settings = [setting for text in texts for setting in text.partition("[")[2].strip("]").split(",")]
    return sorted({int(one.removeprefix(f"{axis}=")) for one in settings if one.startswith(f"{axis}=")})


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", experiments.members("scaling"))
def test_every_axis_has_four_sizes_or_more_that_grow_by_a_factor(name, full):
    found = experiments.load(name, full)
    sizes = sizes_of(found)
    assert len(sizes) >= 4 and len({b / a for a, b in pairwise(sizes)}) == 1
    assert found.budget == Budget(steps=3) and found.timed


@pytest.mark.parametrize("name", experiments.members("scaling"))
def test_theory_speaks_of_every_solver_and_of_no_other(name):
    found = experiments.load(name, full=True)
    named = {entry.solver.name for entry in found.growth}
    assert named == {text.partition("[")[0] for text in found.solvers}


def test_the_first_word_of_names_stands_for_all_of_them():
    assert experiments.members("scaling") == [
        f"scaling-{axis}" for axis in ("features", "items", "pairs", "per-user", "rank", "threads", "users")
    ]
    assert experiments.members("peers") == ["peers-ratings", "peers-recall", "peers-top"]
    assert experiments.members("outgrown-ratings") == ["outgrown-ratings"]
    assert experiments.members("scalin") == ["scalin"] and experiments.members("own.toml") == ["own.toml"]


def test_info_of_a_first_word_lists_the_experiments(cli):
    assert cli("list", "peers").out.splitlines() == [
        "peers-ratings: Beside other packages: solvers that learn from ratings",
        "peers-recall: Beside other packages: solvers that learn what users have rated at all",
        "peers-top: Beside other packages: the ten items shown first",
    ]


def test_a_preview_of_a_first_word_lists_the_cells_of_all(cli, tmp_path):
    said = cli("run", "outgrown", "--dry-run", "--out", tmp_path).out
    assert "outgrown-ratings:" in said and "outgrown-comparisons:" in said


def test_parts_that_were_skipped_for_the_same_reason_share_a_line(study):
    found = study()
    places = [entry.cell.place for entry in found.entries[::4]]
    skips = [Skip(place.data, place.split, None, "it needs features") for place in places]
    (line,) = skip_lines(skips)
    assert line == f"{places[0].written} and {len(skips) - 1} more: it needs features"
    assert skip_lines(skips[:1]) == [skips[0].text]
    assert len(skip_lines([skips[0], replace(skips[1], remedy="pip install it")])) == 2


def test_solvers_that_lack_the_same_on_the_same_data_share_a_line(study):
    entries = study().entries
    solvers = list({entry.cell.solver.written: entry.cell.solver for entry in entries}.values())[:2]
    place = entries[0].cell.place
    for_all = [Skip(place.data, place.split, named, f"{named.written} needs more", "buy it") for named in solvers]
    (line,) = skip_lines(for_all)
    one, other = (solver.written for solver in solvers)
    assert line == f"{place.written}: {one} needs more; the same for {other}; to get it: buy it"
    for other in ({"split": None}, {"remedy": "borrow it"}, {"reason": f"{solvers[1].written} needs less"}):
        assert len(skip_lines([for_all[0], replace(for_all[1], **other)])) == 2
    many = [replace(for_all[0], solver=one, reason=f"{one.written} needs more") for one in _named(solvers[0], 5)]
    assert f"; the same for 4 more ({solvers[0].name}); to get it: buy it" in skip_lines(many)[0]


def _named(solver, count):
    """The solver under several names."""
    return [replace(solver, written=f"a{number}") for number in range(count)]


def test_crowded_solvers_are_drawn_by_what_they_learn_from_and_large_families_in_parts(tmp_path):
    (tmp_path / "mine.py").write_text("raise RuntimeError('a report does not run it')\n")
    texts = ("altsvm", "mf", "frsvm", "sgd", "cornac-mf", "ease")
    own, gone = (replace(SOLVERS.resolve("mf"), home=home) for home in (f"{tmp_path}/mine.py:Mine", "not_here:Gone"))
    found = dict(split_by_input([*map(SOLVERS.resolve, texts), own, gone]))
    names = {title: [solver.name for solver in members] for title, members in found.items()}
    assert names == {
        "comparisons": ["altsvm", "sgd"], "ratings": ["mf", "ease"], "features": ["frsvm"],
        "other packages": ["cornac-mf"], "own files": ["mf"], "others": ["mf"],
    }  # fmt: skip
    many = [SOLVERS.resolve(f"mf[rank={rank}]") for rank in range(1, 18)]
    parts = split_by_input(many)
    assert [(title, len(members)) for title, members in parts] == [("ratings 1", 6), ("ratings 2", 5), ("ratings 3", 6)]
    assert [solver for _, members in parts for solver in members] == many


def test_a_growth_of_many_solvers_has_a_panel_for_each_family_with_the_others_in_grey(study):
    solvers = (*(f"global[lam={lam}]" for lam in range(1, 6)), *(f"sgd[lam={lam}]" for lam in range(1, 6)))
    drawn = drawing(study(solvers=solvers, growth=()))
    titles = [f"{what}: comparisons {part}" for what in ("Training", "Peak memory") for part in (1, 2)]
    assert [panel.title for panel in drawn.panels] == titles
    assert all(len(panel.lines) == len(panel.context) == 5 for panel in drawn.panels)


def test_the_data_that_stay_apart_from_the_axis_have_lines_of_their_own(study):
    data = tuple(f"low-rank[users={users},items={items},per_user=20]" for items in (30, 50) for users in (20, 40))
    found = study(data=data, growth=())
    assert len(courses(found)) == 4
    table = exponent_sheet(found)
    places = [f"low-rank[items={items},per_user=20] {found.experiment.splits[0]}" for items in (30, 50)]
    assert table.headings[0] == "data" and [line[0] for line in table.lines] == [
        place for place in places for _ in "12"
    ]
    titles = [f"{what}, {place}" for what in ("Training", "Peak memory") for place in places]
    assert [panel.title for panel in drawing(found).panels] == titles


@pytest.mark.slow
def test_what_was_found_is_a_difference_from_the_theory(study, tmp_path):
    study(differences="- Set-up hides the growth.")
    write_report(ResultsFolder(tmp_path, print), print, tmp_path / "report")
    pages = [path.read_text() for path in (tmp_path / "report").glob("*.md")]
    assert any("Differences from the theory:\n\n- Set-up hides the growth." in text for text in pages)
    assert "<h4>Differences from the theory</h4>" in (tmp_path / "report" / "index.html").read_text()


def test_a_solver_without_the_setting_on_the_axis_is_in_the_table_alone(study):
    solvers = ("sgd[rank=2]", "sgd[rank=4]", "global")
    found = study(lambda cell: (cell.solver.setting("rank", 1), 60.0), solvers=solvers, data=(of_users(20),),
                  figure=Figure("growth", x="rank"), growth=())  # fmt: skip
    assert [(course.name, course.sizes) for course in courses(found)] == [("SGD", (2.0, 4.0))]
    assert len(sheet(found).lines) == 3 and len(exponent_sheet(found).lines) == 1


def test_a_size_of_zero_has_no_place_on_the_logarithmic_axis(study, tmp_path):
    data = tuple(f"low-rank[users=20,items=30,per_user=20,noise={noise}]" for noise in (0, 0.5, 1))
    found = study(lambda cell: (1.0, 60.0), data=data, figure=Figure("growth", x="noise"), growth=())
    drawn = drawing(found)
    draw(drawn, tmp_path, "growth")
    assert {line.x for panel in drawn.panels for line in panel.lines} == {(0.5, 1.0)}
    assert {course.sizes for course in courses(found)} == {(0.0, 0.5, 1.0)}
