"""The figure of every experiment, from made-up results: nothing cut off, no text over another, the right numbers."""

import hashlib
from dataclasses import replace
from itertools import combinations
from math import nan
from statistics import fmean

import matplotlib
import numpy as np
import pytest
from helpers import MACHINE
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from rankbench import experiments
from rankbench.core.contract import Determinism
from rankbench.planning.plan import resolved
from rankbench.records.cells import Cell, Place, Selection
from rankbench.records.plans import Plan
from rankbench.records.results import Point, RankingFunction, Result, Weight
from rankbench.records.studies import Group, Study
from rankbench.report.analysis.published import beside
from rankbench.report.render.figures import series
from rankbench.report.render.figures.drawings import Drawing, Line, Panel
from rankbench.report.render.figures.looks import MARKERS, style
from rankbench.report.render.figures.plots import figure_of, lay_out
from rankbench.report.render.figures.series import drawing
from rankbench.report.render.ranking_functions import Basis, figure_of_bases
from rankbench.report.study import speed_ups
from rankbench.statistics import Verdict
from rankbench.statistics.decisions import undecided
from rankbench.statistics.estimates import Estimate

pytestmark = pytest.mark.slow


def kind_of(experiment):
    """What decides how a figure is drawn: its kind, and whether it has more metrics, lines and spreads."""
    figure = experiment.figure
    return figure.kind, bool(figure.others), bool(figure.curves), experiment.repetitions > 1


def profiles():
    """The full profile of every experiment, and the quick one of an experiment with each kind of figure.

    The experiments that stand for a kind are drawn by `make test`, the others by `make trust`.
    """
    kinds = {kind_of(experiments.load(name, full=True)): name for name in experiments.names()}
    for name in experiments.names():
        usual = name in kinds.values()
        for full in (True, False) if usual else (True,):
            named = f"{name}-{'full' if full else 'quick'}"
            yield pytest.param((name, full), id=named, marks=() if usual else pytest.mark.trust)


def between(low, high, *about):
    """A number between two others that depends on `about` alone."""
    digest = hashlib.sha256(repr(about).encode()).digest()
    return low + (high - low) * int.from_bytes(digest[:6], "big") / 2**48


def result_of(cell):
    """A made-up result: values that improve over five points, at times that depend on the solver."""
    pace = between(0.001, 0.3, cell.solver.written) / cell.threads**0.7

    def values(step):
        about = (cell.solver.written, cell.place.data.written, cell.place.split.written)
        noise = between(0.97, 1.03, about, cell.place.repetition)
        return tuple(noise * (between(0.1, 0.5, about, one.label) + 0.5 / (1 + step)) for one in cell.measures)

    curve = tuple(
        Point(
            step, pace * (step + 1) * between(0.9, 1.1, cell.place.repetition), values(step), bound=cell.threads * 0.9
        )
        for step in range(0, 10, 2)
    )
    return Result(
        cell=cell, status="ok", reason=None, curve=curve, counted=(), unscored=0.0, wall=3.0, peak_mb=50.0,
        contended=False, machine=MACHINE, finished="2026-01-02T03:04:05+00:00",
    )  # fmt: skip


def made(name, full):
    """A study of everything that an experiment asks for, without loading its data."""
    experiment = experiments.load(name, full)
    asked = resolved(experiment, Selection(full=full))
    cells = [
        Cell(
            Place(data, split, repetition), "0", 0, solver, 1, Determinism.EXACT, asked.measures, experiment.budget,
            experiment.every, experiment.objective, threads,
        )
        for data in asked.data for split in asked.splits for repetition in asked.repetitions
        for solver in asked.solvers for threads in asked.threads
    ]  # fmt: skip
    planned = Plan(experiment, "full" if full else "quick", 0, asked.measures, tuple(cells))
    return Study(planned, {cell.key: result_of(cell) for cell in cells})


def interval_of(study, group, label):
    """A made-up interval of the difference from the best, which is not centred; no solver is the best."""
    mean = fmean(group.values(label))
    sign = next(measure.sign for measure in study.measures if measure.label == label)
    apart = Estimate(0.5 * mean, 0.4 * mean, 0.7 * mean, 0.1 * mean, 20, 1, 0.0).times(sign)
    decision = replace(undecided("made up", 0.0), difference=replace(apart, mean=0.5 * mean * sign))
    return Verdict(apart, decision, None, best=False, alone=False, first=(0.5, 0.0, 1.0), tier=0)


