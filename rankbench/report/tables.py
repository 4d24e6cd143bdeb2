"""Tables: one row per data set, solver and metric, published beside measured."""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev
from typing import Any

from rankbench.harness.store import Result
from rankbench.specs import parse, show_settings

Entry = Mapping[str, Any]  # a planned cell, as the plan records it
COLUMNS = (
    "experiment", "data", "solver", "settings", "metric", "published", "measured", "sd", "n",
    "seconds", "peak_mb", "determinism", "status",
)  # fmt: skip
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


@dataclass(frozen=True)
class Study:
    """All that is stored of one experiment."""

    name: str
    definition: Mapping[str, Any]
    cells: list[tuple[Entry, Result | None]]
    skips: list[Mapping[str, Any]]

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

    @property
    def label(self) -> str:
        """Solver and settings, for people."""
        return f"{self.solver}[{show_settings(self.settings)}]"


def groups(study: Study) -> list[Group]:
    """The cells gathered over their repetitions, in the order of the plan."""
    several = len({entry["split"] for entry, _ in study.cells}) > 1
    gathered: dict[tuple[str, ...], Group] = {}
    for entry, result in study.cells:
        key = (entry["data"], entry["split"], entry["solver"], show_settings(entry["settings"]), str(entry["threads"]))
        place = f"{entry['data']} {entry['split']}" if several else entry["data"]
        group = gathered.setdefault(key, _empty_group(entry, place))
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


def to_csv(table: Iterable[Row]) -> str:
    """The promise that scripts build on: these columns, in this order, empty where there is nothing."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in table:
        writer.writerow({name: _exact(value) for name, value in asdict(row).items()})
    return out.getvalue()


def to_markdown(table: Iterable[Row]) -> str:
    """A table for people."""
    lines = ["| " + " | ".join(_HEADINGS) + " |", "|" + "|".join(_ALIGNMENT) + "|"]
    lines += ["| " + " | ".join(cells).replace("\n", " ") + " |" for cells in map(cells_of, table)]
    return "\n".join(lines) + "\n"


def to_latex(table: Iterable[Row]) -> str:
    """The same with booktabs."""
    body = [" & ".join(map(_tex, cells)) + r" \\" for cells in map(cells_of, table)]
    head = " & ".join(map(_tex, _HEADINGS)) + r" \\"
    columns = "".join("r" if mark == "---:" else "l" for mark in _ALIGNMENT)
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", ""])  # fmt: skip


_HEADINGS = ("data", "solver", "metric", "published", "measured", "sd", "n", "seconds", "peak MB", "status")
_ALIGNMENT = ("---", "---", "---", "---:", "---:", "---:", "---:", "---:", "---:", "---")


def cells_of(row: Row) -> tuple[str, ...]:
    """A row as people read it: rounded, and a RACY solver named so."""
    solver = f"{row.solver}[{row.settings}]" if row.settings else row.solver
    racy = " (racy)" if row.determinism == "racy" else ""
    numbers = (_rounded(row.published, 4), _rounded(row.measured, 4), _rounded(row.sd, 4), str(row.n or ""))
    costs = (_rounded(row.seconds, 3), _rounded(row.peak_mb, 0))
    return (row.data, solver + racy, row.metric, *numbers, *costs, row.status)


def _row(study: Study, group: Group, metric: str) -> Row:
    values = [result.metrics[metric] for result in group.good if metric in result.metrics]
    peaks = [result.peak_mb for result in group.good if result.peak_mb is not None]
    return Row(
        experiment=study.name,
        data=group.place,
        solver=group.solver,
        settings=show_settings(group.settings),
        metric=metric,
        published=_published(study, group, metric),
        measured=fmean(values) if values else None,
        sd=pstdev(values) if values else None,
        n=len(values),
        seconds=mean_seconds(group) if values else None,
        peak_mb=fmean(peaks) if peaks else None,
        determinism=group.determinism,
        status=group.status,
    )


def _skipped_row(study: Study, skip: Mapping[str, Any]) -> Row:
    place = " ".join(filter(None, (skip["data"], skip["split"])))
    name = parse(skip["solver"]).name if skip["solver"] else ""
    return Row(study.name, place, name, "", "", None, None, None, 0, None, None, "", "skipped")


def _published(study: Study, group: Group, metric: str) -> float | None:
    """The published number that this row stands beside."""
    for entry in study.experiment["published"]:
        if (
            entry["metric"] == metric
            and _names(entry["solver"], group.solver, group.settings)
            and (entry["data"] is None or parse(entry["data"]).name == parse(group.data).name)
            and (entry["split"] is None or _names(entry["split"], *_split(group.split)))
        ):
            return float(entry["value"])
    return None


def _names(text: str, name: str, settings: Mapping[str, Any]) -> bool:
    """Whether `name[key=value]` names this one: the settings that it mentions must agree."""
    spec = parse(text)
    shown = {key: parse(f"x[{show_settings({key: value})}]").settings.get(key) for key, value in settings.items()}
    return spec.name == name and all(shown.get(key) == value for key, value in spec.settings.items())


def _split(text: str) -> tuple[str, Mapping[str, Any]]:
    spec = parse(text)
    return spec.name, spec.settings


def _empty_group(entry: Entry, place: str) -> Group:
    return Group(entry["data"], entry["split"], place, entry["solver"], entry["settings"], entry["determinism"], [])


def _exact(value: object) -> object:
    return "" if value is None else repr(value) if isinstance(value, float) else value


def _rounded(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _tex(text: str) -> str:
    for letter in "&%$#_{}":
        text = text.replace(letter, "\\" + letter)
    return text
