"""How long many cells take on several workers of a cluster: what `--dry-run` forecasts, and what was measured.

`python asv_benchmarks/peers/cells_on_workers.py --to reports/many-machines.md` writes a section of that page.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

sys.path.append(str(Path(__file__).parents[1]))

from harness_cost import local_cluster, longer_cells, prepared, short_cells
from pages import rows, with_section
from turns import Measure, seconds

from rankbench import experiments
from rankbench.core.system import busy_seconds, usable_cores
from rankbench.execution.forecast import HANDING, Job, clock_seconds, estimate
from rankbench.execution.run import Conditions
from rankbench.experiments import Experiment, load
from rankbench.experiments.durations import Duration, reproduced

WORKERS = (2, 4)
COMMAND = "python asv_benchmarks/peers/cells_on_workers.py --to reports/many-machines.md"
NODES = (1, 4, 16, 100)
CORES = 8  # of a node
TITLE = "Many cells on many workers"


@dataclass(frozen=True)
class Measured:
    """An experiment's cells on so many workers: the forecast from their seconds on one worker, and the clock."""

    experiment: str
    cells: int
    workers: int
    forecast: float
    seconds: float

    @property
    def ratio(self) -> float:
        """How many times the forecast the clock showed."""
        return self.seconds / self.forecast


def cells_on_workers(repeats: int) -> Iterator[Measure]:
    """How many times its forecast each run took."""
    for found in measured():
        what = f"{found.cells} cells of {found.experiment} on {found.workers} workers, measured over forecast"
        yield Measure(what, "x", found.ratio, at_least=1 / 1.5, at_most=1.5)


def measured() -> Iterator[Measured]:
    """Each experiment on more workers, every time between two runs on one worker, which its forecast comes from."""
    kinds = {
        "short cells": short_cells(30),
        "cells of half a second": longer_cells(4),
        "park2015-table1, with trials": load("park2015-table1"),
    }
    for kind, experiment in kinds.items():
        before = _ran(experiment, 1)
        for workers in WORKERS:
            found, after = _ran(experiment, workers), _ran(experiment, 1)
            forecast = mean(one.forecast(workers) for one in (before, after))
            yield Measured(kind, found.cells, workers, forecast, found.seconds)
            before = after


@dataclass(frozen=True)
class Ran:
    """What a run took: by the clock, beyond the processes of its cells, and of how many cores."""

    cells: int
    seconds: float
    beyond: float  # seconds of a cell before its process begins and after it has ended
    cores: float  # that were busy meanwhile
    told: Mapping[int, float]  # by number of workers, what `--dry-run` says

    def forecast(self, workers: int) -> float:
        """The seconds on so many workers; where there are too few cores for them, each cell takes longer."""
        slower = max(1.0, workers * self.cores / usable_cores())
        return slower * (self.told[workers] + self.cells * self.beyond / workers)


def _ran(experiment: Experiment, workers: int) -> Ran:
    """A run on so many workers, which have run a cell before."""
    with tempfile.TemporaryDirectory() as name, local_cluster(Path(name, "cluster"), workers) as cluster:
        folder = Path(name)
        prepared(replace(short_cells(workers), name="warm"), folder / "warm", cluster).execute()
        run = prepared(experiment, folder / "measured", cluster)
        busy = busy_seconds()
        took = seconds(run.execute)
        busy = busy_seconds() - busy
        cells = {cell.key: cell for cell in (*run.plan.trials, *run.plan.cells)}.values()
        inside = sum(result.wall for cell in cells if (result := run.result(cell)))
        told = {number: _told(experiment, folder / "measured", number) for number in WORKERS}
        return Ran(len(cells), took, max(0.0, took - inside) / len(cells), busy / took, told)


def _told(experiment: Experiment, stored: Path, places: int) -> float:
    """What `--dry-run` says that a run takes which makes all stored results again."""
    run = prepared(experiment, stored)
    run.conditions = Conditions(jobs=places, rerun=frozenset({"all"}))
    return estimate(run)[0]


def reproduction(nodes: int) -> tuple[float, str]:
    """The seconds of all full profiles on so many nodes, and the experiment that takes most of them."""
    each = {}
    for name, took in _reproduced().items():
        alone = load(name, full=True).timed
        jobs = [Job(str(number), took.of(1), alone=alone) for number in range(took.cells)]
        each[name] = clock_seconds(jobs, nodes * CORES, nodes)
    return sum(each.values()), max(each, key=each.__getitem__)


def _reproduced() -> dict[str, Duration]:
    return {name: took for name in experiments.names() if (took := reproduced(name))}


TEXT = """Written by `{command}`, on {cores} usable cores.

`--dry-run` forecasts how long a run takes: it plays through how the driver hands out cells, {handing:.0f} ms each,
with the seconds that stored cells of the same solvers took. To this the forecast here adds what a run on one worker
took beyond the processes of its cells, and it takes each cell for longer where there are fewer cores than the workers
need: as many each as were busy in the run on one worker. This machine's speed changes from minute to minute, so that
every run stands between two on one worker, and its forecast is the mean of what these two give.

| cells | how many | workers | forecast, s | measured, s | measured / forecast |
| --- | ---: | ---: | ---: | ---: | ---: |
{measured}

Computed, not measured: all full profiles, {cells:,} cells and trials that took {hours:.1f} hours one at a time on
{processor}, on nodes of {of_a_node} such cores, one experiment after another. All cells of an experiment are taken to
be equally long, and no trial waits for another, so that a run takes longer than this. Of cells whose seconds are what
their experiment shows, each node runs one at a time.

| nodes | cores | hours | node hours | the experiment that takes most of it |
| ---: | ---: | ---: | ---: | --- |
{computed}
"""


def section() -> str:
    """The section of the page: what was measured beside its forecast, and the forecast of the whole reproduction."""
    found = [
        (one.experiment, one.cells, one.workers, f"{one.forecast:.1f}", f"{one.seconds:.1f}", f"{one.ratio:.2f}")
        for one in measured()
    ]
    whole = {nodes: reproduction(nodes) for nodes in NODES}
    computed = [
        (nodes, nodes * CORES, f"{seconds / 3600:.2f}", f"{nodes * seconds / 3600:.1f}", longest)
        for nodes, (seconds, longest) in whole.items()
    ]
    took = list(_reproduced().values())
    return TEXT.format(
        command=COMMAND,
        cores=usable_cores(),
        handing=1e3 * HANDING,
        measured=rows(found),
        cells=sum(one.cells for one in took),
        hours=sum(one.seconds for one in took) / 3600,
        processor=took[0].processor,
        of_a_node=CORES,
        computed=rows(computed),
    )


def main() -> None:
    """Measure, and write the section or print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, metavar="PAGE", help="write the section of this page; without, it is shown")
    options = parser.parse_args()
    text = section()
    if options.to:
        options.to.write_text(with_section(options.to, TITLE, text))
    else:
        print(text)


if __name__ == "__main__":
    main()
