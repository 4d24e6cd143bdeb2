"""MPRank against ridge regression, kernel ridge regression and the pair objective as it is printed."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.preprocessing import KernelCenterer
from solvers.contract import SolverContract

from rankbench.core.contract import Floats, Ints
from rankbench.core.errors import UserError
from rankbench.data.synthetic import Magnitudes
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.features.item_kernels import ItemKernel
from rankbench.methods import kernel_matrices
from rankbench.solvers.mprank import MPRank, left_out

FORMS = ("auto", "primal", "dual")


class TestMPRank(SolverContract):
    solver = MPRank(C=20.0)


class TestMPRankInTheDual(SolverContract):
    solver = MPRank(C=20.0, form="dual")


class TestMPRankWithGaussianKernel(SolverContract):
    solver = MPRank(C=20.0, kernel="gaussian", width=2.5)


@pytest.fixture
def train() -> Ratings:
    """Users with fewer and with more ratings than there are features: auto needs both forms."""
    whole = Magnitudes(users=10, items=40, features=6, per_user=20).view(np.random.default_rng(1))
    kept = np.random.default_rng(2).random(len(whole)) < np.linspace(0.15, 1, 10)[whole.users]
    view = whole.take(np.flatnonzero(kept))
    counts = np.diff(view.indptr)
    assert counts.min() >= 2 and counts.min() < 6 < counts.max()
    return view


def table(solver: MPRank, train: Ratings, threads: int = 1) -> Floats:
    """The scores, users x items."""
    users, items = np.indices((train.n_users, train.n_items))
    scores = fit(solver, train, threads=threads).score(users.ravel(), items.ravel())
    return scores.reshape(train.n_users, train.n_items)


def of_user(train: Ratings, user: int) -> tuple[Ints, Floats]:
    """The items and values that a user rated."""
    rows = slice(train.indptr[user], train.indptr[user + 1])
    return train.items[rows], train.values[rows]


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
def test_features_of_thousands_leave_the_dual_its_digits(kernel):
    # Two items are alike and rated otherwise, so that coefficients are large where the kernel is 0.
    features = 10_000 * np.random.default_rng(0).standard_normal((6, 10))
    features[1] = features[0]
    train = Ratings(np.array([0, 5]), np.arange(5, dtype=np.int32), np.array([1.0, 5, 2, 4, 3]), 6, features)
    exact = table(MPRank(C=25.0, form="primal"), train)
    dual = MPRank(C=25.0, form="dual", kernel=kernel, width=1.0, degree=1)
    np.testing.assert_allclose(table(dual, train), exact, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_it_is_ridge_regression_with_an_unpenalised_intercept(form, C, train):
    scores = table(MPRank(C=C, form=form), train)
    for user in range(train.n_users):
        items, values = of_user(train, user)
        oracle = Ridge(alpha=len(items) / (2 * C), fit_intercept=True, solver="cholesky")
        oracle.fit(train.item_features[items], values)
        np.testing.assert_allclose(scores[user], oracle.predict(train.item_features), rtol=1e-9, atol=1e-9)


def test_all_forms_give_the_same_scores_to_users_with_many_ratings():
    train = Magnitudes(users=2, items=200, per_user=150, features=9).view(np.random.default_rng(0))
    primal, dual = (table(MPRank(form=form), train) for form in ("primal", "dual"))
    np.testing.assert_allclose(primal, dual, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_a_feature_that_all_items_of_a_user_have_alike_breaks_no_tie(form, make):
    rng = np.random.default_rng(0)
    features = np.column_stack([rng.standard_normal((40, 3)), np.full(40, 0.1), rng.integers(0, 2, 40)])
    features[30:35, :3], features[30:35, 3] = features[0, :3], [0.0, 0.2, 0.3, -1.0, 5.0]  # apart in the constant alone
    features[30:35, 4] = features[0, 4]
    view = Ratings(np.array([0, 20]), np.arange(20), rng.standard_normal(20), 40, item_features=make(features))
    model = fit(MPRank(form=form, C=30.0), view)
    assert model.weights[0, 3] == 0.0 and model.weights[0].astype(bool).sum() == 4
    scores = model.score_all(np.arange(1))[0]
    np.testing.assert_array_equal(scores[30:35], scores[0])


def test_auto_solves_the_smaller_system_of_each_user(train):
    auto, primal, dual = (table(MPRank(form=form), train) for form in FORMS)
    rated_much = np.diff(train.indptr) >= train.item_features.shape[1]
    assert auto[rated_much].tobytes() == primal[rated_much].tobytes() != dual[rated_much].tobytes()
    assert auto[~rated_much].tobytes() == dual[~rated_much].tobytes() != primal[~rated_much].tobytes()


KERNELS = [  # a solver, and its kernel by another package
    *((MPRank(C=C, kernel="gaussian", width=width), partial(rbf_kernel, gamma=1 / (2 * width**2)))
      for width in (0.5, 2.0) for C in (0.1, 1.0, 100.0)),
    *((MPRank(C=3.0, kernel="polynomial", width=1.5, degree=degree),
       partial(polynomial_kernel, gamma=1 / 1.5**2, coef0=1, degree=degree)) for degree in (1, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("solver", "kernel"), KERNELS, ids=[repr(solver) for solver, _ in KERNELS])
def test_other_kernels_are_kernel_ridge_regression_on_centred_kernels(solver, kernel, train):
    scores, gram = table(solver, train), kernel(train.item_features)
    for user in range(train.n_users):
        items, values = of_user(train, user)
        centre = KernelCenterer().fit(gram[np.ix_(items, items)])
        oracle = KernelRidge(alpha=len(items) / (2 * solver.C), kernel="precomputed")
        oracle.fit(centre.transform(gram[np.ix_(items, items)]), values - values.mean())
        expected = oracle.predict(centre.transform(gram[:, items])) + values.mean()
        np.testing.assert_allclose(scores[user], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("solver", [*(MPRank(form=form) for form in FORMS), MPRank(kernel="gaussian")])
def test_sparse_features_give_the_scores_of_dense_ones(solver, train):
    holes = np.random.default_rng(3).random(train.item_features.shape) < 0.6
    dense = np.where(holes, 0.0, train.item_features)
    expected = table(solver, replace(train, item_features=dense))
    for make in (scipy.sparse.csr_array, scipy.sparse.csc_array):
        sparse = table(solver, replace(train, item_features=make(dense)))
        np.testing.assert_allclose(sparse, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_an_unseen_item_is_scored_by_its_features(kernel, train):
    twin = np.vstack([train.item_features, train.item_features[7]])
    wider = replace(train, n_items=train.n_items + 1, item_features=twin)
    scores = table(MPRank(kernel=kernel), wider)
    np.testing.assert_allclose(scores[:, -1], scores[:, 7], rtol=1e-12)


@pytest.mark.parametrize("solver", [*(MPRank(form=form) for form in FORMS), MPRank(kernel="gaussian")])
def test_a_users_scores_have_the_mean_of_the_users_ratings(solver, train):
    scores = table(solver, train)
    for user in range(train.n_users):
        items, values = of_user(train, user)
        assert scores[user, items].mean() == pytest.approx(values.mean(), abs=1e-10)


@pytest.mark.parametrize("solver", [*(MPRank(form=form) for form in FORMS), MPRank(kernel="gaussian")])
def test_only_users_without_two_ratings_are_not_scored(solver):
    features = np.random.default_rng(0).standard_normal((5, 2))
    view = Ratings.from_triples([1, 2, 2, 3, 3], [0, 1, 3, 2, 4], [1, 5, 5, 1, 2], 5, 5, features)
    scores = table(solver, view)
    assert np.isnan(scores[[0, 1, 4]]).all()
    np.testing.assert_allclose(scores[2], 5, rtol=1e-12)  # all alike: nothing to tell apart
    assert np.isfinite(scores[3]).all() and scores[3, 4] > scores[3, 2]


# the pair objective, literally


def pair_objective(w: Floats, features: Floats, values: Floats, C: float) -> float:
    m, h = len(values), features @ w
    total = sum(((h[j] - h[i]) - (values[j] - values[i])) ** 2 for i in range(m) for j in range(m))
    return w @ w + C / m**2 * total


@pytest.fixture
def small() -> Ratings:
    """One user, seven ratings, three features."""
    return Magnitudes(users=1, items=7, features=3, per_user=7).view(np.random.default_rng(5))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_the_gradient_of_the_double_sum_is_zero(form, C, small):
    weights = fit(MPRank(C=C, form=form), small).weights[0]
    for direction in 1e-4 * np.eye(3):  # the objective is quadratic: central differences are exact
        ahead, behind = (
            pair_objective(weights + sign * direction, small.item_features, small.values, C) for sign in (1, -1)
        )
        assert abs(ahead - behind) / 2e-4 < 1e-10


# what is refused


def test_a_gaussian_kernel_has_no_primal():
    with pytest.raises(UserError, match="form=primal needs kernel=linear"):
        MPRank(kernel="gaussian", form="primal")


def test_a_system_that_rounding_spoilt_names_its_user(train):
    view = replace(train, item_features=1e12 * train.item_features)
    with pytest.raises(UserError, match=r"system of user \d is not positive definite: scale the features"):
        table(MPRank(form="dual", C=1e6), view)


def test_a_system_whose_second_pivot_is_zero_is_reported_too():
    features = 2.0**30 * np.array([[1, 1], [-1, -1], [1, 1], [-1, -1]])  # X X^T is the same number everywhere
    view = Ratings(np.array([0, 4]), np.arange(4, dtype=np.int32), np.array([1.0, 2, 3, 5]), 4, item_features=features)
    with pytest.raises(UserError, match=r"system of user 0 is not positive definite"):
        table(MPRank(form="primal", C=1e12), view)


@pytest.mark.parametrize("form", ["primal", "dual"])
def test_a_system_that_rounding_spoilt_is_reported_when_the_best_weight_is_chosen_too(train, form):
    view = replace(train, item_features=1e12 * train.item_features)
    with pytest.raises(UserError, match=r"system of user \d+ is not positive definite"):
        table(MPRank(form=form, choose="C-per-user", C=1e9), view)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_first_failure_is_reported_whichever_thread_meets_it(threads):
    users, items = np.repeat(np.arange(200), 60), np.tile(np.arange(60), 200)
    spoilt = np.isin(users, [20, 50])
    features = np.random.default_rng(0).standard_normal((120, 3)) * np.repeat([1, 1e12], 60)[:, None]
    values = np.random.default_rng(1).standard_normal(len(users))
    view = Ratings.from_triples(users, items + 60 * spoilt, values, item_features=features)
    with pytest.raises(UserError, match="system of user 20 is"):
        fit(MPRank(C=1e6, form="dual"), view, threads=threads)


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
@pytest.mark.parametrize("threads", [2, 3])
def test_many_blocks_give_the_same_bytes_on_any_number_of_threads(kernel, threads):
    view = Magnitudes(users=40, items=300, features=30, per_user=40).view(np.random.default_rng(0))
    solver = MPRank(kernel=kernel)
    assert table(solver, view, threads).tobytes() == table(solver, view).tobytes()


# other kernels, and kernel matrices that do not fit


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_a_kernel_that_is_given_scores_like_the_one_that_is_made(make, train):
    gram = rbf_kernel(train.item_features, gamma=1 / (2 * 1.5**2))
    given = replace(train, item_features=make(gram))
    expected = table(MPRank(kernel="gaussian", width=1.5), train)
    np.testing.assert_allclose(table(MPRank(kernel="precomputed"), given), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial", "precomputed"])
@pytest.mark.parametrize("form", ["auto", "dual"])
@pytest.mark.parametrize("fits", [1, 25])
def test_users_served_by_groups_score_as_with_the_whole_matrix(monkeypatch, kernel, form, fits, train):
    if kernel == "precomputed":
        train = replace(train, item_features=rbf_kernel(train.item_features))
    solver = MPRank(kernel=kernel, form=form, choose="C-per-user")
    expected = table(solver, train)
    monkeypatch.setattr(kernel_matrices, "FITS", fits)
    groups = list(kernel_matrices.KernelMatrices(ItemKernel(kernel), train, 1).parts(USERS))
    assert len(groups) == (10 if fits == 1 else len(groups)) > 1
    assert all(len(group.gram) < train.n_items for group in groups)
    np.testing.assert_allclose(table(solver, train), expected, rtol=1e-9, atol=1e-9)


USERS = np.arange(10, dtype=np.int32)


# a path of C


PATH = np.array([0.01, 0.3, 10.0])


def errors_by_leaving_out(solver: MPRank, train: Ratings, C: float) -> Floats:
    """Each user's mean squared error of fits to all ratings but one, with the ridge of all of them."""
    errors = np.empty(train.n_users)
    for user in range(train.n_users):
        items, values = of_user(train, user)
        squares = []
        for index in range(len(items)):
            kept = np.arange(len(items)) != index
            ridge = MPRank(C=C * kept.sum() / len(items), kernel=solver.kernel, width=solver.width, form=solver.form)
            own = Ratings.from_triples(
                np.zeros(kept.sum(), int), items[kept], values[kept], 1, train.n_items, train.item_features
            )
            if len(own) < 2:
                predicted = values[kept].mean()
            else:
                predicted = table(ridge, own)[0, items[index]]
            squares.append((predicted - values[index]) ** 2)
        errors[user] = np.mean(squares)
    return errors


