"""Joining folders of results from several machines: nothing is lost, nothing is overwritten, nothing is mixed.

A result whose cell the target lacks is copied. If the target has the cell, and both have the same numbers (the split,
the model, every value for every user), the other machine's result is kept beside the target's, because its times are
those of another machine. Other numbers of the same cell are a conflict, which is reported and not copied, unless
something explains them: threads that race, or a last digit on another basis (see `verification`). Then the result is
kept beside the target's too, and never averaged with it. A result that did not end well has no numbers: it gives way
to one that ended well, and is kept beside it.

`survey` only reads, and decides what to copy; `carry_out` copies. Each file is written under a temporary name and then
renamed, so that a merge that was interrupted is repeated by the same command.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from os.path import realpath
from pathlib import Path
from typing import Literal

import numpy as np

from rankbench.arrays.npz import Arrays, read_npz
from rankbench.core.errors import UserError
from rankbench.core.leftovers import replacing
from rankbench.core.regular import copied
from rankbench.records.cells import file_name, file_of_cell
from rankbench.records.claims import Claims
from rankbench.records.codec import Unreadable
from rankbench.records.differences import (
    OF_POINTS,
    SAME_TO,
    basis_change,
    differences,
    differing_users,
    distance,
    races,
)
from rankbench.records.plans import Plan
from rankbench.records.results import Point, Result
from rankbench.records.store import (
    ResultsFolder,
    Store,
    Warn,
    beside_name,
    measurement_of,
)

Agreement = Literal["same", "apart", "conflict"]
_FIELDS = frozenset(field.name for field in fields(Result))


@dataclass(frozen=True)
class Measurement:
    """A result in a file, of the target or of a source."""

    path: Path
    result: Result

    @property
    def arrays(self) -> Path:
        """The file with the values for each user, which may be missing."""
        return self.path.with_suffix(".npz")

    def values(self) -> Arrays:
        """Each metric's value for each user: those of the cell's result, where a measurement beside it has none."""
        shared = self.path.with_name(file_of_cell(self.path.name)).with_suffix(".npz")
        path = next((path for path in (self.arrays, shared) if path.exists()), None)
        return read_npz(path) if path else {}

    @property
    def counts(self) -> bool:
        """Whether it has numbers: it ended well, or diverged."""
        return self.result.status in ("ok", "diverged")


@dataclass(frozen=True)
class Copy:
    """A measurement to copy, the name that it gets in the target, and whether its values for users come along."""

    kind: Literal["new", "beside", "instead"]
    measurement: Measurement
    name: str
    arrays: bool
    gives_way: Measurement | None = None  # the target's result that did not end well, for `instead`


@dataclass(frozen=True)
class Conflict:
    """Numbers of one cell that contradict each other: the target's, which stay, and those of a source."""

    file: str  # in the target
    what: str  # a metric, the split, the model or the status
    kept: str
    other: str
    source: str


@dataclass(frozen=True)
class Merge:
    """What a merge will do to one experiment, or has done."""

    name: str
    copies: tuple[Copy, ...]
    plans: tuple[Plan, ...]
    present: int  # measurements that the target has already
    conflicts: tuple[Conflict, ...]

    def count(self, *kinds: str) -> int:
        """How many measurements of these kinds are copied."""
        return sum(copy.kind in kinds for copy in self.copies)


def check_apart(out: Path, sources: Iterable[Path]) -> None:
    """Raise an error if the target is one of the sources, or lies where a source keeps its results."""
    for source in sources:
        if realpath(source) == realpath(out):  # which takes a link to itself, too
            raise UserError(f"{source} cannot be merged into itself: name another folder with --out")


def survey(target: ResultsFolder, sources: Iterable[tuple[str, ResultsFolder]], warn: Warn) -> list[Merge]:
    """What merging these named folders into the target would do, experiment by experiment; this only reads."""
    known = list(sources)
    names = sorted({name for _, folder in known for name in folder.names()})
    return [_Survey(target.store(name), name, warn).of([(text, folder.store(name)) for text, folder in known])
            for name in names]  # fmt: skip


def carry_out(target: ResultsFolder, merge: Merge, warn: Warn) -> int:
    """Copy what was decided for one experiment; returns how many measurements had to be left out.

    A cell that another process is running just now is left out, and so is one whose file has appeared or changed since.
    """
    store = target.store(merge.name)
    store.open()
    with store.claims() as claims:
        left_out = sum(not _copied(store, copy, claims, warn) for copy in merge.copies)
    for plan in merge.plans:
        store.add_plan(plan)
    return left_out


