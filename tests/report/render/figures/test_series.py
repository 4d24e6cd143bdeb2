"""What a figure is made of: scales, breaks, families of solvers, and a panel for each data set of a sweep."""

from types import SimpleNamespace

import pytest
from helpers import made_up_study, no_values, tiny

from rankbench.experiments import Curve, Figure, Published
from rankbench.names import Pattern
from rankbench.records.cells import RUN
from rankbench.records.results import Point
from rankbench.report.analysis import families
from rankbench.report.analysis.families import split_by_family
from rankbench.report.render.figures.drawings import Line, Panel
from rankbench.report.render.figures.plots import figure_of, lay_out
from rankbench.report.render.figures.series import _gap, drawing
from rankbench.solvers import SOLVERS

pytestmark = pytest.mark.slow


@pytest.fixture
def drawn(tmp_path):
    """Draws the second metric of a tiny experiment; `value` gives it for each cell, which has a value for each user."""

    def made(value, kind="sweep", x="n", **changes):
        figure = changes.pop("figure", Figure(kind, metric="ndcg@5", x=x))
        return drawing(made_up_study(tmp_path, tiny(**{"repetitions": 1, **changes}, figure=figure), value))

    return made


def sizes(*counts):
    """Splits of so many ratings per user."""
    return tuple(f"n-per-user[n={count},least=4]" for count in counts)


def test_the_data_sets_of_a_sweep_have_panels_of_their_own(drawn):
    data = tuple(f"low-rank[users=20,items={items},per_user=20]" for items in (30, 31))
    found = drawn(lambda cell: cell.place.data.setting("items") / 100, data=data, splits=sizes(9, 8))
    assert [panel.title for panel in found.panels] == ["Low-rank ratings, 30 items", "Low-rank ratings, 31 items"]
    assert [[line.x for line in panel.lines] for panel in found.panels] == [[(8, 9)] * 2] * 2
    assert [panel.lines[0].y for panel in found.panels] == [(0.3, 0.3), (0.31, 0.31)]


@pytest.mark.parametrize(("metric", "log"), [("pairwise-error", True), ("ndcg@5", False)])
def test_training_curves_have_a_logarithmic_axis_where_they_fall_and_none_where_they_rise(tmp_path, metric, log):
    experiment = tiny(figure=Figure("curve", x="seconds", metric=metric), repetitions=1)
    assert drawing(made_up_study(tmp_path, experiment, (0.01, 0.4))).log_y is log


@pytest.mark.parametrize(("counts", "log"), [((4, 8, 16), True), ((4, 8, 12), False), ((8, 16), False)])
def test_a_setting_that_grows_by_a_factor_has_a_logarithmic_axis(drawn, counts, log):
    assert drawn(lambda cell: 0.5, splits=sizes(*counts)).log_x is log


@pytest.mark.parametrize(
    ("values", "log"), [((0.01, 0.2), False), ((0.01, 0.4), True), ((-0.01, 0.4), False), ((0.0, 0.4), False)]
)
def test_positive_values_over_many_decades_have_a_logarithmic_axis(tmp_path, values, log):
    experiment = tiny(figure=Figure("bars", metric="ndcg@5"), repetitions=1)
    assert drawing(made_up_study(tmp_path, experiment, values, arrays=no_values)).log_y is log


@pytest.mark.parametrize(
    ("values", "gap"),
    [
        ((0.10, 0.11, 0.9), (0.11, 0.9)),  # two lie flat, far from the third
        ((0.1, 0.89, 0.9), (0.1, 0.89)),  # at the other end
        ((0.10, 0.11, 0.15), None),  # near enough to be told apart
        ((0.1, 0.5, 0.9), None),
        ((0.5, 0.5, 0.9), None),  # nothing to tell apart
    ],
)
@pytest.mark.parametrize("kind", ["bars", "sweep"])
def test_an_axis_is_broken_where_solvers_would_lie_flat(tmp_path, values, gap, kind):
    solvers = ("global", "sgd[rank=2]", "sgd[rank=3]")
    experiment = tiny(figure=Figure(kind, metric="ndcg@5", x="n"), solvers=solvers, repetitions=1)
    found = drawing(made_up_study(tmp_path, experiment, values, arrays=no_values))
    assert found.panels[0].gap == gap
    axes = figure_of(found).axes
    limits = sorted(sorted(axis.get_xlim() if kind == "bars" else axis.get_ylim()) for axis in axes)
    assert len(axes) == (2 if gap else 1)
    if gap:
        (_, end), (start, _) = limits
        assert gap[0] < end <= sum(gap) / 2 <= start < gap[1]


