"""What the harness itself costs."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from turns import Measure, seconds

from rankbench.experiments import load
from rankbench.harness.materials import Materials
from rankbench.harness.plan import plan
from rankbench.harness.records import Selection
from rankbench.harness.run import Conditions, Run
from rankbench.harness.store import ResultsFolder


def harness_cost(repeats: int) -> Iterator[Measure]:
    """What a cell costs beyond its solver: process, split, evaluation and result file, alone and one by one.

    The process that cells are forked from starts once in a run, for about a third of a second; it is
    started here before the clock.
    """
    experiment = replace(load("cortes2007-unseen"), data=("magnitudes",), repetitions=repeats)
    with tempfile.TemporaryDirectory() as folder:
        for part in ("warm-up", "measured"):
            store = ResultsFolder(Path(folder, part), print).store(experiment.name)
            materials = Materials(0, store.scratch)
            run = Run(plan(experiment, Selection(), materials), store, Conditions(), materials)
            run.open()
            elapsed = seconds(lambda run=run: run.execute(lambda event: None))
        results = run.study().results
    beyond = 1e3 * (elapsed - sum(result.seconds or 0.0 for result in results)) / len(results)
    yield Measure(f"a cell beyond its solver, over {len(results)} cells", "ms", beyond, at_most=60.0)
