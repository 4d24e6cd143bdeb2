"""Limited-memory BFGS compared with SciPy's, and its guarantees at each step."""

from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from rankbench.methods.descent import descend


def rosenbrock(x):
    return float(rosen(x)), rosen_der(x)


def test_it_finds_the_bottom_of_the_banana():
    *_, last = descend(rosenbrock, np.full(10, -1.2))
    np.testing.assert_allclose(last.x, 1, atol=1e-6)


@pytest.mark.parametrize("memory", [1, 5, 20])
def test_it_needs_about_as_many_evaluations_as_scipy(memory):
    calls = []

    def counted(x):
        calls.append(1)
        return rosenbrock(x)

    for point in descend(counted, np.full(6, -1.2), memory):
        if point.value < 1e-8:
            break
    theirs = minimize(rosenbrock, np.full(6, -1.2), jac=True, method="L-BFGS-B", options={"maxcor": memory})
    assert len(calls) < 2 * theirs.nfev


def test_every_point_is_lower_and_says_what_the_function_said():
    points = list(islice(descend(rosenbrock, np.linspace(-2, 2, 8)), 60))
    assert (np.diff([point.value for point in points]) < 0).all()
    for point in points:
        value, gradient = rosenbrock(point.x)
        assert value == point.value
        np.testing.assert_array_equal(gradient, point.gradient)


def test_a_quadratic_of_few_dimensions_is_solved_in_few_steps():
    matrix = np.diag([1.0, 100.0, 10_000.0])
    target = np.array([1.0, -2.0, 3.0])
    points = descend(lambda x: (0.5 * (x - target) @ matrix @ (x - target), matrix @ (x - target)), np.zeros(3))
    last = list(islice(points, 40))[-1]
    np.testing.assert_allclose(last.x, target, rtol=1e-6)


def test_it_ends_where_the_gradient_is_nothing():
    assert len(list(descend(lambda x: (float(x @ x), 2 * x), np.zeros(4)))) == 1


def test_a_function_with_negative_curvature_on_the_way_is_no_obstacle():
    points = descend(lambda x: (float(-np.cos(x).sum()), np.sin(x)), np.full(3, 3.0))
    *_, last = islice(points, 100)
    assert last.value == pytest.approx(-3, abs=1e-12)


def test_changes_of_the_gradient_whose_squares_underflow_stop_nothing():
    def nearly_linear(x):
        return 1e-150 * float(x.sum()) + 1e-170 * float(x @ x), 1e-150 + 2e-170 * x

    points = list(islice(descend(nearly_linear, np.ones(3)), 5))
    assert (np.diff([point.value for point in points]) < 0).all()
    assert len(points) == 5
