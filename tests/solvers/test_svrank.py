"""SVRank against a QP solver, its own double sum over pairs, and its two forms against each other."""

from dataclasses import replace
from itertools import combinations

import clarabel
import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from solvers.contract import SolverContract

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats
from rankbench.core.streams import stream
from rankbench.data.synthetic import Magnitudes
from rankbench.data.views import Ratings
from rankbench.methods import kernel_matrices
from rankbench.solvers import svrank
from rankbench.solvers.svrank import SVRank

FORMS = ("pairs", "residuals")


class TestSVRank(SolverContract):
    solver = SVRank(C=20.0)


class TestSVRankOverResiduals(SolverContract):
    solver = SVRank(C=20.0, form="residuals")


class TestSVRankWithGaussianKernel(SolverContract):
    solver = SVRank(C=20.0, kernel="gaussian", width=2.5, eps=0.0)


@pytest.mark.trust
class TestSVRankWithGaussianKernelOverResiduals(SolverContract):
    solver = SVRank(C=20.0, kernel="gaussian", width=2.5, form="residuals")


def one_user(m: int, features: int = 6, seed: int = 0, levels: bool = False) -> Ratings:
    """One user who rated all items; in whole numbers where levels are asked for, so that ratings tie."""
    view = Magnitudes(users=1, items=m, features=features, per_user=m).view(np.random.default_rng(seed))
    return replace(view, values=np.round(1.5 * view.values)) if levels else view


def last(solver: SVRank, train: Ratings, threads: int = 1):
    """The last step."""
    with one_blas_thread():
        for step in solver.steps(train, stream(0), threads):
            found = step
    return found


def table(solver: SVRank, train: Ratings, threads: int = 1) -> Floats:
    """The scores, users x items."""
    users, items = np.indices((train.n_users, train.n_items))
    return last(solver, train, threads).model.score(users.ravel(), items.ravel()).reshape(users.shape)


def gram_of(solver: SVRank, x: Floats) -> Floats:
    if solver.kernel == "gaussian":
        return rbf_kernel(x, gamma=1 / (2 * solver.width**2))
    if solver.kernel == "polynomial":
        return polynomial_kernel(x, gamma=1 / solver.width**2, coef0=1, degree=solver.degree)
    return x @ x.T


def best_by_clarabel(solver: SVRank, gram: Floats, y: Floats) -> float:
    """The least value of the primal as it is printed: scores h = K v, a slack for each unordered pair, c = 2C/m^2."""
    m = len(y)
    values, vectors = np.linalg.eigh(gram)
    factor = vectors * np.sqrt(np.maximum(values, 0))
    pairs = np.array(list(combinations(range(m), 2)))
    differences = scipy.sparse.csc_array(factor[pairs[:, 1]] - factor[pairs[:, 0]])
    steps, n = y[pairs[:, 1]] - y[pairs[:, 0]], len(pairs)
    eye = scipy.sparse.eye_array(n, format="csc")
    quadratic = scipy.sparse.block_diag([2 * scipy.sparse.eye_array(m), scipy.sparse.csc_array((n, n))], format="csc")
    linear = np.concatenate([np.zeros(m), np.full(n, 2 * solver.C / m**2)])
    rows = scipy.sparse.block_array([[differences, -eye], [-differences, -eye], [None, -eye]], format="csc")
    bounds = np.concatenate([solver.eps + steps, solver.eps - steps, np.zeros(n)])
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
    cones = [clarabel.NonnegativeConeT(3 * n)]
    return clarabel.DefaultSolver(quadratic, linear, rows, bounds, cones, options).solve().obj_val


def pair_objective(solver: SVRank, gram: Floats, y: Floats, h: Floats) -> float:
    """The objective by the double sum, for centred scores h = K v of least norm."""
    m = len(y)
    centre = np.eye(m) - 1 / m
    v = np.linalg.lstsq(centre @ gram @ centre, h - h.mean(), rcond=1e-11)[0]
    r = h - y
    loss = np.maximum(np.abs(r[:, None] - r) - solver.eps, 0).sum()
    return float(v @ centre @ gram @ centre @ v + solver.C / m**2 * loss)


