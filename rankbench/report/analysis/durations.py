"""How long experiments took: the wall time in which their cells ran, without the pauses between runs."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from rankbench.records.results import Result
from rankbench.records.studies import Study
from rankbench.report.render.tables import Sheet

_HEADINGS = ("experiment", "wall time", "cells at a time", "cells", "trials")


def elapsed(studies: Iterable[Study]) -> float:
    """The seconds in which at least one cell or trial of these experiments ran, whatever ran beside it."""
    total, until = 0.0, float("-inf")
    for begin, end in sorted(_spans(studies)):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def at_a_time(study: Study) -> float:
    """How many cells ran at a time, on average over the wall time; NaN if none ran."""
    together = elapsed([study])
    return sum(result.wall for result in _results(study)) / together if together else float("nan")


def spelled(seconds: float) -> str:
    """A duration in hours, minutes and seconds, without those that do not matter."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.2g} s"


def duration_sheet(studies: Sequence[Study]) -> Sheet:
    """The wall time of each experiment that has run, and of all together in the last line."""
    ran = [study for study in studies if _results(study)]
    lines = [_line(study.name, [study], f"{at_a_time(study):.1f}") for study in ran]
    return Sheet(
        headings=_HEADINGS,
        numeric=tuple(heading != "experiment" for heading in _HEADINGS),
        lines=(*lines, _line("all together", ran, "")),
        best=frozenset(),
    )


def _line(name: str, studies: Sequence[Study], together: str) -> tuple[str, ...]:
    cells = sum(entry.result is not None for study in studies for entry in study.entries)
    trials = sum(entry.result is not None for study in studies for entry in study.trials)
    return name, spelled(elapsed(studies)), together, str(cells), str(trials)


def _results(study: Study) -> list[Result]:
    """The results of an experiment's cells and trials."""
    return [entry.result for entry in (*study.entries, *study.trials) if entry.result]


def _spans(studies: Iterable[Study]) -> Iterator[tuple[float, float]]:
    """When each cell began and ended, in seconds since 1970."""
    for study in studies:
        for result in _results(study):
            end = datetime.fromisoformat(result.finished).timestamp()
            yield end - result.wall, end