@pytest.mark.parametrize(("reached", "gap"), [(0.97, None), (0.8, (0.8, 0.98))])
def test_an_axis_is_not_broken_beside_lines_that_lie_flat_but_near_the_others(reached, gap):
    wide = Line("wide").at(20, 0.1).at(50, reached)
    lines = (wide, Line("one").at(20, 0.98).at(50, 0.9801), Line("other").at(20, 0.98).at(50, 0.9802))
    assert _gap(Panel("a panel", lines)) == gap


def test_an_axis_is_not_broken_beside_a_solver_and_its_published_number():
    alone = (Line("joint").at(20, 0.51), Line("published", owner="joint").at(20, 0.5))
    others = (Line("one").at(20, 0.8), Line("two").at(20, 0.9), Line("three").at(20, 1.0))
    assert _gap(Panel("a panel", (*alone, *others))) is None
    assert _gap(Panel("a panel", (*alone, Line("global").at(20, 0.5), *others))) == (0.51, 0.8)


MANY = (
    *(f"sgd[rank={rank},lam=3]" for rank in (2, 3, 4)), *(f"sgd[rank=2,lam={lam}]" for lam in (1, 10, 30)),
    "sgd[rank=2,lam=3,schedule=tournament]", "global", "mf[rank=2]",
)  # fmt: skip


def test_many_solvers_are_drawn_by_family_with_the_others_in_grey(drawn):
    found = drawn(lambda cell: 0.5, kind="curve", x="step", solvers=MANY)
    assert [panel.title.partition(": ")[2] for panel in found.panels] == [
        "SGD, rank", "SGD, λ", "SGD, schedule", "other solvers",
    ]  # fmt: skip
    shown = [{line.name for line in panel.lines} for panel in found.panels]
    assert shown[0] == {"SGD, rank 2, λ = 3", "SGD, rank 3, λ = 3", "SGD, rank 4, λ = 3"}
    assert shown[3] == {"Global ranking", "MF"}
    assert all(len(panel.lines) + len(panel.context) == len(MANY) for panel in found.panels)
    assert [len(set(look.values())) for look in found.looks] == [len(names) for names in shown]


def test_eight_solvers_share_a_panel(drawn):
    found = drawn(lambda cell: 0.5, kind="curve", x="step", solvers=MANY[:8])
    assert len(found.panels) == 1 and found.panels[0].context == () and len(found.looks[0]) == 8


def test_a_single_solver_is_shown_beside_the_first_family():
    solvers = [SOLVERS.resolve(text) for text in ("global", "sgd[rank=2]", "sgd[rank=3]", "mf[rank=2]", "mf[rank=3]")]
    found = [(title, [one.written for one in members]) for title, members in split_by_family(solvers)]
    assert found == [
        ("SGD, Global ranking", ["sgd[rank=2]", "sgd[rank=3]", "global"]),
        ("MF", ["mf[rank=2]", "mf[rank=3]"]),
    ]


@pytest.mark.parametrize("kind", ["bars", "sweep", "curve"])
def test_published_numbers_stand_beside_measured_ones_in_every_kind_of_figure(drawn, kind):
    published = (Published(Pattern("sgd"), "ndcg@5", 0.75, sd=0.01, on=Pattern("ml-1m")),)
    found = drawn(lambda cell: 0.5, kind=kind, x="n" if kind == "sweep" else "step", published=published)
    (line,) = found.panels[0].beside
    assert (line.owner, line.what, line.y) == ("SGD", "published on MovieLens 1M", (0.75,))
    assert (line.low, line.high) == (pytest.approx((0.74,)), pytest.approx((0.76,)))
    assert line.x == (found.panels[0].lines[1].x[-1],)


@pytest.mark.parametrize("seconds", [(0.0, 0.1, 0.2), (0.0, 0.0, 0.0)])
def test_a_clock_that_has_not_moved_yet_does_not_stop_the_drawing(tmp_path, seconds):
    curve = tuple(Point(step, at, (0.2, 0.4)) for step, at in enumerate(seconds))
    experiment = tiny(figure=Figure("curve", metric="ndcg@5", x="seconds"), repetitions=1)
    (axis,) = figure_of(drawing(made_up_study(tmp_path, experiment, 0.4, curve=curve))).axes
    assert axis.get_xscale() == "log" and list(axis.lines[0].get_xdata()) == list(seconds)


def test_a_reference_line_may_begin_at_zero_beside_a_logarithmic_axis(drawn):
    curves = (Curve("theory", [0, 8], [0.3, 0.2]),)
    found = drawn(lambda cell: 0.5, splits=sizes(4, 8, 16), figure=Figure("sweep", "ndcg@5", "n", curves=curves))
    assert found.log_x
    lay_out(figure_of(found))


def test_judged_runs_are_a_family_of_their_own():
    assert families._input(SimpleNamespace(home="elsewhere", name=f"{RUN}mine")) == "runs"
