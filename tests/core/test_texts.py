"""Texts made safe for the place where they are shown: what changes, and what stays as it is."""

import pytest

from rankbench import experiments
from rankbench.core import texts
from rankbench.core.texts import LONGEST, safe, visible

ORDINARY = (
    "altsvm[rank=10,lam=3]: failed", "0.1234 ± 0.0010*", "Cheng, Mohri & Co: a < b (ICML 2018)", "2^k", "größe",
    "csv:ratings.csv[sep=;]", "ndcg@5", "12 %", "open, −0.8 to +0.9", "x 2. y", "`code` and *emphasis*", "(a) [b]",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, größe, 日本語, 😀 and \\x1b", "plain text, größe, 日本語, 😀 and \\x1b"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07\x00", "\\x1b]0;title\\x07\\x00"),
        ("two\nlines\r\tand more", "two\\nlines\\r\\tand more"),
        ("\x7f\x85\x9b2J", "\\x7f\\x85\\x9b2J"),
        ("a\u202eb\u2028c\u200bd\ud800", "a\\u202eb\\u2028c\\u200bd\\ud800"),
    ],
)
def test_what_cannot_be_seen_is_shown_by_its_code(text, shown):
    assert safe(text) == visible(text) == shown
    assert safe(shown) == shown


def test_a_long_text_is_cut():
    assert safe("x" * LONGEST) == "x" * LONGEST
    assert safe("x" * (LONGEST + 1000)) == "x" * LONGEST + " ... (1,000 more characters)"


@pytest.mark.parametrize("text", ORDINARY)
@pytest.mark.parametrize(
    "name", "visible safe inert inert_lines markdown markdown_cell markdown_prose csv_cell".split()
)
def test_an_ordinary_text_stays_as_it_is(name, text):
    assert getattr(texts, name)(text) == text


def test_the_texts_of_our_own_experiments_stay_as_they_are():
    for name in experiments.names():
        found = experiments.load(name)
        for prose in (found.about, found.differences):
            assert texts.markdown_prose(prose) == prose
        for line in (found.name, found.title, found.paper):
            assert texts.markdown(line) == line
        assert texts.address(name) == texts.file_part(name) == name


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("@x", "'@x"),
        ("-x", "'-x"),
        ("  +x", "'  +x"),
        ("'=1", "''=1"),
        ("''", "''"),
        ("-0.5", "-0.5"),
        ("+3", "+3"),
        ("-1e-05", "-1e-05"),
        ("-inf", "-inf"),
        ("-1e", "'-1e"),
        ("-", "'-"),
        ("a=b", "a=b"),
        ("a\nb\x1b", "a\\nb\\x1b"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
        (-0.5, -0.5),
        (None, None),
    ],
)
def test_a_cell_of_csv_is_no_formula_and_a_number_stays_one(value, cell):
    assert texts.csv_cell(value) == cell


@pytest.mark.parametrize(
    ("text", "line", "cell", "prose"),
    [
        ("<b>", "&lt;b>", "&lt;b>", "&lt;b>"),
        ("a|b", "a|b", "a\\|b", "a|b"),
        ("a\\|b", "a\\\\|b", "a\\\\\\|b", "a\\|b"),
        ("&lt;", "&amp;lt;", "&amp;lt;", "&lt;"),
        ("[x](y)", "\\[x]\\(y)", "[x]\\(y)", "\\[x]\\(y)"),
        ("# x", "\\# x", "# x", "\\# x"),
        ("1. x", "1\\. x", "1. x", "1. x"),
        ("- x", "\\- x", "- x", "- x"),
        ("- [x]: y", "\\- [x]: y", "- [x]: y", "- \\[x]: y"),
        ("```", "\\```", "```", "\\```"),
        ("* * *", "\\* * *", "* * *", "* * *"),
        ("a\n# b", "a\\n# b", "a\\n# b", "a\n\\# b"),
    ],
)
def test_markdown_is_escaped_where_it_would_do_something(text, line, cell, prose):
    assert (texts.markdown(text), texts.markdown_cell(text), texts.markdown_prose(text)) == (line, cell, prose)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("open, −0.8 to +0.9", "open, $-$0.8 to +0.9"),
        ("0.1 ± 0.01", r"0.1 $\pm$ 0.01"),
        ("a_b & 5 %", r"a\_b \& 5 \%"),
        ("p < 0.001", r"p \textless{} 0.001"),
        ("a|b>c", r"a\textbar{}b\textgreater{}c"),
        ("[x]", "{[}x]"),
    ],
)
def test_latex_has_commands_for_what_it_would_take_for_something_else_or_cannot_set(text, written):
    assert texts.latex(text) == written


def test_a_figure_takes_no_text_for_a_formula_and_cuts_a_long_one():
    assert texts.figure_text("$x$\ny\x1b") == "\\$x\\$\ny\\x1b"
    assert len(texts.figure_text("x" * 10_000)) == 400


@pytest.mark.parametrize("name", ["", ".", "..", "...", "a/b", "/a", "a\0b", "\ud800"])
def test_what_cannot_be_the_name_of_a_file_is_known(name):
    assert not texts.is_file_name(name)


@pytest.mark.parametrize("name", ["a", "..a", "-x", "a b", "größe", "\udcff"])
def test_what_can_be_the_name_of_a_file_is_known_too(name):
    assert texts.is_file_name(name)


def test_a_part_of_a_files_name_is_short_and_plain():
    assert texts.file_part("../mine.py:Mine[x=1]") == "---mine-py-Mine-x-1-"
    assert texts.file_part("a_b-c", kept="") == "a-b-c"
    assert len(texts.file_part("x" * 10_000)) == 150


def test_an_error_whose_text_raises_is_named_all_the_same():
    class Mute(Exception):
        def __str__(self):
            raise SystemExit(3)

    assert texts.error_text(ValueError("x")) == "ValueError: x"
    assert texts.error_text(Mute()) == "Mute: (its text cannot be shown: SystemExit)"
