"""The sentence that answers which solver is best."""

import re

import pytest
from helpers import TINY, made_up_study, ran, tiny

from rankbench.execution.retraining import best_of
from rankbench.report.render.answer import answer, ranking
from rankbench.report.rows import rows

ALIKE = tuple(f"mf[rank={rank}, lam={lam}]" for rank in (1, 2, 3) for lam in (1, 2))


@pytest.mark.slow
def test_solvers_whose_open_verdicts_the_same_would_settle_share_a_clause(tmp_path):
    study = ran(tmp_path, tiny(solvers=ALIKE, repetitions=3)).study()
    own = [
        row for row in rows(study) if row.metric == study.measures[0].label and row.verdict == "open" and not row.best
    ]
    said = answer(study)
    clauses = re.findall(r"against (.+?) it is open([^;]*)", said)
    assert sum(len(re.findall(r"mf\[[^]]*\]", names)) for names, _ in clauses) == len(own) == said.count("mf[") - 1
    assert len({ending for _, ending in clauses}) == len(clauses) < len(own)
    assert all("would probably settle it" in ending for _, ending in clauses if "settle" in ending)


def test_a_solver_with_a_better_mean_of_fewer_repetitions_is_not_said_to_be_better_than_any(tmp_path):
    """Verdicts compare others with the best of those with all repetitions; so do the sentence and the model."""
    values = {"global[lam=10]": 0.2, "sgd[rank=2]": 0.5, "sgd[rank=3]": 0.1}
    experiment, first = tiny(solvers=tuple(values), repetitions=5), TINY.metrics[0]

    def value(cell):
        found = values[cell.solver.written]
        return found if found > 0.1 or cell.place.repetition == 0 else None

    study = made_up_study(tmp_path, experiment, value)
    assert study.measures[0].label == first and study.measures[0].sign == -1
    said = answer(study)
    assert said.startswith("global[lam=10] has the best pairwise error: 0.1000") and "better than sgd[rank=2]" in said
    assert "against sgd[rank=3] it is open (it has no value in repetitions 1, 2, 3, 4)" in said
    assert [line.group.solver.written for line in ranking(study)] == ["global[lam=10]", "sgd[rank=3]", "sgd[rank=2]"]
    assert best_of(study.groups, study.measures[0], {}).cell.solver.written == "global[lam=10]"
