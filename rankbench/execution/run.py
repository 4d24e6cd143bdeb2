"""One run of one experiment's plan: reading stored results and running the missing cells."""

import os
import platform
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Literal, get_args
from zlib import crc32

from rankbench.arrays.npz import Arrays
from rankbench.core.errors import MAKE_ROOM, refuse_unknown, writing_to
from rankbench.core.temporary import remove_folders_left_behind
from rankbench.execution import machine
from rankbench.execution.isolation import Caps
from rankbench.execution.worker import Ended, Task
from rankbench.execution.workplace import Workplace, this_machine
from rankbench.planning.materials import Materials
from rankbench.planning.tuning import settled
from rankbench.planning.warm_starts import Paths
from rankbench.records.cells import Cell, Place
from rankbench.records.claims import Claims, Holder
from rankbench.records.machines import Machine
from rankbench.records.plans import Plan
from rankbench.records.results import DISTURBED, Measured, Peak, Result
from rankbench.records.store import Store
from rankbench.records.studies import Study

_MOST = 512  # cells that a cluster may run at a time for one driver
_WAIT = 0.5  # seconds between two looks at cells that another driver runs
_HEARD = 1.0  # seconds until Ctrl-C is seen that the system has delivered to another thread than the one that waits


Rerun = Literal[
    "failed",  # cells that did not end well
    "disturbed",  # cells that were timed while other processes were busy
    "foreign",  # results of other kernels, libraries or processors
    "all",
]
RERUNS: tuple[Rerun, ...] = get_args(Rerun)


def reruns(kinds: Iterable[str]) -> frozenset[Rerun]:
    """These kinds of stored results, checked; a text with commas stands for several."""
    several = isinstance(kinds, Iterable) and not isinstance(kinds, str)
    parts = kinds if several else str(kinds).split(",")
    found = [str(kind).strip() for kind in parts]
    refuse_unknown("kind of results to run again", found, RERUNS)
    return frozenset(kind for kind in RERUNS if kind in found)


@dataclass(frozen=True)
class Conditions:
    """The conditions under which a plan is run; they change the times, but no other number."""

    jobs: int = 1
    caps: Caps = field(default_factory=Caps)
    rerun: frozenset[Rerun] = frozenset()  # which stored results are made again
    join: bool = False  # begin at another split than the other drivers of the folder
    wait: bool = True  # for the results of cells that other drivers run
    deadline: float | None = None  # on the clock of `monotonic`: no cell begins after it, and running ones are given up


@dataclass(frozen=True)
class Event:
    """An event of a run, for display: a cell starts, ends, or is being run by another driver."""

    kind: Literal["start", "end", "wait"]
    cell: Cell
    result: Result | None = None
    holder: Holder | None = None


Tell = Callable[[Event], None]
Wanted = Callable[[Cell], bool]


class TimeIsUp(Exception):
    """Raised at the deadline of a run; what was stored before is kept."""


def _all(cell: Cell) -> bool:
    return True


