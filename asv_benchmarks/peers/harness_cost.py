"""The cost of the harness: the overhead per cell, here and on a Dask cluster, and resuming a finished run."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter, sleep

from turns import Measure, seconds

from rankbench.execution.cluster.driver import Cluster
from rankbench.execution.cluster.waiting import Waits
from rankbench.execution.run import Conditions, Run
from rankbench.experiments import Budget, Experiment, load
from rankbench.planning.materials import Materials
from rankbench.planning.plan import plan
from rankbench.records.cells import Cell, Selection
from rankbench.records.claims import Claims
from rankbench.records.results import Counted, Point, Result
from rankbench.records.store import ResultsFolder

SOLVERS, REPETITIONS = 20, 500
CLAIMED = 200
ENOUGH = 20  # repetitions of longer cells: of fewer cells, the last one decides how busy the second worker is
FINISHED = """
title = "Ten thousand cells"
paper = "none"
about = "For the harness's own cost."
data = ["low-rank[users=20,items=30,per_user=20]"]
splits = ["n-per-user[n=8,least=5]"]
solvers = [{solvers}]
metrics = ["pairwise-error", "ndcg@5"]
repetitions = {repetitions}
budget = {{ steps = 3 }}
"""
_TELLING_MEMORY = """
import atexit, runpy
from rankbench.core.system import peak_bytes
atexit.register(lambda: print(peak_bytes()))  # what the system says of a child counts the memory of its parent, too
runpy.run_module("rankbench", run_name="__main__", alter_sys=True)
"""


def harness_cost(repeats: int) -> Iterator[Measure]:
    """The overhead per cell, of claims and of a cluster, and the cost of resuming ten thousand finished cells."""
    yield _cell(repeats)
    yield _claim()
    yield from _on_a_cluster(repeats)
    yield from _resumed()


def short_cells(repetitions: int) -> Experiment:
    """Three closed forms with fixed settings, which take a few milliseconds each."""
    solvers = ("mprank[C=30,form=primal]", "mprank[C=30,form=dual]", "mprank[C=1000,kernel=gaussian,width=0.4]")
    whole = load("cortes2007-unseen")
    return replace(whole, data=("magnitudes",), solvers=solvers, tune=None, repetitions=repetitions)


def longer_cells(repetitions: int) -> Experiment:
    """Trainings that compute for half a second to a second each."""
    cells = short_cells(repetitions)
    solvers = ("altsvm[rank=10,lam=10]", "sgd[rank=10]", "sgd[rank=20]")
    data, splits = ("low-rank[users=1000,items=500,per_user=60]",), ("n-per-user[n=40,least=10]",)
    return replace(cells, data=data, splits=splits, solvers=solvers, metrics=("ndcg@10",), budget=Budget(steps=60))


def _cell(repeats: int) -> Measure:
    """The overhead of a cell: processes, split, evaluation and result file, with one cell at a time.

    The process from which cells are forked starts once per run and takes about a third of a second; here it is
    started before the time is taken.
    """
    experiment = short_cells(repeats)
    with tempfile.TemporaryDirectory() as folder:
        for part in ("warm-up", "measured"):
            run = prepared(experiment, Path(folder, part))
            elapsed = seconds(run.execute)
        results = run.study().results
    beyond = 1e3 * (elapsed - sum(result.seconds or 0.0 for result in results)) / len(results)
    return Measure(f"a cell beyond its solver, over {len(results)} cells", "ms", beyond, at_most=60.0)


def _claim() -> Measure:
    """What it costs per cell to share a folder with other drivers: taking and releasing the cell's claim."""
    with tempfile.TemporaryDirectory() as folder, Claims(Path(folder, "claims")) as claims:

        def share() -> None:
            for number in range(CLAIMED):
                claims.take(f"cell-{number}")
                claims.release(f"cell-{number}")

        return Measure("a cell's claim, taken and released", "ms", 1e3 * seconds(share) / CLAIMED, at_most=10.0)


