"""The answer to "which solver is best on my data": a narrow table, a sentence, and a line for each failure."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from rankbench.core.texts import safe
from rankbench.experiments.usual_spaces import FLOORS
from rankbench.records.cells import Measure
from rankbench.records.studies import Group, Study
from rankbench.report.analysis.comparison import p_text
from rankbench.report.analysis.evidence import evidence
from rankbench.report.analysis.strength import MARK
from rankbench.report.render.labels import joined, metric_labels
from rankbench.report.render.tables import Sheet, interval_text
from rankbench.report.rows import Row, rows
from rankbench.report.study import mean_seconds
from rankbench.statistics.decisions import BETTER, EQUAL, OPEN, WORSE


@dataclass(frozen=True)
class Standing:
    """One solver of a comparison: its row of the first metric."""

    group: Group
    row: Row

    @property
    def said(self) -> str:
        """The verdict in words."""
        row = self.row
        if row.measured is None:
            return {"ok": "no value", "pending": "not finished"}.get(row.status, row.status)
        if row.best and row.verdict == BETTER:
            return "best"
        word = f"equal within {row.margin:.2g}" if row.verdict == EQUAL else row.verdict
        p = f", p = {p_text(row.p)}".replace("= <", "<") if row.verdict == WORSE and row.p is not None else ""
        return f"{'best, ' if row.best and word else ''}{word}{p}"


def ranking(study: Study) -> list[Standing]:
    """The solvers of a study of one data set and split, from best to worst by the first metric; failures last.

    The first one is that with which verdicts compare the others; one that lacks repetitions may have a better mean.
    """
    first = study.measures[0]
    lines = [Standing(row.group, row) for row in rows(study) if row.group and row.metric == first.label]
    return sorted(lines, key=lambda line: _place(line, first))


def answer_sheet(study: Study) -> Sheet:
    """The table of a comparison, from best to worst, narrow enough for a terminal of 80 columns."""
    lines, labels = ranking(study), metric_labels(study)
    first, *others = study.measures
    timed = any(mean_seconds(line.group) is not None for line in lines if line.group.good)
    names = ("run",) if study.is_judged else ("solver", "chosen")  # nothing is known of other tools' settings
    of_others = (labels[one.label] for one in others)
    headings = (*names, labels[first.label], "95 %", "verdict", *of_others, *(["seconds"] if timed else []))
    return Sheet(
        headings=headings,
        numeric=tuple(heading not in (*names, "verdict") for heading in headings),
        lines=tuple(tuple(_cells(line, others, "chosen" in names, timed)) for line in lines),
        best=frozenset((number, len(names)) for number, line in enumerate(lines) if line.row.bold),
    )


def answer(study: Study) -> str:
    """The answer in a sentence."""
    lines = [line for line in ranking(study) if line.row.measured is not None]
    if not lines:
        return "no solver has a result"
    best, label = lines[0], metric_labels(study)[study.measures[0].label]
    interval = interval_text(best.row)
    value = f"{best.row.measured:.4f}" + (f", 95 % {interval}" if interval else "")
    said = f"{name_of(best)} has the best {label}: {value}"
    if len(lines) == 1:
        return f"{said}; there is no other {'run' if study.is_judged else 'solver'} to compare it with"
    return "; ".join([said, *_against(study, lines[1:]), *_floor(lines)])


def _floor(lines: list[Standing]) -> Iterator[str]:
    """That a solver which knows nothing of single users is about as good as the best, which is then the simpler one."""
    best = lines[0].row.measured
    if best is None or lines[0].group.solver.name in FLOORS:
        return
    for line in lines[1:]:
        row = line.row
        near = row.measured is not None and row.margin is not None and abs(best - row.measured) <= row.margin
        if near and line.group.solver.name in FLOORS:
            yield f"{name_of(line)}, which knows nothing of single users, is within the margin of {row.margin:.2g}"
            return


def _against(study: Study, others: list[Standing]) -> Iterator[str]:
    """What is said of the best against all others: a clause for those it beats, equals, and is not told from."""
    first = study.measures[0].label
    scope = next((one.scope for one in evidence(study).values() if one.label == first), "")
    by_word = {word: [line for line in others if line.row.verdict == word] for word in (WORSE, EQUAL, OPEN)}
    if not any(by_word.values()):
        return
    told = []
    if worse := by_word[WORSE]:
        beaten = "all others" if len(worse) == len(others) else joined([name_of(line) for line in worse])
        told.append(f"better than {beaten}")
    if equal := by_word[EQUAL]:
        told.append(f"equal to {joined([name_of(line) for line in equal])} within {equal[0].row.margin:.2g}")
    if told:
        yield f"{scope} it is {' and '.join(told)}"
    yield from _left_open(by_word[OPEN])


def _left_open(lines: list[Standing]) -> Iterator[str]:
    """The solvers not told from the best: a clause for those that the same number of repetitions would settle."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for line in lines:
        needed = line.row.settled_by
        why = f" ({line.row.reason})" if line.row.reason else ""
        ending = f": {needed} would probably settle it" if needed else why
        alike[ending].append(name_of(line))
    yield from (f"against {joined(names)} it is open{ending}" for ending, names in alike.items())


def failures(study: Study) -> list[str]:
    """A line for each solver that failed, had trials that failed, or does not suit the data."""
    bad = {
        f"{entry.cell.solver.written}: {entry.status}: {entry.reason}": None
        for entry in study.entries
        if entry.status not in ("ok", "pending")
    }
    skipped = {skip.reason + (f"; to get it: {skip.remedy}" if skip.remedy else "") for skip in study.skips}
    return [*bad, *failed_trials(study), *(f"left out: {safe(text)}" for text in sorted(skipped))]


def failed_trials(study: Study) -> list[str]:
    """A line for each reason why trials of a solver were not tried out, with their number."""
    counts = Counter((entry.status, entry.cell.solver.name, entry.reason) for entry in study.failed_trials)
    return [
        f"{status}: {number} trial{'s' if number > 1 else ''} of {solver}: {reason}"
        for (status, solver, reason), number in counts.items()
    ]


def name_of(line: Standing) -> str:
    """The solver as the user wrote it."""
    return line.group.solver.written


def _cells(line: Standing, others: list[Measure], tuned: bool, timed: bool) -> Iterator[str]:
    row = line.row
    yield name_of(line) + (f" {MARK}" if row.weak else "")
    if tuned:
        yield row.chosen.replace("nothing to tune", "")
    yield "" if row.measured is None else f"{row.measured:.4f}"
    yield "" if row.low is None or row.high is None else f"{row.low:.3f} to {row.high:.3f}"
    yield line.said
    for measure in others:
        values = line.group.values(measure.label)
        yield f"{sum(values) / len(values):.4f}" if values else ""
    if timed:
        seconds = mean_seconds(line.group) if line.group.good else None
        yield "" if seconds is None else f"{seconds:.2f}"


def _place(line: Standing, first: Measure) -> tuple[bool, bool, float]:
    """Where a line stands: the best of those that are compared before all others, failures behind them."""
    measured = line.row.measured
    return measured is None, not line.row.best, 0.0 if measured is None else -first.sign * measured