class Run:
    """A plan with its stored results, and the code that runs the missing cells."""

    def __init__(
        self,
        plan: Plan,
        store: Store,
        conditions: Conditions,
        materials: Materials | None = None,  # None: what the plan needs is made again
        workplace: Workplace | None = None,  # None: this machine
    ) -> None:
        self.store = store
        self.workplace = workplace
        self.conditions = conditions
        self.materials = materials or Materials(plan.seed, store.scratch)
        self.machine = machine.describe()
        self._stored: dict[str, Result] = {}
        self._looked: set[str] = set()
        self._made: set[str] = set()  # keys of cells that this run has run
        self.given_up: dict[str, float] = {}  # by key of a cell that was ended at a deadline: its seconds until then
        self.paths = Paths((search for search in plan.searches if search.continuation is None), store.starts)
        self.plan = self._settled(plan)

    @property
    def pending_trials(self) -> tuple[Cell, ...]:
        """The trials that still have to run, in the order of their paths."""
        return self.paths.ordered(self._unfinished(self.plan.trials))

    @property
    def pending(self) -> tuple[Cell, ...]:
        """The cells that still have to run, among those that tuning has decided."""
        return self._unfinished(self.plan.cells)

    @property
    def to_run(self) -> tuple[Cell, ...]:
        """Everything that still has to run, as far as it is known: trials, cells, and cells without settings yet."""
        return (*self.pending_trials, *self.pending, *self.plan.undecided)

    def result(self, cell: Cell) -> Result | None:
        """The stored result of a cell, or None."""
        return self._stored.get(cell.key)

    def reused(self) -> int:
        """How many stored results of this plan were made on another basis: other kernels, libraries or processors."""
        cells = {cell.key: cell for cell in (*self.plan.trials, *self.plan.cells)}
        found = (self._stored.get(key) for key in cells)
        return sum(1 for result in found if result and result.machine.basis != self.machine.basis)

    def open(self) -> None:
        """Make the results folder, write the plan to it, and remove what processes that were killed have left."""
        remove_folders_left_behind()
        self.store.open()
        self.materials.known.save()
        self._record()

    def try_out(self, tell: Tell, wanted: Wanted = _all) -> None:
        """Run the pending trials and those that follow from their results, and decide the cells."""
        known = 0
        while known < len(self.plan.trials):  # else no trial followed
            known = len(self.plan.trials)
            self._execute(tuple(filter(wanted, self.pending_trials)), tell)
            if not self.pending_trials:
                self.paths.clear()
            self.plan = self._settled(self.plan)
            self._record()

    def execute(self, tell: Tell = lambda event: None, wanted: Wanted = _all) -> None:
        """Run all pending trials and cells, or those that are wanted, and store each result as it comes.

        If the run is stopped (Ctrl-C, a full disk, its deadline), the results stored so far are kept.
        """
        if self.plan.undecided or self.pending_trials:
            self.try_out(tell, wanted)
        self._execute(tuple(filter(wanted, self.pending)), tell)

    def study(self) -> Study:
        """This plan's cells and trials with their results."""
        return Study(self.plan, self._stored, cells=str(self.store.cells))

    def _settled(self, plan: Plan) -> Plan:
        """The plan with all that follows from stored results: further trials, and cells, whose results are read."""
        found = settled(plan, self._read)
        for cell in found.cells:
            self._read(cell)
        return found

    def _record(self) -> None:
        """Write the plan to the results folder, as far as it is decided."""
        self.store.write_plan(replace(self.plan, made=datetime.now(UTC).isoformat()), idle=not self.to_run)

    def _read(self, cell: Cell) -> Result | None:
        """The stored result of a cell, whose file is read only once."""
        if cell.key not in self._looked:
            self._looked.add(cell.key)
            if result := self.store.load(cell):
                self._stored[cell.key] = result
        return self._stored.get(cell.key)

    def _unfinished(self, cells: Iterable[Cell]) -> tuple[Cell, ...]:
        """The distinct cells that have to run: without a result, or with one that the conditions do not accept."""
        return tuple({cell.key: cell for cell in cells if self._wanted(cell)}.values())

    def _wanted(self, cell: Cell) -> bool:
        result, asked = self._stored.get(cell.key), self.conditions
        if result is None or cell.key in self._made:
            return result is None
        alone = asked.jobs == 1
        return (
            "all" in asked.rerun
            or ("failed" in asked.rerun and result.status != "ok")
            or (alone and cell.budget.seconds is not None and result.contended)  # alone it would have taken more steps
            or (alone and _timed(cell) and "disturbed" in asked.rerun and (result.contended or result.disturbed))
            or ("foreign" in asked.rerun and result.machine.basis != self.machine.basis)
        )

    def _execute(self, cells: tuple[Cell, ...], tell: Tell) -> None:
        self.materials.keep_only(cell.place for cell in (*cells, *self.pending, *self.plan.undecided))
        if not cells:
            return
        here = this_machine(self.conditions.jobs, self.machine)
        with (
            self.store.scratch() as scratch,
            self.store.claims() as claims,
            nullcontext(self.workplace) if self.workplace else here as workplace,
        ):
            _Runner(self, claims, Path(scratch), tell, workplace).finish(cells)

    def keep(self, result: Result, per_user: Arrays, model: Arrays | None = None) -> None:
        """Store a new result of this run, and the model of a trial that another one starts from."""
        if model is not None:
            with writing_to(self.store.starts, MAKE_ROOM):
                self.paths.keep(result.cell, model)
        self.store.save(result, per_user)
        self.adopt(result)

    def has_made(self, cell: Cell) -> bool:
        """Whether the cell's result was made by this run or, in the meantime, by another driver."""
        return cell.key in self._made

    def start(self, cell: Cell) -> tuple[str, Path | None]:
        """The key of the trial that a trial starts from, and the file of its model."""
        return self.paths.start(cell, self._stored)

    def runs_alone(self, cell: Cell) -> bool:
        """Whether a cell is the only one of this driver on its machine, because its seconds are what is measured."""
        experiment, place = self.plan.experiment, cell.place
        return _timed(cell) and (experiment.timed or experiment.has_published_seconds(place.data, place.split))

    def adopt(self, result: Result) -> None:
        """Add a result that was made by this run or, in the meantime, by another driver."""
        self._made.add(result.key)
        self._looked.add(result.key)
        self._stored[result.key] = result


