"""Tables, figures and the page, from made-up results."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from helpers import (
    FAILED,
    MACHINE,
    TINY,
    absent_data,
    altered,
    around,
    csv_rows,
    made_up,
    made_up_study,
    no_values,
    prepared,
    silent,
    tiny,
)

from rankbench.core.errors import UserError
from rankbench.experiments import Curve, Figure, Published, read
from rankbench.names import Pattern
from rankbench.records.store import ResultsFolder
from rankbench.report import writing
from rankbench.report.render.figures import plots
from rankbench.report.render.figures.looks import COLOURS
from rankbench.report.render.figures.plots import draw
from rankbench.report.render.figures.series import drawing
from rankbench.report.render.figures.ticks import Decades
from rankbench.report.render.page import page
from rankbench.report.render.tables import (
    definitions,
    failures,
    notes,
    sheet,
    to_csv,
    to_latex,
    to_markdown,
    verdict_notes,
)
from rankbench.report.rows import rows
from rankbench.report.sections import Section
from rankbench.report.study import setting_of, studies
from rankbench.report.writing import write_report

pytestmark = pytest.mark.slow

PUBLISHED = (
    Published(Pattern("sgd"), "ndcg@5", 0.75, sd=0.01, on=Pattern("ml-1m")),
    Published(Pattern("global", (("lam", "99"),)), "ndcg@5", 0.5),
)
DATA = TINY.data


@pytest.fixture
def study(tmp_path):
    """Makes a study of the tiny experiment of made-up results, by default global 0.5 and 0.7, sgd 0.6 and 0.6."""

    def made(values=(0.5, 0.6, 0.7, 0.6), changes=None, arrays=True, **of_experiment):
        run = prepared(tmp_path, tiny(**{"published": PUBLISHED, **of_experiment}))
        run.open()
        for number, (cell, value) in enumerate(zip(run.plan.cells, values, strict=False)):
            if value is not None:
                run.keep(made_up(cell, value, **(changes or {}).get(number, {})), around(cell, value) if arrays else {})
        return run.study()

    return made


def html_of(study):
    """The page about one study."""
    return page([Section(study, study.name, drawing(study))])


def test_a_row_is_the_mean_and_the_spread_over_repetitions_divided_by_n(study):
    row = next(row for row in rows(study()) if (row.solver, row.metric) == ("global", "ndcg@5"))
    assert row.measured == pytest.approx(0.6)
    assert row.sd == pytest.approx(0.1)
    assert row.seconds == pytest.approx(0.3)
    assert (row.n, row.peak_mb, row.status) == (2, 50.0, "ok")
    assert (row.users, row.left_out, row.unscored) == (20, 0, 0)
    assert (row.load, row.prepare, row.determinism) == (None, None, "exact")
    loaded = rows(study(changes={0: {"load": 0.5, "prepare": 1.0}, 2: {"load": 0.25, "prepare": 2.0}}))
    assert {(row.solver, row.load, row.prepare) for row in loaded} == {("global", 0.375, 1.5), ("sgd", None, None)}


def test_published_stands_beside_the_row_whose_settings_agree(study):
    found = {(row.solver, row.metric): row.published for row in rows(study())}
    assert found == {
        ("global", "pairwise-error"): None, ("global", "ndcg@5"): None,
        ("sgd", "pairwise-error"): None, ("sgd", "ndcg@5"): 0.75,
    }  # fmt: skip


def test_times_of_several_machines_or_of_contended_runs_are_not_averaged(study):
    found = study(changes={1: {"contended": True}, 2: {"machine": replace(MACHINE, cpu="another")}})
    assert {row.seconds for row in rows(found)} == {None}


def test_a_setting_that_split_and_data_both_have_is_the_splits(study):
    group = study().groups[0]
    both = replace(group, place=replace(group.place, data=replace(group.data, settings=(("n", 3), ("m", 4)))))
    assert [setting_of(both, name) for name in ("n", "m", "neither")] == [8, 4, 0]


def test_seconds_in_doubt_have_a_mark_or_are_left_out_and_a_note_says_why(study):
    for changes, marks, noted in (
        ({"load": 0.25}, ["0.300", "0.300"], []),
        ({"load": 0.26}, ["0.300*", "0.300"], ["* Timed while other processes used"]),
        ({"load": 0.26, **FAILED}, ["0.300", "0.300"], []),
        ({"load": 0.26, "contended": True}, ["", "0.300"], ["No times of cells that ran beside others are shown"]),
    ):
        found = study(changes={0: changes})
        table = sheet(found)
        assert [line[table.headings.index("seconds")] for line in table.lines] == marks
        said = [line for line in notes(found) if "--rerun disturbed" in line]
        assert [line[: len(start)] for line, start in zip(said, noted, strict=True)] == noted


def test_a_failed_repetition_shows_and_is_not_averaged(study):
    found = {row.solver: row for row in rows(study((0.5, 0.6, 0.9, None), {2: FAILED})) if row.metric == "ndcg@5"}
    assert (found["global"].status, found["global"].n, found["global"].measured) == ("failed", 1, 0.5)
    assert (found["sgd"].status, found["sgd"].n) == ("pending", 1)


def test_the_same_solver_with_other_settings_has_a_row_of_its_own(study):
    found = rows(study((0.5, 0.6, 0.7, 0.8), solvers=("sgd[rank=2]", "sgd[rank=3]")))
    means = {row.settings.partition(",")[0]: row.measured for row in found if row.metric == "ndcg@5"}
    assert means == {"rank=2": pytest.approx(0.6), "rank=3": pytest.approx(0.7)}


def test_csv_can_be_read_back_to_the_last_digit(study):
    back = csv_rows(to_csv(rows(study())))
    assert [float(line["measured"]) for line in back] == [row.measured for row in rows(study())]


def test_the_sheet_marks_the_better_solver_by_each_metrics_direction(study):
    found = sheet(study((0.5, 0.9, 0.5, 0.9)))
    assert found.headings[:7] == (
        "data", "solver", "pairwise error", "against the best", "NDCG@5", "against the best", "published on ml-1m"
    )  # fmt: skip
    assert found.best == {(0, 2), (1, 4)}  # global errs less, sgd has the higher ndcg


def test_the_best_is_marked_on_each_data_set(study):
    two = (*DATA, "low-rank[users=20,items=31,per_user=20]")
    found = sheet(study((0.5, 0.9, 0.5, 0.9, 0.6, 0.4, 0.6, 0.4), data=two, published=()))
    assert found.best == {(0, 2), (1, 4), (3, 2), (2, 4)}


def test_a_time_to_prepare_below_a_hundredth_of_a_second_has_no_column(study):
    assert "prepare" not in sheet(study(changes={0: {"prepare": 0.009}})).headings
    assert "prepare" in sheet(study(changes={0: {"prepare": 0.011}})).headings


def test_a_checkpoint_without_a_value_is_left_out_of_its_curve(study):
    run = study()
    curve = run.entries[0].result.curve
    gap = (replace(curve[0], values=(float("nan"), 0.5)), *curve[1:])
    found = drawing(study([0.5] * 4, {number: {"curve": gap} for number in range(4)}))
    assert [line.x for line in found.panels[0].lines] == [(1, 2), (1, 2)]


def test_a_published_spread_is_shown_beside_its_number(study):
    assert [line[6] for line in sheet(study()).lines] == ["", "0.7500 ± 0.0100"]


def test_a_measured_spread_is_shown_where_there_are_several_repetitions(study):
    assert [line[4] for line in sheet(study()).lines] == ["0.6000 ± 0.1000", "0.6000 ± 0.0000"]
    assert [line[4] for line in sheet(study((0.5, 0.6), repetitions=1)).lines] == ["0.5000", "0.6000"]


def test_equal_solvers_are_all_marked(study):
    assert sheet(study([0.5] * 4)).best == {(0, 2), (0, 4), (1, 2), (1, 4)}


def test_markdown_and_latex_have_a_line_per_solver(study):
    assert to_markdown(sheet(study())).count("\n") == 4
    latex = to_latex(sheet(study()))
    assert latex.count(r"\\") == 3 and r"$\pm$" in latex and "±" not in latex
    assert not re.search(r"(?<!\\)_", latex)


@pytest.mark.parametrize(
    ("figure", "panels", "lines"),
    [(Figure("curve", x="seconds"), 1, 2), (Figure("bars"), 1, 2), (Figure("sweep", x="n"), 1, 2)],
)
def test_each_kind_of_figure_is_drawn_with_equal_bytes(study, tmp_path, figure, panels, lines):
    drawn = drawing(study(figure=figure))
    assert len(drawn.panels) == panels and len(drawn.panels[0].lines) == lines
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        draw(drawn, tmp_path / folder, "x")
    for name in ("x.png", "x.pdf"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("figure", [Figure("curve", x="step"), Figure("bars")])
def test_each_of_several_splits_has_a_panel(study, figure):
    splits = ("n-per-user[n=8,least=5]", "n-per-user[n=9,least=5]")
    panels = drawing(study([0.5] * 8, splits=splits, figure=figure)).panels
    assert [len(panel.lines) for panel in panels] == [2, 2]


@pytest.fixture
def axes_of(monkeypatch, tmp_path):
    """The axes that a drawing is drawn on, before they are saved."""

    def of(drawn):
        saved = []
        monkeypatch.setattr(plots, "save", lambda make, folder, name: saved.append(make()))
        draw(drawn, tmp_path, "x")
        return saved[0].axes

    return of


def traces_of(study):
    """What the page draws at first, by the names in its legend, and the layout."""
    found = next(iter(figures_of(study).values()))
    return {trace["name"]: trace for trace in found["data"]}, found["layout"]


def figures_of(study):
    """The figures of the page by metric."""
    (text,) = re.findall(r'<script type="application/json" class="figures">(.*?)</script>', html_of(study))
    return json.loads(text)


UNEVEN = {"values": (0.5, 0.6, 0.5, 0.6, 0.8, 0.6), "repetitions": 3}  # of global: its mean is 0.6


@pytest.mark.parametrize("metric", ["ndcg@5", "pairwise-error"])  # of one the highest is best, of the other the lowest
def test_dots_have_the_interval_of_the_difference_from_the_best_that_the_table_has(study, axes_of, metric):
    uneven = study(figure=Figure("bars", metric=metric), published=(), **UNEVEN)
    drawn = drawing(uneven)
    (axis,) = axes_of(drawn)
    found = [row for row in rows(uneven) if row.metric == metric]
    best, other = (next(row for row in found if row.best is wanted) for wanted in (True, False))
    (line,) = [line for line in axis.lines if line.get_linestyle() == "--"]
    assert line.get_xdata() == pytest.approx([best.measured] * 2) == [drawn.panels[0].best] * 2
    ((low, high),) = [[x for x, _ in segment] for segment in axis.containers[0].lines[2][0].get_segments()]
    ends = (best.measured + other.difference_low, best.measured + other.difference_high)
    assert (low, high) == pytest.approx(ends) and low < other.measured < high
    assert drawn.spread == "95 % interval of the difference from the best (dashed line)"
    traces, layout = traces_of(uneven)
    whiskers = {name: trace["error_x"] for name, trace in traces.items() if "error_x" in trace}
    assert len(whiskers) == 1  # the best has none
    (error,) = whiskers.values()
    assert error["array"] == pytest.approx([high - other.measured], abs=1e-6)
    (shape,) = layout["shapes"]
    assert (shape["x0"], shape["x1"]) == pytest.approx([best.measured] * 2, abs=1e-6)


def test_the_dot_of_a_solver_alone_has_the_interval_of_its_mean(study, axes_of):
    alone = study(figure=Figure("bars", metric="ndcg@5"), solvers=("global",), published=(), **UNEVEN)
    drawn = drawing(alone)
    (row,) = [row for row in rows(alone) if row.metric == "ndcg@5"]
    (line,) = drawn.panels[0].lines
    assert (line.low, line.high) == ((row.low,), (row.high,))
    assert drawn.spread == "95 % interval" and drawn.panels[0].best is None


def test_dots_without_values_for_users_reach_from_the_least_repetition_to_the_greatest(study, axes_of):
    drawn = drawing(study(figure=Figure("bars", metric="ndcg@5"), arrays=False, **UNEVEN))
    (axis,) = axes_of(drawn)
    ((low, high),) = [[x for x, _ in segment] for segment in axis.containers[0].lines[2][0].get_segments()]
    assert (low, high) == pytest.approx((0.5, 0.8)) and drawn.spread == "smallest to largest of 3 repetitions"


@pytest.mark.parametrize("kind", ["bars", "sweep", "curve"])
def test_one_repetition_without_values_for_users_has_no_whiskers_and_no_band(study, axes_of, kind):
    figure = Figure(kind, x="n" if kind == "sweep" else "step")
    drawn = drawing(study((0.5, 0.6), repetitions=1, arrays=False, figure=figure))
    (axis,) = axes_of(drawn)
    assert drawn.spread == "" and not axis.containers and not axis.collections


def test_the_band_of_a_curve_reaches_from_the_least_repetition_to_the_greatest(study, axes_of):
    (axis,) = axes_of(drawing(study(figure=Figure("curve", metric="ndcg@5", x="step"), **UNEVEN)))
    heights = axis.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.5, 0.8))
    assert list(axis.lines[0].get_xdata()) == [0, 1, 2] and axis.lines[0].get_ydata() == pytest.approx([0.6] * 3)


@pytest.mark.parametrize(
    ("figure", "scale", "label"),
    [
        (Figure("curve", x="seconds"), "log", "training time (s)"),
        (Figure("curve", x="step"), "linear", "step"),
        (Figure("sweep", x="n"), "linear", "n"),
    ],
)
def test_only_curves_over_seconds_have_a_logarithmic_axis(study, axes_of, figure, scale, label):
    found = study(figure=figure)
    (axis,) = axes_of(drawing(found))
    assert (axis.get_xscale(), axis.get_xlabel()) == (scale, label)
    shown = traces_of(found)[1]["xaxis"]
    assert (shown.get("type", "linear"), shown["title"]["text"]) == (scale, label)


def test_dots_over_many_decades_have_a_logarithmic_axis(study, axes_of):
    found = study((0.01, 0.6, 0.01, 0.6), figure=Figure("bars", metric="ndcg@5"), published=(), arrays=False)
    (axis,) = axes_of(drawing(found))
    assert axis.get_xscale() == "log"


@pytest.mark.parametrize("most", [2, 3, 5])
def test_an_axis_over_more_decades_than_it_has_ticks_leaves_some_out_evenly(most):
    ticks = Decades(most).tick_values(1e-6, 1e6)
    assert 1 < len(ticks) <= most and len(set(np.diff(np.log10(ticks)).round(9))) <= 1


def test_published_points_are_drawn_in_the_colour_of_their_solver_and_curves_of_nobody_in_the_last(study, axes_of):
    figure = Figure("sweep", metric="ndcg@5", x="n", curves=(Curve("theory", [8, 9], [0.3, 0.2]),))
    found = study(figure=figure)
    (axis,) = axes_of(drawing(found))
    drawn = {line.get_label(): (line.get_color(), list(line.get_ydata())) for line in axis.lines}
    assert drawn["SGD, published on MovieLens 1M"] == (COLOURS[1], [0.75]) and drawn["theory"] == (
        COLOURS[-1],
        [0.3, 0.2],
    )
    shown = traces_of(found)[0]
    colours = {name: trace["line"]["color"] for name, trace in shown.items()}
    assert colours["SGD"] == colours["SGD, published on MovieLens 1M"] == COLOURS[1]
    assert (colours["Global ranking"], colours["theory"]) == (COLOURS[0], COLOURS[-1])
    assert shown["theory"]["y"] == [0.3, 0.2]


def test_a_sweep_puts_the_setting_on_the_axis_and_published_beside_it(study):
    drawn = drawing(study(figure=Figure("sweep", metric="ndcg@5", x="n")))
    assert drawn.panels[0].lines[0].x == (8.0,)
    assert [(line.name, line.y) for line in drawn.panels[0].beside] == [("SGD, published on MovieLens 1M", (0.75,))]


def test_a_sweep_has_a_panel_for_each_value_of_what_parts_it_with_the_curves_of_that_part(study, tmp_path):
    two = ("low-rank[users=20,items=30,per_user=20,rank=2]", "low-rank[users=20,items=30,per_user=20,rank=3]")
    curves = (Curve("noise", [8, 9], [0.2, 0.1], part="rank=3"), Curve("theory", [8], [0.3]))
    figure = Figure("sweep", x="n", by=("rank", "users"), curves=curves)
    swept = study([0.5] * 8, data=two, figure=figure, published=())
    drawn = drawing(swept)
    assert [panel.title for panel in drawn.panels][1:] == ["Rank 3, 20 users"]
    assert [len(panel.lines) for panel in drawn.panels] == [2, 2]
    found = [[(line.name, line.x, line.y) for line in panel.curves] for panel in drawn.panels]
    theory, noise = ("theory", (8.0,), (0.3,)), ("noise", (8.0, 9.0), (0.2, 0.1))
    assert found == [[theory], [noise, theory]]
    draw(drawn, tmp_path, "x")
    first, second = figures_of(swept).values()
    names = [trace["name"] for trace in first["data"]]
    assert names.count("noise") == 1 and names.count("theory") == 2
    assert not {trace["name"] for trace in second["data"]} & {"noise", "theory"}  # they belong to the figure's metric


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "bars"\nby = ["rank"]', "by needs kind=sweep, not kind=bars"),
        ('kind = "sweep"\ncurves = [3]', r"curves must be tables: \[\[figure.curves\]\]"),
        (
            'kind = "sweep"\ncurves = [{name = "a", x = [1, 2], y = [1]}]',
            "'a' has 2 numbers in x and 1 in y",
        ),
        ('kind = "sweep"\ncurves = [{name = "a", x = [], y = []}]', "x of 'a' must be a list of numbers"),
        ('kind = "sweep"\ncurves = [{name = "a", x = [1], y = ["b"]}]', "y of 'a' must be a list of numbers"),
        ('kind = "sweep"\ncurves = [{nam = "a", x = [1], y = [1]}]', "'nam'; did you mean 'name'"),
    ],
)
def test_a_bad_curve_says_what_is_wrong_with_it(text, message):
    head = 'title="t"\npaper="p"\nabout="a"\ndata=["btl"]\nsplits=["entries"]\nsolvers=["sgd"]\nmetrics=["kendall"]\n'
    with pytest.raises(UserError, match=message):
        read("x", "x.toml", f"{head}[figure]\n{text}\n")


def test_the_page_needs_no_network_and_says_what_failed(study):
    html = html_of(study([0.5] * 4, {0: {"status": "timeout", "reason": "took <long>"}}))
    assert not re.search(r"""<(?:script|link|img)[^>]+(?:src|href)=["'](?:https?:)?//""", html)
    assert "took &lt;long&gt;" in html and "Published on ml-1m" in html
    assert "expected value over all orders" in html


