"""A renderer of mathematics for Sphinx: formulas become MathML at build time, so that pages need no script for them."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline(self: Any, node: nodes.Element) -> None:
    """Write a formula in a line."""
    self.body.append(f'<span class="math">{convert(node.astext())}</span>')
    raise nodes.SkipNode


def displayed(self: Any, node: nodes.Element) -> None:
    """Write a formula in a paragraph of its own, which scrolls on narrow screens."""
    label = f' id="{node["ids"][0]}"' if node["ids"] else ""
    formula = convert(node.astext().strip(), display="block")
    self.body.append(f'<div class="math formula" tabindex="0" role="group"{label}>{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Make it known to Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
