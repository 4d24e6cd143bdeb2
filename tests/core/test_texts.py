"""Texts made safe for the place where they are shown: what changes, and what stays as it is."""

import pytest

from rankbench.core.texts import LONGEST, safe, visible


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
