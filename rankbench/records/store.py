"""The files of results: one per cell, named by the hash of the cell's content.

    OUT/<experiment>/plans/<profile>-<seed>.json   the plan of the runs with this profile and seed, with all cells
    OUT/<experiment>/cells/<solver>-<key>.json     one result; <key> is the cell's content hash
    OUT/<experiment>/cells/<solver>-<key>.npz      each metric's value for each user
    OUT/<experiment>/cells/<solver>-<key>@<fingerprint>-<digits>.json    another machine's measurement of the cell,
                                                   from `merge`; with an .npz if its values are not the same bytes
    OUT/<experiment>/claims/                       which driver is running which cell

Files are written under a temporary name and renamed. A run resumes by skipping cells that have a file. A file that
cannot be read is renamed to .broken, and its cell is run again.
"""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import sleep
from typing import Any

from rankbench.arrays.npz import Arrays, read_npz, write_npz
from rankbench.core.errors import MAKE_ROOM, OTHER_FOLDER, UserError, writing_to
from rankbench.core.leftovers import is_left_behind, owner, partial_of
from rankbench.experiments import Experiment
from rankbench.names import without_folder
from rankbench.records.cells import Cell, Measure, Profile, Skip
from rankbench.records.claims import Claims
from rankbench.records.codec import Unreadable, encode, parsed, revived
from rankbench.records.format_2 import result_of_format_2
from rankbench.records.machines import Machine
from rankbench.records.packing import Packed, packed, unpacked
from rankbench.records.results import Counted, Result

_PLAN_WAIT = 0.02  # seconds between two attempts to write a plan that another driver is writing
FORMAT = 3  # version of the file format; format 2 is read too
BESIDE = "@"  # in the name of a file: a measurement that lies beside the result of its cell
ASIDE = (".broken", ".newer")  # file name endings of files that could not be read
_VALUES_REMEDY = "delete it, or run the experiment with --force"
Warn = Callable[[str], None]


@dataclass(frozen=True)
class Planned:
    """A cell of a stored plan; `failure` says why it cannot run if none of its trials ended well."""

    cell: Cell
    failure: str = ""


@dataclass(frozen=True)
class StoredPlan:
    """A stored plan: all cells that runs of an experiment with one seed and profile have asked for."""

    experiment: Experiment
    profile: Profile
    seed: int
    made: str  # time of the last run
    measures: tuple[Measure, ...]
    entries: tuple[Planned, ...]
    trials: tuple[Cell, ...]
    skips: tuple[Skip, ...]

    def same_question(self, other: "StoredPlan") -> bool:
        """Whether both plans measure the same, so that their cells can be joined; descriptions may differ."""
        return self.asks(other.experiment, other.measures)

    def asks(self, experiment: Experiment, measures: Sequence[Measure]) -> bool:
        """Whether this is a plan of an experiment that measures the same; descriptions may differ."""
        return _asked(self.experiment, self.measures) == _asked(experiment, measures)


@dataclass(frozen=True)
class Stored:
    """A summary of a stored result."""

    name: str  # file name
    bytes: int
    seed: int
    status: str
    machine: str  # description of the machine
    fingerprint: str = ""  # of the machine; empty in files of format 2
    commit: str = ""  # of the rankbench that made it; empty if unknown


@dataclass(frozen=True)
class _PlanFile:
    """A stored plan in the form of its file."""

    experiment: Experiment
    profile: Profile
    seed: int
    made: str
    measures: tuple[Measure, ...]
    skips: tuple[Skip, ...]
    cells: Packed  # the entries, then the trials
    failures: tuple[str, ...]  # one for each entry


