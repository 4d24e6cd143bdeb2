"""The files of results: one per cell, named by the hash of the cell's content.

    OUT/<experiment>/plans/<profile>-<seed>.json   the plan of the runs with this profile and seed, with all cells;
                                                   -held-<sources> where their repetitions do not redraw all
    OUT/<experiment>/cells/<solver>-<key>.json     one result; <key> is the cell's content hash
    OUT/<experiment>/cells/<solver>-<key>.npz      each metric's value for each user
    OUT/<experiment>/cells/<solver>-<key>@<fingerprint>-<digits>.json    another machine's measurement of the cell,
                                                   from `merge`; with an .npz if its values are not the same bytes
    OUT/<experiment>/manifests/                    the SHA-256 of each file of a run, see report/manifest.py
    OUT/<experiment>/shown/                        what a run showed at its end, see report/shown.py
    OUT/<experiment>/claims/                       which driver is running which cell
    OUT/<experiment>/known-splits.json             hashes of splits, so that a stored run resumes without its data

Files are written under a temporary name and renamed. A JSON file ends with the SHA-256 of what stands before it, and a
result names that of its values for users. A run resumes by skipping cells that have a file. A file that cannot be read,
or was changed after it was written, is renamed to .broken, and its cell is run again.
"""

import errno
import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import sleep
from typing import Any

from rankbench.arrays.npz import Arrays, read_npz, write_npz
from rankbench.core import regular
from rankbench.core.errors import MAKE_ROOM, OTHER_FOLDER, UserError, writing_to
from rankbench.core.leftovers import HeldFolder, remove_left_behind, replacing
from rankbench.records.cells import BESIDE, Cell, file_name, file_of_cell, stem
from rankbench.records.claims import Claims
from rankbench.records.codec import Unreadable, digest_in, encode, parsed, revived, table_in, with_digest
from rankbench.records.machines import Machine
from rankbench.records.plan_files import file_of, joined, plan_of, without_answered
from rankbench.records.plans import Plan
from rankbench.records.results import Counted, Result

_PLAN_WAIT = 0.02  # seconds between two attempts to write a plan that another driver is writing
FORMAT = 3  # version of the file format
ASIDE = (".broken", ".newer")  # file name endings of files that could not be read
_LARGEST_TABLE = 64 << 20  # bytes of a plan or of a result: ten times a plan of 100,000 cells
_LARGEST_VALUES, _HEADING = 512 << 20, 1 << 10  # bytes of values for users where their number is not known; of an array
_VALUES_REMEDY = "delete it, or run the experiment with --rerun all"
Warn = Callable[[str], None]


@dataclass(frozen=True)
class Stored:
    """A summary of a stored result."""

    name: str  # file name
    bytes: int
    seed: int
    status: str
    machine: str  # description of the machine
    fingerprint: str  # of the machine
    commit: str  # of the rankbench that made it; empty if unknown


