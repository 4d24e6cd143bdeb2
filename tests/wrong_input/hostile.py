"""Texts that would do harm where they are shown as they are, and what each kind of place may show of them."""

import csv
import io
import re
from html.parser import HTMLParser

from markdown_it import MarkdownIt

_ELEMENTS = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<b>", "</td></tr></table>", "<!-- ", "-->", "]]>",
    "<svg/onload=alert(1)>", "<a href=javascript:alert(1)>x</a>", "</script><script>alert(1)</script>", "<?php x ?>",
    "<style>*{display:none}</style>", "<iframe src=//evil.example>", "</title><h1>x",
    "<details open ontoggle=alert(1)>", "'\"><b onmouseover=alert(1)>", '" onfocus=alert(1) autofocus="',
    "' onclick='alert(1)", "&lt;b&gt;", "&#60;b&#62;", "&colon;", "a < b & c > d", "<https://evil.example>",
    "<mailto:a@evil.example>", "\\<b>", "`<b>`", "``` <b>", "<wbr>", "javascript:alert(1)", "{{ 7 * 7 }}",
    "{% include 'x' %}", "{# x #}", "${7*7}", "#{7*7}", "%s%n%x", "{0.__class__}",
)  # fmt: skip
_MARKDOWN = (
    "[x](https://evil.example)", "![x](https://evil.example/x.png)", "[x]: https://evil.example", "[x][y]",
    "x](//evil) [", "# heading", "#", "> quote", "- item", "* item", "1. item", "1) item", "---", "***", "_ _ _",
    "===", "```", "~~~python", "    code", "| a | b |", "a|b", "a\\|b", "\\", "\\\\|", "`", "``", "`a|b`", "**bold",
    "_under_", "*a* `b", "$x^2$", "$$", "$\\frac{$", "[^1]: note", "- [x]: https://evil.example",
    "> [x]: https://evil.example", "- # x", "1. ```",
)  # fmt: skip
_LATEX = (
    "\\input{/etc/passwd}", "\\write18{touch x}", "% comment", "a & b", "a_b^c~d", "#1", "{", "}", "\\\\", "[2cm]",
    "*", "\\end{tabular}", "^^5cinput x", "\\catcode`\\%=12",
)  # fmt: skip
_CSV = (
    "=1+1", "=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "  =1", "'=1", "''+x", '"=1"', "＝1+1",
    "-", "+", "=HYPERLINK(\"https://evil.example\")", 'a"b,c', ",", "-x", "＠x",
)  # fmt: skip
_CONTROLS = (
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b]8;;https://evil.example\x07x\x1b]8;;\x07", "\x9b2J", "\x00",
    "a\nb", "\n\n# x", "a\r\nb", "\rover", "\x08\x08", "\x7f", "\x85", "a\tb", "\u202egnp.exe", "\u2066x\u2069",
    "\u2028", "\u2029", "\ufeff", "\u200b", "\ud800", "a\udcffb", "\x1bP+q\x1b\\", "\x0c", "\x1b[6n", "\n<b>\n",
    "\n[x]: https://evil.example",
)  # fmt: skip
_NAMES = (
    "../../x", "..", "/etc/passwd", "C:\\x", "-rf", "--help", "CON", "nul.txt", "x" *10_000, "<b>" *3000, "[" *5000,
    "`" *5000, "~", "a/b", "*.*", "$(touch x)", "`touch x`", "; touch x", "| touch x", " ", "👩\u200d🔬", "[b]bold[/b]",
    "[link=https://evil.example]x[/link]", "größe 日本",
)  # fmt: skip
HOSTILE = (*_ELEMENTS, *_MARKDOWN, *_LATEX, *_CSV, *_CONTROLS, *_NAMES)

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")  # but for tab and newline
_NUMBER = re.compile(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?|-?inf|nan")
_COMMANDS = {
    "textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater", "textbar", "textbf", "toprule",
    "midrule", "bottomrule", "pm", "lambda", "tau", "rho", "varepsilon", "beta", "begin", "end",
}  # fmt: skip


class _Elements(HTMLParser):
    """Collects the elements of HTML with their attributes."""

    def __init__(self):
        super().__init__()
        self.found, self.others = [], []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_comment(self, data):
        self.others.append(data)

    handle_pi = unknown_decl = handle_comment


def elements(html):
    """The elements of HTML with their attributes; it has no comments and the like."""
    parser = _Elements()
    parser.feed(html)
    parser.close()
    assert not parser.others, parser.others
    return parser.found


def assert_plain_html(html, tags, attributes):
    """The HTML has no control characters, only these elements and attributes, and leads nowhere else."""
    assert not CONTROL.search(html)
    for tag, given in elements(html):
        assert tag in tags, tag
        assert set(given) <= attributes, given
        address = given.get("href") or given.get("src") or ""
        assert re.match(r"#|data:|[\w%.-]*$|[\w%.-]*#", address), address


def assert_plain_markdown(text):
    """The Markdown has no HTML but for what opens and closes a part that is folded, and leads nowhere else."""
    assert not CONTROL.search(text)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    every = [token for outer in tokens for token in (outer, *(outer.children or ()))]
    for token in every:
        assert not token.type.startswith("html_") or re.fullmatch(
            r"</details>\n*|<details><summary>[^<]*</summary>\n*", token.content
        ), token.content
        assert token.type not in ("fence", "blockquote_open"), token.content
        address = token.attrGet("href") or token.attrGet("src") or ""
        assert re.fullmatch(r"[\w%./-]*(#[\w%.-]*)?", address), address
    return [token.type for token in every]


def assert_plain_csv(text, columns):
    """The CSV has so many columns, and no text that a spreadsheet takes for a formula; returns its lines."""
    assert not CONTROL.search(text)
    lines = list(csv.reader(io.StringIO(text)))
    for line in lines:
        assert len(line) == columns, line
        for cell in line:
            assert "\n" not in cell and (_NUMBER.fullmatch(cell) or not re.match(r"\s*[=+\-@＝＋－＠]", cell)), cell
    return lines


def assert_plain_latex(text):
    """The LaTeX has no commands but ours, and no row that begins with what the end of the row before would take."""
    assert not CONTROL.search(text)
    escaped = re.sub(r"\\[&%$#_{}]", "", text)
    assert set(re.findall(r"\\([A-Za-z]+)", escaped)) <= _COMMANDS, text
    bare = re.sub(r"\$(\\[a-z]+|\^2|-)\$", "", escaped)  # the signs that have a command
    assert not re.search(r"[%#_$~^]", bare), text
    assert bare.count("{") == bare.count("}"), text
    for line in text.split("\n"):
        assert not re.match(r"\s*[\[*]", line), line


def assert_plain_terminal(text):
    """What a terminal got has no control characters and no traceback."""
    assert not (found := CONTROL.search(text)), ascii(text[max(0, found.start() - 300) : found.start() + 300])
    assert "Traceback" not in text, text