class Store:
    """The results of one experiment under an output folder."""

    def __init__(self, folder: Path, warn: Warn, untouched: bool = False) -> None:
        self.folder = folder
        self._untouched = untouched  # files that cannot be read keep their names
        self._cells = folder / "cells"
        self._plans = folder / "plans"
        self._warn = warn

    def open(self) -> None:
        """Make the folders, check that they are writable, and remove what killed runs left behind."""
        with writing_to(self.folder, OTHER_FOLDER):
            for folder in (self._cells, self._plans):
                folder.mkdir(parents=True, exist_ok=True)
            probe = self._cells / f".writable{owner()}"
            probe.touch()
            probe.unlink()
            self._remove_leftovers()

    def scratch(self) -> "tempfile.TemporaryDirectory[str]":
        """A new scratch folder for one run."""
        self.open()
        with writing_to(self.folder, MAKE_ROOM):
            return tempfile.TemporaryDirectory(prefix=f".scratch{owner()}", dir=self.folder)

    def _remove_leftovers(self) -> None:
        """Remove the temporary files and folders of processes on this machine that have ended."""
        for left in filter(is_left_behind, self.folder.glob(".scratch*")):
            shutil.rmtree(left, ignore_errors=True)
        for folder in (self._cells, self._plans):
            for left in filter(is_left_behind, folder.glob("*.partial")):
                left.unlink(missing_ok=True)

    def claims(self) -> Claims:
        """The claims of drivers that share this folder."""
        return Claims(self.folder / "claims")

    @property
    def starts(self) -> Path:
        """The folder of the models that later trials of an unfinished search start from."""
        return self.folder / "starts"

    @property
    def cells(self) -> Path:
        """The folder of the results."""
        return self._cells

    def path(self, cell: Cell) -> Path:
        """The path of a cell's result file."""
        return self._cells / file_name(cell)

    def load(self, cell: Cell) -> Result | None:
        """The stored result of a cell, or None if there is none that can be read."""
        path = self.path(cell)
        content = self._read(path)
        if content is None:
            return None
        if content.get("key") != cell.key:
            self._set_aside(path, "it is not a result of this cell")
            return None
        without_cell = {name: value for name, value in content.items() if name not in ("format", "key", "cell")}
        try:
            if content.get("format", 2) == 2:
                return result_of_format_2(without_cell, cell)
            found: Result = revived(Result, without_cell, cell=cell)
            return found
        except Unreadable as error:
            self._set_aside(path, str(error))
            return None

    def read(self, path: Path, known: Cell | None = None) -> Result:
        """The result in a file of this store, checked, with the cell that the file itself describes.

        Files of format 2 do not describe their cells completely; for these the `known` cell is used.
        """
        content = parsed(_text(path))
        if not isinstance(content, dict):
            raise Unreadable("not a table")
        key, format_ = content.pop("key", None), content.pop("format", 2)
        if format_ == 2 and known is not None and known.key == key:
            return result_of_format_2(content, known)
        if format_ != FORMAT:
            raise Unreadable(f"its format is {format_!r:.60}, not {FORMAT}")
        found: Result = revived(Result, content)
        if found.key != key or file_of_cell(path) != file_name(found.cell):
            raise Unreadable("its key is not that of its cell")
        return found

    def measurements(self) -> list[Path]:
        """The files of all results, and then those of the measurements that lie beside them."""
        paths = sorted(_listed(self._cells, ".json"))
        return sorted(paths, key=lambda path: BESIDE in path.name)

    def beside(self, name: str = "") -> list[Path]:
        """The files of the measurements that lie beside the results, or beside the one with this file name."""
        start = name.removesuffix(".json") + BESIDE if name else ""
        paths = _listed(self._cells, ".json")
        return sorted(path for path in paths if BESIDE in path.name and path.name.startswith(start))

    def save(self, result: Result, per_user: Arrays) -> None:
        """Write a result; the JSON file is written last, because it marks the cell as done."""
        path = self.path(result.cell)
        with writing_to(path, f"the cells finished before are kept: {MAKE_ROOM}"):
            if per_user:
                write_npz(path.with_suffix(".npz"), per_user)
            write_text(path, encode({"format": FORMAT, "key": result.key, **vars(result)}))

    def write_plan(self, plan: StoredPlan) -> StoredPlan:
        """Write a plan, joined with the cells of earlier runs that measure the same; returns the joined plan.

        Only one driver at a time may do this: otherwise a second driver could overwrite the cells of the first.
        """
        with self._plan_alone(plan) as path:
            earlier = self._read_plan(path)
            plan = _joined(earlier, plan) if earlier and earlier.same_question(plan) else plan
            self._write_plan(path, plan)
        return plan

    def add_plan(self, plan: StoredPlan) -> None:
        """Join a plan of another folder with the stored one; where they differ the more recent one decides."""
        with self._plan_alone(plan) as path:
            stored = self._read_plan(path)
            both = sorted([stored, plan] if stored else [plan], key=lambda one: one.made)
            if all(one.same_question(plan) for one in both):
                self._write_plan(path, _without_answered(_joined(both[0], both[-1])))

    def plan_path(self, plan: StoredPlan) -> Path:
        """The path of a plan's file: one per profile, seed and (for a user's experiment) TOML file."""
        own = f"-{hashlib.sha256(plan.experiment.source.encode()).hexdigest()[:8]}" if plan.experiment.source else ""
        return self._plans / f"{plan.profile}-{plan.seed}{own}.json"

    def plan_like(self, plan: StoredPlan) -> StoredPlan | None:
        """The stored plan with the same profile, seed and source as this one, or None."""
        return self._read_plan(self.plan_path(plan))

    @contextmanager
    def _plan_alone(self, plan: StoredPlan) -> Iterator[Path]:
        """A context in which no other driver writes this plan's file; its path."""
        path = self.plan_path(plan)
        with self.claims() as claims:
            while not claims.take(f"plan-{path.stem}"):
                sleep(_PLAN_WAIT)
            yield path

    def _write_plan(self, path: Path, plan: StoredPlan) -> None:
        entries = [*(entry.cell for entry in plan.entries), *plan.trials]
        failures = tuple(entry.failure for entry in plan.entries)
        about = (plan.experiment, plan.profile, plan.seed, plan.made, plan.measures, plan.skips)
        content = _PlanFile(*about, cells=packed(entries), failures=failures)
        with writing_to(path, MAKE_ROOM):
            write_text(path, encode({"format": FORMAT, **vars(content)}, indent=None))

    def plans(self) -> list[StoredPlan]:
        """All stored plans, the most recent last."""
        found = [self._read_plan(path) for path in sorted(_listed(self._plans, ".json"))]
        return sorted((plan for plan in found if plan), key=lambda plan: plan.made)

    def files(self) -> Iterator[os.DirEntry[str]]:
        """The files of all results, including results that belong to no plan, one for each cell."""
        try:
            with os.scandir(self._cells) as found:
                yield from (file for file in found if file.name.endswith(".json") and BESIDE not in file.name)
        except OSError:
            return

    def summaries(self, beside: bool = False) -> Iterator[Stored]:
        """Summaries of all stored results, or of the measurements beside them; unreadable files are set aside.

        Results that belong to no plan are included.
        """
        for path in self.beside() if beside else [self._cells / file.name for file in self.files()]:
            content = self._read(path)
            if content is None:
                continue
            try:
                yield _in_brief(path, content)
            except (Unreadable, KeyError, TypeError, AttributeError) as error:
                self._set_aside(path, f"not a result: {error}")

    def set_aside(self) -> list[str]:
        """The names of files that could not be read and were renamed."""
        return sorted(path.name for folder in (self._cells, self._plans) for path in _listed(folder, ASIDE))

    def _read_plan(self, path: Path) -> StoredPlan | None:
        content = self._read(path)
        if content is None:
            return None
        try:
            found = revived(_PlanFile, {name: value for name, value in content.items() if name != "format"})
            cells = unpacked(found.cells)
            entries = tuple(map(Planned, cells, found.failures))  # one per failure text; the remaining cells are trials
            trials = cells[len(entries) :]
            return StoredPlan(
                found.experiment, found.profile, found.seed, found.made, found.measures, entries, trials, found.skips
            )
        except Unreadable as error:
            self._set_aside(path, str(error))
            return None

    def _read(self, path: Path) -> dict[str, Any] | None:
        """The JSON table in a stored file, or None; a file that cannot be read is set aside with a warning."""
        try:
            text = path.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            self._set_aside(path, reason or type(error).__name__)
            return None
        try:
            content = parsed(text)
        except Unreadable as error:
            self._set_aside(path, str(error))
            return None
        if not isinstance(content, dict):
            self._set_aside(path, "not a table")
            return None
        return self._known(path, content)

    def _known(self, path: Path, content: dict[str, Any]) -> dict[str, Any] | None:
        """The content if this version can read its format, else None."""
        format_ = content.get("format", 2)
        if isinstance(format_, int) and not isinstance(format_, bool) and format_ > FORMAT:
            self._set_aside(path, f"written by a newer rankbench, in format {format_}", "newer")
        elif format_ not in (2, FORMAT) or isinstance(format_, bool):
            self._set_aside(path, f"its format {format_!r:.60} is unknown")
        else:
            return content
        return None

    def _set_aside(self, path: Path, reason: str, ending: str = "broken") -> None:
        """Rename a file that cannot be read, and print one warning line."""
        aside = path.with_name(f"{path.name}.{ending}")
        try:
            if not self._untouched:
                path.replace(aside)
            what = "left out" if self._untouched else f"set aside as {aside.name}"
        except OSError as error:
            busy = error.errno in (errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR, errno.EEXIST)
            what = f"left out: {aside.name} is in the way" if busy else f"left out: {error.strerror}"
        self._warn(f"{path} cannot be read ({' '.join(reason.split())[:200]}): {what}")


