"""The peak memory of each stage of each stored result: of making the data, cutting, reading, training, evaluating."""

from rankbench.records.results import STAGES, Result
from rankbench.records.studies import Study
from rankbench.report.render.tables import Sheet, csv_text

COLUMNS = ("experiment", "data", "split", "repetition", "solver", "status", *(f"{stage}_mb" for stage in STAGES))


def peak_sheet(study: Study) -> Sheet:
    """The table of peaks in MB, one result per line; a stage that was not measured is empty."""
    results = study.results
    return Sheet(
        headings=("data", "split", "repetition", "solver", "status", *(f"{stage} MB" for stage in STAGES)),
        numeric=(False, False, True, False, False, *(True for _ in STAGES)),
        lines=tuple(
            (*_about(result), *(f"{peak:.0f}" if peak else "" for peak in _peaks(result))) for result in results
        ),
        best=frozenset(),
    )


def peaks_to_csv(study: Study) -> str:
    """The peaks as CSV with the columns `COLUMNS` in this order, in MB; a stage that was not measured is empty."""
    return csv_text(
        COLUMNS,
        (
            (study.name, *_about(result), *("" if peak is None else repr(peak) for peak in _peaks(result)))
            for result in study.results
        ),
    )


def _about(result: Result) -> tuple[str, ...]:
    """The data, the split, the repetition and the solver of a result, and how it ended."""
    place = result.cell.place
    return place.data.written, place.split.written, str(place.repetition), result.cell.solver_text, result.status


def _peaks(result: Result) -> list[float | None]:
    """The peak of every stage, None for a stage that was not measured."""
    found = {peak.stage: peak.megabytes for peak in result.peaks}
    return [found.get(stage) for stage in STAGES]