class _Survey:
    """The decisions about one experiment, made in the order of the sources."""

    def __init__(self, store: Store, name: str, warn: Warn) -> None:
        self.store, self.name, self.warn = store, name, warn
        self.held: dict[str, list[Measurement]] = {}  # by file name of the cell; the target's own one comes first
        self.blocked: set[str] = set()  # files of the target that cannot be read
        self.copies: list[Copy] = []
        self.conflicts: list[Conflict] = []
        self.present = 0

    def of(self, sources: list[tuple[str, Store]]) -> Merge:
        """All decisions."""
        for path in self.store.measurements():
            if own := _read(self.store, path, self.warn):
                self.held.setdefault(file_name(own.result.cell), []).append(own)
            else:
                self.blocked.add(path.name)
        for text, source in sources:
            for path in source.measurements():
                if found := _read(source, path, self.warn):
                    self._decide(found, text)
        return Merge(self.name, tuple(self.copies), self._plans(sources), self.present, tuple(self.conflicts))

    def _decide(self, new: Measurement, source: str) -> None:
        """Decide what becomes of one measurement of a source."""
        name = file_name(new.result.cell)
        if name in self.blocked:
            self.warn(f"{new.path} is left out: {self.store.cells / name} is in its way and cannot be read")
            return
        held = self.held.setdefault(name, [])
        if not held:
            self._copy("new", new, name)
            return
        again = [one for one in held if measurement_of(one.result) == measurement_of(new.result)]
        kept = again[0] if again else held[0]
        agreement = agreement_of(kept, new)
        if agreement == "conflict" or (again and agreement != "same"):
            file = f"{self.name}/cells/{name}"
            self.conflicts += [Conflict(file, *clash, source) for clash in _clashes(kept, new)]
        elif again:
            self.present += 1
        elif new.result.status == "ok" and not held[0].counts:
            self._copy("instead", new, name, held[0])
        else:
            one_file_serves_both = agreement == "same" and not any(differing_users(kept.values(), new.values()))
            self._copy("beside", new, beside_name(new.result), alike=one_file_serves_both)

    def _copy(
        self, kind: Literal["new", "beside", "instead"], new: Measurement, name: str,
        gives_way: Measurement | None = None, alike: bool = False,
    ) -> None:  # fmt: skip
        held = self.held[file_name(new.result.cell)]
        held.insert(0 if kind == "instead" else len(held), new)
        self.copies.append(Copy(kind, new, name, new.arrays.exists() and not alike, gives_way))

    def _plans(self, sources: list[tuple[str, Store]]) -> tuple[Plan, ...]:
        """The plans of all sources; one that asks something else than the target's of its kind is a conflict."""
        known = self.store.plans()
        found: list[Plan] = []
        for text, source in sources:
            for given in source.plans():
                plan = _at_home(given, known)
                stored = self.store.plan_like(plan) or next((one for one in found if one.is_filed_as(plan)), None)
                if stored and not stored.asks_as(plan):
                    file = f"{self.name}/plans of the {plan.profile} profile, seed {plan.seed}"
                    what = "metrics, budget or tuning"
                    self.conflicts.append(Conflict(file, what, _asked(stored), _asked(plan), text))
                else:
                    found.append(plan)
                    known.append(plan)
        return tuple(found)


def agreement_of(kept: Measurement, new: Measurement) -> Agreement:
    """Whether two measurements of one cell have the same numbers, explainably other ones, or contradict each other."""
    one, other = kept.result, new.result
    if not (kept.counts and new.counts):
        return "same" if one.status == other.status else "apart"
    if one.split and other.split and one.split != other.split:
        return "conflict"
    explained = races(one.cell)
    if one.status != other.status:
        return "apart" if explained else "conflict"
    if not differences(one, other, kept.values(), new.values()):
        return "same"
    close = basis_change(one.machine, other.machine) and distance(one, other) <= SAME_TO
    return "apart" if explained or close else "conflict"


def _clashes(kept: Measurement, new: Measurement) -> Iterator[tuple[str, str, str]]:
    """What contradicts: its name, and both values as texts."""
    one, other = kept.result, new.result
    if one.status != other.status:
        yield "status", one.status, other.status
    for what in differences(one, other, kept.values(), new.values()):
        if what in _FIELDS:
            yield what, _in_short(one, what), _in_short(other, what)
        elif what.endswith(" of users"):
            yield _first_user(what, kept.values(), new.values())
        else:
            yield _first_point(what, one, other)


