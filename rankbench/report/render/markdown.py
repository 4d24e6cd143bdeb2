"""Blocks as Markdown: a section of a paper's page in the report."""

from collections.abc import Iterable, Iterator

from rankbench.core import texts
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
            yield from (f"## {texts.markdown(name)}", f"{texts.markdown(title)} ({', '.join(run)}).")
        case Prose(text, title):
            yield from (f"{title}:" if title else "", texts.markdown_prose(text))
        case Notes(lines):
            yield from map(texts.markdown, lines)
        case Table():
            yield _table(block)
        case Chart(title, file, drawings):
            yield f"![{texts.markdown(title)}]({texts.address(file)})" if drawings else ""
        case Picture(title, file, alternative, words, draw):
            yield texts.markdown_prose(words[0]) if draw else f"{texts.markdown(title)}:"
            yield f"![{alternative}]({texts.address(file)})"
        case Facts(facts):
            yield "\n".join(f"- {fact.name}: {texts.markdown('; '.join(fact.lines))}" for fact in facts)
        case Problems():
            yield from _problems(block)
        case Definitions(lines):
            yield from map(texts.markdown_prose, lines)


def _table(block: Table) -> str:
    """A table below its title; one that is folded opens when it is asked for."""
    table = to_markdown(block.sheet)
    if block.folded:
        return f"<details><summary>{texts.html(block.title)}</summary>\n\n{table}\n</details>"
    return f"{texts.markdown(block.title)}:\n\n{table}\n{block.legend}".rstrip()


def _problems(block: Problems) -> Iterator[str]:
    yield from (f"Skipped: {texts.markdown(line)}." for line in block.skipped)
    yield from (f"Failed: {texts.markdown(line)}." for line in block.failed)
    if block.cells:
        yield "Cells that did not end well:"
        yield "\n".join(f"- {texts.markdown(f'{label}: {status}, {reason}')}" for label, status, reason in block.cells)