def file_name(cell: Cell) -> str:
    """The name of a cell's result file: the solver's name and the first digits of the cell's key."""
    return f"{_stem(cell)}.json"


def file_of_cell(path: Path) -> str:
    """The name of the result file of the cell whose result, or measurement beside it, lies at this path."""
    return f"{path.stem.partition(BESIDE)[0]}.json"


def _stem(cell: Cell) -> str:
    named = without_folder(cell.solver.name)
    plain_name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in named)
    return f"{plain_name}-{cell.key[:16]}"


def beside_name(result: Result) -> str:
    """The name of a measurement's file beside the result of its cell: with the machine, and digits of when it ended."""
    return f"{_stem(result.cell)}{BESIDE}{result.machine.fingerprint}-{measurement_of(result)}.json"


def measurement_of(result: Result) -> str:
    """Eight hex digits that tell one measurement of a cell from another: of the machine, the commit and the times."""
    machine = result.machine
    about = [machine.fingerprint, machine.git, machine.kernels, result.finished, result.wall, result.status]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:8]


def values_of(folder: Path, cell: Cell, counted: Sequence[Counted] = ()) -> Arrays:
    """Each metric's value for each user, as stored beside a cell's result; empty where there is no such file.

    An error if these are no numbers, or not of as many users as the result has counted.
    """
    path = folder / file_name(cell).replace(".json", ".npz")
    if not os.path.lexists(path):
        return {}
    try:
        arrays = read_npz(path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", remedy=_VALUES_REMEDY) from None
    sizes = {array.shape for array in arrays.values()} | {(one.users + one.left_out,) for one in counted}
    wrong = [name for name, array in arrays.items() if array.ndim != 1 or array.dtype.kind not in "iuf"]
    if wrong or len(sizes) > 1:
        problem = f"{path} is damaged: it does not hold a number for each user"
        raise UserError(problem, remedy=_VALUES_REMEDY)
    return arrays


class ResultsFolder:
    """The folder of all results, with one store per experiment."""

    def __init__(self, out: Path, warn: Warn, untouched: bool = False) -> None:
        self.out = out
        self._warn = warn
        self._untouched = untouched

    def store(self, experiment: str) -> Store:
        """The store of an experiment's results."""
        return Store(self.out / experiment, self._warn, self._untouched)

    def names(self) -> list[str]:
        """The names of all experiments that have stored plans or results."""
        parts = ("plans", "cells")
        return sorted({path.parent.name for part in parts for path in self.out.glob(f"*/{part}") if path.is_dir()})


def write_text(path: Path, text: str) -> None:
    """Write a text file under a temporary name and rename it, so that it is never incomplete."""
    partial = partial_of(path)
    try:
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _asked(experiment: Experiment, measures: Sequence[Measure]) -> tuple[Any, ...]:
    """What an experiment measures and how, whatever the data, the solvers and the descriptions."""
    identities = tuple((measure.identity, measure.version) for measure in measures)
    return identities, experiment.budget, experiment.every, experiment.objective, experiment.tune


def _joined(earlier: StoredPlan, plan: StoredPlan) -> StoredPlan:
    """The earlier plan, with the cells of the new one in the slots that both have, and its further cells at the end."""
    editions: dict[str, set[object]] = {}
    for cell in (*(entry.cell for entry in plan.entries), *plan.trials):
        editions.setdefault(cell.line, set()).add(cell.edition)

    def current(cell: Cell) -> bool:
        """Whether a cell has the same edition (content of files, solver version) as its repetitions in the new plan."""
        return cell.edition in editions.get(cell.line, {cell.edition})

    in_slots = {entry.cell.slot: entry for entry in (*earlier.entries, *plan.entries)}
    entries = tuple(entry for entry in in_slots.values() if current(entry.cell))
    trials = {trial.slot: trial for trial in (*earlier.trials, *plan.trials)}
    present = {entry.cell.place.data.identity for entry in entries}
    kept = [skip for skip in earlier.skips if skip.solver or skip.data.identity not in present]
    skips = dict.fromkeys((*plan.skips, *kept))
    return replace(plan, entries=entries, trials=tuple(filter(current, trials.values())), skips=tuple(skips))


def _without_answered(plan: StoredPlan) -> StoredPlan:
    """The plan without the skips for which another machine had what was missing."""
    cells = [entry.cell for entry in plan.entries]
    data = {cell.place.data.identity for cell in cells}
    solvers = {(cell.place.data.identity, cell.place.split.identity, cell.solver.base) for cell in cells}

    def answered(skip: Skip) -> bool:
        if skip.split and skip.solver:
            return (skip.data.identity, skip.split.identity, skip.solver.base) in solvers
        return skip.split is None and skip.data.identity in data

    return replace(plan, skips=tuple(skip for skip in plan.skips if not answered(skip)))


def _text(path: Path) -> str:
    """The text of a file; a file that cannot be read as UTF-8 is unreadable."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Unreadable("not UTF-8") from None
    except OSError as error:
        raise Unreadable(error.strerror or type(error).__name__) from None


def _in_brief(path: Path, content: dict[str, Any]) -> Stored:
    """The summary of a stored result, whose file may have any format that can be read."""
    about = content["machine"]
    machine = f"{about['cpu']}, {about['usable_cores']} cores, Python {about['python']}"
    cell = content["cell"]
    if not isinstance(cell, dict) or not isinstance(cell["seed"], int):
        raise Unreadable("its cell has no seed")
    arrays = path.with_suffix(".npz")
    size = path.stat().st_size + (arrays.stat().st_size if arrays.is_file() else 0)
    known = "" if content.get("format", 2) == 2 else revived(Machine, about).fingerprint
    return Stored(path.name, size, cell["seed"], str(content["status"]), machine, known, str(about.get("git") or ""))


def _listed(folder: Path, ending: str | tuple[str, ...]) -> list[Path]:
    """The files of a folder with this ending; empty if there is no such folder."""
    try:
        return [path for path in folder.iterdir() if path.name.endswith(ending)]
    except OSError:
        return []