@pytest.fixture(scope="module", params=profiles())
def drawn(request):
    """An experiment's study, drawing and figure, and where its texts stand; the quick profile has users' intervals."""
    study = made(*request.param)
    with pytest.MonkeyPatch.context() as patch, matplotlib.rc_context(style()):
        patch.setattr(series, "verdict_of", (lambda *asked: None) if request.param[1] else interval_of)
        found = drawing(study)
        figure = figure_of(found)
        lay_out(figure)
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
    return study, found, figure, boxes(figure)


def boxes(figure):
    """What may not lie over each other, with its text: labels, titles, ticks, and each legend as a whole."""
    renderer = figure.canvas.get_renderer()
    legends = [*figure.legends, *(axis.get_legend() for axis in figure.axes if axis.get_legend())]
    elsewhere = {text for legend in legends for text in legend.findobj(Text)} | beyond(figure)
    found = [("legend", legend.get_window_extent(renderer)) for legend in legends]
    for text in figure.findobj(Text):
        if text not in elsewhere and text.get_visible() and text.get_text().strip():
            found.append((text.get_text(), text.get_window_extent(renderer)))
    return found


def beyond(figure):
    """The labels of ticks outside their axis, which are not drawn."""
    found = set()
    for axis in figure.axes:
        for one, (low, high) in ((axis.xaxis, sorted(axis.get_xlim())), (axis.yaxis, sorted(axis.get_ylim()))):
            for tick in (*one.get_major_ticks(), *one.get_minor_ticks()):
                found |= set() if low <= tick.get_loc() <= high else {tick.label1, tick.label2}
    return found


def test_no_text_is_cut_off_and_no_two_overlap(drawn):
    check(drawn[2], drawn[3])


def check(figure, found):
    """Check that no text of a figure is cut off, and that no two lie over each other."""
    for text, box in found:
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 + 0.5, f"{text!r} is cut off"
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1 + 0.5, f"{text!r} is cut off"
    for (text, box), (other, beyond) in combinations(found, 2):
        wide = min(box.x1, beyond.x1) - max(box.x0, beyond.x0)
        tall = min(box.y1, beyond.y1) - max(box.y0, beyond.y0)
        assert wide < 1 or tall < 1, f"{text!r} lies over {other!r}"


def test_the_ticks_of_a_broken_axis_among_three_panels_do_not_overlap():
    """Most solvers are alike on the first data set, and one is far from them."""
    found = drawing(made("cheng2018-table4", full=True))
    spans = [(0.5812, 0.5847, 0.5882), (0.6193, 0.6195, 0.6198), (0.6196, 0.6199, 0.6201), (0.618, 0.619, 0.62005)]
    near = zip(found.panels[0].lines, [*spans, *[(0.6199,) * 3] * 3], strict=True)
    lines = tuple(replace(line, low=(low,), y=(y,), high=(high,)) for line, (low, y, high) in near)
    first = replace(found.panels[0], lines=lines, beside=(), best=0.6199, gap=(0.5882, 0.618))
    with matplotlib.rc_context(style()):
        figure = figure_of(replace(found, panels=(first, *found.panels[2:])))
        lay_out(figure)
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
        check(figure, boxes(figure))
        assert all(axis.get_xticks().size for axis in figure.axes)
        left, right = figure.axes[:2]
        middle = (left.get_window_extent().x0 + right.get_window_extent().x1) / 2
        title = left.title.get_window_extent()
        assert abs((title.x0 + title.x1) / 2 - middle) < 0.05 * figure.bbox.width
        ticks = [label.get_text() for axis in (left, right) for label in axis.get_xticklabels()]
        assert not any(text.endswith("0") for text in ticks)


@pytest.mark.parametrize("kind", ["bars", "curve"])
def test_forty_solvers_with_long_names_do_not_lie_over_each_other(kind):
    names = [f"a solver with a name that needs three lines beside an axis, number {number}" for number in range(40)]
    if kind == "bars":
        panels = (Panel("data", tuple(Line(name).at(number, number) for number, name in enumerate(names))),)
    else:
        lines = tuple(Line(name[-40:]).at(0, number).at(1, number) for number, name in enumerate(names))
        parts = ((lines[:36], lines[36:]), (lines[36:], lines[:36]))
        panels = tuple(Panel("data", own, context=others, shares="data") for own, others in parts)
    with matplotlib.rc_context(style()):
        figure = figure_of(Drawing(kind, "step", "error\n(lower is better)", "lower", panels, spread="range"))
        lay_out(figure)
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
        check(figure, boxes(figure))


