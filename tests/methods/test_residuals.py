"""The loss over pairs from sorted residuals compared with the double sum, and Newton's method with its certificate."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rankbench.core.contract import Floats
from rankbench.kernels.methods import residuals as kernel
from rankbench.methods.isotonic import project_total
from rankbench.methods.residuals import (
    FeatureSpace,
    FunctionSpace,
    KernelSpace,
    Pairs,
    ResidualProblem,
    SmoothedPoint,
    level,
)

RESIDUALS = arrays(np.float64, st.integers(1, 25), elements=st.integers(-12, 12).map(lambda k: k / 4))


def levels(space: FunctionSpace, problem: ResidualProblem, tolerance: float) -> Iterator[SmoothedPoint]:
    """A point after each level of mu, until the gap is small enough."""
    point = SmoothedPoint.start(space, problem)
    while not point.ended(tolerance):
        point = level(space, problem, point, tolerance)
        yield point


def by_pairs(r: Floats, eps: float, mu: float) -> tuple[float, float, float, Floats, Floats]:
    """The rounded loss, loss, slack, gradient and Laplacian of the near pairs, from all pairs."""
    m = len(r)
    d = r[:, None] - r
    t = np.abs(d) - eps
    np.fill_diagonal(t, -1.0)
    b = np.clip(t / mu, 0, 1)
    near = (t >= 0) & (t < mu)
    upper = np.triu_indices(m, 1)
    rounded = np.where(t >= mu, t - mu / 2, np.where(near, t**2 / (2 * mu), 0))[upper].sum()
    laplacian = np.diag(near.sum(axis=1)) - near.astype(float)
    over = np.maximum(t, 0)
    slack = (over * (1 - b))[upper].sum()
    return rounded, over[upper].sum(), slack, (b * np.sign(d)).sum(axis=1), laplacian


@settings(max_examples=150, deadline=None)
@given(RESIDUALS, st.sampled_from([0.0, 0.25, 1.0]), st.sampled_from([0.1, 0.25, 3.0]))
def test_all_sums_are_those_over_pairs(r, eps, mu):
    pairs = Pairs.of(r, eps, mu)
    rounded, loss, slack, gradient, laplacian = by_pairs(r, eps, mu)
    assert pairs.smoothed == pytest.approx(rounded, abs=1e-9)
    assert pairs.loss == pytest.approx(loss, abs=1e-9)
    assert pairs.slack == pytest.approx(slack, abs=1e-9)
    np.testing.assert_allclose(pairs.gradient, gradient, atol=1e-9)
    x = np.random.default_rng(0).standard_normal((len(r), 3))
    np.testing.assert_allclose(pairs.hessian_times(x) * mu, laplacian @ x, atol=1e-9)


@pytest.mark.parametrize("eps", [0.0, 0.4])
def test_the_gradient_and_the_hessian_are_finite_differences(eps):
    r, mu, step = np.random.default_rng(1).standard_normal(40), 0.3, 1e-6
    here = Pairs.of(r, eps, mu)
    for direction in np.eye(40)[::7]:
        ahead, behind = (Pairs.of(r + sign * step * direction, eps, mu) for sign in (1, -1))
        assert (ahead.smoothed - behind.smoothed) / (2 * step) == pytest.approx(here.gradient @ direction, abs=1e-5)
        change = (ahead.gradient - behind.gradient) / (2 * step)
        np.testing.assert_allclose(change, here.hessian_times(direction[:, None])[:, 0], atol=1e-5)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_residuals_far_from_zero_cost_no_digits(offset):
    r = np.round(np.random.default_rng(2).standard_normal(200) * 64) / 64
    near, far = (Pairs.of(values, 0.25, 0.5) for values in (r, r + offset))
    assert far.loss == pytest.approx(near.loss, rel=1e-12)
    np.testing.assert_allclose(far.gradient, near.gradient, atol=1e-9)


def test_nothing_has_no_loss():
    none, order, bounds = np.empty(0), np.empty(0, np.int32), np.empty((0, 4), np.int32)
    found = kernel.measure(r=none, eps=0.1, mu=1.0, order=order, bounds=bounds, gradient=none)
    assert found == (0, 0, 0)
    assert kernel.near_laplacian_times(order=order, bounds=bounds, x=np.empty((0, 3))).size == 0


@pytest.mark.parametrize("c", [0.001, 0.02, 0.3])
def test_with_an_identity_kernel_and_no_eps_the_best_scores_are_an_isotonic_regression(c):
    """|v|^2 + c sum |r_j - r_i|: in the order of -y it is linear, so r is PAV of the shifted -y, as for K = I."""
    y = np.random.default_rng(3).standard_normal(60)
    centre = np.eye(60) - 1 / 60
    *_, last = levels(KernelSpace.of_matrix(centre), ResidualProblem(y, c, 0.0), 1e-10)
    order = np.argsort(-y)
    shifted = -y[order] - c / 2 * (2 * np.arange(60) - 59)
    expected = np.empty(60)
    expected[order] = project_total(shifted, 1e-12)
    r = last.scores - y
    np.testing.assert_allclose(r - r.mean(), expected - expected.mean(), atol=1e-4)


@pytest.mark.parametrize("eps", [0.0, 0.2])
@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_all_spaces_come_to_the_same_value_and_their_gaps_hold(eps, C):
    rng = np.random.default_rng(4)
    features = rng.standard_normal((300, 12))
    features -= features.mean(axis=0)
    problem = ResidualProblem(
        np.round(features @ rng.standard_normal(12) + rng.standard_normal(300)), 2 * C / 300**2, eps
    )
    spaces = FeatureSpace(features), KernelSpace.of_features(features), KernelSpace.of_matrix(features @ features.T)
    courses = [list(levels(space, problem, 1e-7)) for space in spaces]
    best = min(point.primal for course in courses for point in course)
    for course in courses:
        assert course[-1].gap <= 1e-7 * course[-1].primal
        assert all(point.primal - best <= point.gap * (1 + 1e-9) for point in course)
