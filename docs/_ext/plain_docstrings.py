"""Docstrings as the package writes them: plain text with `code` in it, where |x| is a norm and * a product."""

import re
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(``.*?``|`.*?`)")


def escaped(line: str) -> str:
    """The line with the letters escaped that mean something in reStructuredText, but for what is code."""
    parts = CODE.split(line)
    return "".join(part if place % 2 else re.sub(r"([|*])", r"\\\1", part) for place, part in enumerate(parts))


def plain(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Escape the lines of a docstring in place."""
    lines[:] = [escaped(line) for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    """Make it known to Sphinx, to run before numpydoc finds the sections."""
    app.connect("autodoc-process-docstring", plain, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
