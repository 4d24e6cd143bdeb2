"""Tables: published beside measured, one row per metric for scripts, one line per solver for people."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import fmean, pstdev
from typing import Any

from rankbench.experiments.spaces import described as described_tuning
from rankbench.harness.store import Result
from rankbench.metrics import RULES, metric
from rankbench.specs import parse, show_settings, show_value

Entry = Mapping[str, Any]  # a planned cell, as the plan records it
COLUMNS = tuple(
    "experiment data solver settings metric published measured sd n seconds peak_mb determinism status".split()
)
LOOKALIKE = "lookalike:"  # what the names of data sets begin with that only have another set's shape
_FEW = 3  # repetitions whose choices are listed one by one
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
    shown: tuple[str, str] = ("", "")  # data and solver as somebody wrote them; this and the next two not in the CSV
    chosen: str = ""  # the settings that tuning chose, for people
    published_sd: float | None = None
    pace: tuple[int, float | None, float | None] | None = None  # threads, speed-up and its bound, where these vary


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
    trials: Sequence[tuple[Entry, Result | None]] = ()

    @property
    def experiment(self) -> Mapping[str, Any]:
        """The experiment as its TOML file described it."""
        table: Mapping[str, Any] = self.definition["experiment"]
        return table


@dataclass(frozen=True)
class Group:
    """The repetitions of one solver, as somebody wrote it, on one data set and split."""

    data: str
    split: str
    place: str  # data, and the split where the experiment has several
    shown: tuple[str, str]  # place and solver as somebody wrote them
    solver: str
    settings: Mapping[str, Any]  # what tuning chose for each repetition, joined, where it differs
    chosen: str  # by tuning, for people
    determinism: str
    threads: int
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
    gathered: dict[tuple[str, ...], list[tuple[Entry, Result | None]]] = {}
    for entry, result in study.cells:
        written = {name: value for name, value in entry["settings"].items() if name not in entry["tuned"]}
        place = (entry["data"], entry["split"], entry["solver"], show_settings(written), str(entry["threads"]))
        gathered.setdefault((*place, *entry["tuned"]), []).append((entry, result))
    return [_group(members, several, study.experiment["tune"] is not None) for members in gathered.values()]


def rows(study: Study) -> list[Row]:
    """Every group and metric, then what was skipped."""
    measured = [_row(study, group, metric) for group in groups(study) for metric in study.experiment["metrics"]]
    return measured + [_skipped_row(study, skip) for skip in study.skips]


def mean_seconds(group: Group) -> float | None:
    """Mean training seconds, where all repetitions ran alone and on one kind of machine."""
    if any(result.contended for result in group.good) or len({r.fingerprint for r in group.good}) != 1:
        return None
    return fmean(result.seconds or 0.0 for result in group.good)


def varies_threads(study: Study) -> bool:
    """Whether the experiment runs every solver with several numbers of threads."""
    return len(study.experiment.get("threads", ())) > 1


def speed_ups(study: Study, group: Group) -> list[float]:
    """How many times faster each repetition's steps were than with the fewest threads; none if that is unknown.

    What comes before the first evaluated step counts for nothing: there a solver sets up what it uses later.
    """
    fewest = min(study.experiment["threads"])
    alike = (group.data, group.split, group.solver, group.settings)
    base = [
        other for other in groups(study) if other.threads == fewest and _alike(other) == alike and mean_seconds(other)
    ]
    if not base or mean_seconds(group) is None:
        return []
    paces = {result.cell["repetition"]: pace for result in base[0].good if (pace := _pace(result))}
    pairs = ((paces.get(result.cell["repetition"]), _pace(result)) for result in group.good)
    return [one / many for one, many in pairs if one and many]


def bound_of(group: Group) -> float | None:
    """The greatest speed-up that the solver's schedule allows with so many threads, where it says so."""
    found = [result.curve[-1]["bound"] for result in group.good if "bound" in result.curve[-1]]
    return fmean(found) if found else None


def _alike(group: Group) -> tuple[Any, ...]:
    return group.data, group.split, group.solver, group.settings


def _pace(result: Result) -> float | None:
    """Seconds per step, from the first point after the start on."""
    points = [point for point in result.curve if point["step"] >= 1]
    steps = points[-1]["step"] - points[0]["step"] if points else 0
    return (points[-1]["seconds"] - points[0]["seconds"]) / steps if steps else None


def notes(study: Study) -> list[str]:
    """What a reader must know: how solvers were tuned, and what published numbers were measured on."""
    elsewhere = sorted({entry["on"] for entry in study.experiment["published"] if entry["on"]})
    lines = [f"Published on {name}, not on the data measured here: for orientation only." for name in elsewhere]
    if tune := study.experiment["tune"]:
        lines.append(f"Tuned equally: {described_tuning(tune, study.experiment['metrics'])}.")
    return lines + _lookalikes(study)


def _lookalikes(study: Study) -> list[str]:
    """What must stand by results on data that only has another set's shape."""
    names = {parse(data["data"]).name for data in (*(entry for entry, _ in study.cells), *study.skips)}
    return [
        f"{name} is generated in the published shape of {name.removeprefix(LOOKALIKE)}, for speed work only: "
        f"its scores say nothing about {name.removeprefix(LOOKALIKE)}."
        for name in sorted(names)
        if name.startswith(LOOKALIKE)
    ]


def definitions(study: Study) -> list[str]:
    """What the numbers of a table mean: a line per metric, and the rules that all share."""
    return [f"*{name}*: {metric(name).formula}." for name in study.experiment["metrics"]] + [RULES]


