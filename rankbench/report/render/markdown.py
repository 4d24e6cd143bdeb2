"""Blocks as Markdown: a section of a paper's page in the report."""

from collections.abc import Iterable, Iterator

from rankbench.report.render.blocks import (
    Block,
    Chart,
    Definitions,
    Facts,
    Heading,
    Notes,
    Picture,
    Problems,
    Prose,
    Table,
)
from rankbench.report.render.tables import to_markdown


def markdown(blocks: Iterable[Block]) -> str:
    """The blocks in Markdown, a paragraph or a table each."""
    return "\n\n".join(part for block in blocks for part in _parts(block) if part) + "\n"


def _parts(block: Block) -> Iterator[str]:
    """The paragraphs of a block."""
    match block:
        case Heading(name, title, run):
            yield from (f"## {name}", f"{title} ({', '.join(run)}).")
        case Prose(text, title):
            yield from (f"{title}:" if title else "", text)
        case Notes(lines):
            yield from lines
        case Table():
            yield _table(block)
        case Chart(title, file, drawings):
            yield f"![{title}]({file})" if drawings else ""
        case Picture(title, file, alternative, words, draw):
            yield words[0] if draw else f"{title}:"
            yield f"![{alternative}]({file})"
        case Facts(facts):
            yield "\n".join(f"- {fact.name}: {'; '.join(fact.lines)}" for fact in facts)
        case Problems():
            yield from _problems(block)
        case Definitions(lines):
            yield from lines


def _table(block: Table) -> str:
    """A table below its title; one that is folded opens when it is asked for."""
    table = to_markdown(block.sheet)
    if block.folded:
        return f"<details><summary>{block.title}</summary>\n\n{table}\n</details>"
    return f"{block.title}:\n\n{table}\n{block.legend}".rstrip()


def _problems(block: Problems) -> Iterator[str]:
    yield from (f"Skipped: {without_tags(line)}." for line in block.skipped)
    yield from (f"Failed: {without_tags(line)}." for line in block.failed)
    if block.cells:
        yield "Cells that did not end well:"
        yield "\n".join(f"- {without_tags(f'{label}: {status}, {reason}')}" for label, status, reason in block.cells)


def without_tags(text: str) -> str:
    """Text whose brackets Markdown does not take for HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
