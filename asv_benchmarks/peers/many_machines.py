"""Training with the users in parts: what 1, 2 and 4 processes take, and a model of the cost on many machines.

`python asv_benchmarks/peers/many_machines.py --report reports/many-machines.md` measures and writes the report.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, log2
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import numpy as np
from cells_on_workers import TITLE, section  # which makes `pages` known
from pages import rows as lines_of
from scipy.optimize import nnls
from turns import Measure

import rankbench
from rankbench import load
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats, Partitioned, Sums
from rankbench.core.streams import stream
from rankbench.data.views import Ratings, View, offer
from rankbench.distributed.in_process import InProcess
from rankbench.distributed.teams import Entrance, Team
from rankbench.execution.machine import describe
from rankbench.methods.factors import whole_lanes
from rankbench.solvers.altsvm import AltSVM
from rankbench.solvers.frsvm import FRSVM

COMMAND = "python asv_benchmarks/peers/many_machines.py --report reports/many-machines.md"
PARTS = 16
WORKERS = (1, 2, 4)
RANK = 10
FRSVM_IN_PARTS = FRSVM(rank=RANK, C=0.1, features="none", partitions=PARTS)
ALTSVM_IN_PARTS = AltSVM(rank=RANK, lam=0.3, partitions=PARTS)
PROBLEMS = {  # solver, data, and comparisons drawn per user
    "frsvm, many ratings": (FRSVM_IN_PARTS, "low-rank[users=6000,items=4000,per_user=150]", None),
    "frsvm, many users": (FRSVM_IN_PARTS, "low-rank[users=40000,items=2000,per_user=30]", None),
    "frsvm, many items": (FRSVM_IN_PARTS, "low-rank[users=10000,items=40000,per_user=30]", None),
    "altsvm, many comparisons": (ALTSVM_IN_PARTS, "low-rank[users=6000,items=4000,per_user=50]", 300),
    "altsvm, many items": (ALTSVM_IN_PARTS, "low-rank[users=10000,items=40000,per_user=30]", 60),
}
MEMBER = """
import json, sys
from rankbench.distributed.teams import Member
from rankbench.core.blas import one_blas_thread
member = Member("127.0.0.1", bytes.fromhex(sys.argv[2]))
print(json.dumps(member.address), flush=True)
with one_blas_thread():
    member.serve(int(sys.argv[1]), [tuple(address) for address in json.loads(input())])
"""


@dataclass(frozen=True)
class Size:
    """The size of a training set, as far as the cost depends on it."""

    users: int
    items: int
    rows: int

    @property
    def item_bytes(self) -> float:
        """Bytes of a matrix with a vector for each item, as they travel and as the kernels have them."""
        return 8.0 * whole_lanes(RANK) * self.items


@dataclass(frozen=True)
class Measured:
    """One problem on one number of workers: an epoch is a step of frsvm, and both halves of altsvm."""

    problem: str
    size: Size
    workers: int
    placed: int  # bytes over all connections until the first model
    seconds: float  # of an epoch, the median
    working: float  # CPU seconds of an epoch: in each call those of the worker that had most to do
    driving: float  # CPU seconds of an epoch of the driver
    sent: float  # bytes of an epoch, over all connections
    calls: float  # of an epoch
    memory: float  # resident bytes of the worker that has most
    digest: str

    @property
    def solver(self) -> str:
        """The solver's name."""
        return self.problem.partition(",")[0]

    @property
    def moved(self) -> float:
        """Bytes that pass each connection in an epoch."""
        return self.sent / self.workers


LARGE = {  # published sizes; altsvm is taken to learn from as many comparisons as there are ratings
    "MovieLens 32M": Size(200_948, 87_585, 32_000_204),
    "Netflix": Size(480_189, 17_770, 100_480_507),
    "Yahoo! Music R2": Size(1_823_179, 136_736, 717_872_016),
}
LARGE_PARTS, LARGE_WORKERS = 256, (16, 64, 256)


def many_machines(repeats: int) -> Iterator[Measure]:
    """Seconds and bytes per epoch and memory per worker on 1, 2 and 4 local processes."""
    for found in measured(repeats):
        name = f"{found.problem}, {found.workers} workers"
        yield Measure(f"{name}: an epoch", "s", found.seconds)
        yield Measure(f"{name}: sent in an epoch", "MB", found.sent / 1e6)
        yield Measure(f"{name}: memory of a worker", "MB", found.memory / 1e6)


def measured(epochs: int) -> Iterator[Measured]:
    """All problems on all numbers of workers; they must have the same bits as in one process."""
    for problem, (solver, data, comparisons) in PROBLEMS.items():
        view = load(data)
        if comparisons and isinstance(view, Ratings):
            view = view.comparisons(comparisons, stream(0, "comparisons"))
        train = offer(solver, view)
        expected = _digest_in_process(solver, train, epochs)
        for workers in WORKERS:
            found = _measured(problem, solver, train, workers, epochs)
            if found.digest != expected:
                raise SystemExit(f"{problem}: {workers} workers have other bits than one process")
            yield found


