"""What the page holds: figures as JSON for plotly, legends as switches, tables with names for people."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from math import nan

import pytest
from helpers import altered, made_up_study, tiny

from rankbench.experiments import Figure, Published
from rankbench.names import Pattern
from rankbench.report.render.figures.drawings import Drawing, Line, Panel
from rankbench.report.render.figures.series import drawing, drawings
from rankbench.report.render.page import page
from rankbench.report.render.page.markup import prose, rendered
from rankbench.report.render.page.plots import figure_of, keys_of
from rankbench.report.render.tables import Sheet
from rankbench.report.sections import Section, by_paper

pytestmark = pytest.mark.slow


def line(name, *values, **more):
    """A line through these values at 0, 1, 2."""
    return Line(name, tuple(map(float, range(len(values)))), values, values, values, **more)


def drawn(*panels, kind="curve", **more):
    """A figure of these panels."""
    return Drawing(kind, "step", "error", "lower", panels, **more)


def traces_of(drawn):
    """The traces of a figure."""
    return figure_of(drawn, keys_of([drawn]))["data"]


def test_a_solver_looks_the_same_in_every_panel_and_by_every_metric():
    first = drawn(Panel("a", (line("one", 1.0), line("two", 2.0))), Panel("b", (line("two", 2.0),)))
    second = drawn(Panel("a", (line("two", 1.0),)))
    keys = keys_of([first, second])
    looks = {(trace["meta"][0], trace["marker"]["color"], trace["marker"]["symbol"])
             for one in (first, second) for trace in figure_of(one, keys)["data"]}  # fmt: skip
    assert len(looks) == 2
    many = keys_of([drawn(Panel("a", tuple(line(str(number), 1.0) for number in range(20))))])
    assert len({(key.colour, key.symbol) for key in many.values()}) == 20


def test_published_numbers_have_the_colour_of_their_solver_and_go_with_it_or_with_all_published_ones():
    published = line("one, published", 1.5, owner="one", what="published")
    own, other = traces_of(drawn(Panel("a", (line("one", 1.0),), beside=(published,))))
    assert (own["meta"], other["meta"]) == (["one"], ["one", "published"])
    assert own["marker"]["color"] == other["marker"]["color"] and other["marker"]["symbol"] == "diamond-open"


def test_points_lie_across_with_the_names_of_their_solvers():
    spread = Line("a long name of a solver, rank 10", (0.0,), (0.5,), (0.4,), (0.7,))
    found = figure_of(one := drawn(Panel("a", (spread,)), kind="bars"), keys_of([one]))
    (trace,) = found["data"]
    assert (trace["x"], trace["y"], trace["mode"]) == ([0.5], [0.0], "markers")
    assert trace["error_x"]["array"] == [0.2] and trace["error_x"]["arrayminus"] == [0.1]
    axis = found["layout"]["yaxis"]
    assert axis["ticktext"] == ["a long name of a solver,<br>rank 10"] and axis["range"] == [0.6, -0.6]


def test_panels_to_be_compared_have_one_range():
    panels = (Panel("a", (line("one", 1.0),), shares="x"), Panel("b", (line("one", 2.0),), shares="x"),
              Panel("c", (line("one", 3.0),)))  # fmt: skip
    one = drawn(*panels, log_y=True)
    layout = figure_of(one, keys_of([one]))["layout"]
    assert [layout[f"yaxis{number}"].get("matches") for number in ("", "2", "3")] == [None, "y", None]
    assert {layout[f"yaxis{number}"]["type"] for number in ("", "2", "3")} == {"log"}


def test_grey_lines_of_other_panels_lie_behind_and_have_no_switch_of_their_own():
    one = drawn(Panel("a", (line("one", 1.0),), context=(line("two", 2.0),)), Panel("b", (line("two", 2.0),)))
    traces = figure_of(one, keys_of([one]))
    assert [trace["meta"] for trace in traces["data"]] == [["two"], ["one"], ["two"]]
    assert "marker" not in traces["data"][0] and "Grey: " in traces["caption"]


def test_numbers_are_short_and_what_is_no_number_is_left_out():
    (trace,) = traces_of(drawn(Panel("a", (line("one", 1 / 3, nan),))))
    assert trace["y"] == [0.333333, None]


def test_what_plotly_would_read_as_html_is_escaped():
    evil = drawn(Panel("<b>a</b>", (line("<i>one</i>", 1.0),)))
    found = figure_of(evil, keys_of([evil]))
    assert found["data"][0]["name"] == "&lt;i&gt;one&lt;/i&gt;" and found["data"][0]["meta"] == ["<i>one</i>"]
    assert found["layout"]["annotations"][0]["text"] == "&lt;b&gt;a&lt;/b&gt;"


def test_a_long_title_is_broken_so_that_a_phone_shows_all_of_it():
    one = drawn(Panel("a data set whose name is long, " * 3, (line("a", 1.0),)))
    (title,) = figure_of(one, keys_of([one]))["layout"]["annotations"]
    assert [len(part) <= 36 for part in title["text"].split("<br>")] == [True] * 3


def test_the_figure_says_in_words_what_it_shows():
    found = figure_of(one := drawn(Panel("a", (line("one", 1.0),)), spread="95 %"), keys_of([one]))
    assert found["about"] == "Curves of error by step. a: one. The tables of this experiment have the numbers."
    assert found["caption"] == "Whiskers: 95 %."


def test_a_name_for_people_stands_before_the_exact_one_and_a_remark_stays():
    one = Sheet(("data", "solver"), (False, False), (("d", "sgd[rank=2] (racy)"), ("d", "other")), frozenset(),
                ("sgd[rank=2]", "other"))  # fmt: skip
    html = rendered("table", one, "a table", {"sgd[rank=2]": "SGD"})
    assert '<td class="name">SGD (racy) <small class="exact">sgd<wbr>[rank=2]</small></td>' in html
    assert '<tr data-solver="SGD">' in html and '<tr class="same" data-solver="other">' in html


def test_code_in_a_text_is_shown_as_code():
    assert prose("run `a < b` now") == "run <code>a &lt; b</code> now"
    assert prose("one ` alone") == "one ` alone"


def test_what_stands_between_asterisks_is_stressed_and_a_product_is_not():
    assert prose("*NDCG* (`ndcg`): *better*, or *as good*.") == (
        "<b>NDCG</b> (<code>ndcg</code>): <em>better</em>, or <em>as good</em>."
    )
    for text in ("* Timed, 2 * n * m", "a*b*c", "`*x*`", "* a *b"):
        assert "<em>" not in prose(text) and "<b>" not in prose(text)


def test_headings_follow_one_another_without_a_gap(study):
    for sections in ([section(study("own"))], [section(study("a-1", paper="A")), section(study("b-1", paper="B"))]):
        levels = [1, *map(int, re.findall(r"<h([1-6])[ >]", page(sections).partition("<h1>")[2]))]
        assert max(below - above for above, below in pairwise(levels)) == 1, levels


def test_a_table_in_a_text_has_headings_like_every_other(study):
    about = "What:\n\n| solver | what |\n| --- | --- |\n| `a` | b |"
    found = study()
    html = page([section(altered(found, experiment=replace(found.experiment, about=about)))])
    assert '<thead><tr><th scope="col">solver</th><th scope="col">what</th></tr></thead>' in html
    assert html.count("<table>") == html.count("<thead><tr>")


@pytest.fixture
def study(tmp_path):
    """Makes a study of the tiny experiment."""

    def made(name="tiny", **changes):
        return made_up_study(tmp_path, tiny(name=name, **changes))

    return made


def section(study):
    return Section(study, study.name, drawing(study))


def test_a_figure_can_be_drawn_by_every_metric_its_own_first(study):
    assert list(drawings(study(figure=Figure("curve", metric="ndcg@5")))) == ["ndcg@5", "pairwise-error"]
    bare = study("bare", figure=Figure("speedup"), threads=(1, 2))
    assert len(drawings(bare)) <= 1


def test_experiments_stand_under_their_paper_and_the_scoreboard_leads_there(study):
    number = (Published(Pattern("sgd"), "ndcg@5", 0.5),)
    sections = [section(study(name, paper=paper, published=number))
                for name, paper in (("a-1", "Paper A"), ("b-1", "Paper B"), ("a-2", "Paper A"))]  # fmt: skip
    assert {paper: [one.name for one in members] for paper, members in by_paper(sections).items()} == {
        "a": ["a-1", "a-2"], "b": ["b-1"]
    }  # fmt: skip
    html = page(sections)
    body = html.partition("<main")[2]
    assert [body.index(f'id="{name}"') for name in ("paper-a", "a-1", "a-2", "paper-b", "b-1")] == sorted(
        body.index(f'id="{name}"') for name in ("paper-a", "a-1", "a-2", "paper-b", "b-1")
    )
    assert html.count('<a href="#paper-a">Paper A</a>') == 2  # the scoreboard's and the contents'


def test_the_json_of_a_figure_ends_no_script(study):
    evil = altered(found := study(), experiment=replace(found.experiment, figure=Figure("sweep", x="</script>")))
    (text,) = re.findall(r'class="figures">(.*?)</script>', page([section(evil)]))
    assert "script" in json.loads(text)["pairwise-error"]["layout"]["xaxis"]["title"]["text"]
