r"""Texts of users, made safe for the place where they are shown: one function for each kind of place.

Names of files, solvers and data sets, ids, titles, and the texts of errors are written by users, or by strangers whose
results somebody reads. What is shown of them goes through one of these functions:

    a terminal, a table   `visible` for a line that may be long, `safe` for one that is cut
    HTML                  `html`; the templates of the page escape by themselves, and take `inert` besides
    Markdown              `markdown` for a line, `markdown_cell` for a cell of a table, `markdown_prose` for paragraphs
    LaTeX                 `latex`
    CSV                   `csv_cell`
    a figure              `figure_text`
    a file, a link to it  `file_part`, `is_file_name`, `address`

and `error_text` says what an error says, whatever its class does. Each is the identity on ordinary texts.
"""

import os
import re
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    import pandas

LONGEST = 4096  # characters of a text of others, such as a solver's error, that are shown
_LONGEST_LABEL = 400  # characters of a text in a figure
_LONGEST_FILE = 150  # characters of the part of a file's name that comes from a text; systems allow 255 bytes
_CONTROLS = "\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_ACTIVE = re.compile(f"[{_CONTROLS}]")
_UNSEEN = re.compile(f"[{_CONTROLS}\u061c\u200b-\u200f\u2060-\u206f\ufeff\ufff9-\ufffb]")
_FORMULA = re.compile(r"'*\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")  # also the wide forms, which spreadsheets take too
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|nan)", re.IGNORECASE)

_ESCAPED = re.compile(r"\\(?=[!-/:-@\[-`{-~]|$)")  # a backslash that Markdown would take for an escape
_ENTITY = re.compile(r"&(?=#?\w+;)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_BLOCK = re.compile(  # what begins a heading, a list, a quotation, code, a rule or the address of a link
    r"^( *)(?:(?=#{1,6}(?: |$)|[-+*](?: |$)|[>\[|]|`{3}|~{3}|=+ *$|([-_*])(?: *\2){2,} *$)|(\d{1,9})(?=[.)](?: |$)))"
)
_PROSE_BLOCK = re.compile(  # the same of what prose may not have; lists and tables it may
    r"^( *(?:(?:[-+*]|\d{1,9}[.)]) +)*)(?=#{1,6}(?: |$)|>|\[|`{3}|~{3}|=+ *$|-+ *$)", re.MULTILINE
)

_MATHS = {
    "±": r"\pm", "λ": r"\lambda", "τ": r"\tau", "ρ": r"\rho", "ε": r"\varepsilon", "β": r"\beta", "²": "^2", "−": "-",
}  # fmt: skip
_TEX = str.maketrans(
    {letter: "\\" + letter for letter in "&%$#_{}"}
    | {sign: f"${command}$" for sign, command in _MATHS.items()}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}  # signs that TeX's own fonts lack
)


def visible(text: str) -> str:
    """The text on one line, with characters that cannot be seen or would control a terminal shown by their codes.

    These control a terminal, break a line or change the direction of writing, such as `\\x1b`, or have no width.
    """
    return _UNSEEN.sub(_code, text)


def safe(text: str, most: int = LONGEST) -> str:
    """A text of others as one line that is safe to show everywhere, cut after `most` characters."""
    cut = f" ... ({len(text) - most:,} more characters)" if len(text) > most else ""
    return visible(text[:most]) + cut


def inert(text: str) -> str:
    """The text on one line, with characters that control a terminal, break a line or turn the writing as their codes.

    Unlike `visible` it keeps those without width, which the writing of some languages needs.
    """
    return _ACTIVE.sub(_code, text)


def inert_lines(text: str) -> str:
    """The same of a text of several lines, which stay; a tab becomes spaces."""
    return "\n".join(map(inert, text.expandtabs(4).split("\n")))


def html(text: str) -> str:
    """The text for HTML, between tags or in a quoted attribute."""
    return escape(inert(text))