class _Runner:
    """Runs cells in parallel: it claims them, starts their processes and stores their results."""

    def __init__(self, owner: Run, claims: Claims, scratch: Path, tell: Tell, workplace: Workplace) -> None:
        self.owner, self.claims, self.tell, self.scratch, self.workplace = owner, claims, tell, scratch, workplace
        self.conditions = owner.conditions
        self.stop = threading.Event()
        # One more cell than a cluster can run waits in a thread, so that no worker waits while results are stored. Of
        # several drivers each takes only cells that it can run at once.
        self.waiting = 1 if owner.workplace and not self.conditions.join else 0
        self.under_way: dict[Future[tuple[Ended, Machine]], Cell] = {}
        self.alone = False  # whether the cells under way run alone on their machines; all of them do, or none does
        self.starts: dict[str, str] = {}  # by key of a trial, the key of the one that it starts from
        self.begun: dict[str, float] = {}  # by key of a cell, when it began, on the clock of `monotonic`
        self.file: Path | None = None  # the file of the split used last
        self.place: Place | None = None
        self.written = 0

    def finish(self, cells: tuple[Cell, ...]) -> None:
        """Run all cells, as many at a time as the workplace can; the threads only watch the cells' processes."""
        with ThreadPoolExecutor(_MOST if self.owner.workplace else self.conditions.jobs) as pool:
            try:
                elsewhere = self._start_all(pool, _from_own_place(cells) if self.conditions.join else cells)
                told: set[str] = set()
                while elsewhere and self.conditions.wait:
                    self._say_who(elsewhere, told)
                    sleep(_WAIT)
                    self._left()
                    elsewhere = self._start_all(pool, elsewhere)
            finally:
                self.stop.set()
                self._keep_ended()

    def _keep_ended(self) -> None:
        """Store the cells that have ended beside one whose workplace raised an error; after a run there are none."""
        now = monotonic()
        for future in wait(self.under_way).done:
            if future.exception() is None:
                self._keep(self.under_way.pop(future), *future.result())
        self.owner.given_up |= {cell.key: now - self.begun[cell.key] for cell in self.under_way.values()}

    def _start_all(self, pool: ThreadPoolExecutor, cells: Iterable[Cell]) -> list[Cell]:
        """Run the cells that no other driver is running; returns the remaining cells."""
        elsewhere: list[Cell] = []
        for cell in cells:
            self._left()
            before = self.owner.paths.before(cell)
            while before in self.under_way.values():
                self._collect(until_below=len(self.under_way))
            if before in elsewhere or not self.claims.take(cell.key):
                elsewhere.append(cell)
            elif result := self._made_meanwhile(cell):
                self.claims.release(cell.key)
                self.owner.adopt(result)
                self.tell(Event("end", cell, result))
            else:
                self._begin(pool, cell)
        self._collect(until_below=1)
        return elsewhere

    def _begin(self, pool: ThreadPoolExecutor, cell: Cell) -> None:
        """Start a cell, and wait until another one may be started."""
        if self.owner.runs_alone(cell) != self.alone:
            self._collect(until_below=1)
            self.alone = not self.alone
        self.tell(Event("start", cell))
        self.starts[cell.key], start = self.owner.start(cell)
        self.begun[cell.key] = monotonic()
        task = Task(cell, self._file_of(cell.place), start, self.owner.paths.is_followed(cell))
        self.under_way[pool.submit(self.workplace.run, task, self.conditions.caps, self.stop, self.alone)] = cell
        at_once = self.workplace.nodes if self.alone else self.workplace.places
        self._collect(until_below=at_once + self.waiting)

    def _made_meanwhile(self, cell: Cell) -> Result | None:
        """The result that another driver has stored since this run read the cell's file, or None."""
        found, known = self.owner.store.load(cell), self.owner.result(cell)
        return found if found and (known is None or found.finished != known.finished) else None

    def _say_who(self, cells: Iterable[Cell], told: set[str]) -> None:
        """Report once for each cell which driver is running it."""
        for cell in cells:
            if cell.key not in told and (holder := self.claims.holder(cell.key)):
                told.add(cell.key)
                self.tell(Event("wait", cell, holder=holder))

    def _collect(self, until_below: int) -> None:
        """Store finished cells until fewer than `until_below` are running."""
        while len(self.under_way) >= until_below:
            left = self._left()
            done, _ = wait(self.under_way, _HEARD if left is None else min(left, _HEARD), FIRST_COMPLETED)
            for future in done:
                self._keep(self.under_way.pop(future), *future.result())

    def _keep(self, cell: Cell, ended: Ended, made_on: Machine) -> None:
        """Store the result of a cell."""
        made = self.owner.materials.peaks(cell.place)
        beside = self.conditions.jobs > 1 and not self.owner.runs_alone(cell)
        result = result_of(cell, ended, made_on, beside, made, self.starts[cell.key])
        self.owner.keep(result, dict(ended.per_user), ended.arrays)
        self.claims.release(cell.key)
        self.tell(Event("end", cell, result))

    def _left(self) -> float | None:
        """The seconds until the deadline, None without one; an error once it is over."""
        if self.conditions.deadline is None:
            return None
        if (left := self.conditions.deadline - monotonic()) <= 0:
            raise TimeIsUp
        return left

    def _file_of(self, place: Place) -> Path:
        """The file of a cell's split; the previous split's file is removed unless a running cell uses it."""
        if self.file is None or place != self.place:
            self._discard()
            self.file, self.place = self.scratch / f"{self.written}.arrays", place
            self.written += 1
            with writing_to(self.owner.store.folder, MAKE_ROOM):
                self.owner.materials.write(place, self.file)
        return self.file

    def _discard(self) -> None:
        if self.file and not any(cell.place == self.place for cell in self.under_way.values()):
            self.file.unlink(missing_ok=True)


