"""What more repetitions would show, as a dry run and Python say it."""

import numpy as np
import pytest
from helpers import made_up_study, tiny, tiny_toml

from rankbench.api.outcomes import Outcome

pytestmark = pytest.mark.slow


def shaken(cell, value):
    """Values of users that differ between solvers and repetitions."""
    rng = np.random.default_rng([cell.place.repetition, len(cell.solver.name)])
    return {measure.label: value + 0.1 * rng.standard_normal(20) for measure in cell.measures}


def test_more_repetitions_show_smaller_differences_and_take_longer(tmp_path):
    found = Outcome(made_up_study(tmp_path, tiny(repetitions=3), arrays=shaken)).power((3, 10))
    assert list(found.columns) == ["data", "split", "metric", "users", "repetitions", "difference", "seconds"]
    assert len(found) == 2 * 2 and set(found.users) == {20}
    few, more = (found[found.repetitions == count] for count in (3, 10))
    assert (more.difference.to_numpy() < few.difference.to_numpy()).all()
    assert few.seconds.tolist() == pytest.approx([18.0, 18.0])  # two cells of three seconds in each repetition


def test_a_dry_run_says_it(cli, tmp_path):
    path = tiny_toml(tmp_path, repetitions="3")
    out = str(tmp_path / "results")
    assert "two stored repetitions (-r 2) say it" in cli("run", path, "--dry-run", "--out", out).out
    cli("run", path, "-q", "--no-report", "--out", out)
    said = cli("run", path, "--dry-run", "-r", "5", "--out", out).out
    assert "ndcg@5: differences that would show with a probability of .8: 5 repetitions, " in said
