"""The files of results: one per cell, named by the hash of the cell's content.

    OUT/<experiment>/plans/<profile>-<seed>.json   the plan of the runs with this profile and seed, with all cells
    OUT/<experiment>/cells/<solver>-<key>.json     one result; <key> is the cell's content hash
    OUT/<experiment>/cells/<solver>-<key>.npz      each metric's value for each user
    OUT/<experiment>/claims/                       which driver is running which cell

Files are written under a temporary name and renamed. A run resumes by skipping cells that have a file. A file that
cannot be read is renamed to .broken, and its cell is run again.
"""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import sleep
from typing import Any

from rankbench.arrays import Arrays, read_npz, write_npz
from rankbench.errors import UserError
from rankbench.experiments import Experiment
from rankbench.harness.claims import Claims
from rankbench.harness.codec import Unreadable, encode, parsed, revived
from rankbench.harness.older import result_of_format_2
from rankbench.harness.packing import Packed, packed, unpacked
from rankbench.harness.records import Cell, Counted, Measure, Profile, Result, Skip
from rankbench.leftovers import is_left_behind, owner, partial_of
from rankbench.names import without_folder

_PLAN_WAIT = 0.02  # seconds between two attempts to write a plan that another driver is writing
FORMAT = 3  # version of the file format; format 2 is read too
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

        def asked(one: StoredPlan) -> tuple[Any, ...]:
            experiment = one.experiment
            identities = tuple((measure.identity, measure.version) for measure in one.measures)
            return identities, experiment.budget, experiment.every, experiment.objective, experiment.tune

        return asked(self) == asked(other)


@dataclass(frozen=True)
class Stored:
    """A summary of a stored result."""

    name: str  # file name
    bytes: int
    seed: int
    status: str
    machine: str  # description of the machine


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

    def __init__(self, folder: Path, warn: Warn) -> None:
        self.folder = folder
        self._cells = folder / "cells"
        self._plans = folder / "plans"
        self._warn = warn

    def open(self) -> None:
        """Make the folders and check that they are writable, or raise a one-line error."""
        try:
            for folder in (self._cells, self._plans):
                folder.mkdir(parents=True, exist_ok=True)
            probe = self._cells / f".writable{owner()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise UserError(
                f"cannot write to {self.folder}: {error.strerror}; choose another folder with --out"
            ) from None

    def scratch(self) -> "tempfile.TemporaryDirectory[str]":
        """A new scratch folder for one run; scratch folders that killed runs left behind are removed first."""
        self.open()
        for left in filter(is_left_behind, self.folder.glob(".scratch*")):
            shutil.rmtree(left, ignore_errors=True)
        for folder in (self._cells, self._plans):
            for left in filter(is_left_behind, folder.glob("*.partial")):
                left.unlink(missing_ok=True)
        return tempfile.TemporaryDirectory(prefix=f".scratch{owner()}", dir=self.folder)

    def claims(self) -> Claims:
        """The claims of drivers that share this folder."""
        return Claims(self.folder / "claims")

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

    def save(self, result: Result, per_user: Arrays) -> None:
        """Write a result; the JSON file is written last, because it marks the cell as done."""
        path = self.path(result.cell)
        if per_user:
            write_npz(path.with_suffix(".npz"), per_user)
        write_text(path, encode({"format": FORMAT, "key": result.key, **vars(result)}))

    def write_plan(self, plan: StoredPlan) -> StoredPlan:
        """Write a plan, joined with the cells of earlier runs that measure the same; returns the joined plan.

        Only one driver at a time may do this: otherwise a second driver could overwrite the cells of the first.
        """
        path = self._plan_path(plan)
        with self.claims() as claims:
            while not claims.take(f"plan-{path.stem}"):
                sleep(_PLAN_WAIT)
            earlier = self._read_plan(path)
            plan = _joined(earlier, plan) if earlier and earlier.same_question(plan) else plan
            self._write_plan(path, plan)
        return plan

    def _write_plan(self, path: Path, plan: StoredPlan) -> None:
        entries = [*(entry.cell for entry in plan.entries), *plan.trials]
        failures = tuple(entry.failure for entry in plan.entries)
        about = (plan.experiment, plan.profile, plan.seed, plan.made, plan.measures, plan.skips)
        content = _PlanFile(*about, cells=packed(entries), failures=failures)
        write_text(path, encode({"format": FORMAT, **vars(content)}, indent=None))

    def plans(self) -> list[StoredPlan]:
        """All stored plans, the most recent last."""
        found = [self._read_plan(path) for path in sorted(_listed(self._plans, ".json"))]
        return sorted((plan for plan in found if plan), key=lambda plan: plan.made)

    def files(self) -> Iterator[os.DirEntry[str]]:
        """The files of all results, including results that belong to no plan."""
        try:
            with os.scandir(self._cells) as found:
                yield from (file for file in found if file.name.endswith(".json"))
        except OSError:
            return

    def summaries(self) -> Iterator[Stored]:
        """Summaries of all stored results, including those that belong to no plan; unreadable files are set aside."""
        for file in self.files():
            path = self._cells / file.name
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

    def _plan_path(self, plan: StoredPlan) -> Path:
        """The path of a plan's file: one per profile, seed and (for a user's experiment) TOML file."""
        own = f"-{hashlib.sha256(plan.experiment.source.encode()).hexdigest()[:8]}" if plan.experiment.source else ""
        return self._plans / f"{plan.profile}-{plan.seed}{own}.json"

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
            path.replace(aside)
            what = f"set aside as {aside.name}"
        except OSError as error:
            busy = error.errno in (errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR, errno.EEXIST)
            what = f"left out: {aside.name} is in the way" if busy else f"left out: {error.strerror}"
        self._warn(f"{path} cannot be read ({' '.join(reason.split())[:200]}): {what}")


