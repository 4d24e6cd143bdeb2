"""What a person sees while cells run: a bar on a terminal, plain lines elsewhere, nothing if asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rankbench.harness.run import Event
from rankbench.harness.store import Result


class Teller(Protocol):
    """Somebody who is told what happens."""

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        ...


@contextmanager
def display(console: Console, name: str, total: int, quiet: bool) -> Iterator[Teller]:
    """A teller for one experiment's run of so many cells."""
    if quiet:
        yield lambda event: None
    elif console.is_terminal:
        with _bar(console) as progress:
            yield _on_terminal(progress, name, total)
    else:
        yield _in_lines(console, name, total)


def _bar(console: Console) -> Progress:
    doing = TextColumn("{task.fields[doing]}", style="dim")
    columns = (TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn(), doing)
    return Progress(*columns, console=console)


def _on_terminal(progress: Progress, name: str, total: int) -> Teller:
    task = progress.add_task(name, total=total, doing="")

    def tell(event: Event) -> None:
        if event.kind == "start":
            progress.update(task, doing=escape(event.cell.label))
        elif event.result:
            progress.advance(task)
            progress.update(task, doing="")
            if event.result.status != "ok":
                progress.console.print(
                    f"[red]{event.result.status}[/] {escape(_line(event, event.result))}", soft_wrap=True
                )

    return tell


def _in_lines(console: Console, name: str, total: int) -> Teller:
    ended = 0

    def tell(event: Event) -> None:
        nonlocal ended
        if event.kind == "end" and event.result:
            ended += 1
            line = f"{name} {ended}/{total} {event.result.status}: {_line(event, event.result)}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    return tell


def _line(event: Event, result: Result) -> str:
    """The cell, and its first metric or what went wrong."""
    if result.status != "ok":
        return f"{event.cell.label}: {result.reason}"
    first = next(iter(result.metrics), None)
    shown = f"{first} {result.metrics[first]:.4f}, " if first else ""
    return f"{event.cell.label}: {shown}{result.seconds or 0.0:.3f} s"