def test_the_page_counts_what_ended_well_and_names_the_seed(study):
    found = study((0.5, 0.6, 0.7, None), {0: FAILED})
    assert "1 experiment, 2 of 4 cells ended well." in html_of(found)
    assert "tiny · quick profile</p>" in html_of(found)
    assert "tiny · quick profile · seed 3</p>" in html_of(altered(found, seed=3))


def test_a_part_that_is_broken_is_a_failed_row_and_one_that_is_not_at_hand_a_skipped_one(study, tmp_path):
    found = study([0.5] * 4, data=(*DATA, absent_data(tmp_path), "csv:nowhere.csv"))
    assert [(row.data.partition("[")[0], row.status) for row in rows(found)[4:]] == [
        (absent_data(tmp_path), "skipped"),
        ("csv:nowhere.csv", "failed"),
    ]


def test_a_solver_that_is_not_exact_is_called_so(study):
    found = study([0.5] * 4, solvers=("sgd", "sgd[schedule=hogwild]"))
    assert [line[1] for line in sheet(found).lines] == ["sgd", "sgd[schedule=hogwild] (racy)"]


def test_skipped_data_shows_with_its_command(study, tmp_path):
    name = absent_data(tmp_path)
    found = study(data=(name,))
    assert [(row.data, row.status) for row in rows(found)] == [(name, "skipped")]
    assert "ask its owner" in html_of(found)