def html_lines(text: str) -> str:
    """The same of a text of several lines, which stay."""
    return escape(inert_lines(text))


def markdown(text: str) -> str:
    """The text for a line of Markdown: it begins no heading, list or code, and has no HTML, link or picture in it."""
    return _BLOCK.sub(r"\1\3" + r"\\", _in_line(text))


def markdown_cell(text: str) -> str:
    """The text for a cell of a Markdown table."""
    return _in_line(text).replace("|", "\\|")


def markdown_prose(text: str) -> str:
    """Paragraphs of others for Markdown: lists, tables, emphasis and code stay, but there is no HTML, link or picture.

    Nor are there headings, which belong to the page, nor blocks of code, whose end could be missing.
    """
    lines = _PROSE_BLOCK.sub(r"\1" + r"\\", inert_lines(text))
    return _without_links(_TAG.sub("&lt;", lines))


def latex(text: str) -> str:
    """The text for LaTeX, with the letters escaped that it would take for commands.

    What follows the end of a row must not begin with a bracket or an asterisk, which would belong to that command.
    """
    found = inert(text).translate(_TEX)
    return f"{{{found[0]}}}{found[1:]}" if found.startswith(("[", "*")) else found


def csv_cell(value: object) -> object:
    """A value for CSV: of a text that a spreadsheet would take for a formula, an apostrophe before it; on one line.

    Numbers stay, and so do texts that are numbers, such as `-0.5`. Whoever reads the text back takes the first
    apostrophe off a text that begins with apostrophes and then `=`, `+`, `-` or `@`.
    """
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    text = inert(value)
    return f"'{text}" if _FORMULA.match(text) else text


def csv_frame(table: "pandas.DataFrame") -> "pandas.DataFrame":
    """A table of pandas whose texts are cells for CSV."""
    texts = {name: table[name].map(csv_cell) for name in table.columns if table[name].dtype.kind not in "iufb"}
    return table.assign(**texts)


def figure_text(text: str) -> str:
    """A text for a figure, whose lines stay: no part of it between dollars is taken for a formula."""
    lines = (inert(line[:_LONGEST_LABEL]) for line in text.split("\n"))
    return "\n".join(lines).replace("$", "\\$")


def file_part(text: str, kept: str = "-_") -> str:
    """A text as a part of a file's name: its letters and digits, and those of the signs that are `kept`."""
    return "".join(letter if letter.isalnum() or letter in kept else "-" for letter in text)[:_LONGEST_FILE]


def is_file_name(text: str) -> bool:
    """Whether a text can be the name of a file in any folder, and of none outside it."""
    try:
        return bool(text.strip(".")) and not set("/\0") & set(text) and bool(os.fsencode(text))
    except UnicodeEncodeError:
        return False


def address(name: str) -> str:
    """The address of a file beside a page, or of a part of the page, for a link to it."""
    return quote(name, errors="replace")


def error_text(error: BaseException) -> str:
    """An error's class and text; an error whose text cannot be had says so."""
    return f"{type(error).__name__}: {error_words(error)}"


def error_words(error: BaseException) -> str:
    """What an error says, as `str` does; an error whose text cannot be had says so."""
    try:
        return str(error)
    except BaseException as second:  # a class of the user's may raise anything, even SystemExit
        return f"(its text cannot be shown: {type(second).__name__})"


def _in_line(text: str) -> str:
    """A text within a line of Markdown, without HTML, links and pictures."""
    escaped = _ENTITY.sub("&amp;", _ESCAPED.sub(r"\\\\", inert(text)))
    return _without_links(_TAG.sub("&lt;", escaped))


def _without_links(text: str) -> str:
    """Markdown whose links and pictures are no longer any."""
    return text.replace("](", "]\\(")


def _code(found: re.Match[str]) -> str:
    """A character as Python writes it in a text."""
    letter = found[0]
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(letter) or (
        f"\\x{ord(letter):02x}" if ord(letter) < 256 else f"\\u{ord(letter):04x}"
    )
