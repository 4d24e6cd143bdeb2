"""Where the cells of a run are trained: on this machine, or on the workers of a cluster."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from rankbench.core.errors import UserError
from rankbench.execution.cluster.waiting import Waits
from rankbench.execution.isolation import Caps, Supervisors, run_again_if_lost, server
from rankbench.execution.worker import Ended, Task
from rankbench.records.machines import Machine


class Workplace(Protocol):
    """Runs cells, several at a time; the methods may be called from several threads."""

    @property
    def places(self) -> int:
        """How many cells it can run at this moment."""
        ...

    @property
    def nodes(self) -> int:
        """How many cells can run at this moment of which each is the only one of this driver on its machine."""
        ...

    def run(self, task: Task, caps: Caps, stop: threading.Event, alone: bool) -> tuple[Ended, Machine]:
        """Run one cell and wait for it; returns how it ended and the machine that it ran on.

        With `alone` it is the only cell of this driver on its machine.
        """
        ...


@dataclass(frozen=True)
class ThisMachine:
    """This machine: each cell runs in a process of its own."""

    supervisors: Supervisors
    places: int
    machine: Machine
    nodes: int = 1

    def run(self, task: Task, caps: Caps, stop: threading.Event, alone: bool) -> tuple[Ended, Machine]:
        """Run one cell and wait for it; one that is killed from outside is run again.

        One that runs alone does so because its driver starts no other one on the only node.
        """
        return run_again_if_lost(lambda: self.supervisors.run(task, caps, stop)), self.machine


@contextmanager
def this_machine(places: int, machine: Machine) -> Iterator[ThisMachine]:
    """A context with this machine, which is described by `machine`; its supervisors end with it."""
    with Supervisors(server()) as supervisors:
        yield ThisMachine(supervisors, places, machine)


@contextmanager
def workplace_at(
    scheduler: str | None, per_node: int, complain: Callable[[str], None], waits: Waits
) -> Iterator[Workplace | None]:
    """A context with the Dask cluster of this scheduler; without a scheduler it is None, which is this machine."""
    if scheduler is None:
        yield None
        return
    try:
        from rankbench.execution.cluster.driver import Cluster  # noqa: PLC0415  needs an extra, and is slow to import
    except ImportError:
        raise UserError(
            "--scheduler needs Dask, which is not installed", remedy="pip install rankbench[dask]"
        ) from None
    cluster = Cluster(scheduler, per_node, complain, waits)
    try:
        yield cluster
    finally:
        cluster.close()
