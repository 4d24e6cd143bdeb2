"""Running cells on the workers of a Dask cluster, under the same limits and in processes of their own as here.

The driver hands a worker one cell at a time, and prefetches none. A worker makes the split of a cell by itself from
its names, and the driver sends the split only to a worker that lacks the data. A worker with another rankbench or
other kernels, or whose data differs, gets no cells. A cell whose worker goes away is handed to another worker, and
is `lost` after `_ATTEMPTS` attempts.

A cell whose solver has partitions is trained by a process of the driver, and all workers that may run cells at that
time hold the parts of the users. The limit on time holds for all of them together, that on memory for each of them. It
waits until they are free, and no other cell is handed out meanwhile. The rows of the parts come from the driver, so
these workers need no data.
"""

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

from distributed import Client, Event, Future
from distributed.client import ClosedClientError, FutureCancelledError
from distributed.scheduler import KilledWorker

from rankbench.core.errors import Unfinished, UserError
from rankbench.core.texts import error_text
from rankbench.distributed.channels import Address
from rankbench.distributed.teams import Entrance
from rankbench.execution import machine
from rankbench.execution.cluster.connecting import CONNECT, Contact, only_team, wait_for
from rankbench.execution.cluster.orders import (
    Gone,
    Introduction,
    Order,
    Refusal,
    Worker,
    at_most_on_each_node,
    own_files,
    partitions_of,
    refuse_encrypted,
    unfit,
)
from rankbench.execution.cluster.waiting import Wait, Waits
from rankbench.execution.cluster.worker import carry_out, introduce, serve_seat, take_seat
from rankbench.execution.isolation import ATTEMPTS, Caps, Interrupted, run_isolated, server
from rankbench.execution.worker import Ended, Task, ended_early
from rankbench.records.machines import Machine
from rankbench.records.store import Warn

_ATTEMPTS = ATTEMPTS  # how many workers a cell may lose
_AWAY = (ClosedClientError, FutureCancelledError, OSError)  # what Dask raises when its scheduler goes away
_LOOK = 0.5  # seconds between two looks at a running cell
_GRACE = 60.0  # seconds beyond a cell's time limit after which its worker counts as gone


