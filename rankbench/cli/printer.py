"""Tables and progress bars on a terminal, and plain lines in their place in a pipe."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import isnan
from textwrap import wrap
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)
from rich.table import Table

from rankbench.checks.findings import Finding
from rankbench.cli.lines import show
from rankbench.core.errors import safe
from rankbench.execution.run import Event
from rankbench.records.results import Result
from rankbench.report.render.tables import Sheet, to_markdown

_INDENT = 7  # of the lines below the first one of what is folded
_MARKS = {"passed": "ok    ", "failed": "FAILED", "not applicable": "-     "}


def show_sheet(title: str, sheet: Sheet) -> None:
    """Print a table: drawn on a terminal, as Markdown in a pipe."""
    console = Console()
    if not console.is_terminal:
        show(f"{title}\n\n{to_markdown(sheet)}")
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
    """Print a line, folded on a terminal, where the lines below are indented."""
    console = Console()
    if not console.is_terminal:
        return show(text)
    indent = " " * _INDENT
    start = text[: len(text) - len(text.lstrip())]
    folded = wrap(text.lstrip(), console.width, initial_indent=start, subsequent_indent=indent, break_long_words=False)
    return show("\n".join(folded or [""]))


class Teller(Protocol):
    """A function that is called with each event of a run."""

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        ...


@contextmanager
def progress_of(name: str, total: int, quiet: bool) -> Iterator[Teller]:
    """A context with a function that shows the progress of an experiment's run of `total` cells."""
    console = Console()
    if quiet:
        yield lambda event: None
    elif console.is_terminal:
        with _bar(console) as progress:
            yield _on_terminal(progress, name, total)
    else:
        yield _in_lines(name, total)


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


def _bar(console: Console) -> Progress:
    doing = TextColumn("{task.fields[doing]}", style="dim")
    columns = (TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn(), doing)
    return Progress(*columns, console=console)


def _on_terminal(progress: Progress, name: str, total: int) -> Teller:
    task = progress.add_task(escape(safe(name)), total=total, doing="")

    def tell(event: Event) -> None:
        if event.kind == "start":
            progress.update(task, doing=escape(safe(event.cell.label)))
        elif event.kind == "wait":
            progress.update(task, doing=escape(safe(_waiting(event))))
        elif event.result:
            progress.advance(task)
            progress.update(task, doing="")
            if event.result.status != "ok":
                text = f"[red]{event.result.status}[/] {escape(safe(_line(event, event.result)))}"
                progress.console.print(text, soft_wrap=True)

    return tell


def _in_lines(name: str, total: int) -> Teller:
    ended = 0

    def tell(event: Event) -> None:
        nonlocal ended
        if event.kind == "wait":
            show(f"{name}: {_waiting(event)}")
        elif event.kind == "end" and event.result:
            ended += 1
            show(f"{name} {ended}/{total} {event.result.status}: {_line(event, event.result)}")
            sys.stdout.flush()

    return tell


def _waiting(event: Event) -> str:
    """A line that names the process that runs a cell for which this run waits."""
    who = f"process {event.holder.pid} on {event.holder.host}" if event.holder else "another process"
    return f"{who} is running {event.cell.label}: waiting for its result"


def _line(event: Event, result: Result) -> str:
    """A line with the cell and its first metric, or its error."""
    if result.status != "ok":
        return f"{event.cell.label}: {safe(result.reason or '')}"
    first = event.cell.measures[0].label
    value = result.value(first)
    said = "without a value" if isnan(value) else f"{value:.4f}"
    return f"{event.cell.label}: {first} {said}, {result.seconds or 0.0:.3f} s"