def described(skip: Mapping[str, Any]) -> str:
    """What was left out, why, and the command that would change it."""
    place = " ".join(filter(None, (skip["data"], skip["split"])))
    return f"{place}: {skip['reason']}" + (f"; to get it: {skip['remedy']}" if skip["remedy"] else "")


def sheet(study: Study) -> Sheet:
    """The rows of a study gathered into lines; published and chosen only where there is something in them."""
    table = rows(study)
    columns = _columns(study, table)
    tuned = any(row.chosen for row in table)
    lines: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in table:
        lines.setdefault((row.data, row.solver, row.shown[1], row.settings, str(row.pace)), {})[row.metric] = row
    names = ["data", "solver", *(["chosen"] if tuned else [])]
    paces = ["threads", "speed-up", "its bound"] if varies_threads(study) else []
    costs = [*paces, "seconds", "peak MB", "n"]
    return Sheet(
        headings=[*names, *(heading for heading, _, _ in columns), *costs, "status"],
        numeric=[*(False for _ in names), *(True for _ in columns), *(True for _ in costs), False],
        lines=[_line(by_metric, columns, tuned, bool(paces)) for by_metric in lines.values()],
        best=_best(list(lines.values()), columns, len(names)),
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
    lines += table.written(_pipe_safe, lambda text: f"**{_pipe_safe(text)}**")
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


def _line(by_metric: Mapping[str, Row], columns: list[Column], tuned: bool, paced: bool) -> list[str]:
    first = next(iter(by_metric.values()))
    racy = " (racy)" if first.determinism == "racy" else ""
    names = [first.shown[0], first.shown[1] + racy, *([first.chosen] if tuned else [])]
    numbers = [_number(by_metric.get(name), which) for _, name, which in columns]
    costs = [_rounded(first.seconds, 3), _rounded(first.peak_mb, 0), str(first.n or "")]
    return [*names, *numbers, *(_paces(first) if paced else []), *costs, first.status]


def _paces(row: Row) -> list[str]:
    """Threads, speed-up and its bound, as far as they are known."""
    threads, speed_up, bound = row.pace or ("", None, None)
    return [str(threads), _rounded(speed_up, 2), _rounded(bound, 2)]


def _number(row: Row | None, which: str) -> str:
    if row is None:
        return ""
    value, sd = (row.published, row.published_sd) if which == "published" else (row.measured, row.sd)
    spread = sd is not None and (which == "published" or row.n > 1)
    return _rounded(value, 4) + (f" ± {sd:.4f}" if spread else "")


def _best(lines: list[Mapping[str, Row]], columns: list[Column], start: int) -> set[tuple[int, int]]:
    """Where each metric is best on each data set, if solvers differ there as far as is printed."""
    best: set[tuple[int, int]] = set()
    for column, (_, name, which) in enumerate(columns, start=start):
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
    pace = None
    if varies_threads(study):
        found = speed_ups(study, group)
        pace = group.threads, fmean(found) if found else None, bound_of(group)
    peaks = [result.peak_mb for result in group.good if result.peak_mb is not None]
    return Row(
        experiment=study.name,
        data=group.place,
        solver=group.solver,
        settings=show_settings({**group.settings, "threads": group.threads} if pace else group.settings),
        metric=metric,
        pace=pace,
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
        chosen=group.chosen,
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
    """The published number that this row stands beside; never one beside the scores on a lookalike."""
    if group.data.startswith(LOOKALIKE):
        return None
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


def _group(members: list[tuple[Entry, Result | None]], several: bool, tuned: bool) -> Group:
    """The group of these cells, which differ in their repetition and in what was chosen for it."""
    first = members[0][0]
    data, split, solver = first["shown"]
    known = dict.fromkeys(name for entry, _ in members for name in (*first["settings"], *entry["settings"]))
    values = {name: [entry["settings"].get(name, "?") for entry, _ in members] for name in known}
    chosen = ", ".join(f"{name}={_brief(values[name])}" for name in first["tuned"] if name in values)
    return Group(
        data=first["data"],
        split=first["split"],
        place=f"{first['data']} {first['split']}" if several else first["data"],
        shown=(f"{data} {split}" if several else data, solver),
        solver=first["solver"],
        settings={name: _joined(found) for name, found in values.items()},
        chosen=chosen if first["tuned"] or not tuned else "nothing to tune",
        determinism=first["determinism"],
        threads=first["threads"],
        results=[result for _, result in members],
    )


def _joined(values: list[Any]) -> Any:
    """What all repetitions have, or what each of them has: `10|30|10`."""
    return values[0] if all(value == values[0] for value in values) else "|".join(map(_written, values))


def _brief(values: list[Any]) -> str:
    """The same for people, who want to see how far the choices go where there are many."""
    found = list(dict.fromkeys(values))
    if len(found) == 1 or len(values) <= _FEW:
        return _written(_joined(values)).replace("|", " / ")
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in found):
        return f"{_written(min(found))}..{_written(max(found))}"
    return " / ".join(map(_written, found))


def _written(value: Any) -> str:
    return "none" if value is None else show_value(value)


def _exact(value: object) -> object:
    return "" if value is None else repr(value) if isinstance(value, float) else value


def _rounded(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _pipe_safe(text: str) -> str:
    """Text that does not end its cell of a pipe table."""
    return text.replace("|", "\\|")


def _tex(text: str) -> str:
    for letter in "&%$#_{}":
        text = text.replace(letter, "\\" + letter)
    return text.replace("±", r"$\pm$")