def test_the_report_writes_every_format_and_lists_what_there_is(study, tmp_path):
    study([0.5] * 4)
    results = ResultsFolder(tmp_path, silent)
    first = write_report(results, silent)
    assert first == tmp_path / "report" / "index.html"
    written = {str(path.relative_to(first.parent)) for path in first.parent.rglob("*") if path.is_file()}
    names = {"index.html", "README.md", "differences.md", "tiny.md", "tables/tiny.csv", "tables/tiny.tex"}
    names |= {".rendered/tiny.json"}
    assert written == names | {"figures/tiny.pdf", "figures/tiny.png"}
    assert [one.name for one in studies(results)] == ["tiny"]


def test_a_figure_of_a_point_or_two_is_not_written(study, tmp_path):
    study([0.5] * 2, repetitions=1, figure=Figure("bars"))
    write_report(ResultsFolder(tmp_path, silent), silent)
    assert not list((tmp_path / "report" / "figures").glob("*"))
    text = (tmp_path / "report" / "tiny.md").read_text()
    assert "![" not in text and "All measurements" in text


@pytest.mark.parametrize("kind", ["growth", "speedup"])
def test_where_costs_are_shown_nothing_is_said_of_verdicts(study, kind):
    assert verdict_notes(study())
    assert verdict_notes(study(figure=Figure(kind, x="n"))) == []


