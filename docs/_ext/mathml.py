"""A renderer of mathematics for Sphinx: formulas become MathML at build time, so that pages need no script for them."""

from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

SPACE = "http://www.w3.org/1998/Math/MathML"
BARS = ("|", "‖")
FUNCTIONS = ("exp", "log", "ln", "max", "min")
OPENING = ("(", "[", "{", *BARS)
THIN = {"width": "0.17em"}

ElementTree.register_namespace("", SPACE)


def _is(element: ElementTree.Element, kinds: tuple[str, ...], texts: tuple[str, ...]) -> bool:
    return element.tag in [f"{{{SPACE}}}{kind}" for kind in kinds] and element.text in texts


def _apart(left: ElementTree.Element, right: ElementTree.Element) -> bool:
    """Whether a name of a function and what stands beside it need a space between them."""
    if _is(left, ("mi", "mo"), FUNCTIONS):
        return not _is(right, ("mo",), OPENING)
    operator = left.tag == f"{{{SPACE}}}mo" and left.text not in BARS
    return _is(right, ("mi", "mo"), FUNCTIONS) and not operator


def mathml(latex: str, display: str = "inline") -> str:
    r"""The formula, with bars as close as brackets, spaces around names of functions, and limits below min and max.

    >>> from re import sub
    >>> sub(" xmlns[^>]*", "", mathml(r"\log n"))
    '<math><mrow><mi>log</mi><mspace width="0.17em" /><mi>n</mi></mrow></math>'
    >>> "<munder><mo>min</mo><mi>x</mi></munder>" in mathml(r"\min_x f(x)", "block")
    True
    >>> '<mo lspace="0" rspace="0">|</mo>' in mathml(r"\lvert x \rvert")
    True
    """
    root = ElementTree.fromstring(convert(latex.strip(), display=display))
    for element in list(root.iter()):
        if _is(element, ("mo",), BARS):
            element.attrib |= {"lspace": "0", "rspace": "0"}
        elif display == "block" and element.tag == f"{{{SPACE}}}msub" and _is(element[0], ("mo",), FUNCTIONS):
            element.tag = f"{{{SPACE}}}munder"
        elif element.tag == f"{{{SPACE}}}mrow":
            for left, right in list(pairwise(element)):
                if _apart(left, right):
                    element.insert(list(element).index(right), ElementTree.Element(f"{{{SPACE}}}mspace", THIN))
    return ElementTree.tostring(root, encoding="unicode")


def inline(self: Any, node: nodes.Element) -> None:
    """Write a formula in a line."""
    self.body.append(f'<span class="math">{mathml(node.astext())}</span>')
    raise nodes.SkipNode


def displayed(self: Any, node: nodes.Element) -> None:
    """Write a formula in a paragraph of its own, which scrolls on narrow screens."""
    label = f' id="{node["ids"][0]}"' if node["ids"] else ""
    formula = mathml(node.astext(), "block")
    self.body.append(f'<div class="math formula" tabindex="0" role="group" aria-label="formula"{label}>{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Make it known to Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
