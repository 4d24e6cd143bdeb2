"""Tables for people and files: sheets with one line per solver, CSV, Markdown and LaTeX, and the notes under them."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from math import inf, isclose, isnan
from typing import Any

from rankbench.core.contract import Determinism
from rankbench.core.texts import csv_cell, latex, markdown_cell, safe
from rankbench.experiments.spaces import described as described_tuning
from rankbench.metrics import RULES
from rankbench.records.cells import DataSplit
from rankbench.records.studies import Study
from rankbench.report.analysis.evidence import Evidence, evidence
from rankbench.report.analysis.published import LOOKALIKE, remarks
from rankbench.report.analysis.strength import MARK, weaknesses
from rankbench.report.render.labels import counted, metric_labels, place_headings, place_text
from rankbench.report.rows import COLUMNS, Pace, Row, rows
from rankbench.report.study import varies_threads
from rankbench.statistics.decisions import BETTER, EQUAL
from rankbench.statistics.estimates import ONE_VALUE

_COUNTS = ("users", "left_out")  # whole numbers if all repetitions agree
DISTURBED = "*"  # marks unreliable times
VERDICTS = (
    "`±` is the standard deviation between repetitions. Each solver is held against the best other one, on the same "
    "users and repetitions: *better*, *worse*, *equal* within the margin, or *open*, with the interval of the "
    "difference. Intervals and verdicts cover other users, splits, searches and starts, as far as repetitions draw "
    "them anew; of all groups of equal solvers at most 5 % have one that is called worse. The margin is a hundredth of "
    "the best mean where the experiment sets none. Bold: not worse than the best, by several repetitions."
)


@dataclass(frozen=True)
class Sheet:
    """A table for display: a line per data set and solver, with the metrics side by side."""

    headings: tuple[str, ...]
    numeric: tuple[bool, ...]
    lines: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()  # (line, column) of what is not worse than the best on the same data
    solvers: tuple[str, ...] = ()  # the solver of each line as the user wrote it, where every line has one

    def __post_init__(self) -> None:
        """Make all texts safe to show, so that no form of a table can forget it."""
        object.__setattr__(self, "headings", tuple(map(safe, self.headings)))
        object.__setattr__(self, "lines", tuple(tuple(map(safe, line)) for line in self.lines))

    def written(self, plain: Callable[[str], str], bold: Callable[[str], str]) -> list[list[str]]:
        """The lines, with what is in `best` formatted by `bold` and all other texts by `plain`."""
        return [
            [(bold if (number, column) in self.best else plain)(text) for column, text in enumerate(line)]
            for number, line in enumerate(self.lines)
        ]


class Placed:
    """A record about a data set with a split, which stand in its CSV as two texts in place of its field `place`."""

    place: DataSplit

    @property
    def data(self) -> str:
        """The data set as the user wrote it."""
        return self.place.data.written

    @property
    def split(self) -> str:
        """The split as the user wrote it."""
        return self.place.split.written

    @property
    def record(self) -> dict[str, object]:
        """The columns of the CSV with their values."""
        return {name: getattr(self, name) for name in columns_of(type(self))}


def columns_of(kind: type[Any]) -> tuple[str, ...]:
    """The columns of the CSV of such records: their fields in this order, data and split in place of `place`."""
    names = (field.name for field in fields(kind))
    return tuple(name for field in names for name in (("data", "split") if field == "place" else (field,)))


@dataclass(frozen=True)
class Column:
    """A column of numbers: its heading, how to get its text from a row, and the metric that the row is of."""

    heading: str
    text: Callable[[Row], str]
    label: str = ""  # empty where the rows of all metrics say the same
    measured: bool = False


def notes(study: Study) -> list[str]:
    """Notes for the reader: on published numbers, tuning, lookalike data, unreliable times and hidden results."""
    lines = remarks(study)
    if tune := study.experiment.tune:
        labels = [measure.label for measure in study.measures]
        lines.append(f"Tuned equally: {described_tuning(tune, labels)}.{_patience(study)}")
    return [*lines, *_lookalikes(study), *verdict_notes(study), *strength_notes(study), *timing_notes(study),
            *study.notes]  # fmt: skip


def failures(study: Study) -> list[str]:
    """A line for each reason why cells or trials did not end well, with the first of them; empty if all did."""
    found: dict[tuple[str, str], list[str]] = {}
    for entry in (*study.entries, *study.trials):
        if entry.status not in ("ok", "pending"):
            found.setdefault((entry.status, entry.reason), []).append(entry.cell.label)
    return [
        f"{status}: {safe(labels[0])}{f' and {len(labels) - 1} more' if len(labels) > 1 else ''}: {reason}"
        for (status, reason), labels in found.items()
    ]


def _patience(study: Study) -> str:
    """What is said of trials that ended early."""
    patience = study.experiment.budget.patience
    if patience is None:
        return ""
    return (
        f" A trial ends after {patience} evaluations without a better value; each solver takes as many steps as its"
        " best trial took to its best value."
    )


def timing_notes(study: Study) -> list[str]:
    """The explanation of the mark behind unreliable times, and of times that are left out; empty without either."""
    notes = []
    shown = [result for entry in study.entries if (result := entry.good)]
    if any(result.disturbed and not result.contended for result in shown):
        notes.append(
            f"{DISTURBED} Timed while other processes used more than a quarter of a core on average: "
            "--rerun disturbed runs these cells again."
        )
    if any(result.contended for result in shown):
        notes.append(
            "No times of cells that ran beside others are shown: --rerun disturbed runs these again, one at a time."
        )
    return notes


def strength_notes(study: Study) -> list[str]:
    """Which solvers were not shown at their best, and that nothing is called better than them for it."""
    found = weaknesses(study)
    rule = "No solver is called better than one that was not shown at its best: such a verdict is open."
    return [*(f"{line}." for line in found), *([rule] if found else [])]


def verdict_notes(study: Study) -> list[str]:
    """Which verdicts are open, what would settle them, and the differences that would show."""
    if study.experiment.figure.is_of_costs:
        return []
    found = [one for one in evidence(study).values() if len(one.verdicts) > 1]
    scopes = sorted({one.scope for one in found})
    lines = [f"Verdicts speak of what happens {' or '.join(scopes)}."] if scopes else []
    if any(one.repetitions == 1 for one in found):
        lines.append("Of one repetition nothing is bold: another split or start may give another order.")
    open_ones = [one for one in found if one.open]
    return [*lines, *(_open_line(study, one) for one in open_ones)]


def _open_line(study: Study, one: Evidence) -> str:
    """How many verdicts are open in one place by one metric, and what would settle them."""
    nearest = min(one.open.values(), key=lambda verdict: verdict.decision.repetitions_needed or inf).decision
    where = f"{place_text(study, one.place)}, {one.label}"
    count = f"{len(one.open)} of {counted(len(one.verdicts) - 1, 'verdict', ',')} on other solvers"
    parts = [f"{where}: {count} open against the best, with a margin of {one.margin:.2g}"]
    if seen := one.detectable:
        values = f"{counted(one.users, 'user', ',')} and {counted(one.repetitions, 'repetition', ',')}"
        parts.append(f"with {values} a difference of {seen:.2g} would show with a probability of .8")
    if nearest.settled_by:
        parts.append(f"the nearest to settle needs {nearest.settled_by}")
    return "; ".join(parts) + "."


def definitions(study: Study) -> list[str]:
    """What the numbers of a table mean: a line per metric, and the rules that all share."""
    names = metric_labels(study)
    told = {one.label: "" if names[one.label] == one.label else f" (`{one.label}`)" for one in study.measures}
    lines = [f"*{names[one.label]}*{told[one.label]}: {one.formula}." for one in study.measures]
    lines += [] if study.is_judged else [RULES]  # a convention of another tool says all of this itself
    return [*lines, *([VERDICTS] if evidence(study) else [])]


def sheet(study: Study) -> Sheet:
    """The table of a study; some columns are left out if they would be empty."""
    table = rows(study)
    columns = [*_columns(study, table), *(_paces(table) if varies_threads(study) else ()), *_costs(table)]
    names = [*place_headings(study), "solver", *(["chosen"] if any(row.chosen for row in table) else [])]
    lines: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in table:
        key = (row.data, row.split, row.solver, row.shown[-1], row.settings, str(row.pace))
        lines.setdefault(key, {})[row.metric] = row
    return Sheet(
        headings=(*names, *(column.heading for column in columns), "status"),
        numeric=(*(False for _ in names), *(True for _ in columns), False),
        lines=tuple(_line(by_metric, columns, names[-1] == "chosen") for by_metric in lines.values()),
        best=_best(list(lines.values()), columns, len(names)),
        solvers=tuple(solver for _, _, _, solver, *_ in lines),
    )


def to_csv(table: Iterable[Row]) -> str:
    """The rows as CSV with the columns `COLUMNS` in this order, on which scripts rely; missing values are empty."""
    return csv_text(COLUMNS, ([_exact(name, getattr(row, name)) for name in COLUMNS] for row in table))


def csv_text(columns: Sequence[str], lines: Iterable[Iterable[object]]) -> str:
    """Lines as CSV under these headings, None as an empty cell and floats with all their digits.

    No text in it is a formula to a spreadsheet, as `csv_cell` says.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([csv_cell(value) for value in line] for line in (columns, *lines))
    return out.getvalue()


