"""Kernels between items compared with scikit-learn's, and errors."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.data.synthetic import Magnitudes
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.features import item_kernels
from rankbench.features.item_kernels import ItemKernel
from rankbench.features.matrix import features_of
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
    apart, rows = ItemKernel("gaussian", 3.0).points(np.vstack([features, features[:9]]))
    assert apart.shape[0] < len(rows) == 409 and rows[400:].tolist() == rows[:9].tolist()
    shared = ItemKernel("gaussian", 3.0).gram(apart, threads)[np.ix_(rows, rows)]
    np.testing.assert_allclose(shared[:400, :400], expected, rtol=1e-11)
    narrow = rbf_kernel(features, gamma=1 / (2 * 0.01**2))
    np.testing.assert_array_equal(ItemKernel("gaussian", 0.01).gram(features, threads), narrow)


def few_values(n: int, columns: int) -> Floats:
    """Mostly zeros; some rows are empty, some equal, and some products cancel."""
    rng = np.random.default_rng(n)
    return np.where(rng.random((n, columns)) < 0.1, rng.integers(-2, 3, (n, columns)), 0).astype(float)


@pytest.mark.parametrize("n", [0, 1, 2, 127, 128, 129, 300])
@pytest.mark.parametrize("width", [0.3, 2.0, 50.0])
def test_the_gaussian_kernel_of_sparse_features_is_that_of_scikit_learn(n, width):
    found = ItemKernel("gaussian", width).gram(scipy.sparse.csr_array(few_values(n, 9)), 2)
    expected = rbf_kernel(few_values(n, 9), gamma=1 / (2 * width**2)) if n else np.empty((0, 0))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-300)
    assert (np.diagonal(found) == 1).all() and found.tobytes() == found.T.tobytes()


@pytest.mark.parametrize("threads", [2, 3])
def test_the_gaussian_kernel_of_sparse_features_is_the_same_bytes_on_any_number_of_threads(threads):
    features = scipy.sparse.csr_array(few_values(500, 40) * np.pi)
    one, many = (ItemKernel("gaussian", 3.0).gram(features, count) for count in (1, threads))
    assert one.tobytes() == many.tobytes()


def test_values_that_a_sparse_matrix_holds_twice_are_added_up():
    parts = np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])
    given = scipy.sparse.csr_array(parts, shape=(2, 2))
    expected = rbf_kernel(np.array([[3.0, 0.0], [0.0, 5.0]]), gamma=0.005)
    np.testing.assert_allclose(ItemKernel("gaussian", 10.0).gram(given, 1), expected, rtol=1e-14)
    assert given.nnz == 3


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("name", ["linear", "gaussian", "polynomial"])
def test_items_whose_features_agree_share_a_row(name, make):
    features = few_values(200, 3)
    found, rows = ItemKernel(name).points(make(features))
    assert found.shape[0] == len(np.unique(features, axis=0)) < 200
    np.testing.assert_array_equal(features_of(found).dense()[rows], features)
    firsts = np.unique(rows, return_index=True)[1]
    assert (np.diff(firsts) > 0).all()


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_items_that_chance_would_confound_are_left_apart(monkeypatch, make):
    class Blind:
        standard_normal = staticmethod(np.zeros)

    monkeypatch.setattr(item_kernels, "stream", lambda *names: Blind)
    features = make(few_values(50, 3))
    found, rows = ItemKernel("linear").points(features)
    assert found is features and rows.tolist() == list(range(50))


def test_a_matrix_that_is_given_keeps_all_its_rows():
    found, rows = ItemKernel("precomputed").points(np.ones((4, 4)))
    assert found.shape == (4, 4) and rows.tolist() == [0, 1, 2, 3]


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
    with pytest.raises(
        UserError, match=rf"{solver.__name__}: {setting}={value:g} is out of range: must be at least 1e-"
    ):
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


def test_a_kernel_matrix_of_zeros_and_one_of_nothing_have_no_negative_eigenvalue():
    for matrix in (np.zeros((3, 3)), np.zeros((0, 0))):
        ItemKernel("precomputed").check(matrix, "MPRank")


def test_a_polynomial_kernel_that_overflows_is_refused():
    with pytest.raises(UserError, match="the polynomial kernel overflows: scale the features, raise width or lower"):
        ItemKernel("polynomial", degree=9).gram(np.full((2, 2), 1e30), 1)
