"""What a worker of a Dask cluster does for a driver: it makes the split of a cell and runs the cell in a process."""

import hashlib
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from distributed import Event, get_client, get_worker
from distributed.comm import parse_host_port

from rankbench.core.blas import one_blas_thread
from rankbench.core.errors import UserError
from rankbench.core.temporary import own_folder
from rankbench.distributed.channels import Address
from rankbench.distributed.teams import Member
from rankbench.execution import machine
from rankbench.execution.cluster.orders import Introduction, Order, Refusal
from rankbench.execution.isolation import Interrupted, Supervisors, server
from rankbench.execution.worker import Ended, Task
from rankbench.names import Named
from rankbench.planning.materials import Materials, read_split
from rankbench.records.cells import Cell, Measure

_KEPT = 4  # splits that a worker keeps on its disk
_LOOK = 1.0  # seconds between two looks at whether the driver has stopped


def introduce() -> Introduction:
    """Describe this worker."""
    return Introduction(machine.describe(), not multiprocessing.current_process().daemon)


def carry_out(order: Order) -> Ended | Refusal:
    """Run the cell of an order, in a process of its own and within its limits."""
    try:
        with _BENCH.use() as folder:
            cell, parts = _with_own_files(order, folder), _split_file(order, folder)
            task = Task(cell, parts, _start_file(order, folder), order.followed)
            with _stopped_by(order.stop) as stop:
                return _BENCH.supervisors().run(task, order.caps, stop)
    except _Unfit as error:
        return error.refusal
    except Interrupted:
        return Refusal("the driver stopped")
    except (ConnectionError, TimeoutError):  # between processes: a moment later it may work
        raise
    except OSError as error:
        return Refusal(f"it cannot write to {error.filename or 'its scratch folder'}: {error.strerror or error}")


def take_seat(token: str, key: bytes) -> Address:
    """Get ready to hold parts of the users in the team of this token; returns where this worker listens."""
    host = parse_host_port(get_worker().address.rpartition("://")[2])[0]
    for left in list(_SEATS):  # of teams that were given up: `only_team` lets one driver at a time make one
        _SEATS.pop(left).close()
    _SEATS[token] = member = Member(host, key)
    return member.address


def serve_seat(token: str, number: int, addresses: list[Address]) -> None:
    """Hold parts of the users, until the team ends or the driver sets the event of this token."""
    member = _SEATS.pop(token)
    with one_blas_thread(), _on_event(token, member.close):
        member.serve(number, addresses)


_SEATS: dict[str, Member] = {}  # by token: the teams that this worker is about to be a member of


class _Bench:
    """A worker's scratch folder, made on first use, its supervisors, and the data set used last; one cell uses them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: TemporaryDirectory[str] | None = None
        self._materials: tuple[int, Materials] | None = None
        self._supervisors: Supervisors | None = None
        self._pid = 0

    @contextmanager
    def use(self) -> Iterator[Path]:
        """A context with the folder."""
        with self._lock:
            if self._folder is None or self._pid != os.getpid():
                self._folder, self._pid = TemporaryDirectory(dir=own_folder()), os.getpid()
                self._supervisors = None  # those of the process that forked this one
            yield Path(self._folder.name)

    def supervisors(self) -> Supervisors:
        """What runs cells in processes of their own; the server that these are forked from may have to start again."""
        context = server()
        self._supervisors = self._supervisors or Supervisors(context)
        return self._supervisors

    def materials(self, seed: int) -> Materials:
        """What splits with this seed are made from; the data set used last is kept in memory."""
        if self._materials is None or self._materials[0] != seed:
            self._materials = seed, Materials(seed)
        return self._materials[1]


_BENCH = _Bench()


class _Unfit(Exception):
    """This worker cannot run a cell; holds the refusal for the driver."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


def _split_file(order: Order, folder: Path) -> Path:
    """The file of the cell's split: kept from an earlier cell, sent by the driver, or made here from its names."""
    path = folder / f"{order.cell.split_hash}.arrays"
    if path.exists():
        os.utime(path)
        return path
    kept = sorted(folder.glob("*.arrays"), key=lambda file: file.stat().st_mtime)
    for old in kept[: max(0, len(kept) - _KEPT + 1)]:
        old.unlink()
    draft = folder / "draft"
    try:
        if order.split is None:
            _make_split(order.cell, draft)
        else:
            draft.write_bytes(order.split)
        return draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)


def _start_file(order: Order, folder: Path) -> Path | None:
    """The file of the model that the cell starts from."""
    if order.start is None:
        return None
    path = folder / "start"
    path.write_bytes(order.start)
    return path


def _make_split(cell: Cell, path: Path) -> None:
    """Make the split of a cell from the names of its data and split, and check that it is the planned one."""
    try:
        _BENCH.materials(cell.seed).write(cell.place, path)
    except UserError as error:
        raise _Unfit(Refusal(str(error), lacks_data=True)) from error
    if (found := read_split(path).hash) != cell.split_hash:
        hashes = f"{found[:12]} and not the planned {cell.split_hash[:12]}"
        raise _Unfit(Refusal(f"its data differs: it makes the split {cell.place.written} as {hashes}"))


def _with_own_files(order: Order, folder: Path) -> Cell:
    """The cell with the user's own files at the places where this worker has written them."""
    cell = order.cell
    homes = {path: _written(folder / "own", path, content) for path, content in order.sources.items()}
    measures = tuple(_at_home_measure(measure, homes) for measure in cell.measures)
    return replace(cell, solver=_at_home(cell.solver, homes), measures=measures)


def _written(folder: Path, path: str, content: bytes) -> Path:
    """Write a user's file under its own name, in a folder named by its content."""
    file = folder / hashlib.sha256(content).hexdigest()[:16] / Path(path).name
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return file


def _at_home_measure(measure: Measure, homes: Mapping[str, Path]) -> Measure:
    return replace(measure, source=_at_home(measure.source, homes)) if measure.source else measure


def _at_home(named: Named, homes: Mapping[str, Path]) -> Named:
    """The name with the location of its class on this worker."""
    path, _, attribute = named.home.rpartition(":")
    return replace(named, home=f"{homes[path]}:{attribute}") if path in homes else named


@contextmanager
def _stopped_by(name: str) -> Iterator[threading.Event]:
    """A context with an event that is set once the driver sets its own event of this name on the cluster."""
    ours = threading.Event()
    with _on_event(name, ours.set):
        yield ours


@contextmanager
def _on_event(name: str, act: Callable[[], None]) -> Iterator[None]:
    """A context in which `act` is called once the driver has set its own event of this name on the cluster."""
    theirs, over = Event(name, client=get_client()), threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK):
            with suppress(Exception):  # the scheduler may be away; the cell's limits still hold
                if theirs.is_set():
                    act()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