def test_a_figure_shows_the_chosen_solvers_and_data_or_all_where_there_are_none(study):
    def names(**chosen):
        drawn = drawing(study([0.5, 0.6, 0.7, 0.6], figure=Figure("bars", **chosen)))
        return [line.name for panel in drawn.panels for line in panel.lines]

    assert len(names()) == 2
    assert [name[:3] for name in names(solvers=("sgd",))] == ["SGD"]
    assert names(solvers=("mf",)) == names(data=("ml-1m",)) == names(data=("low-rank",)) == names()


def test_a_report_replaces_what_an_older_one_wrote_and_leaves_all_other_files(study, tmp_path):
    study([0.5] * 4)
    figures = tmp_path / "paper" / "figures"
    figures.mkdir(parents=True)
    stay = {"tiny-notes.md", "tinyhouse.png", "photo.png", "tiny-drafts.pdf"}
    (figures / "tiny-drafts.pdf").mkdir()
    for name in ("tiny-basis-1.pdf", "cheng2018-table4.pdf", "tiny-notes.md", "tinyhouse.png", "photo.png"):
        (figures / name).write_text("older")
    write_report(ResultsFolder(tmp_path, silent), silent, tmp_path / "paper", page=False)
    assert {path.name for path in figures.iterdir()} == {"tiny.pdf", "tiny.png"} | stay
    assert (figures / "photo.png").read_text() == "older"