@pytest.mark.slow
@pytest.mark.parametrize("solver", [*(MPRank(form=form) for form in FORMS), MPRank(kernel="gaussian", width=1.5)])
def test_the_leave_one_out_errors_are_those_of_leaving_one_out(solver, train):
    train = train.take(np.flatnonzero(np.isin(train.users, [0, 1, 5])))
    train = Ratings.from_triples(
        np.unique(train.users, return_inverse=True)[1], train.items, train.values, 3, 40, train.item_features
    )
    errors = left_out(solver, train, PATH)
    for C, column in zip(PATH, errors.T, strict=True):
        np.testing.assert_allclose(column, errors_by_leaving_out(solver, train, C), rtol=1e-8)


def test_the_leave_one_out_errors_are_those_of_scikit_learn(train):
    errors = left_out(MPRank(), train, PATH)
    for user in range(train.n_users):
        items, values = of_user(train, user)
        oracle = RidgeCV(alphas=len(items) / (2 * PATH), store_cv_results=True)
        oracle.fit(train.item_features[items], values)
        np.testing.assert_allclose(errors[user], oracle.cv_results_.mean(axis=0), rtol=1e-8)


@pytest.mark.parametrize("choose", ["C-per-user", "C-for-all"])
@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_the_c_that_is_chosen_has_the_least_error(choose, kernel, train):
    solver = MPRank(C=2.0, kernel=kernel, width=1.5, choose=choose)
    grid = 2.0 * 2.0 ** np.arange(-6, 7)
    errors = left_out(solver, train, grid)
    best = errors.argmin(axis=1) if choose == "C-per-user" else np.full(10, errors.mean(axis=0).argmin())
    scores = table(solver, train)
    assert len(set(best)) == (1 if choose == "C-for-all" else len(set(best)))
    for user, index in enumerate(best):
        expected = table(replace(solver, C=grid[index], choose="nothing"), train)[user]
        assert scores[user].tobytes() == expected.tobytes()


