"""Tables and progress bars on a terminal, and plain lines in their place in a pipe."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from textwrap import wrap

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TransferSpeedColumn,
)
from rich.table import Table

from rankbench.checks.findings import Finding
from rankbench.core.lines import show
from rankbench.core.texts import safe
from rankbench.report.render.tables import Sheet, to_markdown

_INDENT = 7  # of the lines below the first one of what is folded
_MARKS = {"passed": "ok    ", "failed": "FAILED", "not applicable": "-     "}


def show_sheet(title: str, sheet: Sheet) -> None:
    """Print a table: drawn on a terminal, as Markdown in a pipe."""
    console = Console()
    if not console.is_terminal:
        show(f"{safe(title)}\n\n{to_markdown(sheet)}")
        return
    table = Table(title=escape(safe(title)), title_justify="left")
    for heading, numeric in zip(sheet.headings, sheet.numeric, strict=True):
        table.add_column(escape(heading), justify="right" if numeric else "left", overflow="fold")
    for line in sheet.written(escape, lambda text: f"[b]{escape(text)}[/]"):
        table.add_row(*line)
    console.print(table)


def show_findings(findings: Iterable[Finding]) -> None:
    """Print findings, one in a line or two: a mark, the name and what was seen, and below it the remedy."""
    for finding in findings:
        where = f" ({finding.where})" if finding.where else ""
        show_folded(f"{_MARKS[finding.outcome]} {safe(f'{finding.name}: {finding.seen}{where}')}")
        if finding.remedy:
            show_folded(f"       {safe(finding.remedy)}")


def show_folded(text: str) -> None:
    """Print a line, folded on a terminal."""
    show(folded(text))


def folded(text: str) -> str:
    """A line as it is printed on a terminal, folded, where the lines below are indented; elsewhere the line itself."""
    console = Console()
    if not console.is_terminal:
        return text
    indent = " " * _INDENT
    start = text[: len(text) - len(text.lstrip())]
    return "\n".join(
        wrap(text.lstrip(), console.width, initial_indent=start, subsequent_indent=indent, break_long_words=False)
    )


@contextmanager
def downloads() -> Iterator[Callable[[str, int, int | None], None]]:
    """A context with a function that shows the progress of downloads: bars on a terminal, nothing in a pipe."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda name, done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(24), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as progress:
        tasks: dict[str, TaskID] = {}

        def tell(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(escape(safe(name)), total=total)
            progress.update(tasks[name], completed=done, total=total)

        yield tell
