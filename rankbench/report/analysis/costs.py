"""How long experiments took, without the pauses between runs, and the peak memory of each stage of each result."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from rankbench.records.results import STAGES, Result
from rankbench.records.studies import Study
from rankbench.report.render.tables import Sheet, csv_text

COLUMNS = ("experiment", "data", "split", "repetition", "solver", "status", *(f"{stage}_mb" for stage in STAGES))

_HEADINGS = ("experiment", "wall time", "cells at a time", "cells", "trials")


def elapsed(studies: Iterable[Study]) -> float:
    """The seconds in which at least one cell or trial of these experiments ran, whatever ran beside it."""
    return _length(_apart(_spans(studies)))


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


@dataclass(frozen=True)
class Duration:
    """How long an experiment took: when something of it ran, how many cells at a time, and how many there are."""

    name: str
    spans: tuple[tuple[float, float], ...]  # in seconds since 1970, one after the other
    together: float
    cells: int
    trials: int


def duration(study: Study) -> Duration | None:
    """How long an experiment took; None if nothing of it has run."""
    if not _results(study):
        return None
    cells, trials = (sum(one.result is not None for one in part) for part in (study.entries, study.trials))
    return Duration(study.name, tuple(_apart(_spans([study]))), at_a_time(study), cells, trials)


def duration_sheet(durations: Iterable[Duration | None]) -> Sheet:
    """The wall time of each experiment that has run, and of all together in the last line."""
    ran = [one for one in durations if one]
    lines = [(one.name, spelled(_length(one.spans)), f"{one.together:.1f}", str(one.cells), str(one.trials))
             for one in ran]  # fmt: skip
    together = _length(_apart(span for one in ran for span in one.spans))
    counts = (str(sum(counted)) for counted in ([one.cells for one in ran], [one.trials for one in ran]))
    return Sheet(
        headings=_HEADINGS,
        numeric=tuple(heading != "experiment" for heading in _HEADINGS),
        lines=(*lines, ("all together", spelled(together), "", *counts)),
    )


def _apart(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The spans in order, with those that overlap joined."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def _length(spans: Iterable[tuple[float, float]]) -> float:
    return sum(end - begin for begin, end in spans)


def _results(study: Study) -> list[Result]:
    """The results of an experiment's cells and trials."""
    return [entry.result for entry in (*study.entries, *study.trials) if entry.result]


def _spans(studies: Iterable[Study]) -> Iterator[tuple[float, float]]:
    """When each cell began and ended, in seconds since 1970."""
    for study in studies:
        for result in _results(study):
            end = datetime.fromisoformat(result.finished).timestamp()
            yield end - result.wall, end


def peak_sheet(study: Study) -> Sheet:
    """The table of peaks in MB, one result per line; a stage that was not measured is empty."""
    results = study.results
    return Sheet(
        headings=("data", "split", "repetition", "solver", "status", *(f"{stage} MB" for stage in STAGES)),
        numeric=(False, False, True, False, False, *(True for _ in STAGES)),
        lines=tuple(
            (*_about(result), *(f"{peak:.0f}" if peak else "" for peak in _peaks(result))) for result in results
        ),
    )


def peaks_to_csv(study: Study) -> str:
    """The peaks as CSV with the columns `COLUMNS` in this order, in MB; a stage that was not measured is empty."""
    return csv_text(COLUMNS, ((study.name, *_about(result), *_peaks(result)) for result in study.results))


def _about(result: Result) -> tuple[str, ...]:
    """The data, the split, the repetition and the solver of a result, and how it ended."""
    place = result.cell.place
    return place.data.written, place.split.written, str(place.repetition), result.cell.solver_text, result.status


def _peaks(result: Result) -> list[float | None]:
    """The peak of every stage, None for a stage that was not measured."""
    found = {peak.stage: peak.megabytes for peak in result.peaks}
    return [found.get(stage) for stage in STAGES]