def _steps_in(solver: Partitioned, epochs: int) -> int:
    return (2 if isinstance(solver, AltSVM) else 1) * epochs


def _digest_in_process(solver: Partitioned, train: View, epochs: int) -> str:
    with one_blas_thread():
        for step in islice(solver.steps_on(InProcess(), train, stream(0)), 1 + _steps_in(solver, epochs)):
            model = step.model
        return model.digest()


def _measured(problem: str, solver: Partitioned, train: View, workers: int, epochs: int) -> Measured:
    with _team(workers) as team, one_blas_thread():
        steps = solver.steps_on(team, train, stream(0))
        step = next(steps)
        before, calls, driven, times = team.cost, team.calls, thread_time(), []
        for _ in range(epochs):
            start = perf_counter()
            for _ in range(_steps_in(solver, 1)):
                step = next(steps)
            times.append(perf_counter() - start)
        driven = thread_time() - driven
        return Measured(
            problem=problem,
            size=Size(train.n_users, train.n_items, len(train)),
            workers=workers,
            placed=before.sent,
            seconds=median(times),
            working=(team.cost.seconds - before.seconds) / epochs,
            driving=driven / epochs,
            sent=(team.cost.sent - before.sent) / epochs,
            calls=(team.calls - calls) / epochs,
            memory=team.cost.memory,
            digest=step.model.digest(),
        )


@contextmanager
def _team(members: int) -> Iterator[Team]:
    """A team of so many processes on this machine."""
    key = os.urandom(32)
    folders = (Path(rankbench.__file__).parents[1], Path(__file__).parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    commands = [[sys.executable, "-c", MEMBER, str(number), key.hex()] for number in range(members)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, env=environment, **pipes) for command in commands]
    addresses = [json.loads(process.stdout.readline()) for process in processes]
    for process in processes:
        print(json.dumps(addresses), file=process.stdin, flush=True)
    team = Team(Entrance(tuple(addresses[0]), key, members))
    try:
        yield team
    finally:
        team.close()
        for process in processes:
            process.communicate()


# ---- the model of the cost ----


@dataclass(frozen=True)
class Network:
    """What a connection costs: seconds per byte, and per message."""

    byte: float
    message: float

    def seconds(self, workers: int, moved: float, calls: float) -> float:
        """The seconds that so many calls are on their way, which move so many bytes over each connection.

        A message from the driver to the last worker, or a sum back, passes 1 + ceil(log2 W) connections.
        """
        return (1 + ceil(log2(workers))) * (moved * self.byte + 2 * calls * self.message)


@dataclass(frozen=True)
class Model:
    """What an epoch costs besides the network, in CPU seconds."""

    rows: dict[str, float]  # per row, by solver
    item_byte: float  # of a worker, per byte of items' vectors that one of its parts reads or writes
    driver_byte: float  # of the driver, per byte of items' vectors that moves
    errors: tuple[float, ...]  # of the workers' seconds, relative, for each measurement

    def seconds(self, solver: str, rows: int, moved: float, shares: tuple[float, float]) -> float:
        """The seconds of a worker with this share of the rows and this number of parts, and of the driver."""
        share, parts = shares
        return self.rows[solver] * rows * share + self.item_byte * parts * moved + self.driver_byte * moved


def fitted(all_found: list[Measured]) -> Model:
    """The model with the least squares of relative errors, and no negative coefficient."""
    solvers = sorted({found.solver for found in all_found})
    table = [
        [found.size.rows / found.workers if solver == found.solver else 0.0 for solver in solvers]
        + [PARTS / found.workers * found.moved]
        for found in all_found
    ]
    *rows, item_byte, errors = _least_squares(table, [found.working for found in all_found])
    driver_byte, _ = _least_squares([[found.moved] for found in all_found], [found.driving for found in all_found])
    return Model(dict(zip(solvers, rows, strict=True)), item_byte, driver_byte, errors)