class Cluster:
    """The workers of a Dask cluster, at most `per_node` of them on a node busy at a time.

    With one cell per node, cells are timed, as those are that run alone on their nodes: all of them run on workers of
    one fingerprint, that of most workers.
    """

    def __init__(self, scheduler: str, per_node: int, warn: Warn, waits: Waits) -> None:
        self._scheduler, self._per_node, self._warn = scheduler, per_node, warn
        gone = f"the scheduler {scheduler} does not answer"
        away = Wait(gone, "--scheduler-timeout", waits.scheduler, "start it again", say=warn)
        self._contact = Contact(scheduler, away)
        none, remedy = f"the scheduler {scheduler} has no workers", f"start some with: dask worker {scheduler}"
        self._no_worker = Wait(none, "--wait-for-workers", waits.workers, remedy, say=warn)
        self._no_answer = Wait(f"no worker of {scheduler} has answered, as if all ran something else", say=warn)
        self._mine = machine.describe()
        self._known: dict[str, Worker | None] = {}  # by address; None for a worker that gets no cells
        self._asked: dict[str, Future] = {}  # by address, the introductions of workers that have not answered yet
        self._busy: dict[str, str] = {}  # node by address
        self._held: dict[str, Future] = {}  # by address, the cell that it ran last
        self._teams_to_come = 0  # cells that wait for all workers; meanwhile no other cell is handed out
        self._change = threading.Condition()
        self._told_of_idle = False  # whether it was said that some workers get no cell
        self._stop = f"rankbench-stop-{uuid4().hex}"

    @property
    def places(self) -> int:
        """How many cells can run at this moment; at least 1."""
        return self._at_once(self._per_node)

    @property
    def nodes(self) -> int:
        """How many cells can run at this moment, one on each node; at least 1."""
        return self._at_once(1)

    def _at_once(self, per_node: int) -> int:
        with self._change:
            return max(1, len(at_most_on_each_node(self._usable(per_node), per_node)))

    @property
    def _client(self) -> Client:
        return self._contact.client

    def close(self) -> None:
        """Tell workers to end what they still run for this driver, and leave the cluster."""
        with suppress(Exception):
            if self._contact.workers(at_most=0.0) is not None:  # else setting the event would wait for the scheduler
                Event(self._stop, client=self._client).set()
        with suppress(Exception):
            self._client.close(timeout=CONNECT)

    def run(self, task: Task, caps: Caps, stop: threading.Event, alone: bool) -> tuple[Ended, Machine]:
        """Run one cell on a free worker, or over all workers, and wait for it."""
        if partitions_of(task.cell):
            return self._run_in_parts(task, caps, stop, alone)
        start = task.start.read_bytes() if task.start else None
        order = Order(task.cell, caps, own_files(task.cell), self._stop, start=start, followed=task.followed)
        reasons: list[str] = []
        while len(reasons) < _ATTEMPTS:
            with self._free_worker(stop, 1 if alone else self._per_node) as worker:
                try:
                    if outcome := self._run_on(worker, order, task.parts, stop):
                        return outcome, worker.machine
                except Gone as gone:
                    reasons.append(str(gone) or "its worker went away or it was killed there")
                    self._contact.forget()
        return ended_early("lost", f"each of {len(reasons)} times {' or '.join(dict.fromkeys(reasons))}"), self._mine

    def _run_on(self, worker: Worker, order: Order, parts: Path, stop: threading.Event) -> Ended | None:
        """The outcome of an order on this worker; None if the worker refused it and gets no more cells."""
        answer = self._answer(worker.address, order, stop)
        if isinstance(answer, Refusal) and answer.lacks_data:
            self._warn(f"note: {worker.address} is sent the split {order.cell.place.written}: {answer.reason}")
            answer = self._answer(worker.address, replace(order, split=parts.read_bytes()), stop)
        if isinstance(answer, Refusal):
            self._refuse(worker.address, answer.reason)
            return None
        if answer.status == "lost":
            raise Gone
        return answer

    # The workers

    @contextmanager
    def _free_worker(self, stop: threading.Event, per_node: int) -> Iterator[Worker]:
        """A context with a worker that is kept free of other cells, on a node with fewer than `per_node` of them."""
        with self._change:
            while not (free := self._free(per_node)):
                if stop.is_set():
                    raise Interrupted
                self._change.wait(_LOOK)
            worker = free[0]
            self._busy[worker.address] = worker.node
        try:
            yield worker
        finally:
            with self._change:
                self._busy.pop(worker.address, None)
                self._change.notify_all()

    def _free(self, per_node: int) -> list[Worker]:
        """The workers that may get a cell now."""
        if self._teams_to_come:
            return []
        nodes = Counter(self._busy.values())
        usable = self._usable(per_node)
        return [worker for worker in usable if worker.address not in self._busy and nodes[worker.node] < per_node]

    def _usable(self, per_node: int) -> list[Worker]:
        """The present workers that are not refused; for timed cells only those of the most frequent fingerprint."""
        present = self._contact.workers(_LOOK)
        if present is None:
            return []
        self._meet([address for address in present if address not in self._known])
        known = [self._known[address] for address in present if address in self._known]
        found = [worker for worker in known if worker]
        if present and len(known) == len(present) and not found:
            raise UserError(f"no worker of {self._scheduler} can run cells", remedy="each says above what it lacks")
        self._no_worker.note(not present)
        self._no_answer.note(bool(present) and not found)
        self._note_idle(found)
        if per_node > 1 or not found:
            return found
        usual = Counter(worker.machine.fingerprint for worker in found).most_common(1)[0][0]
        return [worker for worker in found if worker.machine.fingerprint == usual]

    def _note_idle(self, found: list[Worker]) -> None:
        """Say once how many workers get no cell because their node runs as many as it may."""
        idle = len(found) - len(at_most_on_each_node(found, self._per_node))
        if idle and not self._told_of_idle:
            self._told_of_idle = True
            runs = f"each node runs {self._per_node} at a time, or as many as -j says"
            self._warn(f"note: {idle} of {len(found)} workers get no cell: {runs}")

    def _meet(self, addresses: list[str]) -> None:
        """Ask new workers to introduce themselves, and note what those told that have answered.

        A worker that does not answer within a moment, because it has just started or runs something else, is left
        out until it has answered.
        """
        self._asked = {address: future for address, future in self._asked.items() if address in addresses}
        try:
            if new := [address for address in addresses if address not in self._asked]:
                self._asked |= {address: self._told(address, introduce) for address in new}
                wait_for([self._asked[address] for address in new])
        except (Gone, *_AWAY):
            self._asked.clear()
        for address, future in list(self._asked.items()):
            if future.status in ("cancelled", "lost"):
                del self._asked[address]
            elif future.done():
                self._known[address] = self._met(address, self._asked.pop(address))

    def _met(self, address: str, future: Future) -> Worker | None:
        """A worker that has answered, or None with a warning if it can run no cells for this driver."""
        try:
            told: Introduction = future.result()
        except Exception as error:
            self._warn(f"worker {address} gets no cells: it cannot describe itself ({error_text(error)})")
            return None
        if problem := unfit(told, self._mine):
            self._warn(f"worker {address} gets no cells: {problem}")
            return None
        return Worker(address, address.rpartition(":")[0], told.machine)

    def _refuse(self, address: str, reason: str) -> None:
        """Give a worker no more cells, and say why."""
        self._warn(f"worker {address} gets no more cells: {reason}")
        with self._change:
            self._known[address] = None

    # One cell over all workers

    def _run_in_parts(self, task: Task, caps: Caps, stop: threading.Event, alone: bool) -> tuple[Ended, Machine]:
        """Run one cell whose users' parts are kept by the workers."""
        lost = 0
        while lost < _ATTEMPTS:
            with self._free_team(partitions_of(task.cell), stop, alone) as workers:
                try:
                    with only_team(self._client, stop):
                        return self._led(workers, task, caps, stop), workers[0].machine
                except Gone:
                    lost += 1
        return ended_early("lost", f"{lost} times a worker that held parts of the users went away"), self._mine

    @contextmanager
    def _free_team(self, most: int, stop: threading.Event, alone: bool) -> Iterator[list[Worker]]:
        """A context with all workers that may get cells, but not more than `most`, once they are free.

        With `alone` the other workers get no cells meanwhile: the driver, which trains too, may be on their machine.
        """
        with self._change:
            self._teams_to_come += 1
            try:
                found = self._all_free(stop)
            finally:
                self._teams_to_come -= 1
            taken = found if alone else found[:most]
            self._busy |= {worker.address: worker.node for worker in taken}
        try:
            yield found[:most]
        finally:
            with self._change:
                for worker in taken:
                    self._busy.pop(worker.address, None)
                self._change.notify_all()

    def _all_free(self, stop: threading.Event) -> list[Worker]:
        """The workers that may get cells, at most `per_node` on each node, once there are any and none is busy."""
        while not (found := self._usable(self._per_node)) or self._busy:
            if stop.is_set():
                raise Interrupted
            self._change.wait(_LOOK)
        return at_most_on_each_node(found, self._per_node)

    def _led(self, workers: list[Worker], task: Task, caps: Caps, stop: threading.Event) -> Ended:
        """The outcome of a cell that a process of this driver trains, with the parts of the users on these workers."""
        token, key = f"rankbench-team-{uuid4().hex}", secrets.token_bytes(32)
        serving: list[Future] = []
        try:
            addresses = self._seated(workers, token, key, stop)
            for number, worker in enumerate(workers):
                serving.append(self._told(worker.address, serve_seat, token, number, addresses))
            team = Entrance(addresses[0], key, len(workers), caps.memory)
            with self._halted_with(workers, stop) as halt:
                outcome = run_isolated(server(), replace(task, team=team), caps, halt)
        except Interrupted:
            if stop.is_set():
                raise
            raise Gone from None
        finally:
            self._dismiss(token, serving)
        if outcome.status == "lost":
            raise Gone
        return outcome

    def _seated(self, workers: list[Worker], token: str, key: bytes, stop: threading.Event) -> list[Address]:
        """Where the workers listen for each other, once all of them are ready; one may first end another's cell."""
        refuse_encrypted(workers)
        asked = [self._told(worker.address, take_seat, token, key) for worker in workers]
        try:
            while not all([self._is_done(future) for future in asked]):
                if stop.is_set():
                    raise Interrupted
                if not self._are_present(workers):
                    raise Gone
            return [future.result() for future in asked]
        except (*_AWAY, KilledWorker):
            raise Gone from None

    def _told(self, address: str, work: Callable[..., Any], *arguments: Any) -> Future:
        """A task for one worker."""
        key = f"{work.__name__}-{uuid4().hex}"
        try:
            return self._client.submit(work, *arguments, workers=[address], key=key, pure=False, retries=0)
        except _AWAY:
            raise Gone from None

    @contextmanager
    def _halted_with(self, workers: list[Worker], stop: threading.Event) -> Iterator[threading.Event]:
        """A context with an event that is set when the run stops, or when one of the workers is gone."""
        halt, over = threading.Event(), threading.Event()

        def watch() -> None:
            while not over.wait(_LOOK):
                if stop.is_set() or not self._are_present(workers):
                    halt.set()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield halt
        finally:
            over.set()
            watcher.join()

    def _are_present(self, workers: list[Worker]) -> bool:
        """Whether the scheduler knows all these workers; while it does not answer, they go on."""
        try:
            present = self._contact.workers(_LOOK)
        except Unfinished:  # which is told where the next workers are asked for
            return False
        return present is None or {worker.address for worker in workers} <= set(present)

    def _dismiss(self, token: str, serving: list[Future]) -> None:
        """End a team, and wait for a moment until its workers are free."""
        with suppress(Exception):  # the scheduler may have gone away; then connections that close end the team
            Event(token, client=self._client).set()
            wait_for(serving)
        for future in serving:
            with suppress(Exception):
                future.cancel()

    # One cell on one worker

    def _answer(self, address: str, order: Order, stop: threading.Event) -> Ended | Refusal:
        """What a worker answers to an order.

        The future is held until the next order is on its way. Released earlier, the message of its release would go
        first, and Dask sends the next one 10 ms later.
        """
        key = f"{order.cell.key}-{uuid4().hex[:8]}"
        limit = None if order.caps.seconds is None else monotonic() + order.caps.seconds + _GRACE
        try:
            client = self._client
            future = client.submit(carry_out, order, workers=[address], key=key, pure=False, retries=0)
            self._held[address] = future
            while not self._is_done(future):
                if stop.is_set():
                    raise Interrupted
                if self._has_left(client, address) or (limit and monotonic() > limit):
                    with suppress(Exception):  # the scheduler may have gone away, too
                        future.cancel()
                    raise Gone
            answer: Ended | Refusal = future.result()
            return answer
        except (Gone, Interrupted, Unfinished):
            raise
        except (*_AWAY, KilledWorker):
            raise Gone from None
        except Exception as error:  # not the solver's, whose errors are answers
            raise Gone(f"its worker did not get so far as to run it: {error_text(error)}") from None

    def _has_left(self, client: Client, address: str) -> bool:
        """Whether a worker has left the cluster, or the connection over which it got its cell is another one now.

        While a scheduler does not answer, its workers go on.
        """
        present = self._contact.workers(at_most=0.0)
        return client is not self._client or (present is not None and address not in present)

    def _is_done(self, future: Future) -> bool:
        """Whether a cell has ended, after waiting for a moment."""
        with suppress(TimeoutError):
            future.result(timeout=_LOOK)
        if future.status in ("cancelled", "lost"):
            raise Gone
        return bool(future.done())