def test_a_legend_hides_no_axes_and_the_figure_is_one_or_two_columns_wide(drawn):
    _, _, figure, texts = drawn
    assert figure.get_figwidth() in (3.5, 7.2)
    for text, box in texts:
        if text == "legend":
            assert not any(box.overlaps(axis.get_window_extent()) for axis in figure.axes)


def test_the_label_below_a_panel_is_hardly_wider_than_it(drawn):
    *_, figure, _ = drawn
    for axis in figure.axes:
        assert (
            axis.xaxis.label.get_window_extent().width <= 1.2 * axis.get_window_extent().width or len(figure.axes) == 1
        )


def test_the_label_of_shared_values_stands_beside_the_middle_of_the_panels(drawn):
    _, _, figure, texts = drawn
    for box in [box for text, box in texts if text == figure.get_supylabel() != ""]:
        panels = Bbox.union([axis.get_window_extent() for axis in figure.axes])
        assert abs((box.y0 + box.y1) / 2 - (panels.y0 + panels.y1) / 2) < 0.01 * panels.height


def measured(axis):
    """The measured lines of an axis."""
    return [line for line in axis.lines if line.get_marker() in MARKERS]


def test_the_solvers_of_a_panel_can_be_told_apart_without_colours(drawn):
    _, found, figure, _ = drawn
    for axis in figure.axes:
        looks = [(line.get_marker(), repr(line._dash_pattern)) for line in measured(axis)]
        assert len(set(looks)) == len(looks)
        colours = [to_hex(line.get_color()) for line in measured(axis)]
        assert len(set(colours)) == len(colours) or len(colours) > 8
    if found.kind != "bars":  # whose solvers have a row each, and a name beside it
        assert all(len(panel.lines) <= 9 for panel in found.panels)


def along(found, line):
    """The values of a drawn line, which run across in a figure of dots."""
    return list(line.get_xdata() if found.kind == "bars" else line.get_ydata())


def same(drawn, expected):
    """Whether these are the same numbers, in whatever order."""
    return len(drawn) == len(expected) and np.allclose(sorted(drawn), sorted(expected))


def labels_of(study):
    """The metrics that the figure shows."""
    figure = study.experiment.figure
    return [figure.metric or study.measures[0].label, *figure.others]


def chosen(study: Study, group: Group) -> bool:
    """Whether the experiment's figure shows these cells; where it would show none, it shows all."""

    def fits(one: Group) -> bool:
        parts = ((figure.solvers, one.solver), (figure.data, one.data))
        return all(not patterns or any(map(named.fits, patterns)) for patterns, named in parts)

    figure = study.experiment.figure
    return fits(group) or not any(map(fits, study.groups))


def test_the_measured_values_are_those_of_the_study(drawn):
    study, found, figure, _ = drawn
    labels, groups = labels_of(study), [one for one in study.groups if chosen(study, one)]
    values = {
        (axis_line.get_label(), value): None
        for axis in figure.axes for axis_line in measured(axis) for value in along(found, axis_line)
    }  # fmt: skip
    if found.kind == "speedup":
        expected = [fmean(speed_ups(study, group)) for group in groups]
    elif found.kind == "growth":
        shown = [group for group in groups if group.threads <= MACHINE.usable_cores]
        expected = [50.0, *(fmean(result.seconds for result in group.good) for group in shown)]
    elif found.kind == "curve":
        last = [[result.curve for result in group.good] for group in groups]
        every = [measure.label for measure in study.measures]
        places = [every.index(label) for label in labels]
        expected = [
            fmean(curve[step].values[place] for curve in curves)
            for curves in last for step in range(5) for place in places
        ]  # fmt: skip
    else:
        expected = [fmean(group.values(label)) for group in groups for label in labels]
    assert set(np.round([value for _, value in values], 9)) == set(np.round(expected, 9))


def test_published_numbers_are_open_diamonds_where_there_are_any(drawn):
    study, found, figure, _ = drawn
    if found.kind in ("speedup", "growth"):
        return
    numbers = [beside(study, group, label) for group in study.groups for label in labels_of(study)]
    diamonds = [line for axis in figure.axes for line in axis.lines if line.get_marker() == "D"]
    assert all(line.get_markerfacecolor() == "white" for line in diamonds)
    shown_values = [value for line in diamonds for value in along(found, line)]
    assert same(shown_values, [number.value for number in numbers if number])