@pytest.mark.one_in(5)
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("eps", [0.0, 0.1, 0.7])
@pytest.mark.parametrize(
    ("kernel", "C"), [("linear", 1.0), ("linear", 100.0), ("gaussian", 100.0), ("polynomial", 10.0)]
)
def test_the_objective_is_that_of_a_qp_solver(form, eps, kernel, C):
    train = one_user(40, levels=True)
    solver = SVRank(C=C, eps=eps, kernel=kernel, width=1.5, form=form, tolerance=1e-8)
    step = last(solver, train)
    best = best_by_clarabel(solver, gram_of(solver, train.item_features), train.values)
    assert step.objective() == pytest.approx(best, rel=1e-7)
    assert -1e-12 <= step.gap() <= 1e-8 * step.objective()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial"])
def test_the_objective_is_the_double_sum_at_the_models_scores(form, kernel):
    train = one_user(30)
    solver = SVRank(C=30.0, eps=0.2, kernel=kernel, width=1.5, form=form)
    for step in solver.steps(train, stream(0)):
        h = step.model.score(np.zeros(30, int), np.arange(30))
        gram = gram_of(solver, train.item_features)
        assert step.objective() == pytest.approx(pair_objective(solver, gram, train.values, h), rel=1e-6)


@pytest.mark.parametrize("eps", [0.0, 0.3])
@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
@pytest.mark.parametrize("levels", [False, True])
def test_both_forms_agree(eps, kernel, levels):
    train = one_user(120, seed=4, levels=levels)
    solver = SVRank(C=50.0, eps=eps, kernel=kernel, tolerance=1e-8)
    pairs, residuals = (last(replace(solver, form=form), train) for form in FORMS)
    assert pairs.objective() == pytest.approx(residuals.objective(), rel=2e-8)
    items = np.arange(120)
    one, other = (step.model.score(0 * items, items) for step in (pairs, residuals))
    np.testing.assert_allclose(one, other, atol=1e-2)


# how it goes about it


def users_of_many_sizes() -> Ratings:
    """Users with 2 to 200 ratings, so that auto takes both forms."""
    whole = Magnitudes(users=6, items=220, features=5, per_user=200).view(np.random.default_rng(1))
    counts = [2, 3, 40, 149, 170, 200]
    kept = np.concatenate([np.arange(200 * user, 200 * user + count) for user, count in enumerate(counts)])
    return whole.take(kept)


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_auto_takes_pairs_where_they_are_few(kernel):
    train = users_of_many_sizes()
    auto, pairs, residuals = (table(SVRank(C=5.0, kernel=kernel, form=form), train) for form in ("auto", *FORMS))
    assert auto[:4].tobytes() == pairs[:4].tobytes() != residuals[:4].tobytes()
    assert auto[4:].tobytes() == residuals[4:].tobytes() != pairs[4:].tobytes()


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_users_of_many_sizes_get_the_same_bytes_on_any_number_of_threads(kernel, threads):
    train = users_of_many_sizes()
    solver = SVRank(C=5.0, kernel=kernel)
    assert table(solver, train, threads).tobytes() == table(solver, train).tobytes()


@pytest.mark.parametrize("kernel", ["linear", "gaussian", "precomputed"])
@pytest.mark.parametrize("form", FORMS)
def test_users_served_by_groups_score_as_with_the_whole_matrix(monkeypatch, form, kernel):
    train = users_of_many_sizes()
    if kernel == "precomputed":
        train = replace(train, item_features=rbf_kernel(train.item_features))
    solver = SVRank(C=5.0, kernel=kernel, form=form)
    expected = table(solver, train)
    monkeypatch.setattr(kernel_matrices, "FITS", 60)
    np.testing.assert_allclose(table(solver, train), expected, atol=1e-6)


