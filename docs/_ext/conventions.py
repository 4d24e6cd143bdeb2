"""The directive `{conventions}`: by which convention each tool evaluates each metric, from the table in the code."""

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

from rankbench.judging.conventions import LABELS, METRICS, told, words
from rankbench.judging.tools import USES, Use


def page(metric: str) -> Iterator[str]:
    """The lines of Markdown about a metric: a row for each call of each tool, a column for each thing that differs."""
    uses = [use for use in USES if use.convention.metric == metric]
    names = told(metric)
    values = {name: [_said(use, name) for use in uses] for name in names}
    differing = [name for name in names if len(set(values[name])) > 1]
    alike = "; ".join(f"{LABELS[name]}: {values[name][0]}" for name in names if name not in differing)
    yield from (f"## {metric}", "")
    if alike:
        yield from (f"Alike in all: {alike}.", "")
    yield " | ".join(["", "tool", "written", *(LABELS[name] for name in differing), ""]).strip()
    yield "|---" * (2 + len(differing)) + "|"
    for place, use in enumerate(uses):
        cells = [use.tool, _calls(use), *(values[name][place] for name in differing)]
        yield " | ".join(["", *(cell.replace("|", r"\|") for cell in cells), ""]).strip()
    yield ""


def _said(use: Use, name: str) -> str:
    return "left open" if name == "ties" and use.open_ties else words(use.convention, name)


def _calls(use: Use) -> str:
    return " ".join(f"`{call}`" for call in (use.whole, use.at) if call)


class Conventions(Directive):
    """Writes a table for each metric."""

    def run(self) -> list[nodes.Node]:
        """The tables, parsed as the Markdown of the page is."""
        lines = [line for metric in METRICS for line in page(metric)]
        here = nodes.Element()
        self.state.nested_parse(StringList(lines, source="the conventions"), self.content_offset, here, match_titles=1)
        return list(here.children)


def setup(app: Sphinx) -> dict[str, Any]:
    """Make it known to Sphinx."""
    app.add_directive("conventions", Conventions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
