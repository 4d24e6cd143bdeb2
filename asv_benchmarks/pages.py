"""Pages of Markdown in reports/ of which several programs write a section each."""

import re
from collections.abc import Iterable
from pathlib import Path

HEADS = {
    "speed.md": "# Speed\n\nEach section says which command wrote it; the commands can be run again at any time.\n"
}


def rows(cells: Iterable[Iterable[object]]) -> str:
    """The rows of a table, of which each has these cells."""
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in cells)


def with_section(page: Path, title: str, text: str) -> str:
    """The page's text with this text as its section `title`: in place of the one that was there, else at the end."""
    content = page.read_text() if page.exists() else HEADS.get(page.name, f"# {page.stem}\n")
    section = f"## {title}\n\n{text.strip()}\n"
    pattern = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.M | re.S)
    if pattern.search(content):
        return pattern.sub(lambda _: section + "\n", content).rstrip() + "\n"
    return f"{content.rstrip()}\n\n{section}"
