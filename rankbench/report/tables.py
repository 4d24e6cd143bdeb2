"""Tables: published beside measured, one row per metric for scripts, one line per solver for people."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import fmean, pstdev
from typing import Any

from rankbench.harness.store import Result
from rankbench.metrics import RULES, metric
from rankbench.specs import parse, show_settings

Entry = Mapping[str, Any]  # a planned cell, as the plan records it
COLUMNS = tuple(
    "experiment data solver settings metric published measured sd n seconds peak_mb determinism status".split()
)
_WORST = ("failed", "memory", "timeout", "pending", "ok")


@dataclass(frozen=True)
class Row:
    """What `table --csv` prints; scripts build on these names."""

    experiment: str
    data: str
    solver: str
    settings: str
    metric: str
    published: float | None
    measured: float | None
    sd: float | None
    n: int
    seconds: float | None
    peak_mb: float | None
    determinism: str
    status: str
    shown: tuple[str, str] = ("", "")  # data and solver as somebody wrote them; this and the next not in the CSV
    published_sd: float | None = None


@dataclass(frozen=True)
class Sheet:
    """A table as people read it: a line per data set and solver, the metrics side by side."""

    headings: list[str]
    numeric: list[bool]
    lines: list[list[str]]
    best: set[tuple[int, int]]  # line and column of what measures best on its data

    def written(self, plain: Callable[[str], str], bold: Callable[[str], str]) -> list[list[str]]:
        """The lines in somebody's notation, the best of each column in bold."""
        return [
            [(bold if (number, column) in self.best else plain)(text) for column, text in enumerate(line)]
            for number, line in enumerate(self.lines)
        ]


@dataclass(frozen=True)
class Study:
    """All that is stored of one experiment."""

    name: str
    definition: Mapping[str, Any]
    cells: Sequence[tuple[Entry, Result | None]]
    skips: Sequence[Mapping[str, Any]]

    @property
    def experiment(self) -> Mapping[str, Any]:
        """The experiment as its TOML file described it."""
        table: Mapping[str, Any] = self.definition["experiment"]
        return table


@dataclass(frozen=True)
class Group:
    """The repetitions of one solver with one setting on one data set and split."""

    data: str
    split: str
    place: str  # data, and the split where the experiment has several
    shown: tuple[str, str]  # place and solver as somebody wrote them
    solver: str
    settings: Mapping[str, Any]
    determinism: str
    results: list[Result | None]

    @property
    def good(self) -> list[Result]:
        """The repetitions that ended well."""
        return [result for result in self.results if result and result.status == "ok"]

    @property
    def status(self) -> str:
        """The worst that happened to any repetition."""
        found = {result.status if result else "pending" for result in self.results}
        return min(found, key=_WORST.index)


def groups(study: Study) -> list[Group]:
    """The cells gathered over their repetitions, in the order of the plan."""
    several = len({entry["split"] for entry, _ in study.cells}) > 1
    gathered: dict[tuple[str, ...], Group] = {}
    for entry, result in study.cells:
        key = (entry["data"], entry["split"], entry["solver"], show_settings(entry["settings"]), str(entry["threads"]))
        group = gathered.setdefault(key, _empty_group(entry, several))
        group.results.append(result)
    return list(gathered.values())


def rows(study: Study) -> list[Row]:
    """Every group and metric, then what was skipped."""
    measured = [_row(study, group, metric) for group in groups(study) for metric in study.experiment["metrics"]]
    return measured + [_skipped_row(study, skip) for skip in study.skips]


def mean_seconds(group: Group) -> float | None:
    """Mean training seconds, where all repetitions ran alone and on one kind of machine."""
    if any(result.contended for result in group.good) or len({r.fingerprint for r in group.good}) != 1:
        return None
    return fmean(result.seconds or 0.0 for result in group.good)


def notes(study: Study) -> list[str]:
    """What a reader must know about published numbers that were measured on something else."""
    elsewhere = sorted({entry["on"] for entry in study.experiment["published"] if entry["on"]})
    return [f"Published on {name}, not on the data measured here: for orientation only." for name in elsewhere]


def definitions(study: Study) -> list[str]:
    """What the numbers of a table mean: a line per metric, and the rules that all share."""
    return [f"*{name}*: {metric(name).formula}." for name in study.experiment["metrics"]] + [RULES]


def described(skip: Mapping[str, Any]) -> str:
    """What was left out, why, and the command that would change it."""
    place = " ".join(filter(None, (skip["data"], skip["split"])))
    return f"{place}: {skip['reason']}" + (f"; to get it: {skip['remedy']}" if skip["remedy"] else "")


def sheet(study: Study) -> Sheet:
    """The rows of a study gathered into lines; a published column only where there is something in it."""
    table = rows(study)
    columns = _columns(study, table)
    lines: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in table:
        lines.setdefault((row.data, row.solver, row.settings), {})[row.metric] = row
    return Sheet(
        headings=["data", "solver", *(heading for heading, _, _ in columns), "seconds", "peak MB", "n", "status"],
        numeric=[False, False, *(True for _ in columns), True, True, True, False],
        lines=[_line(by_metric, columns) for by_metric in lines.values()],
        best=_best(list(lines.values()), columns),
    )


