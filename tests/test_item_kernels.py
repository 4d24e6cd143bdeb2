"""Kernels between items against scikit-learn's, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from rankbench.data.synthetic import Magnitudes
from rankbench.data.views import Ratings
from rankbench.errors import UserError
from rankbench.harness.training import fit
from rankbench.item_kernels import ItemKernel
from rankbench.solvers.mprank import MPRank
from rankbench.solvers.svrank import SVRank

X = np.random.default_rng(0).standard_normal((30, 4))
ORACLES = {
    "linear": linear_kernel(X),
    "gaussian": rbf_kernel(X, gamma=1 / (2 * 1.3**2)),
    "polynomial": polynomial_kernel(X, gamma=1 / 1.3**2, degree=3),
}
SOLVERS = (MPRank, SVRank)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("name", ORACLES)
def test_a_kernel_is_that_of_scikit_learn(name, make):
    kernel, features, rows = ItemKernel(name, 1.3, 3), make(X), np.array([3, 7, 1])
    np.testing.assert_allclose(kernel.gram(features, 2), ORACLES[name], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(kernel.gram_of(features, rows, 2), ORACLES[name][np.ix_(rows, rows)], rtol=1e-11)
    between = kernel.between(features, rows, np.arange(20))
    np.testing.assert_allclose(between, ORACLES[name][rows, :20], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("others", [0.02, 0.2])
@pytest.mark.parametrize("threads", [1, 3])
def test_features_that_mostly_have_one_value_have_the_kernel_of_any_others(others, threads):
    rng = np.random.default_rng(0)
    filled, rated = rng.integers(2, 5, 60), rng.integers(1, 6, (400, 60))
    features = np.where(rng.random((400, 60)) < others, rated, filled).astype(float)
    expected = rbf_kernel(features, gamma=1 / (2 * 3.0**2))
    np.testing.assert_allclose(ItemKernel("gaussian", 3.0).gram(features, threads), expected, rtol=1e-11)
    narrow = rbf_kernel(features, gamma=1 / (2 * 0.01**2))
    np.testing.assert_array_equal(ItemKernel("gaussian", 0.01).gram(features, threads), narrow)


def given(matrix) -> Ratings:
    """One user who rated all items, with this kernel matrix."""
    n = len(matrix)
    return Ratings.from_triples(np.zeros(n, int), np.arange(n), np.arange(n) % 5, item_features=np.asarray(matrix))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_kernel_that_is_not_positive_semidefinite_is_named_with_its_smallest_eigenvalue(solver):
    matrix = np.eye(6)
    matrix[0, 1] = matrix[1, 0] = 1.5
    message = r"^\w+: the kernel is not positive semidefinite: its smallest eigenvalue is -0.5; add 0.5 to its diagonal"
    with pytest.raises(UserError, match=message):
        fit(solver(kernel="precomputed"), given(matrix))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_kernel_of_lower_rank_is_positive_semidefinite(solver):
    scores = fit(solver(kernel="precomputed"), given(X @ X.T)).score(np.zeros(30, int), np.arange(30))
    assert np.isfinite(scores).all() and np.ptp(scores) > 0.1


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_kernel_matrix_that_is_none_is_refused(solver):
    with pytest.raises(UserError, match=r"kernel=precomputed needs items x items, not \(30, 4\): see kernel=linear"):
        fit(solver(kernel="precomputed"), given(X))
    with pytest.raises(UserError, match=r"the kernel matrix differs from its transpose by 1: symmetrise it"):
        fit(solver(kernel="precomputed"), given(np.eye(4) + np.eye(4, k=1)))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("setting", "value"), [("C", 0.0), ("C", -1.0), ("width", 0.0), ("width", -2.0)])
def test_a_setting_that_must_be_above_0_is_named(solver, setting, value):
    with pytest.raises(UserError, match=rf"{solver.__name__}: {setting}={value:g} is out of range: must be above 0"):
        solver(**{setting: value})


@pytest.mark.parametrize("place", ["features", "values"])
def test_nan_is_refused_at_the_door(place):
    view = Magnitudes(users=2, items=9, per_user=5).view(np.random.default_rng(0))
    if place == "features":
        with pytest.raises(UserError, match="item features hold NaN or infinite values"):
            replace(view, item_features=np.full((9, 2), np.nan))
    else:
        with pytest.raises(UserError, match="rating 0 is nan: ratings must be finite"):
            replace(view, values=np.full(len(view), np.nan))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_user_with_fewer_than_two_ratings_scores_nan_and_the_others_do_not(solver):
    view = Ratings.from_triples([0, 2, 2], [0, 0, 1], [1, 2, 3], 3, 3, np.eye(3))
    users, items = (grid.ravel() for grid in np.indices((3, 3)))
    assert np.isnan(fit(solver(), view).score(users, items)).tolist() == [True] * 6 + [False] * 3