def file_name(cell: Cell) -> str:
    """The name of a cell's result file: the solver's name and the first digits of the cell's key."""
    named = without_folder(cell.solver.name)
    plain_name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in named)
    return f"{plain_name}-{cell.key[:16]}.json"


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

    def __init__(self, out: Path, warn: Warn) -> None:
        self.out = out
        self._warn = warn

    def store(self, experiment: str) -> Store:
        """The store of an experiment's results."""
        return Store(self.out / experiment, self._warn)

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


def _joined(earlier: StoredPlan, plan: StoredPlan) -> StoredPlan:
    """The new plan plus those cells of the earlier plan that it does not replace."""
    editions: dict[str, set[object]] = {}
    for cell in (*(entry.cell for entry in plan.entries), *plan.trials):
        editions.setdefault(cell.line, set()).add(cell.edition)

    def current(cell: Cell) -> bool:
        """Whether a cell has the same edition (content of files, solver version) as its repetitions in the new plan."""
        return cell.edition in editions.get(cell.line, {cell.edition})

    entries = {entry.cell.slot: entry for entry in earlier.entries if current(entry.cell)}
    entries |= {entry.cell.slot: entry for entry in plan.entries}
    trials = {trial.slot: trial for trial in (*filter(current, earlier.trials), *plan.trials)}
    present = {entry.cell.place.data.identity for entry in entries.values()}
    kept = [skip for skip in earlier.skips if skip.solver or skip.data.identity not in present]
    skips = dict.fromkeys((*plan.skips, *kept))
    return replace(plan, entries=tuple(entries.values()), trials=tuple(trials.values()), skips=tuple(skips))


def _in_brief(path: Path, content: dict[str, Any]) -> Stored:
    """The summary of a stored result, whose file may have any format that can be read."""
    about = content["machine"]
    machine = f"{about['cpu']}, {about['usable_cores']} cores, Python {about['python']}"
    cell = content["cell"]
    if not isinstance(cell, dict) or not isinstance(cell["seed"], int):
        raise Unreadable("its cell has no seed")
    arrays = path.with_suffix(".npz")
    size = path.stat().st_size + (arrays.stat().st_size if arrays.is_file() else 0)
    return Stored(path.name, size, cell["seed"], str(content["status"]), machine)


def _listed(folder: Path, ending: str | tuple[str, ...]) -> list[Path]:
    """The files of a folder with this ending; empty if there is no such folder."""
    try:
        return [path for path in folder.iterdir() if path.name.endswith(ending)]
    except OSError:
        return []