def test_the_markdown_says_what_was_left_out_and_what_its_numbers_mean(study, tmp_path):
    found = study([0.5] * 4, data=(*DATA, absent_data(tmp_path), "csv:nowhere.csv"))
    write_report(ResultsFolder(tmp_path, silent), silent, page=False)
    text = (tmp_path / "report" / "tiny.md").read_text()
    assert [line.partition(":")[0] for line in text.splitlines() if "gone.py" in line or "nowhere.csv" in line][
        -2:
    ] == [
        "Skipped",
        "Failed",
    ]
    assert all(line in text for line in definitions(found))


@pytest.mark.parametrize("part", ["folder", "files"])
def test_a_report_that_cannot_be_written_is_one_line(study, tmp_path, monkeypatch, part):
    def full(path, text):
        raise OSError(28, "No space left on device")

    study([0.5] * 4)
    to, reason = tmp_path / "report", "No space left on device"
    if part == "folder":
        (tmp_path / "file").touch()
        to, reason = tmp_path / "file" / "report", "Not a directory"
    else:
        monkeypatch.setattr(writing, "write_text", full)
    with pytest.raises(UserError, match=re.escape(f"cannot write the report to {to}: {reason}")):
        write_report(ResultsFolder(tmp_path, silent), silent, to)


def test_a_report_on_nothing_is_an_error(tmp_path):
    with pytest.raises(UserError, match="no results under"):
        write_report(ResultsFolder(tmp_path, silent), silent)