def _in_short(result: Result, field: str) -> str:
    """A field of a result in a few words."""
    return f"{len(result.curve)} points" if field == "curve" else str(getattr(result, field))[:12]


def _first_point(label: str, one: Result, other: Result) -> tuple[str, str, str]:
    """A metric at the end of the training if it differs there, else at the first point of the curve where it does."""
    pairs = list(zip(one.curve, other.curve, strict=False))
    for left, right in (pairs[-1], *pairs):
        before, after = _at(one, left, label), _at(other, right, label)
        if repr(before) != repr(after):
            return (label if left is one.curve[-1] else f"{label} at step {left.step}"), repr(before), repr(after)
    return label, "NaN", "NaN of other bytes"


def _at(result: Result, point: Point, what: str) -> object:
    """A metric, or another number of a point of the curve."""
    return getattr(point, what) if what in OF_POINTS else result.value_at(point, what)


def _first_user(what: str, before: Arrays, after: Arrays) -> tuple[str, str, str]:
    """The first user for whom a metric differs."""
    none = np.zeros(0)
    left, right = (side.get(what.removesuffix(" of users"), none) for side in (before, after))
    if left.shape != right.shape:
        return what, f"{len(left)} users", f"{len(right)} users"
    apart = np.flatnonzero(~((left == right) | (np.isnan(left) & np.isnan(right))))
    user = int(apart[0]) if len(apart) else 0
    return f"{what}, user {user}", repr(float(left[user])), repr(float(right[user]))


def _read(store: Store, path: Path, warn: Warn) -> Measurement | None:
    """The measurement in a file, or None, with a warning, if the file or its values for users cannot be read."""
    try:
        found = Measurement(path, store.read(path))
        found.values()
        return found
    except (Unreadable, UserError) as error:
        warn(f"{path} cannot be read ({' '.join(str(error).split())[:200]}): left out")
        return None


def _at_home(plan: Plan, known: Iterable[Plan]) -> Plan:
    """The plan under the path that the target has for the same experiment file: paths differ between machines."""

    def placed(path: str) -> Plan:
        return replace(plan, experiment=replace(plan.experiment, source=path))

    alike = (one for one in known if one.experiment == placed(one.experiment.source).experiment)
    paths = [one.experiment.source for one in alike if bool(one.experiment.source) == bool(plan.experiment.source)]
    return placed(paths[0]) if paths else plan


def _asked(plan: Plan) -> str:
    """What a plan measures, in a few words."""
    budget = ", ".join(f"{name}={value}" for name, value in vars(plan.experiment.budget).items() if value is not None)
    return f"{', '.join(measure.label for measure in plan.measures)}; {budget}"


def _copied(store: Store, copy: Copy, claims: Claims, warn: Warn) -> bool:
    """Copy one measurement, unless its cell is being run or its file has appeared; returns whether it was copied."""
    key, path = copy.measurement.result.key, store.cells / copy.name
    if not claims.take(key):
        warn(f"{path} is left out: another process is running its cell; merge again when it has ended")
        return False
    try:
        if path.exists() and not (copy.gives_way and _holds(store, path, copy.gives_way)):
            what = "changed" if copy.gives_way else "appeared"
            warn(f"{path} is left out: it has {what} since the folders were read; merge again")
            return False
        if copy.gives_way:
            aside = store.cells / beside_name(copy.gives_way.result)
            _place(copy.gives_way, aside, copy.gives_way.arrays.exists())
        _place(copy.measurement, path, copy.arrays)
        return True
    except OSError as error:
        problem = f"cannot write {path}: {error.strerror or error}; what was copied before is kept"
        raise UserError(problem, remedy="make room and run the same command again") from None
    finally:
        claims.release(key)


def _holds(store: Store, path: Path, known: Measurement) -> bool:
    """Whether a file of the target still holds this measurement: its cell may have been run again meanwhile."""
    try:
        return measurement_of(store.read(path)) == measurement_of(known.result)
    except Unreadable:
        return False


def _place(measurement: Measurement, path: Path, arrays: bool) -> None:
    """Copy a measurement's files; the JSON file comes last, because it marks the measurement as complete."""
    if arrays:
        _copy_file(measurement.arrays, path.with_suffix(".npz"))
    else:
        path.with_suffix(".npz").unlink(missing_ok=True)
    _copy_file(measurement.path, path)


def _copy_file(source: Path, path: Path) -> None:
    """Copy a file under a temporary name, and rename it once it is complete."""
    with replacing(path) as partial:
        copied(source, partial)