def to_csv(table: Iterable[Row]) -> str:
    """The promise that scripts build on: these columns, in this order, empty where there is nothing."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in table:
        writer.writerow({name: _exact(getattr(row, name)) for name in COLUMNS})
    return out.getvalue()


def to_markdown(table: Sheet) -> str:
    """A pipe table, the best of each column in bold."""
    lines = [table.headings, ["---:" if numeric else "---" for numeric in table.numeric]]
    lines += table.written(str, lambda text: f"**{text}**")
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def to_latex(table: Sheet) -> str:
    """A tabular for booktabs, the best of each column in bold."""
    columns = "".join("r" if numeric else "l" for numeric in table.numeric)
    head = [_tex(heading) for heading in table.headings]
    lines = table.written(_tex, lambda text: rf"\textbf{{{_tex(text)}}}")
    body = [" & ".join(line) + r" \\" for line in (head, *lines)]
    parts = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", body[0], r"\midrule", *body[1:], r"\bottomrule"]
    return "\n".join([*parts, r"\end{tabular}", ""])


Column = tuple[str, str, str]  # heading, metric, and which of its numbers: measured or published


def _columns(study: Study, table: list[Row]) -> list[Column]:
    columns: list[Column] = []
    for name in study.experiment["metrics"]:
        columns.append((name, name, "measured"))
        if any(row.published is not None for row in table if row.metric == name):
            columns.append(("published", name, "published"))
    return columns


def _line(by_metric: Mapping[str, Row], columns: list[Column]) -> list[str]:
    first = next(iter(by_metric.values()))
    racy = " (racy)" if first.determinism == "racy" else ""
    numbers = [_number(by_metric.get(name), which) for _, name, which in columns]
    costs = [_rounded(first.seconds, 3), _rounded(first.peak_mb, 0), str(first.n or "")]
    return [first.shown[0], first.shown[1] + racy, *numbers, *costs, first.status]


def _number(row: Row | None, which: str) -> str:
    if row is None:
        return ""
    value, sd = (row.published, row.published_sd) if which == "published" else (row.measured, row.sd)
    spread = sd is not None and (which == "published" or row.n > 1)
    return _rounded(value, 4) + (f" ± {sd:.4f}" if spread else "")


def _best(lines: list[Mapping[str, Row]], columns: list[Column]) -> set[tuple[int, int]]:
    """Where each metric is best on each data set, if solvers differ there as far as is printed."""
    best: set[tuple[int, int]] = set()
    for column, (_, name, which) in enumerate(columns, start=2):
        sign = 1 if metric(name).better == "higher" else -1
        places: dict[str, dict[int, float]] = {}
        for number, by_metric in enumerate(lines):
            row = by_metric.get(name)
            if which == "measured" and row and row.measured is not None and not isnan(row.measured):
                places.setdefault(row.data, {})[number] = sign * round(row.measured, 4)
        for found in places.values():
            if len(set(found.values())) > 1:
                best |= {(number, column) for number, value in found.items() if value == max(found.values())}
    return best


def _row(study: Study, group: Group, metric: str) -> Row:
    published = _published(study, group, metric)
    values = [result.metrics[metric] for result in group.good if metric in result.metrics]
    peaks = [result.peak_mb for result in group.good if result.peak_mb is not None]
    return Row(
        experiment=study.name,
        data=group.place,
        solver=group.solver,
        settings=show_settings(group.settings),
        metric=metric,
        published=published["value"] if published else None,
        published_sd=published["sd"] if published else None,
        measured=fmean(values) if values else None,
        sd=pstdev(values) if values else None,
        n=len(values),
        seconds=mean_seconds(group) if values else None,
        peak_mb=fmean(peaks) if peaks else None,
        determinism=group.determinism,
        status=group.status,
        shown=group.shown,
    )


def _skipped_row(study: Study, skip: Mapping[str, Any]) -> Row:
    place = " ".join(filter(None, (skip["data"], skip["split"])))
    spec = parse(skip["solver"] or "all")
    shown = (place, skip["solver"] or "all solvers")
    name = spec.name if skip["solver"] else ""
    nothing = {"published": None, "measured": None, "sd": None, "n": 0, "seconds": None, "peak_mb": None}
    named = {"experiment": study.name, "data": place, "solver": name, "settings": show_settings(spec.settings)}
    return Row(**named, **nothing, metric="", determinism="", status="skipped", shown=shown)  # type: ignore[arg-type]


def _published(study: Study, group: Group, metric: str) -> Mapping[str, Any] | None:
    """The published number that this row stands beside."""
    for entry in study.experiment["published"]:
        if (
            entry["metric"] == metric
            and _names(entry["solver"], group.solver, group.settings)
            and (entry["data"] is None or parse(entry["data"]).name == parse(group.data).name)
            and (entry["split"] is None or _names(entry["split"], *_split(group.split)))
        ):
            found: Mapping[str, Any] = entry
            return found
    return None


def _names(text: str, name: str, settings: Mapping[str, Any]) -> bool:
    """Whether `name[key=value]` names this one: the settings that it mentions must agree."""
    spec = parse(text)
    shown = {key: parse(f"x[{show_settings({key: value})}]").settings.get(key) for key, value in settings.items()}
    return spec.name == name and all(shown.get(key) == value for key, value in spec.settings.items())


def _split(text: str) -> tuple[str, Mapping[str, Any]]:
    spec = parse(text)
    return spec.name, spec.settings


def _empty_group(entry: Entry, several: bool) -> Group:
    data, split, solver = entry["shown"]
    return Group(
        data=entry["data"],
        split=entry["split"],
        place=f"{entry['data']} {entry['split']}" if several else entry["data"],
        shown=(f"{data} {split}" if several else data, solver),
        solver=entry["solver"],
        settings=entry["settings"],
        determinism=entry["determinism"],
        results=[],
    )


def _exact(value: object) -> object:
    return "" if value is None else repr(value) if isinstance(value, float) else value


def _rounded(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _tex(text: str) -> str:
    for letter in "&%$#_{}":
        text = text.replace(letter, "\\" + letter)
    return text.replace("±", r"$\pm$")