def to_markdown(table: Sheet) -> str:
    """A table in Markdown, with what is not worse than the best in bold."""
    lines = [[*map(markdown_cell, table.headings)], ["---:" if numeric else "---" for numeric in table.numeric]]
    lines += table.written(markdown_cell, lambda text: f"**{markdown_cell(text)}**")
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def to_latex(table: Sheet) -> str:
    """A LaTeX tabular for booktabs, with what is not worse than the best in bold."""
    columns = "".join("r" if numeric else "l" for numeric in table.numeric)
    head = [latex(heading) for heading in table.headings]
    lines = table.written(latex, lambda text: rf"\textbf{{{latex(text)}}}")
    body = [" & ".join(line) + r" \\" for line in (head, *lines)]
    parts = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", body[0], r"\midrule", *body[1:], r"\bottomrule"]
    return "\n".join([*parts, r"\end{tabular}", ""])


def _columns(study: Study, table: Sequence[Row]) -> list[Column]:
    """The columns of numbers: for each metric the measured one, then published and computed ones if there are any."""
    columns: list[Column] = []
    names = metric_labels(study)
    for measure in study.measures:
        own = [row for row in table if row.metric == measure.label]
        columns.append(Column(names[measure.label], measured_text, measure.label, measured=True))
        if any(row.low is not None or row.verdict for row in own):
            several = any(row.verdict for row in own)
            columns.append(Column("against the best" if several else "95 %", against_text, measure.label))
        if published := [row for row in own if row.published is not None]:
            columns.append(Column(*_published_column(published), measure.label))
        if any(row.computed is not None for row in own):
            columns.append(Column("computed", lambda row: _rounded(row.computed, 4), measure.label))
    return columns