def test_more_features_than_a_system_has_room_for_are_multiplied_with(monkeypatch):
    train = users_of_many_sizes()
    solver = SVRank(C=5.0, form="residuals", tolerance=1e-7)
    expected = last(solver, train).objective()
    monkeypatch.setattr(svrank, "_COLUMNS", 3)
    assert last(solver, train).objective() == pytest.approx(expected, rel=2e-7)


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csc_array])
@pytest.mark.parametrize("form", FORMS)
def test_sparse_features_give_the_objective_of_dense_ones(make, form):
    train = users_of_many_sizes()
    for kernel in ("linear", "gaussian"):
        solver = SVRank(C=5.0, kernel=kernel, form=form)
        dense = last(solver, train).objective()
        sparse = last(solver, replace(train, item_features=make(train.item_features))).objective()
        assert sparse == pytest.approx(dense, rel=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_items_with_the_same_features_are_no_trouble(form):
    train = one_user(24, levels=True)
    twins = replace(train, item_features=np.repeat(train.item_features[::2], 2, axis=0))
    solver = SVRank(C=50.0, eps=0.1, form=form, tolerance=1e-8)
    step = last(solver, twins)
    best = best_by_clarabel(solver, gram_of(solver, twins.item_features), twins.values)
    assert step.objective() == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial"])
@pytest.mark.parametrize("constant", ["features", "targets"])
def test_constant_features_or_targets_leave_nothing_to_learn(form, kernel, constant):
    train = one_user(12)
    if constant == "features":
        train = replace(train, item_features=np.ones((12, 2)))
    else:
        train = replace(train, values=np.full(12, 3.0))
    np.testing.assert_allclose(table(SVRank(kernel=kernel, form=form), train), train.values.mean(), rtol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_a_users_scores_have_the_mean_of_the_users_ratings(kernel):
    train = users_of_many_sizes()
    scores = table(SVRank(C=5.0, kernel=kernel), train)
    for user in range(train.n_users):
        rows = slice(train.indptr[user], train.indptr[user + 1])
        assert scores[user, train.items[rows]].mean() == pytest.approx(train.values[rows].mean(), abs=1e-9)


def test_auto_leaves_pairs_that_are_slow():
    train = one_user(60, features=4, levels=True)
    solver = SVRank(C=1e5, eps=0.0)
    auto = last(solver, train)
    assert auto.gap() <= 1e-5 * auto.objective()
    *_, slow = (step for step, _ in zip(replace(solver, form="pairs").steps(train, stream(0)), range(50), strict=False))
    assert slow.gap() > 1e-3 * slow.objective()


def test_auto_takes_five_steps_on_pairs_before_it_leaves_them():
    train, solver = one_user(60, features=4, levels=True), SVRank(C=1e5, eps=0.0)
    courses = (one.steps(train, stream(0)) for one in (solver, replace(solver, form="pairs")))
    same = [auto.objective() == pairs.objective() for auto, pairs, _ in zip(*courses, range(6), strict=False)]
    assert same == [True] * 5 + [False]


@pytest.mark.parametrize("form", ["auto", "residuals"])
@pytest.mark.parametrize("scale", [1e4, 1e6])
def test_the_objective_and_the_gap_of_huge_features_are_those_of_the_best_model_so_far(form, scale):
    train = one_user(12)
    train = replace(train, item_features=scale * train.item_features)
    steps = [(step.objective(), step.gap()) for step in SVRank(form=form).steps(train, stream(0))]
    objectives = [objective for objective, _ in steps]
    assert (np.diff(objectives) <= 1e-9 * objectives[0]).all()
    *_, step = SVRank(form=form).steps(train, stream(0))
    scores = step.model.score(np.zeros(12, int), train.items)
    gaps = np.abs(np.subtract.outer(scores, scores) - np.subtract.outer(train.values, train.values))
    loss = np.maximum(gaps - 0.1, 0).sum() / 12**2
    assert loss <= objectives[-1] <= 1.01 * loss + 1e-6


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_a_level_that_ends_higher_changes_nothing_for_features_of_many_sizes(C):
    rng = np.random.default_rng(5)
    features, values = 10 ** rng.uniform(1, 5, (20, 4)), rng.integers(1, 6, 20).astype(float)
    train = replace(Ratings.from_triples(np.zeros(20, int), np.arange(20), values, 1, 20), item_features=features)
    objectives = [step.objective() for step in SVRank(C=C, form="residuals").steps(train, stream(0))]
    assert (np.diff(objectives) <= 0).all()


@pytest.mark.trust
def test_huge_features_do_not_break_the_newton_system():
    train = one_user(40)
    huge = replace(train, item_features=1e3 * train.item_features)
    best = last(SVRank(C=1e5), huge).objective()  # auto
    step = last(SVRank(C=1e5, form="residuals"), huge)
    assert step.objective() == pytest.approx(best, rel=1e-3)  # its gap is beyond what rounding lets it prove


def test_a_wide_eps_asks_for_nothing():
    train = one_user(15)
    step = last(SVRank(eps=100.0), train)
    assert step.objective() == step.gap() == 0


def test_no_gap_is_below_zero():
    rng = np.random.default_rng(0)
    ratings = Ratings.from_triples(np.repeat(np.arange(20), 6), np.tile(np.arange(6), 20),
                                   rng.integers(1, 6, 120).astype(float), 20, 6, np.ones((6, 3)))  # fmt: skip
    gaps = [step.gap() for step in SVRank(form="pairs").steps(ratings, np.random.default_rng(0))]
    assert min(gaps) >= 0