class Store:
    """The results of one experiment under an output folder."""

    def __init__(self, folder: Path, warn: Warn, untouched: bool = False) -> None:
        self.folder = folder
        self._untouched = untouched  # files that cannot be read keep their names
        self._cells = folder / "cells"
        self._plans = folder / "plans"
        self._warn = warn
        self._known: dict[Path, tuple[tuple[int, int], Plan]] = {}  # plans that this store has written or read
        self._machine: tuple[bytes, Machine] | None = None  # the last result's, and its JSON

    def open(self) -> None:
        """Make the folders, check that they are writable, and remove what killed runs left behind."""
        with writing_to(self.folder, OTHER_FOLDER):
            for folder in (self._cells, self._plans):
                folder.mkdir(parents=True, exist_ok=True)
            with HeldFolder(self._cells, ".writable"):  # without `with`, Ctrl-C during the removal would be ignored
                pass
            remove_left_behind(self.folder, ".scratch~*")
            for folder in (self.folder, *filter(Path.is_dir, self.folder.iterdir())):
                remove_left_behind(folder, "*~.partial")

    def scratch(self) -> HeldFolder:
        """A new scratch folder for one run."""
        self.open()
        with writing_to(self.folder, MAKE_ROOM):
            return HeldFolder(self.folder, ".scratch")

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
        path = f"{self._cells}/{file_name(cell)}"  # of thousands of files `Path` is slow
        content = self._read(path, unread=("cell", "machine"))
        if content is None:
            return None
        if content.pop("key", None) != cell.key:
            self._set_aside(path, "it is not a result of this cell")
            return None
        try:
            machine = self._machine_in(content.pop("machine", b""))
            return revived(Result, {**content, "cell": cell, "machine": machine})
        except Unreadable as error:
            self._set_aside(path, str(error))
            return None

    def _machine_in(self, written: bytes) -> Machine:
        """The machine that a result's JSON describes, one object for all results in a row that have the same."""
        if self._machine is None or self._machine[0] != written:
            self._machine = written, revived(Machine, parsed(written))
        return self._machine[1]

    def read(self, path: Path) -> Result:
        """The result in a file of this store, checked, with the cell that the file itself describes."""
        content = table_in(_bytes(path))
        key, format_ = content.pop("key", None), content.pop("format", None)
        if format_ != FORMAT:
            raise Unreadable(f"its format is {format_!r:.60}, not {FORMAT}")
        found = revived(Result, content)
        if found.key != key or file_of_cell(path.name) != file_name(found.cell):
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
            write_text(path, with_digest(encode({"format": FORMAT, "key": result.key, **vars(result)})))
            if not result.counted:  # it replaces a result that had values for users
                path.with_suffix(".npz").unlink(missing_ok=True)

    def write_plan(self, plan: Plan, idle: bool = False) -> Plan:
        """Write a plan, joined with the cells of earlier runs that measure the same; returns the joined plan.

        Only one driver at a time may do this: otherwise a second driver could overwrite the cells of the first. What an
        idle run, which has nothing to do, finds in the file of the most recent plan stays, with its date.
        """
        with self.plan_alone(plan) as path:
            earlier = self._read_plan(path, plan)
            if earlier and earlier.asks_as(plan):
                plan = plan if earlier == plan else joined(earlier, plan)
            if earlier and idle and earlier == plan and self.plans()[-1] is earlier:
                plan = replace(plan, made=earlier.made)
                self._known[path] = regular.state(path), plan
            else:
                self._write_plan(path, plan)
        return plan

    def replace_plan(self, plan: Plan) -> None:
        """Write a plan in place of an earlier one that is stored in the same file."""
        with self.plan_alone(plan) as path:
            self._write_plan(path, plan)

    def add_plan(self, plan: Plan) -> None:
        """Join a plan of another folder with the stored one; where they differ the more recent one decides."""
        with self.plan_alone(plan) as path:
            stored = self._read_plan(path)
            both = sorted([stored, plan] if stored else [plan], key=lambda one: one.made)
            if all(one.asks_as(plan) for one in both):
                self._write_plan(path, without_answered(joined(both[0], both[-1])))

    def plan_path(self, plan: Plan) -> Path:
        """The path of a plan's file: one per profile, seed, held sources and (for a user's experiment) TOML file."""
        return self._plans / f"{name_of_plan(plan)}.json"

    def plan_like(self, plan: Plan) -> Plan | None:
        """The stored plan with the same profile, seed and source as this one, or None."""
        return self._read_plan(self.plan_path(plan))

    @contextmanager
    def plan_alone(self, plan: Plan) -> Iterator[Path]:
        """A context in which no other driver writes this plan's file; its path."""
        path = self.plan_path(plan)
        with self.claims() as claims:
            while not claims.take(f"plan-{path.stem}"):
                sleep(_PLAN_WAIT)
            yield path

    def _write_plan(self, path: Path, plan: Plan) -> None:
        with writing_to(path, MAKE_ROOM):
            write_text(path, text_of_plan(plan))
        self._known[path] = regular.state(path), plan

    def plans(self) -> list[Plan]:
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

    def _read_plan(self, path: Path, like: Plan | None = None) -> Plan | None:
        """The plan in a file, or None; `like` is one that it may equal."""
        now, known = regular.state(path), self._known.get(path)
        if known and known[0] == now:
            return known[1]
        content = self._read(path)
        if content is None:
            return None
        try:
            self._known[path] = now, plan_of(content, like)
            return self._known[path][1]
        except Unreadable as error:
            self._set_aside(path, str(error))
            return None

    def _read(self, path: str | Path, unread: Collection[str] = ()) -> dict[str, Any] | None:
        """The JSON table in a stored file, or None; a file that cannot be read is set aside with a warning."""
        try:
            content = table_in(regular.content(path, _LARGEST_TABLE), unread)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, Unreadable) as error:
            self._set_aside(path, _reason(error))
            return None
        format_ = content.pop("format", None)
        if type(format_) is int and format_ > FORMAT:
            self._set_aside(path, f"written by a newer rankbench, in format {format_}", "newer")
        elif format_ != FORMAT or type(format_) is not int:
            self._set_aside(path, f"its format {format_!r:.60} is unknown")
        else:
            return content
        return None

    def _set_aside(self, file: str | Path, reason: str, ending: str = "broken") -> None:
        """Rename a file that cannot be read, and print one warning line."""
        path = Path(file)
        aside = path.with_name(f"{path.name}.{ending}")
        try:
            if not self._untouched:
                path.replace(aside)
            what = "left out" if self._untouched else f"set aside as {aside.name}"
        except OSError as error:
            busy = error.errno in (errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR, errno.EEXIST)
            what = f"left out: {aside.name} is in the way" if busy else f"left out: {error.strerror}"
        self._warn(f"{path} cannot be read ({' '.join(reason.split())[:200]}): {what}")