def connections(repeats: int = 200) -> Network:
    """What a connection of this machine with itself costs: the best of many calls that do nothing."""
    table, right = [], []
    for workers in WORKERS:
        with _team(workers) as team:
            team.place(_nothing, [()] * workers)
            for size, times in ((0, repeats), (1 << 24, repeats // 10)):
                best = min(_seconds_of_call(team, np.zeros(size // 8)) for _ in range(times))
                hops = 1 + ceil(log2(workers))
                table.append([2.0 * size * hops, 2.0 * hops])
                right.append(best)
    byte, message, _ = _least_squares(table, right)
    return Network(byte, message)


def _nothing() -> None:
    """A part that holds nothing."""


def _echo(part: None, array: Floats) -> Sums:
    return (array,)


def _seconds_of_call(team: Team, array: Floats) -> float:
    start = perf_counter()
    team.total(_echo, array)
    return perf_counter() - start


def memory_model(all_found: list[Measured]) -> dict[str, float]:
    """Bytes of a worker: without data, per row (by solver), per user, and per byte of a matrix of items' vectors."""
    solvers = sorted({found.solver for found in all_found})
    table = [
        [1.0, found.size.users / found.workers, found.size.item_bytes]
        + [found.size.rows / found.workers if solver == found.solver else 0.0 for solver in solvers]
        for found in all_found
    ]
    *coefficients, _ = _least_squares(table, [found.memory for found in all_found])
    return dict(zip(["base", "user", "item byte", *solvers], coefficients, strict=True))


def _least_squares(table: list[list[float]], right: list[float]) -> tuple[Any, ...]:
    """The coefficients, none negative, of the least squared relative errors; then these errors."""
    matrix = np.array(table) / np.array(right)[:, None]
    scale = matrix.max(axis=0)
    coefficients = nnls(matrix / scale, np.ones(len(matrix)))[0] / scale
    errors = tuple(float(error) for error in matrix @ coefficients - 1.0)
    return *(float(one) for one in coefficients), errors


# ---- the report ----

NETWORK = Network(byte=8 / 10e9, message=1e-4)  # 10 Gbit/s, and a tenth of a millisecond from process to process
HEAD = """# Training with the users in parts, on several machines

`frsvm` and `altsvm` with `partitions` above 1 keep the users' rows, vectors and dual variables in several processes;
only what belongs to items travels. This page was written by

    {command}

on {machine}, with {cores} usable cores and a load of {load:.1f} when it began. Every measured training was compared
with the one in a single process: the hash of the model is the same for every number of workers.

An epoch is a step of frsvm, or an items' and a users' half of altsvm. The workers are processes of this machine, and
so is the driver. *Seconds* are by the clock, the median of {epochs} epochs: they fall with more workers only where
cores are free. *Work* is CPU time, and other processes do not lengthen it: in every call that of the worker that had
most to do.

## Measured

"""
QUALITY = "low-rank[users=2000,items=500,per_user=50]"


def report(path: Path, epochs: int) -> None:
    """Measure, and write the report."""
    load_before = os.getloadavg()[0]
    all_found = list(measured(epochs))
    model, here, memory = fitted(all_found), connections(), memory_model(all_found)
    head = HEAD.format(
        command=COMMAND,
        machine=f"{describe().cpu}, {platform.system()} {platform.machine()}",
        cores=len(os.sched_getaffinity(0)),
        load=load_before,
        epochs=epochs,
    )
    parts = [head + _measured_table(all_found), _quality(), _model_text(model, here, memory, all_found)]
    parts += [_computed(model, here, memory, all_found), f"## {TITLE}\n\n{section()}"]
    path.write_text("\n\n".join(parts))


def _table(heads: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown, its first two columns texts."""
    rule = ["---"] * 2 + ["---:"] * (len(heads) - 2)
    return lines_of([heads, rule, *rows])


def _measured_table(all_found: list[Measured]) -> str:
    rows = [
        {
            "problem": found.problem,
            "users x items, rows": f"{found.size.users:,} x {found.size.items:,}, {found.size.rows:,}",
            "workers": str(found.workers),
            "seconds": f"{found.seconds:.2f}",
            "work": f"{found.working:.2f}",
            "driver's CPU": f"{found.driving:.3f}",
            "calls": f"{found.calls:.1f}",
            "MB per connection": f"{found.moved / 1e6:.1f}",
            "MB in all": f"{found.sent / 1e6:.1f}",
            "MB of a worker": f"{found.memory / 1e6:.0f}",
            "MB placed": f"{found.placed / 1e6:.0f}",
            "hash": f"`{found.digest[:8]}`",
        }
        for found in all_found
    ]
    return _table(list(rows[0]), [list(row.values()) for row in rows])


def _quality() -> str:
    """How far some epochs come with the users in more and more parts."""
    train = load(QUALITY)
    settings = [(parts, 1) for parts in (1, 4, 16, 64)] + [(16, 4), (64, 16)]
    rows = []
    for parts, inner in settings:
        solver = AltSVM(rank=RANK, lam=0.3, inner=inner, partitions=parts)
        rows.append([f"altsvm, inner={inner}", str(parts), *_objectives(solver, train, 2)])
    for parts in (1, 4, 16, 64):
        rows.append(["frsvm", str(parts), *_objectives(replace(FRSVM_IN_PARTS, partitions=parts), train, 1)])
    text = f"""## What parts cost in progress

The objective after some epochs on `{QUALITY}`, all pairs. frsvm is the same algorithm for any number of parts, and
draws another start. In the items' half of altsvm the parts take shorter steps the more there are (CoCoA+), and more
passes (`inner`) bring a half nearer to its optimum, at the cost of work and of a matrix of items' vectors down and up
each. Both halves together are not convex, so shorter steps in one of them need not mean a higher objective after some
epochs: on these data it is lower with parts than without.

"""
    return text + _table(["solver", "partitions", "1 epoch", "5 epochs", "20 epochs"], rows)


def _objectives(solver: Any, train: View, halves: int) -> list[str]:
    with one_blas_thread():
        steps = solver.steps(offer(solver, train), stream(0))
        wanted = {halves * epochs for epochs in (1, 5, 20)}
        return [
            f"{step.objective():.4g}" for number, step in enumerate(islice(steps, max(wanted) + 1)) if number in wanted
        ]


def _model_text(model: Model, here: Network, memory: dict[str, float], all_found: list[Measured]) -> str:
    rates = ", ".join(f"{1e9 * rate:.0f} ns per row of {solver}" for solver, rate in model.rows.items())
    solvers = ", ".join(f"{memory[solver]:.0f} bytes per row of {solver}" for solver in model.rows)
    worst = max(abs(error) for error in model.errors)
    ratio = median(
        found.seconds
        / (
            model.seconds(found.solver, found.size.rows, found.moved, (1 / found.workers, PARTS / found.workers))
            + here.seconds(found.workers, found.moved, found.calls)
        )
        for found in all_found
    )
    return f"""## The model

An epoch takes work + driver + network:

- work of a worker with a share of the rows and some of the parts: {rates}, and {1e9 * model.item_byte:.2f} ns per
  byte of items' vectors that a call moves and a part reads or writes. Fitted to the work above, with no coefficient
  negative; the largest error is {worst:.0%}, the median {median(map(abs, model.errors)):.0%}.
- driver: {1e9 * model.driver_byte:.2f} ns of CPU time per byte of items' vectors that moves (conjugate gradients,
  messages).
- network: a message passes 1 + ceil(log2 W) connections on its way to the last of W workers, and a sum as many on its
  way back. Between processes of this machine a connection costs {1e9 * here.byte:.2f} ns per byte and
  {1e6 * here.message:.0f} microseconds per message, from the best of many calls that do nothing else.
- memory of a worker: {memory["base"] / 1e6:.0f} MB, {solvers}, {memory["user"]:.0f} bytes per user, and
  {memory["item byte"]:.1f} times a matrix of items' vectors.

The clock showed {ratio:.1f} times what the model gives for the measured trainings (median), which have no core for each
process."""


def _computed(model: Model, here: Network, memory: dict[str, float], all_found: list[Measured]) -> str:
    heads = ["data", "solver", "workers", "work", "driver", "network"]
    heads += ["seconds of an epoch", "with this machine's network", "MB of a worker"]
    rows = []
    for name, size in LARGE.items():
        for solver in model.rows:
            own = [found for found in all_found if found.solver == solver]
            matrices = max(found.moved / found.size.item_bytes for found in own)
            calls, moved = max(found.calls for found in own), matrices * size.item_bytes
            for workers in LARGE_WORKERS:
                shares = 1 / workers, LARGE_PARTS / workers
                driver = model.driver_byte * moved
                work = model.seconds(solver, size.rows, moved, shares) - driver
                network, local = (one.seconds(workers, moved, calls) for one in (NETWORK, here))
                held = memory["base"] + memory["item byte"] * size.item_bytes
                held += (memory["user"] * size.users + memory[solver] * size.rows) / workers
                times = [work, driver, network, work + driver + network, work + driver + local]
                rows.append([name, solver, str(workers), *(f"{one:.2f}" for one in times), f"{held / 1e6:.0f}"])
    sizes = "; ".join(f"{name}: {size.users:,} x {size.items:,}, {size.rows:,}" for name, size in LARGE.items())
    return f"""## Computed, not measured

What the model gives for large public data sets ({sizes}), rank {RANK}, {LARGE_PARTS} parts, a core for each worker,
and a network of 10 Gbit/s with 0.1 ms from process to process. altsvm is taken to learn from as many comparisons as
there are ratings. Nobody has run these trainings here. The model leaves out that a row of frsvm costs more, by a
logarithm, where users have more ratings, and that machines wait for each other where parts are of unequal cost.

{_table(heads, rows)}"""


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", type=Path, required=True, metavar="PATH", help="the file to write")
    parser.add_argument("--epochs", type=int, default=5, help="measured epochs of each training")
    options = parser.parse_args()
    report(options.report, options.epochs)


if __name__ == "__main__":
    import many_machines  # its functions travel to other processes by the name of this module

    many_machines.main()
