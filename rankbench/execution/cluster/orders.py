"""What a driver and the workers of a cluster say to each other: introductions, orders and refusals."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rankbench.core.contract import Partitioned
from rankbench.core.errors import UserError
from rankbench.execution.isolation import Caps
from rankbench.names.user_files import is_from_file
from rankbench.records.cells import Cell
from rankbench.records.machines import Machine

_DAEMON = "start it with DASK_DISTRIBUTED__WORKER__DAEMON=False, so that its solvers can have processes of their own"


class Gone(Exception):
    """The worker of a cell went away, or the scheduler did, or the cell was killed from outside there."""


@dataclass(frozen=True)
class Worker:
    """A worker that may get cells."""

    address: str
    node: str
    machine: Machine


@dataclass(frozen=True)
class Introduction:
    """What a driver must know of a worker before it hands out cells."""

    machine: Machine
    may_start_processes: bool


@dataclass(frozen=True)
class Order:
    """A cell to run on a worker, with the content of the user's own files that it needs."""

    cell: Cell
    caps: Caps
    sources: Mapping[str, bytes]  # content of solver and metric files, by their paths on the driver's machine
    stop: str  # name of the event that the driver sets when it stops
    split: bytes | None = None  # the split's file, for a worker that cannot make the split
    start: bytes | None = None  # the file of the model to start from
    followed: bool = False  # whether another trial starts from this one's model


@dataclass(frozen=True)
class Refusal:
    """Why a worker did not run a cell; with `lacks_data`, it would if the driver sent the split."""

    reason: str
    lacks_data: bool = False


def partitions_of(cell: Cell) -> int:
    """In how many parts the users of a cell are, if they may be kept by several workers; else 0.

    Workers cannot import a user's own solver, so one with partitions trains on a single worker.
    """
    solver = cell.solver.record
    spread = isinstance(solver, Partitioned) and solver.partitions > 1 and not is_from_file(cell.solver.home)
    return solver.partitions if spread else 0


def own_files(cell: Cell) -> dict[str, bytes]:
    """The content of the user's own solver and metric files that a cell needs, by their paths."""
    homes = [cell.solver.home, *(measure.source.home for measure in cell.measures if measure.source)]
    paths = {home.rpartition(":")[0] for home in homes if is_from_file(home)}
    return {path: Path(path).read_bytes() for path in sorted(paths)}


def unfit(told: Introduction, mine: Machine) -> str:
    """Why a worker can run no cells for this driver; empty if it can."""
    if not told.may_start_processes:
        return _DAEMON
    for what, theirs, ours in (
        ("rankbench", told.machine.version("rankbench"), mine.version("rankbench")),
        ("kernels", told.machine.kernels, mine.kernels),
    ):
        if theirs != ours:
            return f"it has {what} {theirs}, and this driver {ours}: install the same rankbench there"
    return ""


def at_most_on_each_node(workers: Iterable[Worker], number: int) -> list[Worker]:
    """The workers, with no more than so many on each node."""
    nodes: Counter[str] = Counter()
    chosen = []
    for worker in workers:
        nodes[worker.node] += 1
        if nodes[worker.node] <= number:
            chosen.append(worker)
    return chosen


def refuse_encrypted(workers: Iterable[Worker]) -> None:
    """Raise an error if a worker's connections are encrypted, since those between the members of a team are not."""
    if secret := [worker.address for worker in workers if worker.address.startswith("tls://")]:
        problem = f"partitions on the worker {secret[0]}: what workers send each other would not be encrypted"
        raise UserError(problem, remedy="run with partitions=1, or on a cluster without TLS")