def test_bounds_are_bars_and_published_numbers_diamonds_on_the_axes_and_in_the_legend():
    found = drawing(made("park2015-speedup", full=True))
    with matplotlib.rc_context(style()):
        figure = figure_of(found)
    numbers = [line for panel in found.panels for line in panel.beside]
    assert {line.is_bound for line in numbers} == {True, False}
    symbols = {line.name: "_" if line.is_bound else "D" for line in numbers}
    shown = {line.get_label(): line.get_marker() for axis in figure.axes for line in axis.lines}
    assert {name: shown[name] for name in symbols} == symbols
    legends = [zip(legend.get_texts(), legend.legend_handles, strict=True) for legend in figure.legends]
    keys = {text.get_text(): key.get_marker() for legend in legends for text, key in legend if isinstance(key, Line2D)}
    assert (keys["bound of the schedule"], keys["published"]) == ("_", "D")


def test_whiskers_are_the_intervals_over_users_or_the_range_over_repetitions(drawn):
    study, found, figure, _ = drawn
    if found.kind not in ("bars", "sweep"):
        return
    labels = labels_of(study)
    across = found.kind == "bars"
    ends = {
        tuple(np.round([point[0 if across else 1] for point in segment], 9))
        for axis in figure.axes for bars in axis.containers for segment in bars.lines[2][0].get_segments()
        if not np.isnan(segment).any()
    }  # fmt: skip
    if study.profile == "quick":
        expected = {
            tuple(np.round([0.9 * fmean(one), 1.2 * fmean(one)], 9))
            for label in labels
            for one in values_of(study, label)
        }
        assert found.spread == "95 % interval of the difference from the best"
    else:
        expected = {tuple(np.round([min(one), max(one)], 9)) for label in labels for one in values_of(study, label)}
        several = study.experiment.repetitions > 1
        assert found.spread == (f"smallest to largest of {study.experiment.repetitions} repetitions" if several else "")
    assert expected <= ends or not found.spread


def values_of(study, label):
    """The values over repetitions of each group."""
    return [group.values(label) for group in study.groups]


def test_what_the_whiskers_and_bands_are_is_written_on_the_figure(drawn):
    _, found, figure, _ = drawn
    texts = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert not found.spread or any(found.spread in text for text in texts)
    for panel in found.panels:
        assert {line.what for line in panel.beside} <= set(texts)


def test_names_are_those_of_people(drawn):
    _, found, _, texts = drawn
    for text, _ in texts:
        assert "[" not in text and "_" not in text
    assert "[" not in found.y_label


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("count", "bases"), [(1, 1), (2, 2), (3, 1), (5, 2)])
@pytest.mark.parametrize("kind", ["titles:", ""])
def test_the_features_of_basic_functions_are_not_cut_off_and_do_not_overlap(count, bases, kind):
    names = [f"{kind}a_rather_long_name_{number}" for number in range(16)]
    positive = tuple(Weight(name, 2.0 - 0.1 * number) for number, name in enumerate(names[:8]))
    negative = tuple(Weight(name, -1.0 - 0.1 * number) for number, name in enumerate(names[8:]))
    basis = Basis("d", "s", (RankingFunction(positive, negative),) * count, "FRSVM, rank 10, on MovieLens 100K")
    with matplotlib.rc_context(style()):
        figure = figure_of_bases([basis] * bases, range(1, count + 1))
        lay_out(figure)
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
        check(figure, boxes(figure))
    assert len([axis for axis in figure.axes if axis.get_visible()]) == count * bases
    first = figure.axes[0]
    assert [bar.get_width() for bar in first.patches] == [one.weight for one in (*positive, *reversed(negative))]
    assert first.get_yticklabels()[0].get_text() == "a rather long name 0"
    assert first.get_xlabel() == ("weight of titles" if kind else "weight")


def test_a_value_that_is_not_a_number_is_not_drawn():
    study = made("insteval-lecturers", False)
    entries = study.entries
    gone = tuple(Point(one.step, one.seconds, (nan,) * 4) for one in entries[0].result.curve)
    lost = [entry.cell.solver == entries[0].cell.solver for entry in entries]
    changed = {
        entry.cell.key: replace(entry.result, curve=gone) if without else entry.result
        for entry, without in zip(entries, lost, strict=True)
    }
    found = drawing(replace(study, by_key=changed))
    assert len(found.panels[0].lines) == 2