def _published_column(published: Sequence[Row]) -> tuple[str, Callable[[Row], str]]:
    """The heading and the texts of a column of published numbers; either names the data if it differs from ours."""
    elsewhere = {row.published_on if row.elsewhere else "" for row in published}
    if len(elsewhere) == 1:
        (name,) = elsewhere
        return f"published on {name}" if name else "published", published_text
    return "published", lambda row: published_text(row) + (f" ({row.published_on})" if row.elsewhere else "")


def _paces(table: Sequence[Row]) -> Iterator[Column]:
    """The columns of experiments that vary the number of threads; published ones if there are any."""
    texts: dict[str, Callable[[Pace], str]] = {
        "threads": lambda pace: str(pace.threads),
        "speed-up": lambda pace: _rounded(pace.speed_up, 2),
        "its bound": lambda pace: _rounded(pace.bound, 2),
        "with set-up": lambda pace: _rounded(pace.overall, 2),
        "published speed-up": lambda pace: _rounded(pace.published, 2),
        "published seconds": lambda pace: _rounded(pace.published_seconds, 1),
    }
    for heading, text in texts.items():
        of_row = partial(_of_pace, text)
        if not heading.startswith("published") or any(map(of_row, table)):
            yield Column(heading, of_row)


def _of_pace(text: Callable[[Pace], str], row: Row) -> str:
    """The text for a row; empty where the row has no pace, as it is of skipped data."""
    return text(row.pace) if row.pace else ""


