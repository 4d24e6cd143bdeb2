"""The scikit-learn regressor SVRank, and item kernels other than the Gaussian."""

import numpy as np
import pytest
from sklearn.datasets import make_regression
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.sklearn import MPRank, SVRank
from rankbench.solvers import svrank


@pytest.mark.slow
@parametrize_with_checks(
    [
        SVRank(C=100.0, eps=0.01),
        SVRank(C=100.0, eps=0.01, kernel="gaussian", width=2.0),
        SVRank(C=100.0, form="residuals"),
        MPRank(C=100.0, kernel="polynomial", degree=2, width=3.0),
    ]
)
def test_scikit_learn_takes_it_for_an_estimator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def problem():
    """Samples, targets, and samples never seen."""
    X, y = make_regression(50, 4, noise=3.0, random_state=0)
    return X[:40], y[:40] / 20, X[40:]


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial"])
@pytest.mark.parametrize("form", ["pairs", "residuals"])
def test_new_samples_score_as_items_that_the_solver_knew_of_but_that_nobody_rated(problem, kernel, form):
    X, y, new = problem
    settings = {"C": 5.0, "eps": 0.2, "kernel": kernel, "width": 2.0, "degree": 3, "form": form}
    view = Ratings(np.array([0, 40]), np.arange(40), y, 50, np.vstack([X, new]))
    model = fit(svrank.SVRank(**settings), view, steps=10_000)
    expected = model.score(np.zeros(10, np.int32), np.arange(40, 50))
    np.testing.assert_allclose(SVRank(**settings).fit(X, y).predict(new), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("shell", [SVRank, MPRank])
@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_a_kernel_that_is_given_is_as_good_as_one_that_is_named(problem, shell, kernel):
    X, y, new = problem
    makers = {
        "gaussian": lambda a, b: rbf_kernel(a, b, gamma=1 / 8),
        "polynomial": lambda a, b: polynomial_kernel(a, b, degree=2, gamma=1 / 4, coef0=1),
    }
    named = shell(kernel=kernel, width=2.0).fit(X, y).predict(new)
    given = shell(kernel="precomputed").fit(makers[kernel](X, X), y).predict(makers[kernel](new, X))
    np.testing.assert_allclose(given, named, rtol=1e-3, atol=1e-4)  # SVRank ends at a gap of 1e-5


def test_a_kernel_with_a_negative_eigenvalue_is_refused(problem):
    _, y, _ = problem
    with pytest.raises(UserError, match="not positive semidefinite: its smallest eigenvalue is"):
        SVRank(kernel="precomputed").fit(np.ones((40, 40)) - 2 * np.eye(40), y)


def test_the_shells_defaults_are_the_solvers():
    from inspect import signature

    for shell, solver in {SVRank: svrank.SVRank, MPRank: type(MPRank().fit([[0.0], [1.0]], [0, 1]).solver_)}.items():
        theirs = {name: parameter.default for name, parameter in signature(solver).parameters.items()}
        ours = {name: parameter.default for name, parameter in signature(shell).parameters.items()}
        assert {name: value for name, value in ours.items() if name != "max_steps"}.items() <= theirs.items()