@pytest.mark.parametrize("threads", [2, 3])
def test_the_path_is_the_same_bytes_on_any_number_of_threads(threads, train):
    one, many = (left_out(MPRank(form="auto"), train, PATH, count) for count in (1, threads))
    assert one.tobytes() == many.tobytes()


def test_a_user_with_a_single_rating_has_no_path():
    view = Ratings.from_triples([0, 1, 1, 1], [0, 0, 1, 2], [1, 2, 3, 4], 2, 3, np.eye(3))
    assert np.isnan(left_out(MPRank(), view, PATH)).tolist() == [[True] * 3, [False] * 3]


# what else is refused


@pytest.mark.parametrize("C", [0.0, -1.0, np.nan])
def test_a_path_of_a_c_that_is_not_above_0_is_refused(C, train):
    with pytest.raises(UserError, match=rf"MPRank: C={C} is out of range: must be above 0"):
        left_out(MPRank(), train, [1.0, C])


@pytest.mark.parametrize("values", [[3.0] * 6, [1.0, 5.0, 2.0, 2.0, 4.0, 3.0]])
@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial"])
def test_constant_features_score_all_items_alike_and_constant_targets_too(kernel, values):
    features = np.ones((6, 2)) if len(set(values)) > 1 else np.random.default_rng(0).standard_normal((6, 2))
    view = Ratings.from_triples([0] * 6, np.arange(6), values, item_features=features)
    for choose in ("nothing", "C-per-user"):
        np.testing.assert_allclose(table(MPRank(kernel=kernel, choose=choose), view), np.mean(values), rtol=1e-12)