def _from_own_place(cells: Sequence[Cell]) -> list[Cell]:
    """The cells with their splits in the same order, but beginning at a split that this process draws by itself.

    Drivers that begin at different splits rarely want the same cell, and each of them makes fewer splits.
    """
    places = list(dict.fromkeys(cell.place for cell in cells))
    first = crc32(f"{platform.node()}-{os.getpid()}".encode()) % max(len(places), 1)
    order = {place: number for number, place in enumerate((*places[first:], *places[:first]))}
    return sorted(cells, key=lambda cell: order[cell.place])


def _timed(cell: Cell) -> bool:
    """Whether a cell's time matters; for a trial it does only if the budget is in seconds."""
    return not cell.is_trial or cell.budget.seconds is not None


def result_of(
    cell: Cell, ended: Ended, made_on: Machine, beside: bool, made: Sequence[Peak] = (), start: str = ""
) -> Result:
    """The result of a cell that ended; `made` are the peaks of making its split, `start` is where its model began."""
    peaks = (*made, *ended.peaks)
    measured = {field.name: getattr(ended, field.name) for field in fields(Measured)} | {"peaks": peaks}
    return Result(
        **measured,
        cell=cell,
        wall=ended.wall,
        peak_mb=next((peak.megabytes for peak in peaks if peak.stage == "train"), None),
        contended=beside and (ended.load is None or ended.load > DISTURBED),
        machine=made_on,
        finished=datetime.now(UTC).isoformat(),
        load=ended.load,
        start=start,
    )
