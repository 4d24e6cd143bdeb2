"""Experiments: one TOML file per published table or figure, read strictly.

An unknown key is an error that names the file, the key and the most similar known key. The keys
under `[full]` replace those of the quick profile when `--full` is given.
"""

import os
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from rankbench.core.errors import UserError, placed, refuse_unknown, unknown
from rankbench.core.regular import content
from rankbench.core.texts import is_file_name
from rankbench.experiments.costs import Growth, Rivals, read_patterns
from rankbench.experiments.figures import Curve, Figure, check_shown
from rankbench.experiments.naming import KINDS, Names, read_names
from rankbench.experiments.spaces import Tune, read_tune
from rankbench.metrics import metric
from rankbench.names import REPETITIONS, STEPS, THREADS, Checked, Limits, Named, Pattern, Settings

_LARGEST = 1 << 24  # bytes of an experiment file


@dataclass(frozen=True)
class Budget(Checked):
    """When to stop a solver: after a number of steps or seconds, or when the objective changes less than a tolerance.

    Step 0 is the start, so `steps=20` asks for 20 steps after it. `tolerance` compares the objectives
    of successive steps; computing them does not count as training time. `patience` stops early: a trial of a search
    ends after so many evaluations in a row without a better value on its validation part, and the solver is then
    trained for as many steps as the best trial took to its best value.
    """

    steps: Annotated[int, STEPS] | None = 20
    seconds: Annotated[float, Limits(above=0)] | None = None
    tolerance: Annotated[float, Limits(above=0)] | None = None
    patience: Annotated[int, Limits(low=1, high=STEPS.high)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps is None and self.seconds is None and self.tolerance is None:
            raise UserError("a budget needs steps, seconds or a tolerance: some solvers never stop by themselves")


TIMES = ("speed-up", "seconds")  # what may be published of a number of threads, in place of a metric
PER_STEP = "seconds-per-step"  # may be published in place of a metric


@dataclass(frozen=True)
class Published(Checked):
    """A reference number for a measured one: published in a paper, or computed from a formula."""

    solver: Pattern
    metric: str
    value: float
    sd: float | None = None
    data: Pattern | None = None  # the experiment's data set that the number belongs to; None: every one
    split: Pattern | None = None
    threads: Annotated[int, THREADS] | None = None  # the number that a published speed-up or time is of
    on: Pattern | None = None  # the data set that the paper used, by its name in rankbench; None: the same data
    remark: str = ""  # other differences from the paper
    computed: str = ""  # the formula, if the number is computed and not published

    def __post_init__(self) -> None:
        super().__post_init__()
        read_patterns(self, "solver", "data", "split", "on")
        if (self.metric in TIMES) != (self.threads is not None):
            raise UserError(f"threads goes with metric = {' or '.join(TIMES)}, and they with it", subject="Published")

    def is_about(self, data: Named, split: Named) -> bool:
        """Whether the number stands beside what is measured on this data set and split."""
        return (self.data is None or data.fits(self.data)) and (self.split is None or split.fits(self.split))


@dataclass(frozen=True)
class Experiment(Checked):
    """An experiment: the data sets, splits, solvers and metrics to run, and how to show the results."""

    name: str
    title: str
    about: str
    data: tuple[str, ...]
    splits: tuple[str, ...]
    solvers: tuple[str, ...]
    metrics: tuple[str, ...]
    paper: str = ""  # empty for an experiment of one's own
    threads: tuple[int, ...] = ()  # run every solver with each of these numbers; empty: use the command line's
    repetitions: Annotated[int, REPETITIONS] = 3
    every: Annotated[int, Limits(low=1, high=STEPS.high)] = 1  # steps between two evaluations
    objective: bool = False  # record the objective at every evaluation
    budget: Budget = field(default_factory=Budget)
    figure: Figure = field(default_factory=Figure)
    published: tuple[Published, ...] = ()
    growth: tuple[Growth, ...] = ()  # what theory says of the costs that a figure of growth shows
    rivals: tuple[Rivals, ...] = ()  # whose seconds are compared, repetition by repetition
    alone: bool = False  # one cell at a time: its table compares seconds, although its figure shows none
    redraws: Annotated[int, Limits(low=0, high=10_000)] = 0  # to measure how often verdicts err
    margins: tuple[tuple[str, float], ...] = ()  # by metric: solvers that differ by less are equal
    differences: str = ""  # why measured numbers differ from the published ones, and what was found besides
    names: Names = field(default_factory=Names)
    tune: Tune | None = None  # how every solver is tuned; None: solvers run with the settings given
    source: str = ""  # the path of the user's file; empty for an experiment of the package

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_file_name(self.name):
            problem = f"an experiment cannot be called {self.name!r:.60}, as its files have this name"
            raise UserError(problem, subject="Experiment", remedy="take letters, digits and dashes")
        if self.growth and self.figure.kind != "growth":
            problem = f"[[growth]] needs [figure] kind=growth, not kind={self.figure.kind}"
            raise UserError(problem, subject="Experiment")
        if self.budget.patience is not None and (self.tune is None or self.tune.method == "halving"):
            problem = "patience needs the trials of [tune], by another method than halving, which has steps of its own"
            raise UserError(problem, subject="Experiment")

    @property
    def origin(self) -> str:
        """The paper, or in words that there is none: the heading under which reports show the experiment."""
        return self.paper or "No paper"

    def margin(self, label: str) -> float | None:
        """What counts as equal by a metric; None where the experiment does not say."""
        return dict(self.margins).get(label)

    @property
    def timed(self) -> bool:
        """Whether seconds are what it shows, so that its cells must not disturb each other."""
        return self.alone or self.figure.is_of_costs or (self.figure.kind == "curve" and self.figure.x == "seconds")

    def has_published_seconds(self, data: Named, split: Named) -> bool:
        """Whether seconds on this data stand beside published ones, so that these cells must not be disturbed."""
        return any(entry.metric in (*TIMES, PER_STEP) and entry.is_about(data, split) for entry in self.published)

    @property
    def differences_title(self) -> str:
        """The heading of `differences`: it depends on what the measured numbers are compared with."""
        if self.rivals:
            return "Why the packages differ"
        return "Differences from the theory" if self.growth else "Differences from the paper"


_NESTED = {"budget": Budget, "figure": Figure}
_TABLES = {"published": Published, "growth": Growth, "rivals": Rivals}  # each written as tables: [[published]]
_TEXTS = (str, Pattern, Pattern | None, Settings)  # the types of fields that are written as text


def names() -> list[str]:
    """The names of the experiments that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _folder().iterdir() if entry.name.endswith(".toml"))


def members(name: str) -> list[str]:
    """The experiments that a name stands for: the one of this name, or all whose names begin with this word.

    So `scaling` stands for `scaling-users`, `scaling-items` and so on, and `cheng2018` for all of that paper; a name
    that is neither stands for itself.
    """
    known = names()
    return [name] if name in known else [one for one in known if one.partition("-")[0] == name] or [name]


def load(name: str, full: bool = False) -> Experiment:
    """The experiment with this name, or from the user's TOML file at this path."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise UserError(f"no experiment file {name!r}")
        if not path.stem.strip("."):
            raise UserError(f"the experiment file {name!r} has no name before .toml, which is that of its results")
        return replace(read(path.stem, path.name, _text_of(path), full), source=str(path.resolve()))
    if name not in names():
        raise _no_experiment(name)
    return _packaged(name, full)


@cache
def _packaged(name: str, full: bool) -> Experiment:
    """The experiment of the package with this name, which is read once."""
    return read(name, f"{name}.toml", _folder().joinpath(f"{name}.toml").read_text(encoding="utf-8"), full)


def _no_experiment(name: str) -> UserError:
    """The error for what is no experiment, with what can be done with a file or a folder instead."""
    if os.path.isfile(name):
        remedy = f"for a file of ratings or pairs: rankbench on {shlex.quote(name)}"
        return UserError(f"{name!r} is no experiment file, which ends with .toml", remedy=remedy)
    if os.path.isdir(name):
        remedy = "name an experiment file, or an experiment (rankbench list experiments)"
        return UserError(f"{name!r} is a folder, not an experiment", remedy=remedy)
    return unknown("experiment", name, names(), "rankbench list experiments")


def _text_of(path: Path) -> str:
    """The text of a user's experiment file."""
    try:
        return content(path, _LARGEST).decode()
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UserError(f"not UTF-8 (byte {byte:#04x}): save it as UTF-8", subject=path.name) from None
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", subject=path.name) from None


def read(name: str, file: str, text: str, full: bool = False) -> Experiment:
    """The experiment that a TOML text describes."""
    try:
        table = tomllib.loads(text)
    except ValueError as error:  # also a number of too many digits
        raise UserError(f"{file}: {error}") from None
    except RecursionError:
        raise UserError("nested too deeply: an experiment has tables in tables and no more", subject=file) from None
    overrides, names_table = table.pop("full", {}), table.pop("names", {})
    if not isinstance(overrides, dict):
        raise UserError("[full] must be a table", subject=file)
    known = {f.name for f in fields(Experiment)} - {"name", "source", "names"}
    refuse_unknown(f"key in {file}:", table, known)
    refuse_unknown(f"key in {file}: [full]", overrides, known)
    if missing := {"title", "about", "data", "splits", "solvers", "metrics"} - set(table):
        raise UserError(f"{file}: missing key {min(missing)!r}")
    profiles = (table, {**table, **_overriding(table, overrides)})
    values = {key: _value(file, key, value) for key, value in profiles[full].items()}
    with placed(file, instead_of="Experiment"):
        found = Experiment(name=name, **values)
    known_texts = _nameable(file, profiles)
    check_shown(file, found.figure, known_texts)
    found = replace(found, names=read_names(file, names_table, known_texts))
    with placed(f"{file}: [tune]", instead_of="Tune"):
        return replace(found, tune=found.tune.fitted(found.solvers)) if found.tune else found


def _overriding(table: Mapping[str, Any], overrides: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of the full profile; its `tune` table may give only some keys and is merged with the quick one's."""
    if not isinstance(overrides.get("tune"), Mapping) or not isinstance(table.get("tune"), Mapping):
        return overrides
    return {**overrides, "tune": {**table["tune"], **overrides["tune"]}}


def _nameable(file: str, profiles: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """The texts of both profiles that `[names]` may name, by their kind, each with the text that results have."""
    found: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    for profile in profiles:
        for kind in ("solvers", "data", "splits", "metrics"):
            values = _value(file, kind, profile[kind])
            found[kind] |= dict(zip((*profile[kind], *values), (*values, *values), strict=True))
        figure = _value(file, "figure", profile.get("figure", {}))
        axes = ("threads",) if figure.kind == "speedup" else (figure.x, *figure.by)
        found["axes"] |= dict(zip(axes, axes, strict=True))
    return {**found, "units": found["metrics"] | found["axes"]}


def _label(file: str, name: str) -> str:
    """A metric's canonical name, under which its values are stored."""
    with placed(file):
        return metric(name).label


def _value(file: str, key: str, value: object) -> Any:
    if key in ("tune", *_NESTED):
        if not isinstance(value, dict):
            raise UserError(f"{file}: [{key}] must be a table")
        return _nested(file, key, value)
    if cls := _TABLES.get(key):
        return _records(file, key, f"[[{key}]]", cls, value)
    if key == "threads":
        return _threads(file, value)
    if key == "margins":
        return _margins(file, value)
    if key in ("data", "splits", "solvers", "metrics"):
        if not isinstance(value, list) or not value or not all(isinstance(entry, str) for entry in value):
            raise UserError(f"{file}: {key} must be a list of names that is not empty")
        return tuple(_label(file, entry) for entry in value) if key == "metrics" else tuple(value)
    _check_texts(file, Experiment, {key: value})
    return value


def _check_texts(place: str, cls: type, table: Mapping[str, Any]) -> None:
    """Raise an error if a text is not written as one: TOML knows numbers and dates too."""
    for key, value in table.items():
        if key in _texts_of(cls) and not isinstance(value, str):
            raise UserError(f'{key} must be a text: {key} = "..."', subject=place)


@cache
def _texts_of(cls: type) -> frozenset[str]:
    """The fields of a record that are texts."""
    return frozenset(name for name, hint in get_type_hints(cls).items() if hint in _TEXTS)


def _nested(file: str, key: str, table: dict[str, Any]) -> Any:
    """The record of a table of its own: the tuning, the budget or the figure."""
    if key == "tune":
        with placed(f"{file}: [tune]", instead_of="Tune"):
            return read_tune(table)
    if key == "figure":
        kinds = {"by": "settings", "others": "metrics", "solvers": "solvers", "data": "data sets"}
        lists = {name: _names_in(file, table, name, what) for name, what in kinds.items()}
        lists["others"] = tuple(_label(file, name) for name in lists["others"])
        curves = _records(file, "curves", "[[figure.curves]]", Curve, table.get("curves", []))
        table = {**table, **lists, "curves": curves}
    return _record(file, f"[{key}]", _NESTED[key], table)


def _names_in(file: str, table: dict[str, Any], key: str, what: str) -> tuple[str, ...]:
    """The list of texts under a key of `[figure]`, empty if there is none."""
    found = table.get(key, [])
    if not isinstance(found, list) or not all(isinstance(entry, str) for entry in found):
        raise UserError(f"{key} must be a list of {what}", subject=f"{file}: [figure]")
    return tuple(found)


def _threads(file: str, value: object) -> tuple[int, ...]:
    """Distinct numbers of threads in ascending order; speed-ups are relative to the first."""
    if not isinstance(value, list) or not all(type(number) is int and number >= 1 for number in value):
        raise UserError(f"{file}: threads must be a list of numbers of at least 1: threads = [1, 2, 4]")
    if value and not THREADS.allow(max(value)):
        raise UserError(f"{file}: threads={max(value)} is out of range: must be {THREADS}")
    return tuple(sorted(set(value)))


def _margins(file: str, table: object) -> tuple[tuple[str, float], ...]:
    """What counts as equal by each metric."""
    if not isinstance(table, dict) or not all(type(one) in (int, float) and 0 < one < inf for one in table.values()):
        raise UserError('[margins] must be numbers above 0 by metric: "ndcg@10" = 0.005', subject=file)
    return tuple((_label(file, name), float(margin)) for name, margin in table.items())


def _records(file: str, key: str, place: str, cls: type, tables: object) -> tuple[Any, ...]:
    """The records of several tables, each written under a heading of its own."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UserError(f"{file}: {key} must be tables: {place}")
    return tuple(_record(file, place, cls, table) for table in tables)


def _record(file: str, place: str, cls: type, table: Mapping[str, Any]) -> Any:
    refuse_unknown(f"key in {file}: {place}", table, {f.name for f in fields(cls)})
    if cls is Budget and table and "steps" not in table:
        table = {"steps": None, **table}  # an explicit [budget] without `steps` means no step limit
    if table.get("metric") and not (cls is Published and table["metric"] in (*TIMES, PER_STEP)):
        table = {**table, "metric": _label(file, str(table["metric"]))}
    _check_texts(f"{file}: {place}", cls, table)
    try:
        with placed(f"{file}: {place}", instead_of=cls.__name__):
            return cls(**table)
    except TypeError as error:
        raise UserError(str(error), subject=f"{file}: {place}") from None


def _folder() -> Any:
    return files("rankbench.experiments")
