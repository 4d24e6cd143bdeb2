"""The model of a stored cell made again in another process: the same bytes, for every solver."""

import pytest
from helpers import OWN_SOLVERS, ran, silent, tiny

from rankbench.execution.retraining import remade
from rankbench.models import MODELS
from rankbench.records.cells import Selection
from rankbench.records.store import ResultsFolder
from rankbench.report.study import study

pytestmark = pytest.mark.slow

DATA = ("low-rank[users=20,items=30,per_user=20]", "feature-low-rank[users=20,items=40,features=12,per_user=20]")


def test_every_solvers_model_is_made_again_bit_for_bit(tmp_path):
    experiment = tiny(data=DATA, solvers=tuple(sorted(OWN_SOLVERS)), metrics=("pairwise-error",), repetitions=1)
    ran(tmp_path, experiment, Selection(threads=2), jobs=2)
    good = [entry.good for entry in study(ResultsFolder(tmp_path, silent), "tiny").entries if entry.good]
    assert {result.cell.solver.name for result in good} == set(OWN_SOLVERS)  # each suits one of the data sets
    for result in good:
        made = remade(result)
        assert (result.cell.solver.written, made.difference) == (result.cell.solver.written, "")
        assert type(made.model.model).__name__ in MODELS and not made.has_ids
