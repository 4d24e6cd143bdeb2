"""The sentence that answers which solver is best."""

import re

from helpers import ran, tiny

from rankbench.report.render.answer import answer
from rankbench.report.rows import rows

ALIKE = tuple(f"mf[rank={rank}, lam={lam}]" for rank in (1, 2, 3) for lam in (1, 2))


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
