"""Random: uniform scores, independent between pairs, with values of metrics that chance gives."""

import numpy as np
import pytest
from scipy.stats import kstest
from solvers.contract import SolverContract

from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.metrics import evaluate
from rankbench.solvers.random_scores import Random


class TestRandom(SolverContract):
    solver = Random()


def test_scores_are_uniform_and_no_pair_says_anything_about_another():
    train = Ratings.from_triples(np.arange(200), np.arange(200), np.ones(200))
    scores = fit(Random(), train).score_all(np.arange(200))
    assert len(np.unique(scores)) == scores.size
    assert kstest(scores.ravel(), "uniform").pvalue > 0.01
    for one, other in ((scores[:, :-1], scores[:, 1:]), (scores[:-1], scores[1:]), (scores, scores.T)):
        off = one != other
        assert abs(np.corrcoef(one[off], other[off])[0, 1]) < 0.02
    again = fit(Random(), train, seed=1).score_all(np.arange(200))
    assert abs(np.corrcoef(scores.ravel(), again.ravel())[0, 1]) < 0.02


def test_metrics_are_those_of_chance():
    rng = np.random.default_rng(0)
    users, items = np.divmod(np.arange(400 * 30), 30)
    test = Ratings.from_triples(users, items, rng.integers(1, 6, len(users)).astype(float))
    found = evaluate(fit(Random(), test), test, ["pairwise-error", "auc", "precision@5"])
    share = np.mean(test.values >= 4)
    assert found["pairwise-error"] == pytest.approx(0.5, abs=0.02)
    assert found["auc"] == pytest.approx(0.5, abs=0.02)
    assert found["precision@5"] == pytest.approx(share, abs=0.04)
