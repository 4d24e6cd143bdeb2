"""Short texts and small HTML tables that show records of large arrays in a terminal or a notebook."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse

from rankbench.core.contract import Dataclass
from rankbench.core.texts import html

Facts = Iterable[tuple[str, str]]  # names and values


def brief(record: Dataclass) -> str:
    """A record on one line, with the types and shapes of its arrays in place of their numbers."""
    return f"{type(record).__name__}({', '.join(f'{name}={value}' for name, value in _facts(record))})"


def brief_html(record: Dataclass) -> str:
    """The same as a small HTML table."""
    return as_html(type(record).__name__, _facts(record))


def as_html(title: str, facts: Facts) -> str:
    """An HTML table with a title and a row for each fact."""
    rows = "".join(f"<tr><th>{html(name)}</th><td>{html(value)}</td></tr>" for name, value in facts)
    return f"<table><caption>{html(title)}</caption><tbody>{rows}</tbody></table>"


def brief_table(title: str, headings: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """An HTML table with a title, a row of headings and a row for each line."""
    head = "".join(f"<th>{html(heading)}</th>" for heading in headings)
    rows = "".join("<tr>" + "".join(f"<td>{html(text)}</td>" for text in line) + "</tr>" for line in lines)
    return f"<table><caption>{html(title)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _facts(record: Dataclass) -> list[tuple[str, str]]:
    """The fields of a record that are not None, with short texts of their values."""
    values = ((field.name, getattr(record, field.name)) for field in fields(record))
    return [(name, _short(value)) for name, value in values if value is not None]


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{' x '.join(map(str, value.shape))}]"
    if scipy.sparse.issparse(value):
        return f"sparse {value.dtype}[{' x '.join(map(str, value.shape))}]"
    return repr(value)
