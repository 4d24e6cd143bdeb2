"""A Sphinx extension: directives that write what the code knows of solvers, splits and metrics, and draw small figures.

{solver} NAME         facts and settings; in the content a line `setting: meaning` for each setting
{solvers}             a table of the solvers named in the content
{metric} NAME         definition, range and settings
{metrics}             a table of the metrics named in the content
{metric-rules}        the conventions that all metrics share
{fits} CAPTION        a figure with a line for each solver in the content, drawn while the page is built
"""

import os
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from record_facts import metric_text, metrics_text, page_of, solver_text, solvers_text, sources_of, split_text
from record_figures import Plan, draw, told
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import rankbench
from rankbench.metrics import RULES


class _Text(SphinxDirective):
    """A directive that writes Markdown."""

    has_content = True

    def text(self) -> str:
        """The Markdown."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """The nodes of the Markdown; what is wrong on the page becomes an error of the build."""
        try:
            return self.parse_text_to_nodes(self.text())
        except rankbench.UserError as error:
            raise self.error(str(error)) from None


class SolverDirective(_Text):
    """Facts and settings of a solver."""

    required_arguments = 1

    def text(self) -> str:
        """What the solver's record says, with the meanings in the content."""
        (name,) = self.arguments
        for source in sources_of(name):
            self.env.note_dependency(source)
        return solver_text(name, meanings_in(list(self.content)))


class SplitDirective(_Text):
    """Settings of a split."""

    required_arguments = 1

    def text(self) -> str:
        """What the split's record says, with the meanings in the content."""
        return split_text(self.arguments[0], meanings_in(list(self.content)))


class SolversDirective(_Text):
    """A table of solvers."""

    def text(self) -> str:
        """The table, with the first words of each solver's page."""
        names = " ".join(self.content).split()
        for name in names:
            self.env.note_dependency(str(page_of(name)))
        return solvers_text(names)


class MetricDirective(_Text):
    """Definition, range and settings of a metric."""

    required_arguments = 1

    def text(self) -> str:
        """What the metric's record says."""
        return metric_text(self.arguments[0])


class MetricsDirective(_Text):
    """A table of metrics."""

    def text(self) -> str:
        """The table."""
        return metrics_text(" ".join(self.content).split())


class RulesDirective(_Text):
    """The conventions that all metrics share."""

    def text(self) -> str:
        """The rules as `rankbench list` prints them."""
        return RULES


class FitsDirective(SphinxDirective):
    """A figure of some trainings."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {
        "data": directives.unchanged_required,
        "split": directives.unchanged_required,
        "y": directives.unchanged_required,
        "x": directives.unchanged_required,
        "steps": directives.positive_int,
        "values": directives.unchanged_required,
        "logarithmic": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Draw the figure into the folder of the build, and show it."""
        plan = plan_of(self.options, [line.strip() for line in self.content if line.strip()])
        name = f"{self.env.docname.replace('/', '-')}-{self.env.new_serialno('fits')}.svg"
        file = Path(self.env.doctreedir) / "fits" / name
        try:
            lines = plan.lines()
        except rankbench.UserError as error:
            raise self.error(str(error)) from None
        draw(plan, lines, file)
        image = nodes.image(uri=os.path.relpath(file, Path(self.env.doc2path(self.env.docname)).parent))
        image["alt"] = told(plan, lines)
        figure = nodes.figure("", image)
        caption, _ = self.parse_inline(self.arguments[0])
        figure += nodes.caption(self.arguments[0], "", *caption)
        return [figure]


def meanings_in(content: list[str]) -> dict[str, str]:
    """The meaning of each setting, from lines `setting: meaning`; a line that is indented goes on."""
    found: dict[str, str] = {}
    for line in content:
        if line.startswith(" ") and found:
            found[next(reversed(found))] += f" {line.strip()}"
        elif line.strip():
            setting, _, meaning = line.partition(":")
            found[setting.strip()] = meaning.strip()
    return found


def plan_of(options: dict[str, str], solvers: list[str]) -> Plan:
    """The plan of a figure from the options of its directive."""
    given: dict[str, object] = dict(options)
    if "values" in options:
        given["values"] = tuple(map(float, options["values"].split()))
    return Plan(solvers=tuple(solvers), **given)  # type: ignore[arg-type]


def setup(app: Sphinx) -> dict[str, object]:
    """Register the directives."""
    app.add_directive("solver", SolverDirective)
    app.add_directive("solvers", SolversDirective)
    app.add_directive("split", SplitDirective)
    app.add_directive("metric", MetricDirective)
    app.add_directive("metrics", MetricsDirective)
    app.add_directive("metric-rules", RulesDirective)
    app.add_directive("fits", FitsDirective)
    return {"version": rankbench.__version__, "parallel_read_safe": True}
