"""What a person sees of a run: bars on a terminal, and elsewhere one line for each experiment, or for each cell."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isnan

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rankbench.core import lines
from rankbench.core.texts import safe
from rankbench.execution.run import Event, Tell
from rankbench.records.results import Result


@dataclass(frozen=True)
class Terminal:
    """Shows a session; quiet, it shows complaints only, and verbose, a line for each cell where nobody watches."""

    quiet: bool = False
    verbose: bool = False
    stderr: bool = False  # standard output is for results

    def say(self, line: str) -> None:
        """Print a line about the run."""
        if not self.quiet:
            (lines.mention if self.stderr else lines.show)(line)

    def complain(self, line: str) -> None:
        """Print a line about what went wrong."""
        lines.complain(line)

    @contextmanager
    def progress(self, name: str, total: int) -> Iterator[Tell]:
        """A context with a function that is told of the events of `total` cells."""
        console = Console(stderr=self.stderr)
        if self.quiet or total == 0 or not (console.is_terminal or self.verbose):
            yield lambda event: None
        elif console.is_terminal:
            with _bar(console) as progress:
                yield _on_terminal(progress, name, total)
        else:
            yield self._in_lines(name, total)

    def _in_lines(self, name: str, total: int) -> Tell:
        ended = 0

        def tell(event: Event) -> None:
            nonlocal ended
            if event.kind == "wait":
                self.say(f"{name}: {_waiting(event)}")
            elif event.kind == "end" and event.result:
                ended += 1
                self.say(f"{name} {ended}/{total} {event.result.status}: {_line(event, event.result)}")
                sys.stdout.flush()

        return tell


def _bar(console: Console) -> Progress:
    doing = TextColumn("{task.fields[doing]}", style="dim")
    columns = (TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn(), doing)
    return Progress(*columns, console=console)


def _on_terminal(progress: Progress, name: str, total: int) -> Tell:
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