def test_a_report_before_the_first_result_names_no_machine_and_does_not_say_that_nobody_was_left_out(study, tmp_path):
    found = study(values=())
    assert 'id="machines"' not in html_of(found) and "users left out" not in html_of(found)
    write_report(ResultsFolder(tmp_path, silent), silent, page=False)
    assert "Measured on" not in (tmp_path / "report" / "README.md").read_text()
    assert 'id="machines"' in html_of(study()) and "users left out" in html_of(study())


def test_every_table_of_the_page_scrolls_by_itself(tmp_path):
    text = page([Section(made_up_study(tmp_path, TINY, arrays=no_values), "tiny")])
    boxes = re.findall(r'<div class="wide" role="region" aria-label="[^"]+" tabindex="0"><table>', text)
    assert len(boxes) == text.count("<table>") == 2  # the experiment's, the machines'


SPLITS = ("n-per-user[n=8,least=5]", "n-per-user[n=9,least=5]")


def test_data_and_split_are_columns_of_their_own(study):
    one, several = study(), study((0.5, 0.6) * 4, splits=SPLITS)
    assert {(row.data, row.split) for row in rows(one)} == {(one.groups[0].data.full, one.groups[0].split.full)}
    assert sheet(one).headings[:2] == ("data", "solver")
    assert sheet(several).headings[:3] == ("data", "split", "solver")
    assert {line[:2] for line in sheet(several).lines} == {(several.groups[0].data.written, split) for split in SPLITS}
    lines = csv_rows(to_csv(rows(several)))
    assert {line["data"] for line in lines} == {several.groups[0].data.full}
    assert {line["split"] for line in lines} == {group.split.full for group in several.groups}


def test_a_note_on_what_users_cannot_tell_names_its_split_where_there_are_several(study):
    found = study((0.5, 0.6, 0.5, 0.6, 0.7, 0.6, 0.7, 0.6), splits=SPLITS)
    written = found.groups[0].data.written
    told = [line for line in notes(found) if "open against the best" in line]
    assert len(told) == 4
    assert {line.partition(", ndcg@5:")[0] for line in told if ", ndcg@5:" in line} == {
        f"{written} {split}" for split in SPLITS
    }


def test_why_cells_failed_stands_under_the_table_once_for_each_reason(study):
    (line,) = failures(study(changes={0: FAILED, 1: FAILED}))
    assert line.startswith("failed: ") and line.endswith(" and 1 more: boom")
    assert not failures(study())
