"""Run a plan: the pending cells one after the other, or several at a time where only quality counts."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np

from rankbench.arrays import pack, write_npz
from rankbench.errors import UserError
from rankbench.harness import machine
from rankbench.harness.isolation import Caps, Outcome, run_isolated, server
from rankbench.harness.plan import Cell, Materials, Plan
from rankbench.harness.store import Result, Store
from rankbench.harness.tuning import settled
from rankbench.harness.worker import Task


@dataclass(frozen=True)
class Conditions:
    """Under what conditions a plan is run; none of them changes a number except the times."""

    out: Path = Path("results")
    jobs: int = 1
    caps: Caps = field(default_factory=Caps)
    force: bool = False  # run again what is there
    retry_failed: bool = False  # run again what did not end well


@dataclass(frozen=True)
class Event:
    """Something to tell a person: a cell starts, or has ended."""

    kind: Literal["start", "end"]
    cell: Cell
    result: Result | None = None


def pending(plan: Plan, store: Store, conditions: Conditions) -> tuple[Cell, ...]:
    """The cells still to run. A timed run replaces results that were made beside others."""
    return _unfinished(plan.cells, store, conditions)


def pending_trials(plan: Plan, store: Store, conditions: Conditions) -> tuple[Cell, ...]:
    """The trials still to run. Only where seconds limit them does it matter what ran beside them."""
    return _unfinished(plan.trials, store, conditions)


def _unfinished(cells: tuple[Cell, ...], store: Store, conditions: Conditions) -> tuple[Cell, ...]:
    """Those that have no result yet, or not the one that is wanted; each once, however often it is written."""

    def wanted(cell: Cell) -> bool:
        result = store.load(cell)
        return (
            result is None
            or conditions.force
            or (conditions.retry_failed and result.status != "ok")
            or (result.contended and conditions.jobs == 1 and _timed(cell))
        )

    return tuple({cell.key: cell for cell in cells if wanted(cell)}.values())


def _timed(cell: Cell) -> bool:
    """Whether it matters what ran beside a cell: of a trial only the quality counts."""
    return not cell.validation or cell.budget.seconds is not None


def estimate(plan: Plan, cells: tuple[Cell, ...], store: Store) -> tuple[float, int]:
    """Seconds that the cells will take by what is stored of the same solver, and how many have no precedent."""
    walls: dict[str, list[float]] = {}
    for cell in (*plan.cells, *plan.trials):
        if result := store.load(cell):
            walls.setdefault(cell.solver, []).append(result.wall)
    known = [median(walls[cell.solver]) for cell in cells if cell.solver in walls]
    return sum(known), len(cells) - len(known)


def run(plan: Plan, conditions: Conditions, tell: Callable[[Event], None], materials: Materials | None = None) -> Plan:
    """Run what is pending and store each result as it comes; the plan, with all that its trials decided.

    Whatever stops the run (Ctrl-C, a full disk), the results stored so far stay.
    """
    materials = materials or Materials(plan.selection.seed)
    if plan.undecided:
        plan = try_out(plan, conditions, tell, materials)
    store = Store(conditions.out, plan.experiment.name)
    store.open()
    store.write_plan(plan)
    _run_cells(pending(plan, store, conditions), store, conditions, tell, materials)
    return plan


def try_out(
    plan: Plan, conditions: Conditions, tell: Callable[[Event], None], materials: Materials | None = None
) -> Plan:
    """Run the trials that are pending; the plan with the cells that they decide."""
    store = Store(conditions.out, plan.experiment.name)
    store.open()
    store.write_plan(settled(plan, store))
    trials = pending_trials(plan, store, conditions)
    _run_cells(trials, store, conditions, tell, materials or Materials(plan.selection.seed))
    return settled(plan, store)


def _run_cells(
    cells: tuple[Cell, ...], store: Store, conditions: Conditions, tell: Callable[[Event], None], materials: Materials
) -> None:
    if cells:
        runner = _Runner(store, conditions, tell, materials)
        with runner.workshop:
            runner.run(cells)


class _Runner:
    """The moving parts of one run."""

    def __init__(
        self, store: Store, conditions: Conditions, tell: Callable[[Event], None], materials: Materials
    ) -> None:
        self.store, self.conditions, self.tell, self.materials = store, conditions, tell, materials
        self.machine = machine.describe()
        self.context = server()
        self.stop = threading.Event()
        self.workshop = store.workshop()
        self.under_way: dict[Future[tuple[Outcome, Task]], Cell] = {}

    def run(self, cells: tuple[Cell, ...]) -> None:
        """Keep `jobs` cells under way until all have ended; threads only watch the cells' processes."""
        with ThreadPoolExecutor(self.conditions.jobs) as pool:
            try:
                for task in self._tasks(cells):
                    self.tell(Event("start", task.cell))
                    self.under_way[pool.submit(self._watched, task)] = task.cell
                    self._collect(until_below=self.conditions.jobs)
                self._collect(until_below=1)
            finally:
                self.stop.set()

    def _watched(self, task: Task) -> tuple[Outcome, Task]:
        return run_isolated(self.context, task, self.conditions.caps, self.stop), task

    def _collect(self, until_below: int) -> None:
        """Store finished cells until fewer than so many are under way."""
        while len(self.under_way) >= until_below:
            done, _ = wait(self.under_way, return_when=FIRST_COMPLETED)
            for future in done:
                cell = self.under_way.pop(future)
                outcome, _ = future.result()
                self._keep(cell, outcome)

    def _keep(self, cell: Cell, outcome: Outcome) -> None:
        per_user = outcome.content.get("per_user", {})
        result = _result(cell, outcome, per_user, self.machine, self.conditions.jobs > 1)
        try:
            self.store.save(cell, result, per_user)
        except OSError as error:
            raise UserError(
                f"cannot write {self.store.path(cell)}: {error.strerror}; "
                "the cells finished before are kept: make room and run the same command again"
            ) from None
        self.tell(Event("end", cell, result))

    def _tasks(self, cells: tuple[Cell, ...]) -> Iterator[Task]:
        """The cells with a file of their split each; the file goes when the next split is needed.

        With several jobs the last split's file must outlive the cells that still read it, so files
        are removed only once nothing that needs them is under way.
        """
        path, current = None, None
        for number, cell in enumerate(cells):
            if cell.place != current:
                self._discard(path, current)
                path, current = Path(self.workshop.name) / f"{number}.npz", cell.place
                parts = self.materials.split(*cell.place)
                packed = (pack(part, f"{name}.") for name, part in parts.parts.items())
                self._write(path, {name: array for arrays in packed for name, array in arrays.items()})
            assert path is not None
            yield Task(cell, path)

    def _write(self, path: Path, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        try:
            write_npz(path, arrays)
        except OSError as error:
            raise UserError(f"cannot write to {self.store.folder}: {error.strerror}; make room and run again") from None

    def _discard(self, path: Path | None, place: tuple[str, str, int, str] | None) -> None:
        if path and not any(cell.place == place for cell in self.under_way.values()):
            path.unlink(missing_ok=True)


def _result(
    cell: Cell, outcome: Outcome, per_user: dict[str, Any], described: dict[str, Any], contended: bool
) -> Result:
    last = outcome.curve[-1] if outcome.curve else None
    return Result(
        key=cell.key,
        cell=asdict(cell),
        status=outcome.status,
        reason=outcome.reason,
        curve=outcome.curve,
        metrics=last["metrics"] if last else {},
        left_out={label: int(np.isnan(values).sum()) for label, values in per_user.items()},
        unscored=outcome.content.get("unscored"),
        seconds=last["seconds"] if last else None,
        wall=outcome.wall,
        peak_mb=outcome.content.get("peak_mb"),
        contended=contended,
        machine=described,
        fingerprint=machine.fingerprint(described),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        trace=outcome.content.get("trace"),
        stopped=outcome.content.get("stopped"),
        basis=outcome.content.get("basis"),
    )
