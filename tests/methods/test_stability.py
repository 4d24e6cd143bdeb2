"""Stability bounds compared with the paper's closed forms and with measured changes in training."""

from math import exp, log, sqrt

import numpy as np
import pytest

from rankbench import experiments
from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.data.synthetic import Magnitudes
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.methods.stability import admissibility, bound, deviation, stability
from rankbench.solvers.mprank import MPRank
from rankbench.solvers.svrank import SVRank


@pytest.mark.parametrize("m", [10, 1000])
@pytest.mark.parametrize(("C", "kappa", "M", "delta"), [(1.0, 1.0, 2.0, 0.05), (30.0, 2.5, 4.0, 0.2)])
def test_the_bounds_are_those_of_the_corollary(m, C, kappa, M, delta):
    root = sqrt(2 / m * log(2 / delta))
    one = 8 * kappa**2 * C / m + 2 * (2 * kappa**2 * C + M) * root
    two = 128 * kappa**2 * C * M**2 / m + 4 * M**2 * (16 * kappa**2 * C + 1) * root
    assert bound(C, kappa, m, 1, M, delta) == pytest.approx(one, rel=1e-14)
    assert bound(C, kappa, m, 2, M, delta) == pytest.approx(two, rel=1e-14)


@pytest.mark.parametrize("n", [1, 2])
def test_the_deviation_is_exceeded_with_probability_delta(n):
    beta, m, M = stability(2.0, 1.5, 50, n, 3.0), 50, 3.0
    excess = deviation(beta, m, n, M, 0.1) - 2 * beta
    assert 2 * exp(-m * excess**2 / (2 * (beta * m + (2 * M) ** n) ** 2)) == pytest.approx(0.1, rel=1e-12)


def costs(h: Floats, y: Floats, eps: float, n: int) -> Floats:
    d = np.abs((h[:, None] - h) - (y[:, None] - y))
    return d**2 if n == 2 else np.maximum(d - eps, 0)


@pytest.mark.parametrize(
    ("solver", "n"),
    [
        (MPRank(C=2.0, kernel="gaussian"), 2),
        (SVRank(C=2.0, kernel="gaussian", tolerance=1e-9), 1),
        (SVRank(C=20.0, kernel="gaussian", eps=0.0, tolerance=1e-9), 1),
    ],
)
def test_leaving_a_point_out_changes_no_cost_by_more_than_the_stability(solver, n):
    view = Magnitudes(users=1, items=30, features=3, per_user=24).view(np.random.default_rng(3))
    y, m = np.interp(np.arange(30), view.items, view.values), 24
    h = fit(solver, view, steps=500).score(np.zeros(30, int), np.arange(30))
    M = np.abs((h - h.mean()) - (y - y.mean())).max() + 1
    beta = stability(solver.C, 1.0, m, n, M)
    changes = []
    for left in range(m):
        fewer = view.take(np.flatnonzero(np.arange(m) != left))
        same_weight = type(solver)(**{**vars(solver), "C": solver.C * (m - 1) ** 2 / m**2})
        h_left = fit(same_weight, fewer, steps=500).score(np.zeros(30, int), np.arange(30))
        eps = getattr(solver, "eps", 0.0)
        changes.append(np.abs(costs(h, y, eps, n) - costs(h_left, y, eps, n)).max())
    assert 1e-4 * beta < max(changes) <= beta


def test_the_experiments_bounds_are_what_the_functions_say():
    found = experiments.load("cortes2007-bounds")
    assert len(found.published) == 10
    for entry in found.published:
        m, n = int(dict(entry.split.settings)["n"]), 2 if entry.metric.startswith("cost-mp") else 1
        assert entry.value == float(f"{bound(1.0, 1.0, m, n, 9.0):.4g}")
        assert entry.computed and entry.on is None  # nobody published it


def test_no_rating_of_the_experiments_data_is_further_from_its_score_than_it_says():
    view = Magnitudes(users=40, items=1000, features=3, per_user=800).view(np.random.default_rng(0))
    for solver in (MPRank(kernel="gaussian"), SVRank(kernel="gaussian")):
        some = Ratings.from_triples(view.users[::8], view.items[::8], view.values[::8], 40, 1000, view.item_features)
        away = fit(solver, some, steps=100).score(view.users, view.items) - view.values
        assert np.abs(away).max() < 9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: admissibility(3, 1.0), "n=3 is out of range: must be 1 or 2"),
        (lambda: admissibility(2, 0.0), "M=0 is out of range: must be above 0"),
        (lambda: stability(-1.0, 1.0, 5, 1, 1.0), "C=-1 is out of range: must be above 0"),
        (lambda: stability(1.0, float("nan"), 5, 1, 1.0), "kappa=nan is out of range: must be above 0"),
        (lambda: bound(1.0, 1.0, 0, 1, 1.0), "m=0 is out of range: must be above 0"),
        (lambda: bound(1.0, 1.0, 5, 1, 1.0, 1.0), "delta=1 is out of range: must be above 0 and below 1"),
    ],
)
def test_what_is_out_of_range_is_named(call, message):
    with pytest.raises(UserError, match=message):
        call()
