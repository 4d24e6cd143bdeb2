"""What the harness itself costs."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from turns import Measure, seconds

from rankbench.experiments import load
from rankbench.harness.plan import Materials, Selection, plan
from rankbench.harness.run import Conditions, run
from rankbench.harness.store import Store


def harness_cost(repeats: int) -> Iterator[Measure]:
    """What a cell costs beyond its solver: process, split, evaluation and result file, alone and one by one.

    The process that cells are forked from starts once in a run, for about a third of a second; it is
    started here before the clock.
    """
    experiment = replace(load("cortes2007-unseen"), data=("magnitudes",), repetitions=repeats)
    with tempfile.TemporaryDirectory() as folder:
        for part in ("warm-up", "measured"):
            planned, out = plan(experiment, Selection()), Path(folder, part)
            elapsed = seconds(partial(run, planned, Conditions(out), lambda event: None, Materials(0)))
        store = Store(out, experiment.name)
        results = [store.load(cell) for cell in planned.cells]
    beyond = 1e3 * (elapsed - sum(result.seconds for result in results)) / len(results)
    yield Measure(f"a cell beyond its solver, over {len(results)} cells", "ms", beyond, at_most=60.0)