def _costs(table: Sequence[Row]) -> list[Column]:
    """The columns of times, memory, and users or pairs that were left out; most only where they say something."""
    columns: list[tuple[bool, str, Callable[[Row], str]]] = [
        (True, "seconds", lambda row: _rounded(row.seconds, 3) + (DISTURBED if row.disturbed and row.seconds else "")),
        (any(row.step for row in table), "seconds per step", lambda row: _rounded(row.step, 3)),
        (any(row.published_step for row in table), "published seconds per step",
         lambda row: _rounded(row.published_step, 2)),
        (any((row.prepare or 0) >= 0.01 for row in table), "prepare", lambda row: _rounded(row.prepare, 3)),
        (any(row.gap is not None for row in table), "relative gap",
         lambda row: "" if row.gap is None else f"{row.gap:.0e}"),
        (True, "peak MB", lambda row: _rounded(row.peak_mb, 0)),
        (True, "n", lambda row: str(row.n or "")),
        (any(row.left_out for row in table), "left out", lambda row: _rounded(row.left_out, 0)),
        (any(row.unscored for row in table), "unscored",
         lambda row: "" if row.unscored is None else f"{row.unscored:.2%}"),
    ]  # fmt: skip
    return [Column(heading, text) for is_shown, heading, text in columns if is_shown]


def _line(by_metric: Mapping[str, Row], columns: list[Column], tuned: bool) -> tuple[str, ...]:
    """The texts of one line: its names, its numbers, and how its cells ended."""
    first = next(iter(by_metric.values()))
    rows_of = {**by_metric, "": first}
    names = [*first.shown[:-1], first.shown[-1] + _promise(first), *([first.chosen] if tuned else [])]
    numbers = [column.text(rows_of[column.label]) if column.label in rows_of else "" for column in columns]
    return (*names, *numbers, first.status)


def _promise(row: Row) -> str:
    """What is appended to the name of a solver if its results are not exact, or it was not shown at its best."""
    told = {Determinism.RACY.value: " (racy)", Determinism.FIXED_THREADS.value: " (exact for a number of threads)"}
    return told.get(row.determinism, "") + (f" {MARK}" if row.weak else "")


def measured_text(row: Row) -> str:
    """The measured number with its spread between repetitions."""
    return _rounded(row.measured, 4) + (f" ± {row.sd:.4f}" if row.sd is not None and row.n > 1 else "")


def interval_text(row: Row) -> str:
    """The 95 % interval of the measured number; empty if there is none."""
    if row.low is None or row.high is None:
        return ""
    why = f" ({ONE_VALUE})" if isclose(row.low, row.high) else ""
    return f"{_rounded(row.low, 4)} to {_rounded(row.high, 4)}{why}"


def difference_text(value: float) -> str:
    """A difference with its sign; one that is rounded to nothing has no minus."""
    return f"{value:+z.4f}".replace("-", "−")


def against_text(row: Row) -> str:
    """What is said of a solver against the best other one, with the interval of their difference.

    Where there is no other solver it is the interval of the mean.
    """
    if not row.verdict:
        return interval_text(row)
    word = f"equal within {row.margin:.2g}" if row.verdict == EQUAL else row.verdict
    if row.difference_low is None or row.difference_high is None:
        return f"{word}: {row.reason}"
    ends = " to ".join(map(difference_text, (row.difference_low, row.difference_high)))
    why = f" ({row.reason})" if isclose(row.difference_low, row.difference_high) else ""
    return f"{'best, ' if row.best and row.verdict != BETTER else ''}{word}, {ends}{why}"


def published_text(row: Row) -> str:
    """The published number with its spread, if one was published."""
    return _rounded(row.published, 4) + ("" if row.published_sd is None else f" ± {row.published_sd:.4f}")


def _best(lines: list[Mapping[str, Row]], columns: list[Column], start: int) -> frozenset[tuple[int, int]]:
    """The (line, column) of each measured number that is not worse than the best one on the same data."""
    return frozenset(
        (number, index)
        for index, column in enumerate(columns, start=start)
        for number, by_metric in enumerate(lines)
        if column.measured and column.label in by_metric and by_metric[column.label].bold
    )


def _lookalikes(study: Study) -> list[str]:
    """Warnings that results on lookalike data are for speed work only."""
    data = (*(entry.cell.place.data for entry in study.entries), *(skip.data for skip in study.skips))
    return [
        f"{name} is generated in the published shape of {of}, for speed work only: its scores say nothing about {of}."
        for name, of in sorted({(one.name, one.argument) for one in data if one.entry == LOOKALIKE})
    ]


def _exact(name: str, value: object) -> object:
    """The value of a column, None if it is NaN; a mean of counts that is a whole number has no point."""
    if not isinstance(value, float):
        return value
    return None if isnan(value) else int(value) if name in _COUNTS and value.is_integer() else value


def _rounded(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
