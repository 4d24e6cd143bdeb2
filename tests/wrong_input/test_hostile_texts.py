"""Texts that would do harm where they are shown as they are, at every place where a text of a user comes out."""

from dataclasses import replace

import pytest
from wrong_input.hostile import (
    HOSTILE,
    assert_plain_csv,
    assert_plain_html,
    assert_plain_latex,
    assert_plain_markdown,
    assert_plain_terminal,
    elements,
)

from rankbench.checks.findings import failed
from rankbench.cli import printer
from rankbench.core import lines, texts
from rankbench.core.brief import as_html, brief_table
from rankbench.report.render.blocks import (
    Chart,
    Definitions,
    Facts,
    Heading,
    Notes,
    Picture,
    Problems,
    Prose,
    Table,
)
from rankbench.report.render.facts import Fact
from rankbench.report.render.figures.drawings import Drawing, Line, Panel
from rankbench.report.render.figures.plots import figure_of
from rankbench.report.render.markdown import markdown
from rankbench.report.render.page.markup import rendered
from rankbench.report.render.tables import Sheet, csv_text, to_latex, to_markdown

pytestmark = pytest.mark.slow

INERT = {"p", "b", "em", "code", "wbr", "ul", "li", "div"}  # what prose and long names may have
INERT |= {"table", "thead", "tbody", "tr", "th", "td"}


def short(text):
    return ascii(text)[1:31]


def sheet_with(text):
    """A table with a text in its heading, in a cell, and in one that is bold."""
    return Sheet((text, "b"), (False, True), ((text, "0.5"), ("x", text)), frozenset({(1, 1)}), (text, text))


def drawing_with(text):
    """A figure with a text in all its places."""
    line = Line(text, (1.0, 2.0), (1.0, 2.0), (1.0, 2.0), (1.0, 2.0))
    beside = Line(f"{text}, published", (1.0,), (1.0,), (1.0,), (1.0,), owner=text, what=text)
    panel = Panel(text, (line,), (beside,), (replace(line, name=f"{text} bound"),))
    return Drawing("curve", text, text, "higher", (panel,))


def blocks_with(text):
    """A section of a report with a text in all its places."""
    return [
        Heading(text, text, ("quick profile",)),
        Prose(text),
        Prose(f"one\n{text}\n\n{text}", "Differences"),
        Notes((text, f"*{text}* (`{text}`): {text}.")),
        Table(text, sheet_with(text)),
        Table(text, sheet_with(text), folded=True),
        Chart(text, f"figures/{texts.file_part(text)}.png", {text: drawing_with(text)}),
        Picture(text, "figures/x.png", "Ranks", (text,), lambda: "<svg></svg>"),
        Picture(text, "figures/x.png", "Ranks", (text,)),
        Facts((Fact("machine", (text,)),)),
        Problems((text,), (text,), ((text, "failed", text),)),
        Definitions((text,)),
    ]


def html_of(text):
    """The same section as HTML."""
    macros = {Table: "table_of"}
    of = {"title": text, "labels": {text: text}}
    parts = (rendered(macros.get(type(one), type(one).__name__.lower()), one, of) for one in blocks_with(text))
    return "".join([*parts, as_html(text, [(text, text)]), brief_table(text, [text], [[text]])])


def test_there_are_many_and_all_differ():
    assert len(HOSTILE) == len(set(HOSTILE)) > 140


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", HOSTILE, ids=short)
def test_a_page_has_no_element_or_attribute_of_theirs(text):
    ordinary = elements(html_of("word"))
    tags, attributes = {tag for tag, _ in ordinary} | INERT, {name for _, given in ordinary for name in given}
    html = html_of(text)
    assert_plain_html(html, tags, attributes)
    assert not any(name.startswith("on") for name in attributes)
    scripts = [tag for tag, _ in elements(html) if tag not in INERT]
    assert scripts == [tag for tag, _ in ordinary if tag not in INERT]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", HOSTILE, ids=short)
def test_markdown_has_no_html_no_heading_and_no_link_of_theirs(text):
    types = assert_plain_markdown(markdown(blocks_with(text)))
    assert types.count("heading_open") == 1  # our own
    assert types.count("table_open") >= 2
    assert types.count("image") <= 3


@pytest.mark.parametrize("text", HOSTILE, ids=short)
def test_a_table_keeps_its_cells_in_every_form(text):
    sheet = sheet_with(text)
    tokens = assert_plain_markdown(to_markdown(sheet))
    assert tokens.count("th_open") == 2 and tokens.count("td_open") == 4
    assert_plain_latex(to_latex(sheet))
    found = assert_plain_csv(csv_text((text, "b"), [(text, -0.5), ("-0.5", text)]), 2)
    assert [found[1][1], found[2][0]] == ["-0.5", "-0.5"]


@pytest.mark.parametrize("text", HOSTILE, ids=short)
def test_a_terminal_gets_no_control_characters(text, capsys):
    lines.show(text)
    lines.complain(text)
    lines.mention(text)
    printer.show_sheet(text, sheet_with(text))
    printer.show_findings([failed(text, text, text, text)])
    out, errors = capsys.readouterr()
    assert_plain_terminal(out + errors)
    assert errors.count("\n") == 2


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", HOSTILE[::8], ids=short)
def test_a_figure_is_drawn_with_the_text_and_not_with_a_formula(text):
    for kind in ("curve", "bars"):
        figure = figure_of(replace(drawing_with(text), kind=kind))
        figure.draw_without_rendering()