def name_of_plan(plan: Plan) -> str:
    """The name of a plan's file, without its ending."""
    own = f"-{hashlib.sha256(plan.experiment.source.encode()).hexdigest()[:8]}" if plan.experiment.source else ""
    held = "-".join(("", "held", *plan.held)) if plan.held else ""
    return f"{plan.profile}-{plan.seed}{held}{own}"


def beside_name(result: Result) -> str:
    """The name of a measurement's file beside the result of its cell: with the machine, and digits of when it ended."""
    return f"{stem(result.cell)}{BESIDE}{result.machine.fingerprint}-{measurement_of(result)}.json"


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
        arrays = read_npz(path, _most_values(counted))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", remedy=_VALUES_REMEDY) from None
    sizes = {array.shape for array in arrays.values()} | {(one.users + one.left_out,) for one in counted}
    wrong = [name for name, array in arrays.items() if array.ndim != 1 or array.dtype.kind not in "iuf"]
    if wrong or len(sizes) > 1:
        problem = f"{path} is damaged: it does not hold a number for each user"
        raise UserError(problem, remedy=_VALUES_REMEDY)
    return arrays


def _most_values(counted: Sequence[Counted]) -> int:
    """The largest file of a cell's values for users: of each metric the values, and the numbers of pairs."""
    users = max((one.users + one.left_out for one in counted), default=0)
    return 2 * len(counted) * (8 * users + _HEADING) if counted else _LARGEST_VALUES


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
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")


def text_of_plan(plan: Plan) -> str:
    """The text of a plan's file."""
    return with_digest(encode({"format": FORMAT, **vars(file_of(plan))}, indent=None))


def has_digest(path: Path) -> bool:
    """Whether a stored table ends with its digest."""
    return digest_in(regular.content(path, _LARGEST_TABLE)) is not None


def _bytes(path: Path) -> bytes:
    """The content of a file; one that cannot be read is unreadable."""
    try:
        return regular.content(path, _LARGEST_TABLE)
    except OSError as error:
        raise Unreadable(_reason(error)) from None


def _reason(error: OSError | Unreadable) -> str:
    """Why a file cannot be read, in a few words."""
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__


def _in_brief(path: Path, content: dict[str, Any]) -> Stored:
    """The summary of a stored result."""
    about = revived(Machine, content["machine"])
    machine = f"{about.cpu}, {about.usable_cores} cores, Python {about.python}"
    seed = content["cell"]["seed"]
    if type(seed) is not int:
        raise Unreadable("its cell has no seed")
    arrays = path.with_suffix(".npz")
    size = path.stat().st_size + (arrays.stat().st_size if arrays.is_file() else 0)
    return Stored(path.name, size, seed, str(content["status"]), machine, about.fingerprint, about.git or "")


def _listed(folder: Path, ending: str | tuple[str, ...]) -> list[Path]:
    """The files of a folder with this ending; empty if there is no such folder."""
    try:
        return [path for path in folder.iterdir() if path.name.endswith(ending)]
    except OSError:
        return []