def _on_a_cluster(repeats: int) -> Iterator[Measure]:
    """A cell's overhead on one local Dask worker, and how much faster two workers finish the same cells."""
    kinds = {"short": short_cells(max(repeats, 2)), "longer": longer_cells(max(repeats, ENOUGH))}
    times: dict[tuple[str, int], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for workers in (1, 2):
            with local_cluster(Path(folder, f"{workers}"), workers) as cluster:
                for kind, experiment in kinds.items():
                    for part in ("warm-up", "measured"):
                        run = prepared(experiment, Path(folder, f"{workers}-{kind}-{part}"), cluster)
                        times[kind, workers] = seconds(run.execute)
                    if workers == 1:
                        yield _beyond_solvers(kind, times[kind, workers], run.study().results)
    for kind in kinds:
        what = f"two Dask workers against one, the same {kind} cells"
        at_least = 1.8 if kind == "longer" else None
        yield Measure(what, "x", times[kind, 1] / times[kind, 2], at_least=at_least)


def _beyond_solvers(kind: str, elapsed: float, results: Sequence[Result]) -> Measure:
    """The overhead of a cell on a Dask worker."""
    trained = sum(result.seconds or 0.0 for result in results)
    what = f"a cell beyond its solver on a Dask worker, {len(results)} {kind} cells of {trained / len(results):.2f} s"
    return Measure(what, "ms", 1e3 * (elapsed - trained) / len(results), at_most=50.0 if kind == "short" else None)


@contextmanager
def local_cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """A local scheduler with so many worker processes."""
    folder.mkdir()
    file = folder / "scheduler.json"
    environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
    options = ("--scheduler-file", str(file), "--no-dashboard")
    worker = ("worker", "--nthreads", "1", "--local-directory", str(folder))
    roles = [("scheduler", "--port", "0"), *[worker] * workers]
    commands = [[sys.executable, "-m", f"distributed.cli.dask_{role}", *more, *options] for role, *more in roles]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    processes = [subprocess.Popen(command, env=environment, **quiet) for command in commands]
    try:
        while not file.exists():
            sleep(0.1)
        found = Cluster(str(file), workers, print, Waits())
        while found.places < workers:
            sleep(0.1)
        yield found
        found.close()
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _resumed() -> Iterator[Measure]:
    """The seconds and memory of resuming a finished run in a separate process, until its report is written."""
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "finished.toml"), Path(folder, "results")
        solvers = json.dumps([f"sgd[rank={rank}]" for rank in range(1, SOLVERS + 1)])[1:-1]
        file.write_text(FINISHED.format(solvers=solvers, repetitions=REPETITIONS))
        run = prepared(load(str(file)), out)
        for cell in run.plan.cells:
            run.keep(_made_up(cell, run), {})
        command = [sys.executable, "-c", _TELLING_MEMORY, "run", str(file), "--out", str(out), "-q"]
        started = perf_counter()
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        elapsed = perf_counter() - started
    what = f"a finished run of {SOLVERS * REPETITIONS:,} cells, planned, resumed and reported"
    yield Measure(what, "s", elapsed, at_most=10.0)
    yield Measure(f"{what}: peak memory", "MB", int(told.split()[-1]) / 1e6, at_most=500.0)


def prepared(experiment, out: Path, cluster: Cluster | None = None) -> Run:
    """A planned run with its results folder created."""
    store = ResultsFolder(out, print).store(experiment.name)
    materials = Materials(0, store.scratch)
    conditions = Conditions(jobs=cluster.places if cluster else 1)
    run = Run(plan(experiment, Selection(), materials), store, conditions, materials, cluster)
    run.open()
    return run


def _made_up(cell: Cell, run: Run) -> Result:
    """A made-up result of a cell, without training."""
    curve = tuple(Point(step, 0.01 * step, (0.3, 0.6)) for step in range(4))
    counted = (Counted(20, 0), Counted(20, 0))
    return Result(
        cell=cell, status="ok", reason=None, curve=curve, counted=counted, unscored=0.0, wall=0.1, peak_mb=60.0,
        contended=False, machine=run.machine, finished="2026-01-01T00:00:00+00:00",
    )  # fmt: skip
